"""Which family of densities: lines with Gaussian noise, unless something else explains the rows better.

Lines with Gaussian noise are fitted in any case, in seconds. Where any of their mechanisms would be better off as a
curve or with another noise, the search is run with curves and noise of any shape, which chooses for every variable.
Where a network would explain more, networks are searched too, with what was found so far as one of their starts.
Evidence decides, and sparsity where lines had to do without a shape of noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.model.mechanisms import Mechanism
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.histograms import histogram
from latentdo.model.mechanisms.network import evaluate
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.mechanisms.shapes import MOST_COMPONENTS, UNKNOWN, choose_shape
from latentdo.result import FitResult
from latentdo.solvers import lines
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.rough_scores import bend
from latentdo.solvers.nonlinear.solve import BY_NOISE
from latentdo.solvers.nonlinear.solve import solve as search_networks
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.row_strategy import solve as search_rows
from latentdo.solvers.search.solve import SearchConfiguration, make_problem
from latentdo.solvers.search.solve import solve as search_linear
from latentdo.solvers.settings import (
    BENT,
    CROWDED,
    CROWDED_CURVES,
    CURVE_ROWS,
    INVENTED,
    QUICK_NETWORKS,
    SCEPTICISM,
    SCREEN_ROWS,
    SCREEN_STARTS,
)


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
    networks_too = dataset.weight is None  # networks take every row once
    bent = networks_too and is_bent(dataset, configuration)
    shaped = noise != "gaussian" and not bent
    family = AdditiveMechanism
    best = search_linear(dataset, configuration, progress, lines.wants(family) if shaped else None)
    if best.status == "interrupted":
        return best
    tried, searches = [best], [best]
    try:
        if shaped and (noise == "any" or lines.fit_wants(family, dataset, configuration, best)):
            curves = search_rows(dataset, configuration, family, family.family, progress, best.model)
            searches.append(curves)
            # Some curve of many bends by chance: like regimes, they have to win clearly.
            straight = max(best.evidence, lines.evidence_at(dataset, configuration, curves))
            clearly = curves.evidence > straight + SCEPTICISM * float(np.log(dataset.total))
            if not clearly and curves.status == "converged":
                best = search_linear(dataset, configuration, progress)  # from all their starts
                searches.append(best)
            tried = [best, curves]
            best = curves if clearly else best
        curved = bent or (networks_too and is_curved(dataset, configuration, best, or_crowded=not shaped))
        if curved and best.status == "converged":
            networks = search_networks(dataset, configuration, BY_NOISE[noise], progress, best.model)
            tried.append(networks)
            searches.append(networks)
            best = networks if _is_better(networks, best, dataset.n_rows) else best
    except KeyboardInterrupt:
        return replace(best, status="interrupted", message="not all families were fitted")
    if len(tried) == 1:
        return best
    chosen: tuple[Mapping[str, Any], ...] = tuple(
        {
            "model": f"{result.density} mechanisms",
            "evidence": result.evidence,
            "targets": int(result.model.topology.targets.sum()),
            "chosen": result is best,
        }
        for result in tried
    )
    return replace(
        best,
        comparison=(*chosen, *best.comparison),
        status=searches[-1].status,
        history=tuple(entry for result in searches for entry in result.history),
        seconds=sum(result.seconds for result in searches),
    )


def _is_better(networks: FitResult, other: FitResult, n_rows: int) -> bool:
    """Whether networks have more evidence, or about as much with fewer targets than lines with Gaussian noise.

    Those can follow a curve piece by piece, with a regime for every piece; that is cheaper than the parameters of a
    network, and needs interventions that never were.
    """
    gain = networks.evidence - other.evidence
    if other.density != "linear":
        return bool(gain > 0.0)
    needed, needed_by_lines = (r.model.topology.targets.sum() for r in (networks, other))
    return bool(gain > -INVENTED * n_rows * max(needed_by_lines - needed, 0))


def is_bent(dataset: Dataset, configuration: SearchConfiguration) -> bool:
    """Whether some pair of variables is so clearly bent that lines would take the branches for regimes."""
    if dataset.n_rows < CURVE_ROWS:
        return False
    with threadpool_limits(limits=1):  # as in a search
        return bend(make_problem(dataset, configuration), seed=configuration.random_state) > BENT


def is_curved(
    dataset: Dataset, configuration: SearchConfiguration, found: FitResult, *, or_crowded: bool = True
) -> bool:
    """Whether a fit leaves something unexplained that networks would explain.

    Lines do if a network of its parents explains any variable better than its line, in the rows that are likeliest in a
    regime that does not target it, or, unless curves have been looked at, if their regimes have suspiciously many
    targets, as pieces of curves have.
    Curves with noise of any shape do if networks would explain the variables better on the whole: they would have to
    take the place of all of them. Where networks are quick, many targets are enough again, since pieces of networks
    hide the rest.
    """
    if dataset.n_rows < CURVE_ROWS:
        return False
    topology = found.model.topology
    if found.density != "linear":
        many = topology.targets.sum() > CROWDED_CURVES * (len(topology.targets) - 1)
        if many and dataset.n_variables <= QUICK_NETWORKS:
            return True
        return sum(_gain_over_curves(trial) for trial in _trials(dataset, configuration, found)) > 0.0
    if or_crowded and topology.targets.sum() > CROWDED * (len(topology.targets) - 1):
        return True
    return any(_gain_over_lines(trial) > 0.0 for trial in _trials(dataset, configuration, found))


@dataclass(frozen=True, eq=False)
class _Trial:
    """A network in the place of a mechanism: parents ``x``, values ``y``, and what it leaves over of them.

    The rows are some of ``n_rows``; the network has so many weights, ``size``.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    left_over: NDArray[np.float64]
    n_rows: int
    size: int
    mechanism: Mechanism


def _trials(dataset: Dataset, configuration: SearchConfiguration, found: FitResult) -> Iterator[_Trial]:
    """A network of its parents for every variable that has some."""
    rng = np.random.default_rng(configuration.random_state)
    topology, regimes = found.model.topology, found.responsibilities.argmax(axis=1)
    for j in range(dataset.n_variables):
        parents = np.flatnonzero(topology.adjacency[:, j])
        rows = np.flatnonzero(topology.targets[regimes, j] == 0)
        if parents.size and rows.size >= CURVE_ROWS:
            some = rng.permutation(rows)[:SCREEN_ROWS]
            x, y = np.ascontiguousarray(dataset.z[np.ix_(some, parents)]), dataset.z[some, j]
            network, _ = fit_network(x, y, np.ones(y.size), rng, Effort(starts=SCREEN_STARTS))
            yield _Trial(x, y, y - evaluate(x, network), rows.size, network.size, found.model.reference[j])


def _gain_over_lines(trial: _Trial) -> float:
    """What the network gains in nats, by least squares and the Schwarz criterion."""
    n = len(trial.y)
    design = np.column_stack([np.ones(n), trial.x])
    plain = trial.y - design @ np.linalg.lstsq(design, trial.y, rcond=None)[0]
    before, after = (max(float(r @ r) / n, VARIANCE_FLOOR) for r in (plain, trial.left_over))
    return float(0.5 * n * np.log(before / after) - 0.5 * (trial.size - design.shape[1]) * np.log(n))


def _gain_over_curves(trial: _Trial) -> float:
    """The same by evidence, with the noise that networks may have and with that of the mechanism."""
    weights = np.full(len(trial.y), trial.n_rows / len(trial.y))
    bins, mean, spread = histogram(trial.left_over, weights)
    _, value = choose_shape(bins, mean, spread, UNKNOWN, MOST_COMPONENTS, 0.0)
    cost = 0.5 * (trial.size + 1) * float(np.log(trial.n_rows))
    return float(value) - cost - evidence(trial.mechanism, trial.x, trial.y, weights)
