"""Rival explanations of the same rows: lines with Gaussian noise for what was seen, or beside something unseen.

Arrows can imitate what is hidden, so residuals need not show it. But it takes more of them, and more targets. So rivals
are compared as models of the same rows, by evidence. Each begins with rows assigned as the fit has them (and goes on
from there, see :mod:`.starts`), and climbs by EM over hidden values, regimes, targets and graph. All of it works on
moments, except that rows are assigned anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from latentdo.checks.check import Array
from latentdo.graphs.constraints import Constraints
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import LOG_2PI
from latentdo.model.penalties import Penalties
from latentdo.solvers.search.learner import Graph, MomentLearner
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import (
    MIN_ROWS,
    RIVAL_ROUNDS,
    RIVAL_SEARCHES,
    RIVAL_TOLERANCE,
)


class Lines:
    """Lines with Gaussian noise for what was seen; rivals add what was not.

    Parameters
    ----------
    n_variables : int
        Number of columns.
    imperfect : bool
        Whether intervened mechanisms may use their parents.
    """

    hidden = 0
    """Variables beyond the columns; they are the last, and nothing causes them."""

    steps = 1
    """Steps of EM on moments for one assignment of rows: nothing moves where all is seen."""

    def __init__(self, n_variables: int, *, imperfect: bool = True) -> None:
        self.n_variables = n_variables
        names = [str(j) for j in range(n_variables + self.hidden)]
        penalties = Penalties.build(n_variables, None, None)
        edge = np.zeros((len(names), len(names)))
        edge[:n_variables, :n_variables] = penalties.edge_prior
        self.problem = Problem(
            design=np.ones((1, len(names) + 1)),  # moments are all that is asked for
            labels=np.full(1, -1, dtype=np.int64),
            known=np.zeros((0, len(names)), dtype=np.int8),
            constraints=Constraints.build(
                names, forbidden=[(a, b) for b in names[n_variables:] for a in names if a != b]
            ),
            penalties=Penalties(edge, penalties.target_prior),
            imperfect=imperfect,
            max_regimes=1,
        )

    def expected(self, moments: Moments, model: FittedModel) -> Moments:  # noqa: ARG002
        """Moments of all variables, what is hidden as the model expects it."""
        return moments

    def fit(self, moments: Moments, graph: Graph) -> FittedModel:
        """Mechanisms on a graph, with the best targets."""
        learner = MomentLearner()
        targets, _ = learner.choose_targets(self.problem, moments, graph)
        targets[:, self.n_variables :] = 0
        return learner.fit(self.problem, moments, graph, targets)

    def best_graph(self, moments: Moments, graph: Graph) -> Graph:
        """The best graph, or the best that can be reached."""
        return MomentLearner().best_graph(self.problem, moments, graph)

    def distributions(self, model: FittedModel) -> tuple[Array, Array]:
        """Means ``[K, d]`` and covariances ``[K, d, d]`` of the columns in all regimes."""
        constants, coefficients, variances = equations(model)
        d = self.n_variables
        mixing = np.linalg.inv(np.eye(constants.shape[1]) - coefficients)[:, :d]
        means = (mixing @ constants[:, :, None])[:, :, 0]
        return means, (mixing * variances[:, None]) @ mixing.transpose(0, 2, 1)

    def cost(self, model: FittedModel, n_rows: float) -> float:
        """What a model costs, in nats."""
        return self.problem.penalties.cost(model, n_rows)


class Climb(NamedTuple):
    """How far a rival got: its evidence, the model, and where rows belong by it."""

    evidence: float
    model: FittedModel
    responsibilities: Array


def moments_of(z: Array, responsibilities: Array) -> Moments:
    """Moments of rows ``z [n, d]`` in their regimes."""
    return Moments.of(np.column_stack([np.ones(len(z)), z]), responsibilities)


def without_small(responsibilities: Array) -> Array:
    """Responsibilities of the regimes that have rows; others lose theirs to them."""
    return without(responsibilities, responsibilities.sum(axis=0) < MIN_ROWS)


def without(responsibilities: Array, dropped: NDArray[np.bool_]) -> Array:
    """Responsibilities without some of the regimes, ``dropped [K]``; rows of these go to the others."""
    kept = responsibilities[:, ~dropped]
    total = kept.sum(axis=1, keepdims=True)
    return np.asarray(
        np.where(total > 0.0, kept / np.maximum(total, np.finfo(float).tiny), 1.0 / kept.shape[1])
    )


def climb(
    rival: Lines,
    z: Array,
    responsibilities: Array,
    model: FittedModel,
    graph: Graph,
    *,
    told: bool = False,
    needed: float = -np.inf,
) -> Climb:
    """The best evidence of a rival that can be reached from a model of it; where rows belong may be ``told``.

    A climb that cannot reach the ``needed`` evidence, if it goes on as since the last search of the graph, is given up:
    it becomes slower, not faster.
    """
    shares = without_small(responsibilities)
    moments = moments_of(z, shares)
    best = Climb(-np.inf, model, shares)
    first = before = -np.inf
    for turn in range(RIVAL_ROUNDS):
        if turn % RIVAL_SEARCHES == 0:
            rise = best.evidence - max(first, before)
            if turn and best.evidence + (RIVAL_ROUNDS - turn) / RIVAL_SEARCHES * rise < needed:
                break
            again = rival.best_graph(rival.expected(moments, model), graph)
            if turn and np.array_equal(again, graph) and best.evidence < before + RIVAL_TOLERANCE:
                break
            graph, before = again, best.evidence
        for _ in range(rival.steps):
            model = rival.fit(rival.expected(moments, model), graph)
        found, value = _weigh(rival, z, model, shares if told else None)
        first = value if turn == 0 else first
        if value > best.evidence:
            best = Climb(value, model, found)
        again_shares = without_small(found)
        moments = moments_of(z, again_shares)
        if again_shares.shape[1] < model.topology.n_regimes:
            kept = np.flatnonzero(found.sum(axis=0) >= MIN_ROWS)
            model = model.keep(kept)
    return best


def _weigh(rival: Lines, z: Array, model: FittedModel, known: Array | None) -> tuple[Array, float]:
    """Responsibilities, and the evidence of rows whose regimes are summed out, or expected if they are known."""
    n, d = z.shape
    joint = np.empty((n, model.topology.n_regimes))
    for k, (mean, covariance) in enumerate(zip(*rival.distributions(model), strict=True)):
        root = np.linalg.cholesky(covariance)
        off = solve_triangular(root, (z - mean).T, lower=True)
        joint[:, k] = -0.5 * ((off**2).sum(axis=0) + d * LOG_2PI) - np.log(root.diagonal()).sum()
    joint += np.log(model.topology.weights)
    if known is not None:
        return known, float((known * joint).sum()) - rival.cost(model, float(n))
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), float(total.sum()) - rival.cost(model, float(n))


def equations(model: FittedModel) -> tuple[Array, Array, Array]:
    """Constants ``[K, d]``, coefficients ``[K, d, d]`` (rows are effects) and variances ``[K, d]`` of all regimes."""
    k, d = model.topology.n_regimes, model.topology.n_variables
    constants, coefficients, variances = np.zeros((k, d)), np.zeros((k, d, d)), np.ones((k, d))

    def put(regimes: int | slice, j: int, line: Mechanism) -> None:
        assert isinstance(line, LinearMechanism)
        constants[regimes, j], variances[regimes, j] = line.parameters[0], line.noise.variances[0]
        coefficients[regimes, j] = 0.0
        if line.parameters.size > 1:
            coefficients[regimes, j, model.parents[j]] = line.parameters[1:]

    for j, line in enumerate(model.reference):
        put(slice(None), j, line)
    for (regime, j), line in model.own.items():
        put(regime, j, line)
    return constants, coefficients, variances


def best_lines(
    z: Array,
    responsibilities: Array,
    fitted: FittedModel | None = None,
    *,
    imperfect: bool = True,
    told: bool = False,
) -> Climb:
    """Lines for what was seen: what rivals have to beat, and where they begin.

    The evidence is that of the model that was ``fitted``, if that is higher.
    """
    rival = Lines(z.shape[1], imperfect=imperfect)
    moments = moments_of(z, without_small(responsibilities))
    empty = np.zeros((z.shape[1], z.shape[1]), dtype=np.int8)
    graph = rival.best_graph(moments, empty)
    best = climb(rival, z, responsibilities, rival.fit(moments, graph), graph, told=told)
    if fitted is None:
        return best
    joint = fitted.log_density(z) + np.log(np.maximum(fitted.topology.weights, np.finfo(float).tiny))
    total = (responsibilities * joint).sum() if told else logsumexp(joint, axis=1).sum()
    return best._replace(evidence=max(best.evidence, float(total) - rival.cost(fitted, float(len(z)))))
