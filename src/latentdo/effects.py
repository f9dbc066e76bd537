r"""What a fitted model says would happen, and why it put a row where it did.

Both questions are answered through the interface of :class:`FittedModel` alone (drawing a variable given its parents,
and its log-density), so any family of densities will do. Effects compare two worlds with the same noise: one as it is,
one with an intervention on top of a regime.

How sure an effect is has two parts, kept apart because they mean different things. *Whether* there is an effect is the
posterior probability of a causal path, summed over graphs. *How large* it is, given the graph, has an interval from the
sampling distribution of the parameters: for linear mechanisms
:math:`\hat b_j \sim N(b_j, \sigma_j^2 M_j^{-1} / n_j)` and
:math:`\hat\sigma_j^2 \sim \sigma_j^2 \, \mathrm{df} / \chi^2_\mathrm{df}`, with :math:`M_j` the second moments of
intercept and parents over the :math:`n_j` rows that share the mechanism, which the model itself implies. Other families
have no such formula here: their tables say so and have no interval, rather than one that is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.kinds import CONTINUOUS, Kind
from latentdo.data.quantities import quantities
from latentdo.data.transforms import Preprocessor
from latentdo.graphs import reachability, topological_order
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.mechanisms import LinearForm, LinearMechanism, Noise
from latentdo.model.series import Series
from latentdo.result import FitResult, Rows

__all__ = [
    "NO_INTERVAL",
    "Contrast",
    "central_range",
    "explain_rows",
    "parameter_draws",
    "total_effects",
    "usual_shift",
]

NO_INTERVAL: Final = "no interval: use bootstrap"
"""What a table of effects says in place of an interval."""

_PARAMETER_DRAWS = 200
_ROWS_A_DRAW = 500
_TAIL_DRAWS = 1000

Change = Callable[[Array], Array]
"""What an intervention makes of the drawn values of a variable, in standardised units."""


@dataclass(frozen=True)
class Contrast:
    """Two worlds, and what is compared between them; values are in the user's units, levels as their codes.

    Parameters
    ----------
    cause : str
        The variable that is set (from ``start`` to ``stop``) or shifted (by ``shift``).
    on : tuple of str
        Variables whose change is wanted.
    start, stop, shift : float, optional
        Either both of the first, or the last.
    regime : int
        The regime on top of which the intervention happens.
    level : float
        Coverage of the intervals.
    statistic : {"mean", "median"}
        What is compared of continuous variables; of others, mean counts and probabilities.
    n : int
        Rows drawn.
    seed : int
        Seed of the noise.
    kind : Kind
        What the cause is.
    """

    cause: str
    on: tuple[str, ...]
    start: float | None
    stop: float | None
    shift: float | None
    regime: int
    level: float
    statistic: str
    n: int
    seed: int
    kind: Kind = CONTINUOUS

    @property
    def intervention(self) -> str:
        """What is done, in words."""
        if self.shift is not None:
            return f"{self.cause} {self.shift:+.4g}"
        start, stop = (
            f"{value:.4g}" if not self.kind.levels else self.kind.levels[int(value)]
            for value in (self.start or 0.0, self.stop or 0.0)
        )
        return f"{self.cause} from {start} to {stop}"

    def worlds(self, preprocessor: Preprocessor) -> tuple[Change | None, Change]:
        """What happens to the cause in either world; None if nothing does."""

        def constant(value: float) -> Change:
            z = float(preprocessor.forward_column(self.cause, value)[0])
            return lambda drawn: np.full_like(drawn, z)

        def shifted(by: float) -> Change:
            def change(drawn: Array) -> Array:
                x = preprocessor.inverse_column(self.cause, drawn) + by
                return preprocessor.forward_column(
                    self.cause, np.maximum(x, 0.0) if self.kind.is_discrete else x
                )

            return change

        if self.start is not None and self.stop is not None:
            return constant(self.start), constant(self.stop)
        return None, shifted(0.0 if self.shift is None else self.shift)


def total_effects(result: FitResult, contrast: Contrast, n_draws: int = _PARAMETER_DRAWS) -> pd.DataFrame:
    """Total effects of an intervention on one variable, in the user's units.

    Parameters
    ----------
    result : FitResult
        A fit.
    contrast : Contrast
        What is compared.
    n_draws : int
        Draws of the parameters for the intervals; without any, there are none.

    Returns
    -------
    DataFrame
        Indexed by variable, or by variable and level: ``intervention`` (in words), ``before``, ``after``, ``change``,
        ``low``, ``high``, ``interval`` (what the two hold for) and ``path_probability``. Without an interval, ``low``
        and ``high`` are left out, and ``interval`` says so. Where a variable is not continuous, ``quantity`` says what
        was compared, and ``ratio`` is ``after / before`` of counts.
    """
    asked = [result.columns.index(name) for name in contrast.on]
    compared = quantities(result.columns, result.kinds, asked, contrast.statistic)
    at = [one.variable for one in compared]
    i = result.columns.index(contrast.cause)
    worlds = contrast.worlds(result.preprocessor)

    def compare(model: FittedModel, rows: int) -> Array:
        """What is compared in both worlds, ``[2, len(compared)]``."""
        values = [
            _draw(model, rows, contrast.regime, contrast.seed, {} if w is None else {i: w}) for w in worlds
        ]
        user = [result.preprocessor.inverse(z) for z in values]
        return np.array([[one.of(x) for one in compared] for x in user])

    before, after = compare(result.model, contrast.n)
    change = after - before
    informed = result.model
    if (
        result.groups is not None
    ):  # mechanisms are known from rows, of which groups need not have equally many
        informed = informed.with_weights(result.responsibilities.mean(axis=0))
    draws = parameter_draws(informed, len(result.responsibilities), contrast.seed, n_draws)
    apart = ~(reachability(result.model.topology.adjacency)[i, at].astype(bool) | (np.array(at) == i))
    change[apart] = 0.0
    table = pd.DataFrame(
        {
            "intervention": contrast.intervention,
            "before": before,
            "after": np.where(apart, before, after),
            "change": change,
        },
        index=pd.Index([one.name for one in compared], name="effect"),
    )
    if any(result.kinds[j].is_discrete for j in at):
        table.insert(1, "quantity", [one.words for one in compared])
        counted = np.array([one.is_ratio for one in compared]) & (before > 0.0)
        table["ratio"] = np.where(counted, table["after"] / np.where(counted, before, 1.0), np.nan)
    if draws:
        sampled = [compare(model, _ROWS_A_DRAW) for model in draws]
        around = np.array([world[1] - world[0] for world in sampled])
        tails = central_range(around, contrast.level)
        # The few rows of a draw have an error of their own, the same in all draws because they share their noise.
        fewer = compare(result.model, _ROWS_A_DRAW)
        low, high = np.where(apart, 0.0, tails - (fewer[1] - fewer[0]) + change)
        table = table.assign(low=low, high=high)
    probability = np.where(np.array(at) == i, 1.0, result.ancestor_probabilities[i, at])
    return table.assign(
        interval=f"{100 * contrast.level:g} % given the graph" if draws else NO_INTERVAL,
        path_probability=probability,
    )


def central_range(draws: Array | Sequence[Array], level: float) -> tuple[Array, Array]:
    """The middle share ``level`` of draws (along the first axis): its lower and its upper end."""
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return low, high


def usual_shift(result: FitResult, cause: str, regime: int, seed: int) -> float:
    """Half the central 68 % range of a variable in a regime, in the user's units: its standard deviation, if normal."""
    z = _draw(result.model, 4 * _ROWS_A_DRAW, regime, seed, {})
    x = result.preprocessor.inverse(z)[:, result.columns.index(cause)]
    low, high = np.quantile(x, (0.16, 0.84))
    return float(high - low) / 2.0


def parameter_draws(model: FittedModel, n_rows: int, seed: int, count: int) -> list[FittedModel]:
    """Models with parameters drawn from their sampling distribution; none unless every mechanism is an equation."""
    topology, d = model.topology, model.topology.n_variables
    keys = sorted(model.own)
    mechanisms = [*model.reference, *(model.own[key] for key in keys)]
    forms = [mechanism.linear_form for mechanism in mechanisms if mechanism.linear_form is not None]
    if len(forms) < len(mechanisms):
        return []
    rng = np.random.default_rng(seed)
    moments = [_second_moments(model, k) for k in range(topology.n_regimes)]
    spread = []  # one entry per mechanism: a square root of its coefficients' covariance, and its rows
    for j, form in enumerate(forms[:d]):
        share = topology.weights * (topology.targets[:, j] == 0)
        pooled = sum((w * m for w, m in zip(share, moments, strict=True)), np.zeros_like(moments[0]))
        spread.append(_root(pooled / max(share.sum(), 1e-12), model.parents[j], n_rows * share.sum(), form))
    for (k, j), form in zip(keys, forms[d:], strict=True):
        spread.append(_root(moments[k], model.parents[j], n_rows * topology.weights[k], form))
    draws: list[FittedModel] = []
    for _ in range(count):
        drawn = []
        for (coefficients, variance), (root, rows) in zip(forms, spread, strict=True):
            moved = coefficients + root @ rng.standard_normal(len(root))
            freedom = max(rows - len(root), 1.0)
            wider = variance * freedom / max(rng.chisquare(freedom), 1e-300)
            drawn.append(LinearMechanism(moved, Noise.gaussian(wider)))
        draws.append(replace(model, reference=tuple(drawn[:d]), own=dict(zip(keys, drawn[d:], strict=True))))
    return draws


def explain_rows(
    result: FitResult,
    read: Rows,
    rows: Sequence[Hashable],
    *,
    asked: NDArray[np.int64],
    against: int | None,
    seed: int,
) -> pd.DataFrame:
    """Why rows were assigned to their regimes, variable by variable; see ``LatentInterventionDAG.explain``.

    Parameters
    ----------
    result : FitResult
        A fit.
    read : Rows
        The rows, and which of them share their regime.
    rows : sequence
        What the rows are called in the answer.
    asked : ndarray of int64
        Which of the rows to explain; the others only have a say.
    against : int, optional
        The regime to compare with; by default the reference, or the runner-up for rows of the reference.
    seed : int
        Seed of the draws behind medians and tails.
    """
    model = result.model
    x, z, units = read.x, read.z, read.units
    n = len(z)
    probability = model.responsibilities(z, units)
    best = probability.argmax(axis=1)
    other = _rivals(probability, best, model.topology.weights) if against is None else np.full(n, against)
    density = _variable_densities(model, z)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.log(model.topology.weights)
    at = np.arange(n)
    ratio = density[at, :, best] - density[at, :, other]
    prior = np.where(best == other, 0.0, log_weights[best] - log_weights[other])
    whole = ratio.sum(axis=1)
    in_order = isinstance(units, Series)
    company = units.spread(units.sums(np.ones(n))) > 1.0
    if in_order:  # of what neighbours say only their sum is known: what is left of the odds
        chances = np.maximum(np.stack([probability[at, best], probability[at, other]]), np.finfo(float).tiny)
        others = np.log(chances[0] / chances[1]) - whole - prior
    else:
        others = np.where(company, units.spread(units.sums(whole)) - whole, 0.0)
    targets = model.topology.targets.astype(np.int64)
    follows = (targets @ reachability(model.topology.adjacency) > 0) & (targets == 0)
    expected, tail = _reference_ranges(result, read, asked, seed)
    records = []
    for r in asked.tolist():
        k, alternative = int(best[r]), int(other[r])
        head = {
            "row": rows[r],
            "regime": result.regime_names[k],
            "probability": float(probability[r, k]),
            "against": result.regime_names[alternative],
        }
        records += [
            head
            | {
                "variable": result.columns[j],
                "log_ratio": float(ratio[r, j]),
                "value": _in_words(result.kinds[j], x[r, j]),
                "expected": _in_words(result.kinds[j], expected[1, r, j]),
                "expected_low": _in_words(result.kinds[j], expected[0, r, j]),
                "expected_high": _in_words(result.kinds[j], expected[2, r, j]),
                "tail": float(tail[r, j]),
                "deviates": bool(tail[r, j] < 0.01),
                "target": bool(model.topology.targets[k, j]),
                "downstream": bool(follows[k, j]),
            }
            for j in np.argsort(-np.abs(ratio[r]), kind="stable")
        ]
        records.append(
            head
            | {
                "variable": "(regime sizes)",
                "log_ratio": float(prior[r]),
                "deviates": False,
                "target": False,
                "downstream": False,
            }
        )
        if company[r]:
            records.append(
                head
                | {
                    "variable": "(rows before and after)" if in_order else "(other rows of the group)",
                    "log_ratio": float(others[r]),
                    "deviates": False,
                    "target": False,
                    "downstream": False,
                }
            )
    return pd.DataFrame.from_records(records)


def _draw(model: FittedModel, n: int, regime: int, seed: int, changes: dict[int, Change]) -> Array:
    """Ancestral samples ``[n, d]``; every variable has noise of its own, the same whatever is changed elsewhere."""
    z = model.blank(n)
    for j in topological_order(model.topology.adjacency):
        z[:, j] = model.draw_variable(z, j, regime, np.random.default_rng([seed, j]))
        if j in changes:
            z[:, j] = changes[j](z[:, j])
    return z[:, : model.topology.n_variables]


def _second_moments(model: FittedModel, regime: int) -> Array:
    """Exact ``E[(1, z)(1, z)']`` in a regime whose mechanisms are all equations, ``[d + 1, d + 1]``."""
    d = model.topology.n_variables
    slopes, constants, variances = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for j, parents in enumerate(model.parents):
        form = model.mechanism(j, regime).linear_form
        assert form is not None
        slopes[j, parents[: form.coefficients.size - 1]] = form.coefficients[1:]
        constants[j], variances[j] = form.coefficients[0], form.variance
    mixing = np.linalg.inv(np.eye(d) - slopes)
    mean = mixing @ constants
    covariance = (mixing * variances) @ mixing.T
    moments = np.empty((d + 1, d + 1))
    moments[0, 0] = 1.0
    moments[0, 1:] = moments[1:, 0] = mean
    moments[1:, 1:] = covariance + np.outer(mean, mean)
    return moments


def _root(moments: Array, parents: NDArray[np.int64], rows: float, form: LinearForm) -> tuple[Array, float]:
    """A square root of the covariance of a mechanism's coefficients, and the rows that inform it."""
    places = np.concatenate([[0], 1 + parents])[: form.coefficients.size]
    values, vectors = np.linalg.eigh(moments[np.ix_(places, places)])
    scale = np.sqrt(form.variance / max(rows, 1.0) / np.maximum(values, 1e-12 * max(values.max(), 1e-300)))
    return vectors * scale, float(rows)


def _rivals(probability: Array, best: NDArray[np.intp], weights: Array) -> NDArray[np.intp]:
    """The reference for rows of other regimes, otherwise the most probable other regime that has rows."""
    if weights.size == 1 or (weights > 0).sum() < 2:
        return best
    rest = probability.copy()
    rest[:, weights == 0] = -1.0
    rest[np.arange(len(best)), best] = -2.0
    runner_up = rest.argmax(axis=1)
    return np.where((best != 0) & (weights[0] > 0), 0, runner_up)


def _variable_densities(model: FittedModel, z: Array) -> Array:
    """``log p(z_j | parents, regime)`` for every row, variable and regime, ``[n, d, n_regimes]``."""
    topology = model.topology
    reference = np.column_stack([model.variable_log_density(z, j, 0) for j in range(topology.n_variables)])
    density = np.repeat(reference[:, :, None], topology.n_regimes, axis=2)
    for k, j in np.argwhere(topology.targets):
        density[:, j, k] = model.variable_log_density(z, int(j), int(k))
    return density


def _in_words(kind: Kind, value: float) -> Any:
    """A value as the user would write it: a number, or the name of a level; NaN stays."""
    return kind.levels[int(value)] if kind.levels and np.isfinite(value) else float(value)


def _reference_ranges(
    result: FitResult, read: Rows, asked: NDArray[np.int64], seed: int
) -> tuple[Array, Array]:
    """What the reference mechanisms would give for the rows' own parents.

    Returns 5 %, 50 % and 95 % quantiles in the user's units ``[3, n, d]``, and two-sided tail probabilities ``[n, d]``.
    Of variables with levels the likeliest level takes the place of the median, there is no range, and the tail is the
    probability of all levels that are no likelier than the one that was seen.
    """
    z = read.z
    n, d = read.x.shape
    quantiles, tail = np.full((3, n, d), np.nan), np.full((n, d), np.nan)
    for r in asked.tolist():
        same = np.repeat(z[r : r + 1], _TAIL_DRAWS, axis=0)
        for j, (name, kind) in enumerate(zip(result.columns, result.kinds, strict=True)):
            drawn = result.model.draw_variable(same, j, 0, np.random.default_rng([seed, j]))
            if kind.levels:
                counts = np.bincount(drawn.astype(np.int64), minlength=len(kind.levels))
                quantiles[1, r, j] = counts.argmax()
                if np.isfinite(z[r, j]):
                    counts[int(z[r, j])] += 1  # what was seen can happen
                    tail[r, j] = counts[counts <= counts[int(z[r, j])]].sum() / counts.sum()
                continue
            finite = np.quantile(drawn, (0.05, 0.5, 0.95))
            usual = finite * read.unit[r, j] + read.expected[r, j]
            quantiles[:, r, j] = result.preprocessor.inverse_column(name, usual)
            below = (1 + (drawn <= z[r, j]).sum()) / (_TAIL_DRAWS + 1)
            above = (1 + (drawn >= z[r, j]).sum()) / (_TAIL_DRAWS + 1)
            tail[r, j] = min(1.0, 2.0 * min(below, above))
    return quantiles, tail
