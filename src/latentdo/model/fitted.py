r"""What every solver returns: a mixture of intervened structural causal models that share one DAG.

The paper's equation for a row ``z`` of regime ``k`` (its section 3.3, :math:`r_{kj}` the targets) is

.. math::
    \log p(z \mid k) = \sum_j (1 - r_{kj}) \log p_j(z_j \mid z_{pa(j)}) + r_{kj} \log p_{kj}(z_j \mid z_{pa(j)}).

A family of densities only has to say what :math:`p_j` and :math:`p_{kj}` are; everything a user asks of a fitted model
(responsibilities, scores, samples, what-if) follows here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from latentdo.graphs import is_dag, topological_order

Array = NDArray[np.float64]

LARGEST_PARAMETER: Final = 1e50
"""Of a saved model, in standardised units: squares of what is far out then stay finite; fits stay below 1e12."""

SUM_TOLERANCE: Final = 1e-6
"""How far probabilities that must sum to one may be from it: far above rounding, far below what anybody would read."""


@dataclass(frozen=True, eq=False)
class Topology:
    """The discrete part of a fitted model.

    Parameters
    ----------
    adjacency : ndarray [d, d] of int8
        The shared DAG; ``adjacency[i, j] == 1`` means ``i -> j``.
    targets : ndarray [n_regimes, d] of int8
        ``targets[k, j] == 1``: regime ``k`` changed the mechanism of variable ``j``. Row 0 is zero.
    weights : ndarray [n_regimes]
        Share of the rows in every regime; sums to one, entry 0 may be zero.
    """

    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]
    weights: Array

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The discrete part of a saved model; refuses what no fit could have found, before anything trusts it.

        Raises
        ------
        ValueError
            Naming the array.
        """
        adjacency, targets, weights = (np.array(arrays[name]) for name in ("adjacency", "targets", "weights"))
        d, k = len(np.atleast_1d(adjacency)), len(np.atleast_1d(targets))
        for name, array, shape in (
            ("adjacency", adjacency, (d, d)),
            ("targets", targets, (k, d)),
            ("weights", weights, (k,)),
        ):
            if array.shape != shape or array.size == 0:
                raise ValueError(f"{name} has the shape {array.shape}")
        for name, array in (("adjacency", adjacency), ("targets", targets)):
            if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
                raise ValueError(f"{name} holds other values than 0 and 1")
        if not is_dag(adjacency):
            raise ValueError("adjacency has a cycle")
        if targets[0].any():
            raise ValueError("targets change the reference, whose row must be zero")
        if weights.dtype != np.float64 or not ((weights >= 0.0) & (weights <= 1.0 + SUM_TOLERANCE)).all():
            raise ValueError("weights of regimes are not shares between 0 and 1")
        if not abs(weights.sum() - 1.0) <= SUM_TOLERANCE:
            raise ValueError("weights of regimes do not sum to one")
        return cls(adjacency, targets, weights)

    @property
    def n_regimes(self) -> int:
        """Number of regimes, the reference included."""
        return int(self.targets.shape[0])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.adjacency.shape[0])


def check_parameters(name: str, values: Array, *, positive: bool = False) -> None:
    """Refuse saved parameters that no fit gives; ``positive`` ones may not be tiny either.

    Raises
    ------
    ValueError
        Naming the array.
    """
    low = 1.0 / LARGEST_PARAMETER if positive else -LARGEST_PARAMETER
    if values.dtype != np.float64 or not ((values > low) & (values < LARGEST_PARAMETER)).all():
        raise ValueError(f"{name} are not such as a fit gives")


class FittedModel(ABC):
    """A fitted mixture of intervened structural causal models, in standardised units ``z``."""

    family: ClassVar[str]
    """Name under which the model is saved and loaded; one a subclass."""

    topology: Topology

    @abstractmethod
    def variable_log_density(self, z: Array, variable: int, regime: int) -> Array:
        """``log p(z_j | parents, regime)`` for every row, ``[n]``; the reference mechanism if not a target."""

    @abstractmethod
    def draw_variable(self, z: Array, variable: int, regime: int, rng: np.random.Generator) -> Array:
        """Draw variable ``j`` given the parents' columns of ``z [n, d]`` (other columns are ignored), ``[n]``."""

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """All parameters as named arrays; :meth:`from_arrays` restores the same model."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Restore a model from :meth:`to_arrays`."""

    def log_density(self, z: Array) -> Array:
        """``log p(z | regime)``, ``[n, n_regimes]``: reference terms once, then only what targets change."""
        targets = self.topology.targets
        reference = np.empty_like(z, order="F")
        for j in range(self.topology.n_variables):
            reference[:, j] = self.variable_log_density(z, j, 0)
        density = np.repeat(reference.sum(axis=1)[:, None], self.topology.n_regimes, axis=1)
        for k, j in np.argwhere(targets):
            density[:, k] += self.variable_log_density(z, int(j), int(k)) - reference[:, j]
        return density

    def log_joint(self, z: Array) -> Array:
        """``log p(z, regime)``, ``[n, n_regimes]``; minus infinity for a regime without weight."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.log_density(z) + np.log(self.topology.weights))

    def responsibilities(self, z: Array) -> Array:
        """Posterior probability of every regime for every row, ``[n, n_regimes]``."""
        return np.asarray(softmax(self.log_joint(z), axis=1))

    def score_samples(self, z: Array) -> Array:
        """``log p(z)`` of every row, regimes summed out, ``[n]``."""
        return np.asarray(logsumexp(self.log_joint(z), axis=1))

    def sample(
        self, n: int, regime: int, rng: np.random.Generator, do: Mapping[int, float] | None = None
    ) -> Array:
        """Ancestral samples ``[n, d]`` of one regime; ``do`` sets variables to constants on top of it."""
        do = do or {}
        z = np.zeros((n, self.topology.n_variables))
        for j in topological_order(self.topology.adjacency):
            z[:, j] = do[j] if j in do else self.draw_variable(z, j, regime, rng)
        return z
