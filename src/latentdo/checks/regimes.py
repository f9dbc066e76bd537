"""Regimes that are more than interventions, or less."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from latentdo.checks.check import Array, Check, listed, p_value, z_value
from latentdo.checks.residuals import Residuals
from latentdo.model.fitted import Topology
from latentdo.solvers.settings import CHECK_LEVEL, FEWEST_FOR_BROAD, LEFT_OVER, MIN_ROWS


def is_broad(topology: Topology, probabilities: Array | None = None) -> NDArray[np.bool_]:
    """Which regimes ``[K]`` change most variables; targets count by their ``probabilities [K, d]``, if known.

    Without one of them, which a single wrong arrow may have added, changed mechanisms must still outnumber others.
    """
    changed = (topology.targets if probabilities is None else topology.targets * probabilities).sum(axis=1)
    d = topology.n_variables
    return np.asarray((changed - 1.0 > d - changed) & (d >= FEWEST_FOR_BROAD))


def check_breadth(
    topology: Topology,
    regime_names: Sequence[Hashable],
    probabilities: Array | None = None,
) -> Check:
    """Whether a regime changes most variables: that is another population, or misfit, and no intervention.

    Regimes that a user has labelled count as well: mechanisms that differ nearly everywhere are hardly of the same kind
    anywhere.
    """
    share = np.where(topology.weights > 0, topology.targets.mean(axis=1), 0.0)
    broad = np.flatnonzero(is_broad(topology, probabilities) & (topology.weights > 0))
    words = "No regime changes most of the variables."
    if broad.size:
        shown = [
            f"{regime_names[k]} ({topology.targets[k].sum()} of {topology.n_variables})"
            for k in broad.tolist()
        ]
        words = (
            f"{'Regime' if broad.size == 1 else 'Regimes'} {listed(shown)} change{'s' if broad.size == 1 else ''} more "
            "than half of the variables, which looks less like an intervention than like another population or a "
            "misfit: try a transform or another density, or fit the populations separately."
        )
    return Check("broad regimes", float(share.max(initial=0.0)), None, bool(broad.size), words)


def check_invariance(residuals: Residuals, names: Sequence[str], regime_names: Sequence[Hashable]) -> Check:
    """Whether mechanisms that a regime is said to leave alone hold in its rows: level and scale of what is left."""
    targets = residuals.model.topology.targets
    found = []
    populated = np.flatnonzero(residuals.counts >= MIN_ROWS).tolist()
    for k in populated if len(populated) > 1 else ():  # one regime is its own reference
        for j in np.flatnonzero(targets[k] == 0).tolist():
            share, score = residuals.responsibilities[:, k], residuals.scores[k, :, j]
            for values in (score, (score**2 - 1.0) / np.sqrt(2.0)):
                z = z_value(share * values, residuals.weights)
                size = float(
                    np.average(
                        values, weights=share if residuals.weights is None else share * residuals.weights
                    )
                )
                found.append((z, size, f"{names[j]} in regime {regime_names[k]}"))
    largest = max((abs(z) for z, _, _ in found), default=0.0)
    failing = sorted(
        (-abs(size), what)
        for z, size, what in found
        if p_value(z, len(found)) < CHECK_LEVEL and abs(size) > LEFT_OVER
    )
    words = "Mechanisms that a regime does not target hold in its rows."
    if failing:
        shown = list(dict.fromkeys(what for _, what in failing))
        words = (
            f"Mechanisms that should be the same everywhere are not ({listed(shown)}): targets may be missing, or the "
            "density does not describe these variables; read targets as incomplete, and try another density or "
            "transform."
        )
    strongest = max((abs(size) for _, size, _ in found), default=0.0)
    return Check("invariant mechanisms", strongest, p_value(largest, len(found)), bool(failing), words)
