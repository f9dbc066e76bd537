"""Regimes that may hold two regimes: which of their rows would leave, and with which targets.

Proposals only; evidence decides (:class:`.Moves`). A network that does not fit well makes rows look like a hidden
regime, so most of the work is to tell one from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.graphs import reachability
from latentdo.model.assignment import LIKELY
from latentdo.model.mechanisms import Noise
from latentdo.model.mechanisms.network import hidden
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.nonlinear.mechanism import fit_noise
from latentdo.solvers.search.intervened_rows import knowing, two_mechanisms
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    COMMON,
    EMPTY,
    ENOUGH,
    LEAVING_ROWS_PER_PARENT,
    MAX_TRIES,
    MINORITY_TOLERANCE,
    NETWORK_SPLIT_MISFITS,
    NOISIER,
    PROBE_ROWS,
    RAREST,
    RETURN_STEPS,
    SPLIT_ROWS,
    SPLIT_STEPS,
    SPLIT_TAIL,
    SPLIT_WORTH,
    STILL_EXPLAINED,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Birth:
    """Some rows of a regime as one of their own.

    Parameters
    ----------
    regime : int
        Whose rows.
    leaving : ndarray [n]
        Probability to leave.
    targets : ndarray [d] of int8
        Targets of the new regime.
    to_beat : float
        Nats that more flexible noise would gain without it.
    """

    regime: int
    leaving: Array
    targets: NDArray[np.int8]
    to_beat: float


def propose(
    problem: Problem, state: State, noises: list[tuple[Noise, float]], *, spare_effects: bool
) -> Iterator[Birth]:
    """Proposals, the clearest first; ``noises`` is what a birth has to beat in every variable.

    With ``spare_effects`` no effect of a regime's target becomes a target of what is born from it.
    """
    free = problem.labels < 0
    for _, k, j, staying in _returns(problem, state, noises)[:MAX_TRIES]:
        newcomer = state.targets[k].copy()
        newcomer[j] = 0
        if not newcomer.any() and not state.targets.any(axis=1).all():
            continue  # they could have joined the reference
        yield Birth(k, staying, newcomer, 0.0)
    below = reachability(state.adjacency)
    for _, k, j, rows, share in _departures(problem, state, noises, flexible=spare_effects)[:MAX_TRIES]:
        newcomer = state.targets[k].copy()
        if spare_effects and not newcomer[j] and below[newcomer == 1, j].any():
            continue
        if not 0.0 < share.mean() < 1.0:
            continue
        newcomer[j] = 1
        mean = share @ problem.z[rows, j] / share.sum()
        variance = max(share @ (problem.z[rows, j] - mean) ** 2 / share.sum(), VARIANCE_FLOOR)
        new = np.log(share.mean()) - 0.5 * (
            np.log(2 * np.pi * variance) + (problem.z[:, j] - mean) ** 2 / variance
        )
        old = np.log1p(-share.mean()) + state.model.variable_log_density(problem.z, j, k)
        leaving = np.asarray(expit(new - old)) * free
        if not is_common(state, k, j, leaving):
            yield Birth(k, leaving, newcomer, 0.0 if state.targets[k, j] else noises[j][1])


def _returns(
    problem: Problem, state: State, noises: list[tuple[Noise, float]]
) -> list[tuple[float, int, int, Array]]:
    """Rows of a regime that still follow the reference mechanism of one of its targets, the clearest first.

    Two regimes that were found as one have the targets of both, and each follows the reference in some.
    """
    fixed = problem.fixed(state.n_regimes)
    found = []
    for k, j in np.argwhere((state.targets == 1) & (fixed == FREE)):
        mine = state.responsibilities[:, k] * (problem.labels < 0)
        residual = state.residual(problem.z, int(j))
        odds = noises[j][0].log_density(residual) - state.model.variable_log_density(
            problem.z, int(j), int(k)
        )
        staying, share = np.asarray(expit(odds)), LIKELY
        for _ in range(RETURN_STEPS):
            share = float(np.clip(mine @ staying / max(mine.sum(), EMPTY), RAREST, 1.0 - RAREST))
            staying = np.asarray(expit(odds + np.log(share / (1.0 - share))))
        if min(mine @ staying, mine @ (1.0 - staying)) < problem.min_rows:
            continue
        gain = float(mine @ (np.logaddexp(np.log(share) + odds, np.log1p(-share))))
        if gain > SPLIT_WORTH * np.log(problem.n_rows):
            found.append((gain, int(k), int(j), staying * (problem.labels < 0)))
    return sorted(found, key=lambda one: -one[0])


def _departures(
    problem: Problem, state: State, noises: list[tuple[Noise, float]], *, flexible: bool
) -> list[tuple[float, int, int, NDArray[np.int64], Array]]:
    """Rows of a regime that follow a second mechanism in one variable, the clearest case first."""
    rng = np.random.default_rng(0)
    births = []
    residuals = [state.residual(problem.z, j) for j in range(problem.n_variables)]
    for k in range(state.n_regimes):
        member = np.flatnonzero((state.responsibilities[:, k] > LIKELY) & (problem.labels < 0))
        if member.size < SPLIT_ROWS * problem.min_rows:
            continue
        rows = np.sort(rng.permutation(member)[:PROBE_ROWS])
        for j in range(problem.n_variables):
            y = problem.z[rows, j]
            if state.targets[k, j]:
                base = state.model.variable_log_density(problem.z[rows], j, k)
            else:
                usual = noises[j][0]
                if flexible:
                    usual = _seen_elsewhere(state, k, j, residuals[j], usual)
                base = usual.log_density(residuals[j][rows])
            now, best = float(base.sum()), None
            misfit, rank = (np.argsort(np.argsort(v)) / rows.size for v in (base, y))
            view, known = np.column_stack([np.ones(rows.size), y]), knowing(log_density=base)
            weights = np.ones(rows.size)
            masks = [misfit < depth for depth in NETWORK_SPLIT_MISFITS]
            for mask in (*masks, rank < SPLIT_TAIL, rank > 1.0 - SPLIT_TAIL):
                share = mask.astype(np.float64)
                value = two_mechanisms(view, 0, 1, known, weights, share, SPLIT_STEPS, MINORITY_TOLERANCE)
                if best is None or value > best[0]:
                    best = value, share
            assert best is not None
            gain = (best[0] - now) * member.size / rows.size
            leaving = best[1] > LIKELY
            if gain > SPLIT_WORTH * np.log(problem.n_rows) and not _is_misfit(
                problem, state, j, rows, leaving, flexible=flexible
            ):
                births.append((gain, k, j, rows, best[1]))
    return sorted(births, key=lambda birth: -birth[0])


def _seen_elsewhere(state: State, k: int, j: int, residual: Array, noise: Noise) -> Noise:
    """Noise of variable ``j`` in the regimes that share its reference mechanism with ``k``, without ``k``.

    Hidden rows of ``k`` have shaped the mechanism's noise as well and would not stand out against it.
    """
    sharing = 1.0 - state.targets[:, j]
    sharing[k] = 0.0
    weights = state.responsibilities @ sharing
    if weights.sum() < ENOUGH:
        return noise
    return fit_noise(residual, weights, noise.weights.size, noise)


def _is_misfit(
    problem: Problem,
    state: State,
    j: int,
    rows: NDArray[np.int64],
    leaving: NDArray[np.bool_],
    *,
    flexible: bool,
) -> bool:
    """Whether rows that leave a regime's mechanism of ``j`` show a bad network, not an intervention.

    Where a network is off, the variable is still a function of its parents with little noise, or with less than
    elsewhere. An intervention makes it something else: independent of the parents if it is perfect, noisier if it
    is not. (Interventions on the function alone are for the minorities at the start to find.)
    """
    parents = state.model.parents[j]
    if leaving.sum() < LEAVING_ROWS_PER_PARENT * (parents.size + 2) or leaving.all():
        return True
    if not parents.size:
        return False
    x, y = problem.z[np.ix_(rows, parents)], problem.z[rows, j]
    # The noise of those who stay, once their mechanism is no longer bent towards those who leave.
    bent = np.column_stack([x, hidden(x, state.mechanism(j).parameters)])
    usual = _left_over(bent[~leaving], y[~leaving])
    spread = float(y[leaving].var())
    if spread < usual and not flexible:
        return True
    left = _left_over(x[leaving], y[leaving])
    return left < STILL_EXPLAINED * spread and (not problem.imperfect or left < NOISIER * usual)


def _left_over(inputs: Array, y: Array) -> float:
    """Variance of ``y`` that no linear function of the inputs explains."""
    design = np.column_stack([np.ones(y.size), inputs])
    return float((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]).var())


def is_common(state: State, k: int, j: int, leaving: Array) -> bool:
    """Whether rows that leave regime ``k``'s mechanism of ``j`` are found in regimes that share it as well.

    Then they are a part of the mechanism that its density does not show, such as an atom, and no intervention.
    """
    sharing = (state.targets[:, j] == 0) & (np.arange(state.n_regimes) != k)
    if state.targets[k, j] or not sharing.any():
        return False
    here = np.average(leaving, weights=state.responsibilities[:, k])
    elsewhere = np.average(leaving, weights=state.responsibilities[:, sharing].sum(axis=1))
    return bool(elsewhere > COMMON * here)
