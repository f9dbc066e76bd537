"""What the report says: facts in plain words, drawn from a :class:`FitResult`; how they look is the template's."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.bootstrap import BootstrapDAG
from latentdo.model.fitted import Array
from latentdo.plots import regime_quartiles
from latentdo.result import FitResult

__all__ = [
    "CITATION",
    "Edge",
    "Effect",
    "Regime",
    "Support",
    "assignment",
    "cautions",
    "chance",
    "doubtful_rows",
    "edges",
    "headline",
    "installed_versions",
    "number",
    "percent",
    "regimes",
    "row_data",
    "sentences",
    "settings",
    "support_tables",
    "table",
]

CITATION: Final = (
    "Gonçalo R. A. Faria, André F. T. Martins and Mário A. T. Figueiredo. Differentiable Causal Discovery Under "
    "Latent Interventions. First Conference on Causal Learning and Reasoning (CLeaR), 2022. arXiv:2203.02336."
)

_MOST_ROWS = 20_000
_ROWS_A_VARIABLE = 10
_MOST_SUPPORTED = 60
_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_PACKAGES = ("latentdo", "numpy", "scipy", "pandas", "scikit-learn", "torch", "numba")


@dataclass(frozen=True)
class Edge:
    """A direct effect that the graph contains."""

    cause: str
    effect: str
    probability: float
    reverse: float
    open_direction: bool


@dataclass(frozen=True)
class Effect:
    """What a regime did to one of its targets, in the user's units."""

    name: str
    words: str
    short: str
    before: str
    after: str
    probability: float


@dataclass(frozen=True)
class Regime:
    """One row of the regimes table."""

    index: int
    name: str
    rows: int
    share: float
    certainty: float | None
    effects: tuple[Effect, ...]


@dataclass(frozen=True, eq=False)
class Support:
    """What resampled rows say: shares of the resamples that agree.

    Parameters
    ----------
    n_resamples : int
        How often the fit was repeated.
    edges : ndarray [d, d]
        Share of the resamples with each directed edge.
    targets : ndarray [n_regimes, d], optional
        Share of the resamples in which a regime has a variable as its target.
    stability : ndarray [n_regimes], optional
        How well each regime's rows were found again, from 0 to 1.
    resample : {"half", "bootstrap"}
        Half of the rows, or as many as there are, drawn with replacement.
    """

    n_resamples: int
    edges: Array
    targets: Array | None = None
    stability: Array | None = None
    resample: str = "half"

    @classmethod
    def of(cls, bootstrap: BootstrapDAG) -> Self:
        """What a fitted bootstrap says."""
        return cls(
            n_resamples=len(bootstrap.resamples_),
            edges=bootstrap.edge_support_.to_numpy(np.float64),
            targets=bootstrap.target_support_.to_numpy(np.float64),
            stability=bootstrap.regime_stability_["stability"].to_numpy(np.float64),
            resample=bootstrap.resample,
        )


def number(value: float) -> str:
    """Three significant digits, without an exponent where people would not write one.

    Examples
    --------
    >>> number(1234.5), number(0.012345), number(-3.0), number(1.2e9)
    ('1230', '0.0123', '−3', '1.2e+09')
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: f"{_MINUS}∞"}.get(value, "?")
    if 1e3 <= abs(value) < 1e6:
        text = str(round(value, 2 - math.floor(math.log10(abs(value))))).removesuffix(".0")
    else:
        text = f"{value:.3g}"
    return f"{_MINUS}{text[1:]}" if text.startswith("-") else text


def percent(value: float) -> str:
    """A share of the whole.

    Examples
    --------
    >>> percent(0.5), percent(0.999), percent(0.0001), percent(1.0)
    ('50 %', '> 99 %', '< 1 %', '100 %')
    """
    return chance(value) if 0.0 < value < 1.0 else f"{round(100 * value)} %"


def chance(value: float) -> str:
    """A probability that never claims certainty, which only rounding could suggest.

    Examples
    --------
    >>> chance(0.5), chance(1.0), chance(0.0)
    ('50 %', '> 99 %', '< 1 %')
    """
    if value > 0.99:
        return "> 99 %"
    return "< 1 %" if value < 0.01 else f"{round(100 * value)} %"


def edges(result: FitResult) -> list[Edge]:
    """The edges of the graph, the surest first."""
    ambiguous = result.ambiguous_edges()
    left_open = {
        frozenset(pair)
        for pair in ambiguous.loc[ambiguous["undirected"].astype(bool), ["source", "target"]].itertuples(
            index=False, name=None
        )
    }
    found = [
        Edge(
            result.columns[i],
            result.columns[j],
            float(result.edge_probabilities[i, j]),
            float(result.edge_probabilities[j, i]),
            frozenset((result.columns[i], result.columns[j])) in left_open,
        )
        for i, j in np.argwhere(result.model.topology.adjacency)
    ]
    return sorted(found, key=lambda edge: -edge.probability)


def regimes(result: FitResult) -> list[Regime]:
    """The regimes with their sizes, targets and effects; the reference first."""
    best, topology = result.regimes, result.model.topology
    counts = np.bincount(best, minlength=result.n_regimes)
    draws = regime_quartiles(result)
    rows = []
    for k in range(result.n_regimes):
        own = result.responsibilities[best == k, k]
        rows.append(
            Regime(
                index=k,
                name=str(result.regime_names[k]),
                rows=int(counts[k]),
                share=float(topology.weights[k]),
                certainty=float(own.mean()) if own.size else None,
                effects=tuple(_effect(result, k, int(j), draws) for j in np.flatnonzero(topology.targets[k])),
            )
        )
    return rows


def _effect(result: FitResult, k: int, j: int, quartiles: Array) -> Effect:
    """Compare a target's median and spread in its regime with the reference."""
    before, after = quartiles[0, :, j], quartiles[k, :, j]
    spread, new_spread = before[2] - before[0], after[2] - after[0]
    shift = after[1] - before[1]
    ratio = after[1] / before[1] if before[1] > 0 and after[1] > 0 else math.nan
    verb = "raised" if shift > 0 else "lowered"
    factor = new_spread / spread if spread > 0 else math.nan
    if factor < 0.02:
        words, short = "held almost constant", "fixed"
    elif abs(shift) < 0.15 * spread:
        if 0.8 < factor < 1.25:
            words, short = "rewired, similar range", "rewired"
        else:
            short = f"spread {_TIMES}{number(factor)}"
            words = f"spread {_TIMES} {number(factor)}, similar median"
    elif result.preprocessor.transform in ("log", "log1p") and math.isfinite(ratio):
        words, short = f"{verb}, {_TIMES} {number(ratio)}", f"{_TIMES}{number(ratio)}"
    else:
        words, short = f"{verb} by {number(abs(shift))}", f"{'+' if shift > 0 else ''}{number(shift)}"
    return Effect(
        name=result.columns[j],
        words=words,
        short=short,
        before=number(float(before[1])),
        after=number(float(after[1])),
        probability=float(result.target_probabilities[k, j]),
    )


def assignment(result: FitResult) -> str:
    """How surely the rows were assigned, in one sentence."""
    best = result.responsibilities.max(axis=1)
    sure = float((best > 0.95).mean())
    if result.n_regimes == 1:
        return "There is one regime, and every row belongs to it."
    text = f"{percent(sure)} of the rows belong to their regime with a probability above 95 %"
    close = int((best < 0.6).sum())
    if close:
        text += f"; for {_count(close, 'row')} the likeliest regime has less than 60 %"
    return f"{text}."


def doubtful_rows(result: FitResult, numbers: NDArray[Any], most: int = 12) -> list[dict[str, Any]]:
    """The rows whose regime is least certain, with their two likeliest regimes."""
    if result.n_regimes == 1:
        return []
    probabilities = result.responsibilities
    order = np.argsort(probabilities.max(axis=1), kind="stable")[:most]
    found = []
    for row in order[probabilities[order].max(axis=1) < 0.95]:
        second, best = np.argsort(probabilities[row], kind="stable")[-2:]
        found.append(
            {
                "row": str(numbers[row]),
                "best": str(result.regime_names[best]),
                "probability": float(probabilities[row, best]),
                "second": str(result.regime_names[second]),
                "second_probability": float(probabilities[row, second]),
            }
        )
    return found


def row_data(result: FitResult, numbers: NDArray[Any]) -> dict[str, str] | None:
    """The two likeliest regimes of every row as JSON, for looking one up; None for very long tables."""
    n = len(result.responsibilities)
    counted = np.issubdtype(np.asarray(numbers).dtype, np.integer)
    if result.n_regimes == 1 or n > _MOST_ROWS or not counted:
        return None
    order = np.argsort(-result.responsibilities, axis=1, kind="stable")[:, :2]
    share = np.take_along_axis(result.responsibilities, order, axis=1)
    # rounded away from certainty, as everywhere in the report
    whole = np.where(
        share > 0.99, 100, np.where(share < 0.01, 0, np.clip(np.rint(100 * share), 1, 99))
    ).astype(int)
    rows = [
        [int(a), int(p)] if q == 0 else [int(a), int(p), int(b), int(q)]
        for (a, b), (p, q) in zip(order, whole, strict=True)
    ]
    plain = np.array_equal(numbers, np.arange(n))
    return {
        "rows": json.dumps(rows, separators=(",", ":")),
        "labels": "null" if plain else json.dumps([int(v) for v in numbers], separators=(",", ":")),
        "names": json.dumps([str(name) for name in result.regime_names]),
    }


def sentences(said: Mapping[str, Any] | Sequence[str] | None) -> list[tuple[str, str]]:
    """What ``diagnose()`` says as pairs of heading and sentence.

    Examples
    --------
    >>> sentences({"regimes": ["Few rows.", "One hidden."], "sure": True}), sentences(["Plain."])
    ([('regimes', 'Few rows. One hidden.'), ('sure', 'yes')], [('', 'Plain.')])
    """
    if said is None:
        return []
    if isinstance(said, str):
        return [("", said)]
    if isinstance(said, Mapping):
        return [
            (str(key), " ".join(map(_cell, value)) if isinstance(value, list | tuple) else _cell(value))
            for key, value in said.items()
        ]
    return [("", str(sentence)) for sentence in said]


def support_tables(result: FitResult, support: Support) -> dict[str, Any]:
    """Bootstrap support beside what the fit itself says, the most supported arrows first."""
    adjacency = result.model.topology.adjacency
    shown = np.argwhere((adjacency == 1) | (support.edges >= 0.1)).tolist()
    shown.sort(key=lambda edge: -support.edges[edge[0], edge[1]])
    targets = []
    if support.targets is not None:
        for k, j in np.argwhere(result.model.topology.targets == 1):
            targets.append(
                {
                    "regime": str(result.regime_names[k]),
                    "stability": None if support.stability is None else float(support.stability[k]),
                    "target": result.columns[j],
                    "support": float(support.targets[k, j]),
                }
            )
    return {
        "n_resamples": support.n_resamples,
        "halves": support.resample == "half",
        "edges": [
            {
                "cause": result.columns[i],
                "effect": result.columns[j],
                "support": float(support.edges[i, j]),
                "reverse": float(support.edges[j, i]),
                "probability": float(result.edge_probabilities[i, j]),
                "in_graph": bool(adjacency[i, j]),
            }
            for i, j in shown[:_MOST_SUPPORTED]
        ],
        "targets": targets,
    }


def headline(result: FitResult, rows: list[Regime]) -> list[str]:
    """The result in a few sentences."""
    n, d = len(result.responsibilities), len(result.columns)
    found = edges(result)
    hidden = [row for row in rows[1:] if row.rows]
    targets = sorted({effect.name for row in hidden for effect in row.effects}, key=result.columns.index)
    opening = (
        f"In {n} rows of {d} variables, latentdo found {_count(len(found), 'direct effect')} and "
        f"{_count(len(hidden), 'intervention')}."
    )
    sentences = [opening]
    if not hidden:
        sentences.append("No group of rows behaves as if something had intervened: all follow one mechanism.")
    elif targets:
        sentences.append(f"The interventions changed {_listed(targets)}.")
    if not result.has_observational:
        sentences.append(
            "No row counts as free of intervention; the reference is what most regimes share for each variable."
        )
    if found:
        surest = found[0]
        sentences.append(
            f"The surest effect is {_short(surest.cause)} → {_short(surest.effect)} "
            f"({chance(surest.probability)})."
        )
        doubtful = sum(edge.probability < 0.9 or edge.open_direction for edge in found)
        if doubtful:
            sentences.append(
                f"{_count(doubtful, 'effect')} of the graph should be read as a hint: a probability below 90 %, or a "
                "direction that these data cannot tell."
            )
    return sentences


def cautions(result: FitResult) -> list[str]:
    """What a reader should know before trusting the result."""
    found = []
    if result.status != "converged":
        found.append(f"The fit is {result.status}{f': {result.message}' if result.message else ''}.")
    found += result.warnings
    n, d = len(result.responsibilities), len(result.columns)
    if n < _ROWS_A_VARIABLE * d:
        found.append(
            f"{n} rows of {d} variables can show little: an arrow or a regime that is missing here may only need more "
            f"rows. About {_ROWS_A_VARIABLE} rows a variable, in every regime, are the least."
        )
    targets, weights = result.model.topology.targets, result.model.topology.weights
    broad = int(((targets.mean(axis=1) > 0.5) & (weights > 0)).sum())
    if len(result.columns) > 3 and broad:
        subject = "One regime changes" if broad == 1 else f"{broad} regimes change"
        found.append(
            f"{subject} more than half of the variables: this looks less like an intervention than like another "
            "population, or like data that the chosen density does not describe."
        )
    return found


def table(entries: tuple[Mapping[str, Any], ...]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of records that need not have the same keys; what was chosen and its evidence stand last."""
    keys = sorted({str(key) for entry in entries for key in entry})
    keys.sort(key=lambda key: (key == "chosen", "evidence" in key, key not in ("model", "density")))
    return keys, [[_cell(entry.get(key, "")) for key in keys] for entry in entries]


def settings(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Configuration as pairs of text, by name (a saved file does not keep the order)."""
    return sorted((str(key), _cell(value)) for key, value in values.items())


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide about numbers."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}" if 1e3 <= abs(value) < 1e9 else number(value)
    if isinstance(value, str):
        return value
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= 300 else text[:299] + "…"


def _count(value: int, noun: str) -> str:
    return f"{'no' if value == 0 else value} {noun}{'' if value == 1 else 's'}"


def _listed(names: list[str], most: int = 8) -> str:
    shown = [_short(name) for name in names]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more variables"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _short(name: str, length: int = 40) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"
