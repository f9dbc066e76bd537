"""GIES and GnIES (packages ``gies`` and ``gnies``): greedy search over interventional equivalence classes."""

from __future__ import annotations

import numpy as np

from experiments.baselines.interface import Graph, Problem


def gies(problem: Problem) -> Graph:
    """As published: every environment is centred by itself, so that shifts of the mean are thrown away."""
    import gies as package

    graph, _ = package.fit_bic(problem.environments(), problem.target_lists())
    return np.asarray(graph != 0, dtype=np.int64)


def gies_uncentred(problem: Problem) -> Graph:
    """The same search, with one intercept a variable for all environments that share its mechanism."""
    import gies as package
    from gies.scores.gauss_int_l0_pen import GaussIntL0Pen

    class PooledScore(GaussIntL0Pen):
        def __init__(self, data: list, interv: list) -> None:
            super().__init__(data, interv)
            for variable in range(self.p):
                untouched = [rows for rows, hit in zip(data, interv, strict=True) if variable not in hit]
                self.part_sample_cov[variable] = np.cov(np.vstack(untouched), rowvar=False, bias=True)

    graph, _ = package.fit(PooledScore(problem.environments(), problem.target_lists()))
    return np.asarray(graph != 0, dtype=np.int64)


def gnies(problem: Problem) -> Graph:
    """Unknown targets, by the faster of its two outer searches; mean and variance of the noise may change."""
    import gnies as package

    _, graph, _ = package.fit(problem.environments(), approach="rank", center=False)
    return np.asarray(graph != 0, dtype=np.int64)
