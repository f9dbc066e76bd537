"""Prior knowledge about the graph from a small file: forbidden and required edges, tiers, log-odds of edges.

TOML says everything::

    forbidden = [["Erk", "Raf"]]            # cause, effect
    required = [["Raf", "Mek"]]
    tiers = [["PKC", "PKA"], ["Raf", "Mek"], ["Erk"]]   # from early to late
    max_parents = 3

    [edge_prior]                            # log-odds: 0 is even, 2 is 88 %, -2 is 12 %
    others = -1.0                           # of the edges that are not named
    "Raf -> Erk" = 2.0

CSV is either a list of edges with the columns ``cause``, ``effect`` and ``knowledge`` (``forbidden``, ``required`` or
log-odds), or a square table of log-odds whose first column and first row hold names; empty cells are without opinion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs.constraints import Constraints, Edge, check_name, nearest, read_edges, read_tiers
from latentdo.messages import shown
from latentdo.readers import check_file, csv_rows, read_toml

_KEYS: Final = ("forbidden", "required", "tiers", "max_parents", "edge_prior")
_ARROW: Final = "->"
_OTHERS: Final = "others"


def read_knowledge(path: str | Path, columns: Sequence[str]) -> dict[str, Any]:
    r"""Read prior knowledge, and check that it names variables of the table and does not contradict itself.

    Parameters
    ----------
    path : str or Path
        A ``.toml`` or ``.csv`` file; see the module for what it may hold.
    columns : sequence of str
        Names of the variables, in the order of the table: that of a matrix of log-odds.

    Returns
    -------
    dict
        Arguments of :class:`~latentdo.LatentInterventionDAG`; only those that the file speaks of. Edges without an
        opinion in ``edge_prior`` get ``others``, by default :math:`-\tfrac12 \log d`, the default of the search.

    Raises
    ------
    ValueError
        If something is unknown or contradictory; the message names file, entry and remedy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "knowledge.toml"
    >>> _ = path.write_text('required = [["rain", "wet"]]')
    >>> read_knowledge(path, ["wet", "rain"])
    {'required': [('rain', 'wet')]}
    """
    path = Path(path)
    check_file(path, "with prior knowledge")
    names = [str(name) for name in columns]
    readers = {".toml": _read_toml, ".csv": _read_csv}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path.name} must be .toml or .csv to be read as prior knowledge.")
    try:
        found = reader(path, names)
        Constraints.build(names, **{key: value for key, value in found.items() if key != "edge_prior"})
    except ValueError as error:
        text = str(error)
        raise ValueError(text if path.name in text else f"{path.name}: {text}") from error
    return found


def _read_toml(path: Path, names: list[str]) -> dict[str, Any]:
    content = read_toml(path)
    for key in content:
        if key not in _KEYS:
            raise ValueError(f"there is no entry {key!r}{nearest(key, _KEYS)}")
    readers: dict[str, Callable[[Any], Any]] = {
        "forbidden": partial(read_edges, what="forbidden"),
        "required": partial(read_edges, what="required"),
        "tiers": read_tiers,
        "edge_prior": partial(_prior, names=names),
    }
    return {key: readers[key](value) if key in readers else value for key, value in content.items()}


def _prior(content: Any, names: list[str]) -> float | NDArray[np.float64]:
    """A number for all edges, or a table from "cause -> effect" to a number."""
    if isinstance(content, str):
        raise ValueError(f"edge_prior is the text {shown(content)}; write the number without quotes")
    if not isinstance(content, Mapping):
        return _number(content, "edge_prior")
    others = _number(content[_OTHERS], "edge_prior, others") if _OTHERS in content else None
    opinions: dict[Edge, float] = {}
    for key, value in content.items():
        if key == _OTHERS:
            continue
        pair = [part.strip() for part in key.split(_ARROW)]
        if len(pair) != 2:
            raise ValueError(f'edge_prior has the key {key!r}; write "cause -> effect", or others')
        if isinstance(value, str):
            raise ValueError(
                f"edge_prior of {key} is the text {shown(value)}; write the number without quotes"
            )
        _add(opinions, _edge(pair[0], pair[1], names, "edge_prior"), _number(value, f"edge_prior of {key}"))
    return _matrix(opinions, names, others)


def _read_csv(path: Path, names: list[str]) -> dict[str, Any]:
    rows = [(line, row) for line, row in csv_rows(path) if any(row)]
    if not rows:
        raise ValueError("the file is empty")
    header = [cell.strip() for cell in rows[0][1]]
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"line {number} has {len(row)} fields, but the first has {len(header)}")
    if [cell.lower() for cell in header] == ["cause", "effect", "knowledge"]:
        return _edge_list(rows[1:], names)
    return {"edge_prior": _square(header, rows[1:], names)}


def _edge_list(rows: Sequence[tuple[int, list[str]]], names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    opinions: dict[Edge, float] = {}
    for number, (cause, effect, text) in ((n, [cell.strip() for cell in row]) for n, row in rows):
        edge = _edge(cause, effect, names, f"line {number}")
        if text in ("forbidden", "required"):
            found.setdefault(text, []).append(edge)
        else:
            what = f"line {number}, knowledge {text!r} (forbidden, required, or log-odds)"
            _add(opinions, edge, _number(text, what))
    if opinions:
        found["edge_prior"] = _matrix(opinions, names, None)
    return found


def _square(
    header: list[str], rows: Sequence[tuple[int, list[str]]], names: list[str]
) -> NDArray[np.float64]:
    """A table of log-odds; rows and columns may be in any order, and some may be left out."""
    effects = header[1:]
    for name in effects:
        check_name(
            name, names, "line 1 (a CSV file is a list with cause, effect, knowledge, or a square table)"
        )
    opinions: dict[Edge, float] = {}
    for number, row in rows:
        cause = row[0].strip()
        check_name(cause, names, f"line {number}")
        for effect, text in zip(effects, row[1:], strict=True):
            if text.strip() and effect != cause:
                _add(opinions, (cause, effect), _number(text, f"line {number}, column {effect}"))
    return _matrix(opinions, names, None)


def _matrix(opinions: Mapping[Edge, float], names: list[str], others: float | None) -> NDArray[np.float64]:
    place = {name: j for j, name in enumerate(names)}
    matrix = np.full((len(names), len(names)), -0.5 * math.log(len(names)) if others is None else others)
    for (cause, effect), value in opinions.items():
        matrix[place[cause], place[effect]] = value
    return matrix


def _add(opinions: dict[Edge, float], edge: Edge, value: float) -> None:
    if edge in opinions:
        raise ValueError(f"the log-odds of {edge[0]} -> {edge[1]} are given twice; drop one")
    opinions[edge] = value


def _edge(cause: str, effect: str, names: list[str], where: str) -> Edge:
    for name in (cause, effect):
        check_name(name, names, where)
    if cause == effect:
        raise ValueError(f"{where} has the edge {cause} -> {effect}; a variable cannot cause itself")
    return (cause, effect)


def _number(value: Any, where: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):  # the last for an integer of 400 digits
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"{where} must be a finite number of log-odds; use forbidden or required for certainty"
        )
    return number
