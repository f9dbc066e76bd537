"""What the command line says, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from latentdo.cli.messages import in_flags
from latentdo.names import visible

if TYPE_CHECKING:
    from latentdo.bootstrap import BootstrapDAG
    from latentdo.report.content import Edge, Effect
    from latentdo.result import FitResult

_MOST_EDGES = 60
_MOST_TARGETS = 8
_MOST_SEGMENTS = 20
_ARROW = "->"
_warned: set[str] = set()


def console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is: names from a file are neither markup nor emoji."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def say(text: str) -> None:
    """Print on standard output, wrapped on a terminal."""
    console().print(visible(text, keep="\n"), soft_wrap=not sys.stdout.isatty())


def complain(text: str) -> None:
    """Print on standard error, with flags where the library speaks of arguments."""
    console(stderr=True).print(visible(in_flags(text), keep="\n"), soft_wrap=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print standard JSON on standard output, and nothing else."""
    from latentdo.outputs import json_text

    sys.stdout.write(json_text(content))


def print_table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print records with the same keys as a table."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for key, value in rows[0].items():
        unbroken = len(_ARROW) if value == _ARROW else None
        table.add_column(
            key,
            justify="left" if isinstance(value, str) else "right",
            min_width=unbroken,
            no_wrap=unbroken is not None,
        )
    for row in rows:
        table.add_row(*(f"{v:.2f}" if isinstance(v, float) else visible(v) for v in row.values()))
    console().print(table)


def print_result(result: FitResult) -> None:
    """Print graph and regimes."""
    from latentdo.checks import abstention
    from latentdo.report.content import cautions, edges, headline, how_counted, regimes
    from latentdo.report.messages import chance, percent

    for sentence in abstention(result):
        if sentence not in _warned:  # as a fit has warned of it, and a file that was read has not
            say(f"{in_flags(sentence)}\n")
    for caution in cautions(result):
        warn(caution)
    rows = regimes(result)
    say(f"{' '.join(headline(result, rows))}\n")  # as at the top of the report
    found = edges(result)
    many = (
        f"{len(found)} edges, the most probable first"
        if len(found) > 1
        else "one edge"
        if found
        else "no edges"
    )
    say(f"Graph: {many}")
    surest = [
        {
            "cause": edge.cause,
            "": _ARROW,
            "effect": edge.effect,
            "probability": chance(edge.probability),
            "direction": _direction(edge),
        }
        for edge in found[:_MOST_EDGES]
    ]
    if surest:
        print_table(surest)
    if len(found) > _MOST_EDGES:
        say(f"... and {len(found) - _MOST_EDGES} more in adjacency.csv")
    groups = "" if result.n_groups is None else f"; {result.n_groups} groups of rows, each in one of them"
    duration = result.model.topology.duration
    lasting = f"; a new one is drawn after {duration:.3g} units of time on average" if duration else ""
    say(f"\nRegimes: {len(rows)}, the reference included{groups}{lasting}")
    print_table(
        [
            {
                "regime": row.name + (" (reference)" if row.index == 0 else ""),
                "rows": row.rows,
                **({} if row.groups is None else {"groups": row.groups}),
                "share": percent(row.share),
                "targets": _targets(row.effects),
            }
            for row in rows
        ]
    )
    if counted := how_counted(result, rows):
        say(counted)
    _print_segments(result)


def _print_segments(result: FitResult) -> None:
    """Print when regimes were there, what broke first, and what followed."""
    from latentdo.report.content import segments

    found = segments(result)
    if not found:
        return
    say(f"\nSegments: {len(found)}")
    kept = ["from", "to", "regime", "targets", "followed"]
    several = result.where.series is not None
    table = [{**row, "from": row["start"], "to": row["end"]} for row in found[:_MOST_SEGMENTS]]
    print_table([{name: row[name] for name in (["series"] if several else []) + kept} for row in table])
    if len(found) > _MOST_SEGMENTS:
        say(f"... and {len(found) - _MOST_SEGMENTS} more in segments.csv")


def print_bootstrap(boot: BootstrapDAG) -> None:
    """Print how often edges, targets and regimes returned."""
    from latentdo.report.content import cautions
    from latentdo.report.messages import chance, percent

    count = len(boot.resamples_)
    say(
        f"{count} resamples. Support is the share of them in which something is found again (standard error at most "
        f"{percent(0.5 / count**0.5)});\nprobability is that of the one fit to all rows."
    )
    kept = boot.edges_[(boot.edges_["support"] >= 0.1) | boot.edges_["best_graph"]].head(_MOST_EDGES)
    if len(kept):
        say(f"\nConsensus graph: {int(boot.adjacency_.to_numpy().sum())} edges")
        print_table(
            [
                {
                    "cause": row["cause"],
                    "": _ARROW,
                    "effect": row["effect"],
                    "support": percent(row["support"]),
                    "direction": percent(row["direction"]) if row["support"] > 0 else "-",
                    "probability": chance(row["probability"]),
                    "in": " and ".join(
                        name
                        for name, there in (
                            ("consensus", row["consensus"]),
                            ("best graph", row["best_graph"]),
                        )
                        if there
                    ),
                }
                for row in kept.to_dict("records")
            ]
        )
    say("\nRegimes of the fit to all rows; stability below 60 % means: do not rely on it")
    print_table(
        [
            {
                "regime": f"{name} (reference)" if k == 0 else str(name),
                "stability": percent(float(boot.regime_stability_["stability"].iloc[k])),
                "targets (support)": ", ".join(
                    f"{variable} ({percent(value)})"
                    for variable, value in boot.target_support_.iloc[k].items()
                    if value >= 0.1 or boot.estimator_.targets_.iloc[k][variable]
                )
                or "-",
            }
            for k, name in enumerate(boot.regime_stability_.index)
        ]
    )
    numbers = ", ".join(f"{regimes} in {times}" for regimes, times in boot.n_regimes_.items())
    say(f"Number of regimes found: {numbers} of {count} resamples")
    for caution in cautions(boot.estimator_.result_):
        warn(caution)


def _direction(edge: Edge) -> str:
    """What speaks against an arrow's direction: no data could tell, or the reverse is likelier over all graphs."""
    from latentdo.report.messages import chance

    if edge.reverse > edge.probability + 0.01:
        return f"reverse likelier ({chance(edge.reverse)})"
    return "open" if edge.open_direction else ""


def _targets(effects: Sequence[Effect]) -> str:
    """Targets in a few words; probabilities only where there is doubt."""
    from latentdo.report.messages import chance

    words = [
        f"{e.name} {e.short}" + (f" ({chance(e.probability)})" if e.probability < 0.99 else "")
        for e in effects[:_MOST_TARGETS]
    ]
    if len(effects) > _MOST_TARGETS:
        words.append(f"and {len(effects) - _MOST_TARGETS} more")
    return ", ".join(words) or "-"


def warn(text: str) -> None:
    """Print a warning, unless this run of the program has printed it before."""
    if text not in _warned:
        _warned.add(text)
        complain(f"warning: {text}")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show each warning once, as one line on standard error, without the place in the code that raised it."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        warn(str(message))

    _warned.clear()
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
