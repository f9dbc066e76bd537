"""Which family of densities: lines with Gaussian noise, unless something else explains the rows better.

Lines with Gaussian noise are fitted in any case, in seconds. Where any of their mechanisms would be better off as a
curve or with another noise, the search is run with curves and noise of any shape, which chooses for every variable.
Where a network would explain more, networks are searched too, with what was found so far as one of their starts.
Evidence decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.graphs import reachability
from latentdo.model.mechanisms import AdditiveNoise, LinearMechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.histograms import histogram
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.mechanisms.shapes import MOST_COMPONENTS, UNKNOWN, choose_shape
from latentdo.result import FitResult
from latentdo.solvers import lines
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.rough_scores import bend
from latentdo.solvers.nonlinear.solve import BY_NOISE
from latentdo.solvers.nonlinear.solve import solve as search_networks
from latentdo.solvers.nonlinear.units import fewest_units
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.row_strategy import solve as search_rows
from latentdo.solvers.search.solve import SearchConfiguration, make_problem
from latentdo.solvers.search.solve import solve as search_linear
from latentdo.solvers.settings import (
    BENT,
    CURVE_ROWS,
    PRODUCT_UNITS,
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
    margin = _margin(dataset)
    try:
        if shaped and (noise == "any" or lines.fit_wants(family, dataset, configuration, best)):
            curves = search_rows(dataset, configuration, family, family.family, progress, best.model)
            searches.append(curves)
            straight = max(best.evidence, lines.evidence_at(dataset, configuration, curves))
            clearly = curves.evidence > straight + margin
            if not clearly and curves.status == "converged":
                best = search_linear(dataset, configuration, progress)  # from all their starts
                searches.append(best)
            tried = [best, curves]
            best = curves if clearly else best
        more = bent or (networks_too and wants_networks(dataset, configuration, best))
        if more and best.status == "converged":
            # Where networks are surely needed, those of noise of any shape may have lost their way.
            for kind in (noise, "gaussian") if bent and noise == "auto" else (noise,):
                networks = search_networks(dataset, configuration, BY_NOISE[kind], progress, best.model)
                tried.append(networks)
                searches.append(networks)
                wins = networks.evidence > best.evidence + margin
                best = networks if wins else best
                if wins or networks.status == "interrupted":
                    break
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


def _margin(dataset: Dataset) -> float:
    """Nats by which the more flexible family has to win: some curve of many bends by chance."""
    return SCEPTICISM * float(np.log(dataset.total))


def is_bent(dataset: Dataset, configuration: SearchConfiguration) -> bool:
    """Whether some pair of variables is so clearly bent that networks are searched at once, which draw curves, too."""
    if dataset.n_rows < CURVE_ROWS:
        return False
    with threadpool_limits(limits=1):  # as in a search
        return bend(make_problem(dataset, configuration), seed=configuration.random_state) > BENT


def wants_networks(dataset: Dataset, configuration: SearchConfiguration, found: FitResult) -> bool:
    """Whether a fit leaves something unexplained that networks would explain.

    Of lines, if a network of its parents, or the product of two variables, explains any variable better, in the rows
    that are likeliest in a regime that does not target it. Of curves, if networks would explain the variables better in
    total, since they would have to replace all of them; but curves with a regime that hits most variables are suspected
    of following a product piece by piece, and judged like lines.
    """
    if dataset.n_rows < CURVE_ROWS:
        return False
    gains = np.concatenate([product_gains(dataset, found), network_gains(dataset, configuration, found)])
    broad = 2 * found.model.topology.targets.sum(axis=1).max() > dataset.n_variables
    return bool((gains.max() if found.density == "linear" or broad else gains.sum()) > _margin(dataset))


def product_gains(dataset: Dataset, found: FitResult) -> NDArray[np.float64]:
    """What the product of two others would explain of each variable, in nats, beyond lines and parabolas; ``[d]``.

    Neither of them need be a parent: without the other it may explain nothing. No effect of the variable is looked at,
    since hidden regimes bend what effects say of their causes. Targets may be pieces of the product, so all rows
    count; but what regimes do to several variables at once looks like a product, too, so it has to show within them.
    It has to pay for a network of the two. What is left over is taken by ranks, so that tails of noise do not decide.
    """
    z, n, model = dataset.z, dataset.n_rows, found.model
    effects = reachability(model.topology.adjacency) == 1
    regimes = np.unique(found.responsibilities.argmax(axis=1), return_inverse=True)[1]
    indicators = np.eye(regimes.max() + 1)[regimes]
    counts = indicators.sum(axis=0)[:, None]
    price = 0.5 * (3 + 3 * PRODUCT_UNITS) * np.log(n)

    def within(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What regimes leave of some columns."""
        return np.asarray(values - indicators @ (indicators.T @ values / counts))

    left = np.empty((n, dataset.n_variables))
    for j, mechanism in enumerate(model.reference):
        assert isinstance(mechanism, AdditiveNoise)
        residual, _ = mechanism.residual(model.inputs(z, j), z[:, j])
        left[:, j] = ndtri((rankdata(residual) - 0.5) / n)
    left, lines, parabolas = within(left), within(z), within(z**2)
    gains = np.zeros(dataset.n_variables)
    for a, b in combinations(range(dataset.n_variables), 2):
        others = ~(effects[:, a] | effects[:, b])
        others[[a, b]] = False
        smooth = np.column_stack([lines[:, [a, b]], parabolas[:, [a, b]]])
        both = np.column_stack([within((z[:, a] * z[:, b])[:, None]), left[:, others]])
        both -= smooth @ np.linalg.lstsq(smooth, both, rcond=None)[0]
        shared, size = both[:, 0] @ both[:, 1:], (both**2).sum(axis=0)
        squares = shared**2 / np.maximum(size[0] * size[1:], VARIANCE_FLOOR)
        explained = -0.5 * n * np.log1p(-np.minimum(squares, 1.0 - VARIANCE_FLOOR))
        gains[others] = np.maximum(gains[others], explained - price)
    return gains


def network_gains(
    dataset: Dataset, configuration: SearchConfiguration, found: FitResult
) -> NDArray[np.float64]:
    """What a network of its parents would gain for each variable, in nats; 0 for those without any, ``[d]``.

    By evidence on some of the rows, with noise as free as that of the mechanism in its place.
    """
    rng = np.random.default_rng(configuration.random_state)
    topology, regimes = found.model.topology, found.responsibilities.argmax(axis=1)
    gains = np.zeros(dataset.n_variables)
    for j in range(dataset.n_variables):
        parents = np.flatnonzero(topology.adjacency[:, j])
        rows = np.flatnonzero(topology.targets[regimes, j] == 0)
        if not parents.size or rows.size < CURVE_ROWS:
            continue
        some = rng.permutation(rows)[:SCREEN_ROWS]
        x, y = np.ascontiguousarray(dataset.z[np.ix_(some, parents)]), dataset.z[some, j]
        ones, weights = np.ones(y.size), np.full(y.size, rows.size / y.size)
        mechanism = found.model.reference[j]
        assert isinstance(mechanism, AdditiveNoise)
        network, _ = fit_network(x, y, ones, rng, Effort(starts=SCREEN_STARTS))
        trial = fewest_units(x, y, ones, fit_mechanism(x, y, ones, network))
        line = AnyNoise.fit(x, y, ones)
        if mechanism.is_plain:
            line = LinearMechanism(
                line.parameters, Noise.gaussian(float(np.mean(line.residual(x, y)[0] ** 2)))
            )
        else:
            bins, mean, spread = histogram(trial.residual(x, y)[0], weights)
            shape, _ = choose_shape(bins, mean, spread, UNKNOWN, MOST_COMPONENTS, 0.0)
            trial = NetworkMechanism.of(trial.parameters, Noise(*shape), parents.size)
        rival = max(evidence(one, x, y, weights) for one in (mechanism, line))
        gains[j] = evidence(trial, x, y, weights) - rival
    return gains
