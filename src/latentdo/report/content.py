"""What the report says was found, in plain words; how it looks is the template's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentdo.checks import abstention
from latentdo.model.fitted import Array
from latentdo.plots.changes import discrete_change, quartiles_of, regime_draws
from latentdo.report.messages import cell, chance, count, listed, number, percent, short
from latentdo.result import FitResult
from latentdo.solvers.settings import SCEPTICISM

_ROWS_A_VARIABLE = 10
_SAME_SHARE = 0.01  # what a table in whole per cent can show
_TIMES = "\N{MULTIPLICATION SIGN}"


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
    groups: int | None
    share: float
    certainty: float | None
    effects: tuple[Effect, ...]
    downstream: tuple[str, ...] = ()


_MOST_SEGMENTS = 200
_HIDDEN = "hidden interventions"
_CLOSE = 10.0  # nats; a few rows more or less change evidence by as much
_SAME_EVIDENCE = 0.5  # nats


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
    groups = None
    if result.groups is not None:
        leaders = np.unique(result.groups, return_index=True)[1]
        groups = np.bincount(best[leaders], minlength=result.n_regimes)
    draws = regime_draws(result)
    quartiles = quartiles_of(draws)
    rows = []
    for k in range(result.n_regimes):
        own = result.responsibilities[best == k, k]
        rows.append(
            Regime(
                index=k,
                name=str(result.regime_names[k]),
                rows=int(counts[k]),
                groups=None if groups is None else int(groups[k]),
                share=float(topology.weights[k]),
                certainty=float(own.mean()) if own.size else None,
                effects=tuple(
                    _discrete_effect(result, k, j, draws)
                    if result.kinds[j].is_discrete
                    else _effect(result, k, j, quartiles)
                    for j in result.ranked_targets(k)
                ),
                downstream=tuple(result.columns[j] for j in result.followers(k)),
            )
        )
    return rows


def how_counted(result: FitResult, rows: Sequence[Regime]) -> str:
    """Why rows and shares of regimes disagree, if they do by a percentage point or more."""
    units = [row.rows if row.groups is None else row.groups for row in rows]
    total = max(sum(units), 1)
    if result.where.weight is not None or all(
        abs(unit / total - row.share) < _SAME_SHARE for unit, row in zip(units, rows, strict=True)
    ):
        return ""
    what = "group" if result.groups is not None else "row"
    return (
        f"Each {what} is counted in its likeliest regime; in the shares, {what}s that could belong to several regimes "
        "count in part for each of them."
    )


def segments(result: FitResult) -> list[dict[str, str]]:
    """Stretches of time that regimes lasted, in words; the first ones, if there are many."""
    if result.segments is None:
        return []
    dated = result.where.dated
    return [
        {
            "series": str(row.get("series", "")),
            "start": row["start"].strftime("%Y-%m-%d %H:%M:%S") if dated else number(row["start"]),
            "end": row["end"].strftime("%Y-%m-%d %H:%M:%S") if dated else number(row["end"]),
            "rows": str(row["rows"]),
            "regime": str(row["regime"]),
            "probability": chance(row["probability"]),
            "targets": row["targets"],
            "followed": row["followed"],
        }
        for row in result.segments.head(_MOST_SEGMENTS).to_dict("records")
    ]


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


def _discrete_effect(result: FitResult, k: int, j: int, draws: Array) -> Effect:
    """Compare the mean of a count, or the share of the level that changes most, with the reference."""
    one = discrete_change(result, draws, k, j)
    level = None if one.quantity.level is None else result.kinds[j].levels[one.quantity.level]
    if level is None:
        ratio = one.after / one.before if one.before > 0 else math.inf
        before, after = number(one.before), number(one.after)
        if 0.87 < ratio < 1.15:
            words, brief = "rewired, similar mean", "rewired"
        else:
            verb = "raised" if ratio > 1 else "lowered"
            words, brief = f"mean {verb}, {_TIMES} {number(ratio)}", f"{_TIMES}{number(ratio)}"
    else:
        before, after = (f"{level}: {percent(share)}" for share in (one.before, one.after))
        if abs(one.after - one.before) < 0.05:
            words, brief = "rewired, similar shares", "rewired"
        else:
            often = "more" if one.after > one.before else "less"
            words, brief = f"{level} {often} often", f"{level} {percent(one.after)}"
    return Effect(
        name=result.columns[j],
        words=words,
        short=brief,
        before=before,
        after=after,
        probability=float(result.target_probabilities[k, j]),
    )


def headline(result: FitResult, rows: list[Regime]) -> list[str]:
    """The result in a few sentences."""
    n, d = len(result.responsibilities), len(result.columns)
    found = edges(result)
    hidden = [row for row in rows[1:] if row.rows]
    targets = sorted({effect.name for row in hidden for effect in row.effects}, key=result.columns.index)
    together = (
        ""
        if result.n_groups is None
        else f", in {count(result.n_groups, 'group')} of rows with one regime each"
    )
    counting = "" if result.where.weight is None else f", which count for {number(result.where.total(n))},"
    opening = (
        f"In {n} rows{counting} of {d} variables{together}, latentdo found {count(len(found), 'direct effect')} and "
        f"{count(len(hidden), 'intervention')}."
    )
    sentences = [opening]
    if hidden and result.model.topology.duration:
        lasting = result.model.topology.duration / (1.0 - result.model.topology.weights)
        sentences.append(
            "Rows are in order of time: a regime lasts "
            f"{number(float(lasting.min()))} to {number(float(lasting.max()))} units of it on average."
        )
    if not hidden:
        sentences.append(
            "No group of rows behaves as if there had been an intervention: all rows follow the same mechanisms."
        )
        if (lacking := _nearly_found(result)) is not None:
            sentences.append(
                f"This was close: with {lacking:.1f} nats more evidence, a hidden intervention would have been "
                "reported. More rows would tell."
            )
    elif targets:
        subject = "The intervention" if len(hidden) == 1 else "The interventions"
        sentences.append(f"{subject} changed {listed(targets)}.")
    if not result.has_observational:
        sentences.append(
            "No row counts as free of interventions; the reference is the mechanism that most regimes share."
        )
    if found:
        surest = found[0]
        sentences.append(
            f"The surest effect is {short(surest.cause)} → {short(surest.effect)} "
            f"({chance(surest.probability)})."
        )
        doubtful = sum(edge.probability < 0.9 or edge.open_direction for edge in found)
        if doubtful:
            sentences.append(
                f"{count(doubtful, 'effect')} of the graph should be read as a hint: a probability below 90 %, or a "
                "direction that these data cannot settle."
            )
    return sentences


def _nearly_found(result: FitResult) -> float | None:
    """By how much hidden interventions failed to win clearly, in nats, if that is little."""
    evidence = {entry.get("model"): float(entry["evidence"]) for entry in result.comparison}
    rivals = [value for model, value in evidence.items() if str(model).startswith("one regime")]
    if _HIDDEN not in evidence or not rivals:
        return None
    asked = SCEPTICISM * math.log(result.where.total(len(result.responsibilities)))
    lacking = rivals[0] + asked - evidence[_HIDDEN]
    return lacking if 0.0 <= lacking < _CLOSE else None


def cautions(result: FitResult) -> list[str]:
    """What a reader should know before trusting the result: first what the rows have against it."""
    found = [str(one["words"]) for one in result.checks if one["failed"]]
    if result.status != "converged":
        found.append(f"The fit is {result.status}{f': {result.message}' if result.message else ''}.")
    found += [words for words in result.warnings if words not in (*found, *abstention(result))]
    n, d = len(result.responsibilities), len(result.columns)
    if n < _ROWS_A_VARIABLE * d:
        found.append(
            f"{n} rows of {d} variables can show little: with more rows, further arrows or regimes might be found. "
            f"Use at least about {_ROWS_A_VARIABLE} rows per variable in every regime."
        )
    return found


def choice(result: FitResult) -> list[str]:
    """Why a family of mechanisms was chosen over one with more evidence, and which models are compared apart."""
    families = [entry for entry in result.comparison if str(entry.get("model", "")).endswith(" mechanisms")]
    models = {entry.get("model") for entry in result.comparison}
    found = []
    chosen = [entry for entry in families if entry.get("chosen")]
    if chosen and any(entry["evidence"] > chosen[0]["evidence"] for entry in families):
        found.append(
            f"The {chosen[0]['model']} were chosen although others have a little more evidence: a more flexible "
            f"family has to win clearly, by {SCEPTICISM:g} times the logarithm of the number of rows."
        )
    apart = {_HIDDEN, "one regime, flexible noise"} <= models
    if (
        families and apart and "one regime, Gaussian noise" not in models
    ):  # lines have Gaussian noise in regimes
        found.append(
            "The rows “hidden interventions” and “one regime, flexible noise” are a separate comparison, with equally "
            "flexible noise on both sides; do not compare their evidence with that of the other rows."
        )
    last = [entry for entry in result.comparison if entry.get("chosen")][-1:]
    if last and not apart and abs(last[0]["evidence"] - result.evidence) > _SAME_EVIDENCE:
        found.append(
            f"The evidence of the final fit is {result.evidence:,.1f}: after this comparison, regimes were looked for "
            "once more, or hidden digits and missing cells were filled in again."
        )
    return found


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
            (str(key), " ".join(map(cell, value)) if isinstance(value, list | tuple) else cell(value))
            for key, value in said.items()
        ]
    return [("", str(sentence)) for sentence in said]
