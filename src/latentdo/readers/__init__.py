"""Whatever a user hands in as a file: read as it says, or refused with file, row, column and remedy.

``files`` says whether there is a file and opens it, ``text`` reads CSV, ``toml`` TOML, ``arrow`` Parquet and Feather,
``cells`` AnnData; ``table`` makes a table of numbers of them. Nothing else in the package opens such files by itself.
"""

from latentdo.readers.arrow import read_arrow
from latentdo.readers.files import UNPACKED_VARIABLE, check_file
from latentdo.readers.table import read_table
from latentdo.readers.text import csv_rows, read_csv
from latentdo.readers.toml import parse_toml, read_toml

__all__ = [
    "UNPACKED_VARIABLE",
    "check_file",
    "csv_rows",
    "parse_toml",
    "read_arrow",
    "read_csv",
    "read_table",
    "read_toml",
]
