"""One table, checked once: the frozen :class:`Dataset` that every solver receives.

Anything a user may hand over (pandas, polars and pyarrow tables, arrays, nested lists; labels of any hashable
type; targets as a matrix, a table or a dict) becomes one canonical form here. Nothing is changed silently:
what cannot be used is refused with row, column and remedy.

``table`` turns tables into numbers, ``kinds`` says what the columns are, ``remarks`` what deserves a look, ``labels``
turns regimes and targets into integers, ``together`` says which rows belong together, ``weights`` how much they count,
``dataset`` joins them all.
"""

from latentdo.data.background import Background
from latentdo.data.circumstances import ROWS, Circumstances
from latentdo.data.dataset import Dataset, content_hash
from latentdo.data.kinds import KINDS, Kind
from latentdo.data.labels import REFERENCE_LABEL, is_unknown, is_writable
from latentdo.data.remarks import DataWarning
from latentdo.data.table import Missing, table_to_array, validate_rows
from latentdo.data.together import encode_groups, read_circumstances
from latentdo.data.weights import encode_weights

__all__ = [
    "KINDS",
    "REFERENCE_LABEL",
    "ROWS",
    "Background",
    "Circumstances",
    "DataWarning",
    "Dataset",
    "Kind",
    "Missing",
    "content_hash",
    "encode_groups",
    "encode_weights",
    "is_unknown",
    "is_writable",
    "read_circumstances",
    "table_to_array",
    "validate_rows",
]
