"""Residuals that know of each other: hidden causes, and variables that should have nothing to say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from latentdo.checks.check import Check, listed, p_value, z_value
from latentdo.checks.residuals import Residuals
from latentdo.graphs import reachability
from latentdo.solvers.settings import CHECK_LEVEL, HINTED_CORRELATION


class Hint(NamedTuple):
    """Two variables whose residuals move together within regimes, as if a hidden variable moved both."""

    first: str
    second: str
    correlation: float
    p_value: float


def hidden_cause_hints(residuals: Residuals, names: Sequence[str]) -> tuple[list[Hint], Check]:
    """Pairs whose residuals are correlated, the most first, and the check that there are none."""
    pairs = list(combinations(range(len(names)), 2))
    hints, largest, strongest = [], 0.0, 0.0
    for i, j in pairs:
        products = residuals.products(i, j)
        z, correlation = z_value(products, residuals.weights), _mean(products, residuals)
        largest = max(largest, abs(z))
        strongest = max(strongest, abs(correlation), key=abs)
        p = p_value(z, len(pairs))
        if p < CHECK_LEVEL and abs(correlation) > HINTED_CORRELATION:
            hints.append(Hint(names[i], names[j], correlation, p))
    hints.sort(key=lambda hint: -abs(hint.correlation))
    words = "Residuals of different variables do not move together within regimes."
    if hints:
        shown = [f"{one.first} and {one.second} ({one.correlation:+.2f})" for one in hints]
        words = (
            f"Within regimes the residuals of {listed(shown)} move together, as if a hidden variable moved both: do "
            "not read arrows between them, or out of them, as causal; measure what they share (size, depth, batch) and "
            "add it as a column, or pass it as batch=."
        )
    hinted = tuple((one.first, one.second) for one in hints)
    check = Check("hidden causes", strongest, p_value(largest, len(pairs)), bool(hints), words, hinted)
    return hints, check


def check_local_markov(residuals: Residuals, names: Sequence[str]) -> Check:
    """Whether residuals depend on variables that are neither parents nor descendants, linearly or by a bend."""
    adjacency = residuals.model.topology.adjacency
    reached = reachability(adjacency)
    found: list[tuple[float, float, str]] = []
    for j, name in enumerate(names):
        for i in range(len(names)):
            if i == j or reached[j, i] or adjacency[i, j]:
                continue
            score = residuals.ranks[:, i]
            for values in (score, (score**2 - 1.0) / np.sqrt(2.0)):
                products = residuals.expected[:, j] * values
                z = z_value(products, residuals.weights)
                found.append((z, _mean(products, residuals), f"{name} on {names[i]}"))
    largest = max((abs(z) for z, _, _ in found), default=0.0)
    failing = sorted(
        {
            (-abs(size), what)
            for z, size, what in found
            if p_value(z, len(found)) < CHECK_LEVEL and abs(size) > HINTED_CORRELATION
        }
    )
    words = "The residuals of each variable do not depend on variables that precede it."
    if failing:
        shown = list(dict.fromkeys(what for _, what in failing))
        words = (
            f"Residuals still depend on other variables ({listed(shown)}): arrows are missing, or have another shape "
            'than was fitted; try density="additive" or "nonlinear", or a transform.'
        )
    strongest = max((abs(size) for _, size, _ in found), default=0.0)
    return Check("local Markov", strongest, p_value(largest, len(found)), bool(failing), words)


def _mean(products: np.ndarray[tuple[int], np.dtype[np.float64]], residuals: Residuals) -> float:
    return float(np.average(products, weights=residuals.weights))
