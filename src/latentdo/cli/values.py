"""Values from a file or the environment as the words that a flag would take; what a flag could not take is refused."""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

_EDGES: Final = ("forbidden", "required")
_TIERS: Final = "tiers"
_KINDS: Final = "kinds"
_MAY_BE_EMPTY: Final = (*_EDGES, _TIERS, "drop")
"""Lists that say nothing when they are empty; of the others, an empty one would be mistaken for none."""

_LONGEST_INTEGER: Final = 64  # bits; no option has a use for more


def words_of_value(name: str, value: Any, hint: Any) -> list[str]:
    """The words of a value as TOML has it.

    Parameters
    ----------
    name : str
        Name of the option, as Python writes it.
    value
        What the file says.
    hint
        Type of the option.

    Raises
    ------
    ValueError
        If the value has another type, or another structure; the message names the entry.

    Examples
    --------
    >>> words_of_value("max_regimes", 8, int), words_of_value("drop", ["a b", "c"], list[str])
    (['8'], ['a b', 'c'])
    >>> words_of_value("forbidden", [["a", "b"], ["c", "d"]], list[tuple[str, str]])
    ['a', 'b', 'c', 'd']
    """
    from latentdo.graphs.constraints import read_edges, read_tiers

    if isinstance(value, list) and not value and name not in _MAY_BE_EMPTY:
        raise ValueError(f"{name!r} is an empty list; leave it out, or say what it is")
    if name in _EDGES:
        return [word for edge in read_edges(value, name) for word in edge]
    if name == _TIERS:
        return [_line(tier) for tier in read_tiers(value)]
    if name == _KINDS:
        return _kind_words(value)
    return _words(repr(name), value, hint)


def words_of_text(name: str, text: str, hint: Any) -> list[str]:
    """The words of an environment variable: all of it, or for an option that takes several, a list or words.

    Examples
    --------
    >>> words_of_text("device", "cuda 1", str), words_of_text("drop", "a 'b c'", list[str])
    (['cuda 1'], ['a', 'b c'])
    >>> words_of_text("required", '[["a", "b"]]', list[tuple[str, str]])
    ['a', 'b']
    """
    from latentdo.readers import parse_toml

    if not text.strip() and name != "separator":
        raise ValueError("it is empty; unset it, or say what it is")
    if get_origin(_plain(hint)) not in (list, tuple):
        return [text]
    if text.lstrip().startswith("["):
        try:
            content = parse_toml(f"list = {text}")
        except ValueError as error:
            raise ValueError(f'it is not a list such as ["a", "b"]: {error}') from error
        if list(content) != ["list"]:
            raise ValueError('it is more than one list such as ["a", "b"]')
        return words_of_value(name, content["list"], hint)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f'{error}; write a list such as ["a", "b"]') from error
    if name == _TIERS:
        return words_of_value(name, [names_in_line(word) for word in words], hint)
    if name == _KINDS:
        return [text]
    if name in _EDGES:
        return words_of_value(name, [words], hint)
    if get_origin(_plain(hint)) is tuple:
        _items("it", words, len(get_args(_plain(hint))))
    return words


def names_in_line(line: str) -> list[str]:
    """The names of a tier, which are written with commas between them.

    Examples
    --------
    >>> names_in_line('Raf, "a, b"')
    ['Raf', 'a, b']
    """
    try:
        return next(csv.reader([line], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ValueError(
            f"tiers: {line!r} is not a list of names with commas between them: {error}"
        ) from error


def kinds_in_lines(lines: Sequence[str]) -> dict[str, str]:
    """What columns are, which is written as ``name=kind`` with commas between them.

    Examples
    --------
    >>> kinds_in_lines(["clicks=count, failed=binary", '"a, b"=categorical'])
    {'clicks': 'count', 'failed': 'binary', 'a, b': 'categorical'}
    """
    found = {}
    for line in lines:
        for entry in re.findall(r'(?:"[^"]*"|[^,"])+', line):
            name, sign, kind = entry.strip().rpartition("=")
            if not sign or not name.strip():
                raise ValueError(f"kinds: {entry.strip()!r} is not of the form name=kind, as in clicks=count")
            found[name.strip().strip('"')] = kind.strip()
    return found


def _kind_words(value: Any) -> list[str]:
    """Kinds of columns from a file: a table, or text as on the command line."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return value
    if not isinstance(value, dict) or not all(isinstance(kind, str) for kind in value.values()):
        raise ValueError(
            f'{_KINDS!r} is {_shown(value)}, but must be a table such as {{clicks = "count"}}, or text such as '
            '"clicks=count"'
        )
    return [f'"{name}"={kind}' for name, kind in value.items()]


def takes_whole_numbers(hint: Any) -> bool:
    """Whether an option of this type is a whole number, or a list of them."""
    hint = _plain(hint)
    return (get_args(hint)[0] if get_origin(hint) is list else hint) is int


def _line(names: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="", quoting=csv.QUOTE_ALL).writerow(names)
    return buffer.getvalue()


def _words(where: str, value: Any, hint: Any) -> list[str]:
    hint = _plain(hint)
    inner = get_args(hint)
    if get_origin(hint) is list:
        items = _items(where, value)
        return [
            word for i, item in enumerate(items, 1) for word in _words(f"{where}, entry {i}", item, inner[0])
        ]
    if get_origin(hint) is tuple:
        items = _items(where, value, len(inner))
        return [
            word
            for i, (item, kind) in enumerate(zip(items, inner, strict=True), 1)
            for word in _words(f"{where}, entry {i}", item, kind)
        ]
    return [_word(where, value, str if get_origin(hint) is Literal else hint)]


def _items(where: str, value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or length not in (None, len(value)):
        form = "a list" if length is None else f"a list of {length}"
        raise ValueError(f"{where} is {_shown(value)}, but must be {form}, in square brackets")
    return value


def _word(where: str, value: Any, kind: Any) -> str:
    """One word; numbers may stand for names, which are text, but nothing else stands for anything else."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and value.bit_length() > _LONGEST_INTEGER:
        raise ValueError(f"{where} is {_shown(value)}, which is too large")
    if kind is bool and isinstance(value, bool):
        return str(value).lower()
    if kind is int and is_whole:
        return str(value)
    if kind is float and (is_whole or isinstance(value, float)):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{where} is {value}, but must be a finite number")
        return repr(value)
    if kind in (str, Path) and (is_whole or isinstance(value, str)):
        return str(value)
    form = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "text, in quotes")
    raise ValueError(f"{where} is {_shown(value)}, but must be {form}")


def _plain(hint: Any) -> Any:
    """The type of an option that may be left out."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    return hint


def _shown(value: Any) -> str:
    from latentdo.messages import shown

    return f"the text {shown(value)}" if isinstance(value, str) else shown(value)
