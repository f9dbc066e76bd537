"""Which family of densities: linear, unless networks explain the rows better.

Linear mechanisms are fitted in any case, in seconds. A screen then looks for curves on a sample of the rows. If there
are none, that is all. Otherwise networks are searched too, and evidence and sparsity decide; evidence also decides
whether their noise is Gaussian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.model.mechanisms.network import evaluate
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.result import FitResult
from latentdo.solvers import lines
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.rough_scores import bend
from latentdo.solvers.nonlinear.solve import BY_NOISE
from latentdo.solvers.nonlinear.solve import solve as search_networks
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.solve import SearchConfiguration, make_problem
from latentdo.solvers.settings import BENT, CROWDED, CURVE_ROWS, INVENTED, SCREEN_ROWS, SCREEN_STARTS, WIDEST

NOT_FITTED = (
    f"Some mechanisms look curved, and were fitted as straight lines: with more than {WIDEST} variables networks are "
    "slow. Set density='nonlinear' to fit them all the same."
)
"""What is said then."""


def solve(
    dataset: Dataset,
    configuration: SearchConfiguration,
    progress: Progress | None = None,
    noise: str = "auto",
) -> FitResult:
    """Fit the family that explains the rows best; ``comparison`` of the result says what was compared.

    ``noise`` is "gaussian", "any", or "auto": lines and networks decide each for themselves.
    An interrupt (Ctrl-C) during the second search keeps the better of what there is.
    """
    linear = lines.solve(dataset, configuration, noise, progress)
    if linear.status == "interrupted":
        return linear
    try:
        if not is_curved(dataset, configuration, linear):
            return linear
        if dataset.n_variables > WIDEST:
            return replace(linear, warnings=(*linear.warnings, NOT_FITTED))
        networks = search_networks(dataset, configuration, BY_NOISE[noise], progress)
    except KeyboardInterrupt:
        return replace(linear, status="interrupted", message="networks were not fitted")
    best = networks if _is_better(networks, linear, dataset.n_rows) else linear
    chosen: tuple[Mapping[str, Any], ...] = tuple(
        {
            "model": f"{result.density} mechanisms",
            "evidence": result.evidence,
            "targets": int(result.model.topology.targets.sum()),
            "chosen": result is best,
        }
        for result in (linear, networks)
    )
    return replace(
        best,
        comparison=(*chosen, *best.comparison),
        status=networks.status,
        seconds=linear.seconds + networks.seconds,
    )


def _is_better(networks: FitResult, linear: FitResult, n_rows: int) -> bool:
    """Whether networks have more evidence, or about as much with fewer targets.

    Straight lines can follow a curve piece by piece, with a regime for every piece; that is cheaper than the parameters
    of a network, and needs interventions that never were.
    """
    gain = networks.evidence - linear.evidence
    needed, needed_by_lines = (r.model.topology.targets.sum() for r in (networks, linear))
    return bool(gain > -INVENTED * n_rows * max(needed_by_lines - needed, 0))


def is_curved(dataset: Dataset, configuration: SearchConfiguration, linear: FitResult) -> bool:
    """Whether straight lines leave something unexplained that curves would explain.

    Either some pair of variables is so clearly bent that the linear fit may have taken the branches for regimes; or its
    regimes have suspiciously many targets, as pieces of curves have; or a network of its parents explains a variable
    better than its linear mechanism, in the rows that are likeliest in a regime that does not target it.
    """
    if dataset.n_rows < CURVE_ROWS:
        return False
    if bend(make_problem(dataset, configuration), seed=configuration.random_state) > BENT:
        return True
    rng = np.random.default_rng(configuration.random_state)
    topology = linear.model.topology
    if topology.targets.sum() > CROWDED * (len(topology.targets) - 1):
        return True
    regimes = linear.responsibilities.argmax(axis=1)
    for j in range(dataset.n_variables):
        parents = np.flatnonzero(topology.adjacency[:, j])
        rows = np.flatnonzero(topology.targets[regimes, j] == 0)
        if parents.size and rows.size >= CURVE_ROWS:
            rows = rng.permutation(rows)[:SCREEN_ROWS]
            x = np.ascontiguousarray(dataset.z[np.ix_(rows, parents)])
            if _gain(x, dataset.z[rows, j], rng) > 0.0:
                return True
    return False


def _gain(x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> float:
    """What a network explains more than a straight line, by the Schwarz criterion."""
    n = len(y)
    design = np.column_stack([np.ones(n), x])
    straight = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    network, _ = fit_network(x, y, np.ones(n), rng, Effort(starts=SCREEN_STARTS))
    curved = y - evaluate(x, network)
    before, after = (max(float(r @ r) / n, VARIANCE_FLOOR) for r in (straight, curved))
    return float(0.5 * n * np.log(before / after) - 0.5 * (network.size - design.shape[1]) * np.log(n))
