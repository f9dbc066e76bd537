"""Rival explanations of the same rows: lines with Gaussian noise for what was seen, or beside something unseen.

Arrows can imitate what is hidden, so residuals need not show it. But it takes more of them, and more targets. So rivals
are compared as models of the same rows, by evidence. Each begins with rows assigned as the fit has them, and climbs by
EM over hidden values, regimes, targets and graph. All of it works on moments, except that rows are assigned anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from latentdo.checks.check import Array
from latentdo.graphs.constraints import Constraints
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.noise import LOG_2PI
from latentdo.model.penalties import Penalties
from latentdo.solvers.search.learner import Graph, MomentLearner
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import (
    MIN_ROWS,
    RIVAL_ROUNDS,
    RIVAL_SEARCHES,
    RIVAL_STEPS,
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

    def distribution(self, model: FittedModel, regime: int) -> tuple[Array, Array]:
        """Mean and covariance of the columns in a regime."""
        constants, coefficients, variances = equations(model, regime)
        mixing = np.linalg.inv(np.eye(len(constants)) - coefficients)
        d = self.n_variables
        return (mixing @ constants)[:d], ((mixing * variances) @ mixing.T)[:d, :d]

    def cost(self, model: FittedModel, n_rows: float) -> float:
        """What a model costs, in nats."""
        return self.problem.penalties.cost(model, n_rows)


class Climb(NamedTuple):
    """How far a rival got."""

    evidence: float
    model: FittedModel


def moments_of(z: Array, responsibilities: Array) -> Moments:
    """Moments of rows ``z [n, d]`` in their regimes."""
    return Moments.of(np.column_stack([np.ones(len(z)), z]), responsibilities)


def without_small(responsibilities: Array) -> Array:
    """Responsibilities of the regimes that have rows; others lose theirs to them."""
    kept = responsibilities[:, responsibilities.sum(axis=0) >= MIN_ROWS]
    total = kept.sum(axis=1, keepdims=True)
    return np.asarray(
        np.where(total > 0.0, kept / np.maximum(total, np.finfo(float).tiny), 1.0 / kept.shape[1])
    )


def climb(
    rival: Lines, z: Array, responsibilities: Array, model: FittedModel, graph: Graph, *, told: bool = False
) -> Climb:
    """The best evidence of a rival that can be reached from a model of it; where rows belong may be ``told``."""
    shares = without_small(responsibilities)
    moments = moments_of(z, shares)
    best = Climb(-np.inf, model)
    before = -np.inf
    for turn in range(RIVAL_ROUNDS):
        if turn % RIVAL_SEARCHES == 0:
            again = rival.best_graph(rival.expected(moments, model), graph)
            if turn and np.array_equal(again, graph) and best.evidence < before + RIVAL_TOLERANCE:
                break
            graph, before = again, best.evidence
        for _ in range(RIVAL_STEPS):
            model = rival.fit(rival.expected(moments, model), graph)
        found, value = _weigh(rival, z, model, shares if told else None)
        if value > best.evidence:
            best = Climb(value, model)
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
    for k in range(model.topology.n_regimes):
        mean, covariance = rival.distribution(model, k)
        root = np.linalg.cholesky(covariance)
        off = solve_triangular(root, (z - mean).T, lower=True)
        joint[:, k] = -0.5 * ((off**2).sum(axis=0) + d * LOG_2PI) - np.log(root.diagonal()).sum()
    joint += np.log(model.topology.weights)
    if known is not None:
        return known, float((known * joint).sum()) - rival.cost(model, float(n))
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), float(total.sum()) - rival.cost(model, float(n))


def equations(model: FittedModel, regime: int) -> tuple[Array, Array, Array]:
    """Constants, coefficients ``[d, d]`` (rows are effects) and variances of a regime's equations."""
    d = model.topology.n_variables
    constants, coefficients, variances = np.zeros(d), np.zeros((d, d)), np.ones(d)
    for j in range(d):
        form = model.mechanism(j, regime).linear_form
        assert form is not None  # lines
        constants[j], variances[j] = form.coefficients[0], form.variance
        if form.coefficients.size > 1:
            coefficients[j, model.parents[j]] = form.coefficients[1:]
    return constants, coefficients, variances


def best_lines(z: Array, responsibilities: Array, *, imperfect: bool = True, told: bool = False) -> Climb:
    """Lines for what was seen: what rivals have to beat, and where they begin."""
    rival = Lines(z.shape[1], imperfect=imperfect)
    moments = moments_of(z, without_small(responsibilities))
    empty = np.zeros((z.shape[1], z.shape[1]), dtype=np.int8)
    graph = rival.best_graph(moments, empty)
    return climb(rival, z, responsibilities, rival.fit(moments, graph), graph, told=told)
