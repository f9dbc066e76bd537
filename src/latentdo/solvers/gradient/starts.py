"""Where a fit starts: what structural search finds, or a rough clustering of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from latentdo.choices import DENSITY
from latentdo.data import Dataset
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.family import RowFamily
from latentdo.notices import ignoring_in_sklearn
from latentdo.result import FitResult
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.nonlinear.solve import solve as search_nonlinear
from latentdo.solvers.search.row_strategy import solve_mixed
from latentdo.solvers.search.solve import SearchConfiguration
from latentdo.solvers.search.solve import solve as search
from latentdo.solvers.settings import (
    CLUSTER_RIDGE,
    CLUSTER_ROWS,
    CLUSTER_STARTS,
    CLUSTER_STEPS,
    COMPARED_ROWS,
    DIFFERENT,
    FEWEST_COMPARED,
)

Array = NDArray[np.float64]


def as_search(configuration: GradientConfiguration) -> SearchConfiguration:
    """The same request for the structural search: what it knows, costs and may find."""
    c = configuration
    own_prior = isinstance(c.edge_log_odds, np.ndarray) or c.edge_log_odds != 0.0
    return SearchConfiguration(
        intervention=c.intervention,
        max_regimes=c.max_regimes,
        # weights per row, as the published algorithm has them, mean nothing here
        edge_prior=c.edge_log_odds if own_prior and not c.per_row_priors else None,
        target_prior=c.target_log_odds if c.target_log_odds and not c.per_row_priors else None,
        constraints=c.constraints,
        random_state=c.random_state,
        n_jobs=c.n_jobs,
    )


def search_structure(dataset: Dataset, configuration: GradientConfiguration) -> FitResult:
    """Regimes, graph and targets that structural search finds under mechanisms of the same family.

    What is known is held fixed. Its penalties, merges and the check against a single regime decide how many regimes
    there are.
    """
    if dataset.is_mixed:
        smooth = configuration.density != "linear"
        family: type[RowFamily] = AdditiveMechanism if smooth else AnyNoise
        return solve_mixed(dataset, as_search(configuration), family, "additive" if smooth else "linear")
    if configuration.density == "linear":
        return search(dataset, as_search(configuration))
    density = DENSITY.resolve(configuration.density, "search").name
    return search_nonlinear(dataset, as_search(configuration), density)


def cluster_rows(
    z: Array, labels: NDArray[np.int64], n_regimes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Guess a regime for every unlabelled row; labelled rows keep theirs, ``[n]``.

    A Gaussian mixture clusters the rows. With labels, a cluster takes the label most of its labelled rows
    carry; without,
    the cluster that differs from the others in the fewest variables becomes the reference (an intervention
    moves its
    targets and their descendants, two interventions move both sets).

    Parameters
    ----------
    z : ndarray [n, d]
        Standardised rows.
    labels : ndarray [n] of int64
        Known regimes, -1 elsewhere.
    n_regimes : int
        Number of clusters.
    rng : Generator
        Source of the clustering's start.
    """
    n_clusters = min(n_regimes, max(1, len(z) // CLUSTER_ROWS))
    mixture = GaussianMixture(
        n_clusters,
        n_init=CLUSTER_STARTS,
        init_params="k-means++",
        reg_covar=CLUSTER_RIDGE,
        random_state=int(rng.integers(2**31)),
        max_iter=CLUSTER_STEPS,
    )
    with ignoring_in_sklearn(ConvergenceWarning):
        clusters = mixture.fit_predict(z).astype(np.int64)
    if (labels >= 0).any():
        return _follow_labels(clusters, labels, n_regimes)
    order = np.argsort(_differences(z, clusters, n_clusters), kind="stable")
    place = np.empty(n_clusters, dtype=np.int64)
    place[order] = np.arange(n_clusters)
    return np.asarray(place[clusters])


def _differences(z: Array, clusters: NDArray[np.int64], n_clusters: int) -> Array:
    """How many (cluster, variable) pairs differ from each cluster by a two-sample test, ``[n_clusters]``."""
    parts = [z[clusters == k][:COMPARED_ROWS] for k in range(n_clusters)]
    total = np.zeros(n_clusters)
    for a in range(n_clusters):
        for b in range(a + 1, n_clusters):
            if min(len(parts[a]), len(parts[b])) < FEWEST_COMPARED:
                total[[a, b]] += z.shape[1]
                continue
            moved = sum(
                ks_2samp(parts[a][:, j], parts[b][:, j], method="asymp").pvalue < DIFFERENT
                for j in range(z.shape[1])
            )
            total[[a, b]] += moved
    return total


def _follow_labels(
    clusters: NDArray[np.int64], labels: NDArray[np.int64], n_regimes: int
) -> NDArray[np.int64]:
    """Name clusters after the labels inside them; clusters without any get the names left over."""
    counts = np.zeros((clusters.max() + 1, n_regimes))
    known = labels >= 0
    np.add.at(counts, (clusters[known], labels[known]), 1)
    names = counts.argmax(axis=1)
    unnamed = np.flatnonzero(counts.sum(axis=1) == 0)
    spare = np.setdiff1d(np.arange(n_regimes), names)
    for place, cluster in enumerate(unnamed):
        names[cluster] = spare[place % len(spare)] if len(spare) else 0
    return np.where(known, labels, names[clusters])
