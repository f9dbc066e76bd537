"""How each variable comes about, in words and small curves: what a reader sees on choosing a node of the graph.

Everything but the equation of a linear model is drawn from the fitted model itself, so that every family of densities
is described in the same way and in the user's units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentdo.data.quantities import quantities
from latentdo.model.fitted import Array
from latentdo.model.mechanisms.base import AdditiveNoise
from latentdo.report.content import Effect, Regime
from latentdo.report.messages import chance, number
from latentdo.result import FitResult

_DRAWS = 4000  # and the seed of regime_quartiles: both show the same medians
_GRID = 9
_DRAWS_A_POINT = 200
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, eq=False)
class Cause:
    """A direct cause of a variable, and what it does to it with the other causes at their medians.

    ``curve`` holds, in standardised units, one row a point: the cause, then the 10 %, 50 % and 90 % quantiles of the
    effect. ``low`` and ``high`` are the cause's quartiles, ``before`` and ``after`` the medians that follow. Where the
    effect is not continuous, all three are its mean or the probability of a level; where the cause has levels, points
    are these, and ``low`` and ``high`` those with the smallest and the largest effect.
    """

    index: int
    name: str
    probability: float
    verb: str
    low: str
    high: str
    before: str
    after: str
    curve: Array
    has_levels: bool = False


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Where a variable's values come from."""

    index: int
    name: str
    usual: str
    equation: str | None
    noise: str | None
    causes: tuple[Cause, ...]
    effects: tuple[tuple[int, str], ...]
    changes: tuple[tuple[Regime, Effect], ...]


def mechanisms(result: FitResult, rows: list[Regime]) -> list[Mechanism]:
    """Describe the reference mechanism of every variable, and which regimes replace it.

    Parameters
    ----------
    result : FitResult
        What was found.
    rows : list of Regime
        From :func:`latentdo.report.content.regimes`.
    """
    z = result.model.sample(_DRAWS, 0, np.random.default_rng(0))
    quartiles = np.quantile(z, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
    for j, kind in enumerate(result.kinds):
        if kind.levels:  # whose middle is the commonest one
            quartiles[2, j] = np.bincount(z[:, j].astype(np.int64)).argmax()
    changed: dict[str, list[tuple[Regime, Effect]]] = {name: [] for name in result.columns}
    for row in rows:
        for effect in row.effects:
            changed[effect.name].append((row, effect))
    adjacency = result.model.topology.adjacency
    found = []
    for j, (name, kind) in enumerate(zip(result.columns, result.kinds, strict=True)):
        found.append(
            Mechanism(
                index=j,
                name=name,
                usual=_usual(result, j, z, quartiles),
                equation=_equation(result, j),
                noise=_noise(result, j),
                causes=tuple(
                    _cause(result, int(i), j, quartiles)
                    if not (result.kinds[i].levels or kind.is_discrete)
                    else _discrete_cause(result, int(i), j, quartiles)
                    for i in np.flatnonzero(adjacency[:, j])
                ),
                effects=tuple((int(k), result.columns[k]) for k in np.flatnonzero(adjacency[j])),
                changes=tuple(changed[name]),
            )
        )
    return found


def _cause(result: FitResult, i: int, j: int, quartiles: Array) -> Cause:
    points = np.append(np.linspace(quartiles[0, i], quartiles[4, i], _GRID), quartiles[[1, 3], i])
    setting = np.repeat(quartiles[[2]], _DRAWS_A_POINT, axis=0)
    drawn = []
    for point in points:
        setting[:, i] = point
        # the same noise at every point: a curve then bends only where the mechanism does
        values = result.model.draw_variable(setting, j, 0, np.random.default_rng(1))
        drawn.append(np.quantile(values, (0.1, 0.5, 0.9)))
    table = np.asarray(drawn)
    start, end = table[-2, 1], table[-1, 1]
    spread = max(float(quartiles[3, j] - quartiles[1, j]), 1e-12)
    inner = np.diff(table[:_GRID, 1])
    if np.ptp(table[:_GRID, 1]) < 0.02 * spread:
        verb = "hardly moves it"
    elif abs(inner.sum()) < 0.8 * np.abs(inner).sum():
        verb = "bends it"
    else:
        verb = "raises it" if inner.sum() > 0 else "lowers it"
    low, high = _units(result, i, quartiles[[1, 3], i])
    before, after = _units(result, j, np.array([start, end]))
    return Cause(
        index=i,
        name=result.columns[i],
        probability=float(result.edge_probabilities[i, j]),
        verb=verb,
        low=low,
        high=high,
        before=before,
        after=after,
        curve=np.column_stack([points[:_GRID], table[:_GRID]]),
    )


def _discrete_cause(result: FitResult, i: int, j: int, quartiles: Array) -> Cause:
    """The same where the cause has levels, or the effect is not continuous: means and probabilities."""
    levels = result.kinds[i].levels
    points = (
        np.arange(len(levels), dtype=np.float64)
        if levels
        else np.append(np.linspace(quartiles[0, i], quartiles[4, i], _GRID), quartiles[[1, 3], i])
    )
    setting = np.repeat(quartiles[[2]], _DRAWS, axis=0)
    drawn = []
    for point in points:
        setting[:, i] = point
        values = setting.copy()
        values[:, j] = result.model.draw_variable(setting, j, 0, np.random.default_rng(1))
        own = values[:, : len(result.columns)]
        drawn.append(own if result.kinds[j].is_discrete else result.preprocessor.inverse(own))
    asked = quantities(result.columns, result.kinds, [j], "median")
    tables = [(one, np.array([one.of(values) for values in drawn])) for one in asked]
    quantity, heights = max(tables, key=lambda pair: float(np.ptp(pair[1])))
    level = None if quantity.level is None else result.kinds[j].levels[quantity.level]
    start, end = (int(heights.argmin()), int(heights.argmax())) if levels else (-2, -1)
    before, after = (
        number(float(value)) if level is None else f"{level} {chance(value)}"
        for value in heights[[start, end]]
    )
    if levels:
        low, high, verb = levels[start], levels[end], "moves it"
    else:
        low, high = _units(result, i, quartiles[[1, 3], i])
        rises = heights[-1] > heights[-2]
        verb = ("raises it" if rises else "lowers it") if level is None else "moves it"
        heights = heights[:_GRID]
    return Cause(
        index=i,
        name=result.columns[i],
        probability=float(result.edge_probabilities[i, j]),
        verb=verb,
        low=low,
        high=high,
        before=before,
        after=after,
        curve=np.column_stack([points[: len(heights)], heights, heights, heights]),
        has_levels=bool(levels),
    )


def _usual(result: FitResult, j: int, z: Array, quartiles: Array) -> str:
    """What is usual of a variable in the reference."""
    kind = result.kinds[j]
    if kind.levels:
        shares = np.bincount(z[:, j].astype(np.int64), minlength=len(kind.levels)) / len(z)
        named = ", ".join(
            f"{level} {chance(share)}" for level, share in zip(kind.levels, shares, strict=True)
        )
        return f"In the reference: {named}."
    low, median, high = _units(result, j, quartiles[[0, 2, 4], j])
    if kind.kind == "count":
        return f"A count, in the reference mostly between {low} and {high}, mean {number(float(z[:, j].mean()))}."
    return f"In the reference mostly between {low} and {high}, median {median}."


def _units(result: FitResult, variable: int, z: Array) -> list[str]:
    values = result.preprocessor.inverse_column(result.columns[variable], z)
    return [number(float(value)) for value in values]


def _equation(result: FitResult, j: int) -> str | None:
    """The reference mechanism as one line, where it is linear in the user's units or in their logarithms."""
    form, prep = result.model.reference[j].linear_form, result.preprocessor
    if form is None or prep.transform == "rank-gaussian":
        return None
    parents = result.model.parents[j][: form.coefficients.size - 1]  # none, if they do not matter
    slopes = form.coefficients[1:] * prep.scale[j] / prep.scale[parents]
    constant = float(prep.mean[j] + prep.scale[j] * form.coefficients[0] - slopes @ prep.mean[parents])
    size = float(np.abs(slopes * prep.mean[parents]).sum() + abs(prep.mean[j]) + prep.scale[j])
    # what rounding leaves is not a constant
    terms = "" if abs(constant) < 1e-9 * size else number(constant)
    for i, slope in zip(parents, slopes, strict=True):
        sign = f" {_MINUS} " if slope < 0 else " + "
        terms += f"{sign}{number(abs(float(slope)))} · {_inside(result, int(i))}"
    terms = terms.removeprefix(" + ").replace(f" {_MINUS} ", _MINUS, 1) if terms.startswith(" ") else terms
    noise = number(float(prep.scale[j] * np.sqrt(form.variance)))
    return f"{_inside(result, j)} = {f'{terms} + ' if terms else ''}noise (standard deviation {noise})"


def _noise(result: FitResult, j: int) -> str | None:
    """The shape of the noise, of a mechanism that adds it to a function of the causes."""
    mechanism = result.model.reference[j]
    if not isinstance(mechanism, AdditiveNoise):
        return None
    count = mechanism.noise.weights.size
    shape = f"a mixture of {count} Gaussians"
    if mechanism.noise.is_row:
        shape = "nearly uniform" if mechanism.noise.is_flat else "skewed, with a sharp end"
    shape = "Gaussian" if count == 1 else shape
    if not mechanism.grows:
        return shape
    rises = mechanism.growth[1, -1] > mechanism.growth[1, 0]
    return f"{shape}, {'wider' if rises else 'narrower'} where the value is high"


def _inside(result: FitResult, variable: int) -> str:
    """A variable as it enters the linear equation."""
    name = " ".join(result.columns[variable].split())
    name = name if len(name) <= 24 else name[:23] + "…"
    transform = result.preprocessor.transform
    return {"none": name, "log": f"log({name})"}.get(transform, f"{transform}({name})")
