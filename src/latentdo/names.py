r"""Names that leave the program: visible on screens and pages, harmless in spreadsheets.

A name is whatever stood in the user's table. :func:`visible` makes visible what would hide or reorder text;
:func:`to_cell` keeps spreadsheets from running a name as a formula, and :func:`from_cell` undoes it exactly.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["from_cell", "to_cell", "visible"]

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of Unicode without a shape: control, format (such as bidirectional), surrogate, private, unassigned."""

_FORMULA: Final = re.compile(r"'*[=+\-@\t\r]", re.DOTALL)
_NUMBER: Final = re.compile(r"'*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def visible(text: object, keep: str = "") -> str:
    r"""Text for people: control characters, invisible and bidirectional ones as Python writes them; ``keep`` stay.

    Examples
    --------
    >>> print(visible("a\u202eb"), visible("tab\tbed"), visible("Δ µ"), visible("two\nlines", keep="\n").count("\n"))
    a\u202eb tab\tbed Δ µ 1
    """
    plain = str(text)
    if plain.isascii() and plain.isprintable():  # nearly always
        return plain
    return "".join(
        letter.encode("unicode_escape").decode("ascii")
        if unicodedata.category(letter) in _HIDDEN and letter not in keep
        else letter
        for letter in plain
    )


def to_cell(text: str) -> str:
    """A name as it stands in a CSV file: an apostrophe before what a spreadsheet would run as a formula.

    Spreadsheets take text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return for a formula.
    Numbers stay as they are.

    Examples
    --------
    >>> to_cell("=1+1"), to_cell("-1.5"), to_cell("Raf"), to_cell("'=x")
    ("'=1+1", '-1.5', 'Raf', "''=x")
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(text: str) -> str:
    """Undo :func:`to_cell`.

    Examples
    --------
    >>> [from_cell(to_cell(name)) for name in ("=1+1", "-1.5", "Raf", "'=x", "'", "'-2")]
    ['=1+1', '-1.5', 'Raf', "'=x", "'", "'-2"]
    """
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
