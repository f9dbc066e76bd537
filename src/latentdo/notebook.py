"""What a notebook shows of results: a few sentences and tables, without a style or a script of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import pandas as pd

from latentdo.names import visible

_MOST: Final = 30  # rows of one table


class WordyTable(pd.DataFrame):
    """A table with sentences among its cells, which a notebook shows whole: pandas would cut them off.

    Whatever is made of it is an ordinary DataFrame.
    """

    def __repr__(self) -> str:
        return repr(pd.DataFrame(self))  # which names its class where it is empty

    def _repr_html_(self) -> str:
        plain = pd.DataFrame(self)
        if len(plain) == 0:
            return "<p>None.</p>"
        shown = plain.reset_index() if plain.index.name is not None else plain
        return _table(list(map(str, shown.columns)), shown.head(_MOST).to_numpy(dtype=object), len(shown))


def overview(summary: Mapping[str, Any], cautions: Sequence[str] = ()) -> str:
    """HTML of a fit: what to know before trusting it, the graph, and the regimes.

    Parameters
    ----------
    summary : mapping
        What :meth:`latentdo.result.FitResult.summary` says.
    cautions : sequence of str
        What speaks against the result.

    Examples
    --------
    >>> edge, regime = {"from": "a", "to": "b", "probability": 0.97}, {"name": 0, "weight": 1.0, "targets": []}
    >>> "97 %" in overview({"variables": ["a", "b"], "edges": [edge], "regimes": [regime]})
    True
    """
    edges = sorted(summary["edges"], key=lambda edge: -edge["probability"])
    hidden = summary["regimes"][1:]
    sizes = f"{len(edges)} direct effects among {len(summary['variables'])} variables"
    said = f"{sizes}; hidden interventions: {len(hidden)}"
    warned = "".join(f"<li>{_cell(caution)}</li>" for caution in cautions)
    before = f"<p><strong>Before you trust this:</strong></p><ul>{warned}</ul>" if warned else ""
    arrows = [(edge["from"], edge["to"], _percent(edge["probability"])) for edge in edges]
    changes = [
        (regime["name"], _percent(regime["weight"]), ", ".join(map(str, regime["targets"])) or "-")
        for regime in summary["regimes"]
    ]
    graph = _table(["cause", "effect", "probability"], arrows[:_MOST], len(arrows)) if arrows else ""
    regimes = _table(["regime", "share of rows", "targets"], changes[:_MOST], len(changes))
    return f"<div><p><strong>{said}</strong></p>{before}{graph}{regimes}</div>"


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]], total: int) -> str:
    left = 'style="text-align:left;white-space:normal;vertical-align:top"'
    head = "".join(f"<th {left}>{_cell(name)}</th>" for name in names)
    lines = ["".join(f"<td {left}>{_cell(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = f"<p>... and {total - len(lines)} more</p>" if total > len(lines) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return escape(visible(text))


def _percent(share: float) -> str:
    return "> 99 %" if share > 0.99 else "< 1 %" if share < 0.01 else f"{100 * share:.0f} %"
