"""Starts of structural EM: clusterings of the rows by very different methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from latentdo.model.assignment import LIKELY, Units, assign
from latentdo.notices import ignoring_in_sklearn
from latentdo.solvers.search.em import assign_rows, refine, relearn
from latentdo.solvers.search.intervened_rows import knowing, minority_table, two_mechanisms
from latentdo.solvers.search.parent_sets import ScoreTables, correlated_candidates
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    CHANCE_FACTOR,
    CHANCE_MARGIN,
    CLAIM,
    CLUSTER_RIDGE,
    FINAL_MINORITY_STEPS,
    FINAL_MINORITY_TOLERANCE,
    LABELLED_ROUNDS,
    LABELLED_ROWS,
    MINORITIES_STEPS,
    MINORITY_CERTAINTY,
    MINORITY_STEPS,
    MINORITY_TAIL,
    RAREST,
    RESIDUAL_CANDIDATES,
    RESIDUAL_LABELLED_STEPS,
    RESIDUAL_ROWS,
    RESIDUAL_STEPS,
    ROWS_PER_CLUSTER,
    ROWS_PER_COVARIANCE,
    SUREST,
    UNDECIDED,
    WIDE,
    WIDE_CANDIDATES,
)


def with_labels(problem: Problem, clusters: NDArray[np.float64]) -> NDArray[np.float64]:
    """Join a clustering to the labelled regimes: a cluster goes to the label that most of its labelled rows have."""
    if problem.n_labelled == 0:
        return clusters
    known = problem.labels >= 0
    votes = np.zeros((clusters.shape[1], problem.n_labelled))
    for k in range(problem.n_labelled):
        votes[:, k] = problem.counted(clusters)[known & (problem.labels == k)].sum(axis=0)
    joined = np.zeros((problem.n_rows, problem.n_labelled))
    extra = []
    for c in range(clusters.shape[1]):
        if votes[c].sum() > CLAIM:
            joined[:, votes[c].argmax()] += clusters[:, c]
        else:
            extra.append(clusters[:, c])
    return problem.clamp(np.column_stack([joined, *extra]))


def gaussian_mixture(problem: Problem, n_regimes: int, seed: int) -> NDArray[np.float64]:
    """Posterior of a plain Gaussian mixture; diagonal where full covariances would have too few rows.

    Where rows belong together, the mixture is one of their means, which reveal shifts too weak for single rows.
    """
    means = problem.units.means(problem.z)
    n, d = means.shape
    kind = "full" if n / n_regimes > ROWS_PER_COVARIANCE * (d + 1) else "diag"
    with ignoring_in_sklearn(ConvergenceWarning):  # a start need not have converged
        mixture = GaussianMixture(n_regimes, covariance_type=kind, random_state=seed, reg_covar=CLUSTER_RIDGE)
        return problem.units.spread(mixture.fit(means).predict_proba(means))


def k_means(problem: Problem, n_regimes: int, seed: int) -> NDArray[np.float64]:
    """Hard clusters by distance alone, of the means of rows that belong together."""
    means = problem.units.means(problem.z)
    with ignoring_in_sklearn(ConvergenceWarning):  # fewer distinct rows than clusters
        labels = KMeans(n_regimes, n_init=1, random_state=seed).fit_predict(means)
    return problem.units.spread(np.eye(n_regimes)[labels])


def minorities(problem: Problem, single: State) -> State:
    """One regime for each variable, all at once, from a single regime: the rows that fit a mechanism of their own best.

    An intervention on a variable without parents hides in the shape of its noise. A regime that is split off alone
    gains almost nothing there: what sets its rows apart is that the *other* interventions left them untouched, and
    that shows only once those have regimes, too. Superfluous regimes are left for later moves to drop.
    """
    everyone = np.arange(problem.n_rows)
    splits = {
        j: split
        for j in range(problem.n_variables)
        if (split := problem.learner.split_followers(problem, single, j, everyone)) is not None
    }
    hit = sorted(splits, key=lambda j: -splits[j].gain)[: problem.max_regimes - 1]
    if not hit:
        return single
    leaving = np.clip(np.column_stack([splits[j].share for j in hit]), SUREST, 1.0 - SUREST)
    odds = np.column_stack([np.ones(problem.n_rows), leaving / (1.0 - leaving)])
    targets = np.zeros((1 + len(hit), problem.n_variables), dtype=np.int8)
    targets[1 + np.arange(len(hit)), hit] = 1
    rows = odds / odds.sum(axis=1, keepdims=True)
    begun = refine(problem, rows, single.adjacency, iterations=1, targets=targets)
    held = refine(
        problem,
        begun.responsibilities,
        single.adjacency,
        iterations=MINORITIES_STEPS,
        targets=begun.targets,
        model=begun.model,
    )
    return refine(problem, held.responsibilities, single.adjacency, model=held.model)


def residual(problem: Problem, seed: int) -> State:
    """Regimes from minorities: no clustering, only the mechanism that most rows share (:mod:`.intervened_rows`).

    Families are scored by two-mechanism mixtures of regressions, the best graph is found exactly, every variable's
    minority becomes a regime that targets it, minorities that coincide become one regime with several targets, and EM
    with these targets settles the assignment.
    """
    rng = np.random.default_rng(seed)
    free = np.flatnonzero(problem.labels < 0)
    rows = problem.units.first(rng.permutation(free), RESIDUAL_ROWS)
    sample, units = np.ascontiguousarray(problem.z[rows]), problem.units.pooled.take(rows)
    repeats = problem.units.repeats()
    covariance = np.cov(problem.z, rowvar=False, aweights=repeats if repeats.size else None)
    covariance = covariance.reshape(problem.n_variables, problem.n_variables)
    limit = RESIDUAL_CANDIDATES if problem.n_variables <= WIDE else WIDE_CANDIDATES
    candidates = correlated_candidates(covariance, problem.constraints, limit)

    def score(j: int, own: NDArray[np.int64], required: int) -> NDArray[np.float64]:
        table, _ = minority_table(
            sample,
            j,
            own,
            problem.imperfect,
            required,
            problem.constraints.max_parents,
            problem.penalties.edge_prior,
            _tails(sample[:, j], units),
            MINORITY_STEPS,
            units.numbers(),
            units.repeats(),
        )
        return np.asarray(table)

    tables = ScoreTables.build(candidates, problem.constraints, score)
    adjacency, _ = tables.best(problem.constraints.required.astype(np.int8), seed)
    minority = np.column_stack([_minority(problem, adjacency, j) for j in range(problem.n_variables)])
    found = patterns(problem, minority)
    odds = np.log(np.maximum(minority, UNDECIDED)) - np.log(np.maximum(1.0 - minority, UNDECIDED))
    responsibilities = assign(odds @ found.T, np.full(len(found), 1.0 / len(found))).responsibilities
    targets = found.astype(np.int8)
    if problem.n_labelled:
        responsibilities = with_labels(problem, responsibilities)
        return refine(problem, responsibilities, adjacency, iterations=RESIDUAL_LABELLED_STEPS)
    return refine(problem, responsibilities, adjacency, iterations=RESIDUAL_STEPS, targets=targets)


def _tails(values: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    """Initial guesses of the minority: the lowest, the highest and the middle tenth of the values."""
    means = units.means(values)
    rank = np.argsort(np.argsort(means)) / max(len(means) - 1, 1)
    middle = np.abs(rank - 0.5) < 0.5 * MINORITY_TAIL
    masks = np.column_stack([rank < MINORITY_TAIL, rank > 1.0 - MINORITY_TAIL, middle])
    return units.spread(masks.astype(np.float64) * MINORITY_CERTAINTY)


def _minority(problem: Problem, adjacency: NDArray[np.int8], j: int) -> NDArray[np.float64]:
    """Posterior of the second mechanism of variable ``j`` for all rows, given its parents."""
    parents = np.flatnonzero(adjacency[:, j])
    rows = np.ascontiguousarray(problem.design[:, np.concatenate([[0], 1 + parents, [1 + j]])])
    n_first = parents.size + 1
    n_second = n_first if problem.imperfect else 1
    best, found = -np.inf, np.zeros(problem.n_rows)
    weights = np.ones(problem.n_rows)
    known = knowing(groups=problem.units.numbers(), repeats=problem.units.repeats())
    for start in _tails(problem.z[:, j], problem.units).T:
        second = start.copy()
        value = two_mechanisms(
            rows,
            n_first,
            n_second,
            known,
            weights,
            second,
            FINAL_MINORITY_STEPS,
            FINAL_MINORITY_TOLERANCE,
            0.0,
        )
        if value > best:
            best, found = value, second
    return found if problem.counted(found).sum() <= LIKELY * problem.n_counted else 1.0 - found


def patterns(problem: Problem, minority: NDArray[np.float64]) -> NDArray[np.float64]:
    """Regimes as sets of targets: none, every single minority, and combinations seen far more often than by chance."""
    d = problem.n_variables
    patterns = [np.zeros(d)]
    sizes = problem.counted(minority).sum(axis=0)
    patterns += [np.eye(d)[j] for j in np.argsort(-sizes) if sizes[j] >= problem.min_rows]
    hard = problem.units.means(minority) > LIKELY
    n = len(hard)
    found, counts = np.unique(hard[hard.sum(axis=1) > 1], axis=0, return_counts=True)
    share = np.clip(hard.mean(axis=0), RAREST, 1 - RAREST)
    expected = n * np.exp(found @ np.log(share) + (~found) @ np.log1p(-share))
    often = counts > CHANCE_FACTOR * expected + CHANCE_MARGIN * n / len(minority)
    often &= counts * len(minority) > problem.min_rows * n
    order = np.argsort(-counts[often])
    patterns += list(found[often][order].astype(np.float64))
    return np.array(patterns[: problem.max_regimes])


def clustering(problem: Problem, name: str, seed: int) -> NDArray[np.float64]:
    """Responsibilities from a plain clustering ("mixture" or "k-means") with as many regimes as are allowed."""
    free = max(problem.max_regimes - problem.n_labelled, 1)
    n_regimes = min(free, max(problem.n_rows // ROWS_PER_CLUSTER, 1), int(problem.n_units))
    make = k_means if name == "k-means" else gaussian_mixture
    # Several threads on matrices this small mostly wait for each other.
    with threadpool_limits(limits=1):
        return with_labels(problem, make(problem, n_regimes, seed))


def from_labels(problem: Problem) -> NDArray[np.float64]:
    """Labelled rows at their labels; the others are shared among the labels, for EM to assign."""
    labelled = np.flatnonzero(problem.labels >= 0)
    counts = np.bincount(problem.labels[labelled], problem.repeats[labelled], problem.n_labelled)
    weights = (
        counts / counts.sum() if counts.sum() > 0 else np.full(problem.n_labelled, 1.0 / problem.n_labelled)
    )
    known = problem.take(labelled)
    if known.n_rows > LABELLED_ROWS * problem.n_variables * problem.n_labelled:
        model = relearn(known, np.eye(problem.n_labelled)[known.labels], rounds=LABELLED_ROUNDS).model
        return assign_rows(problem, model)[0]
    return problem.clamp(np.tile(weights, (problem.n_rows, 1)))
