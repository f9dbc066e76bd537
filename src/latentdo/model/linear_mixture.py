"""The linear Gaussian family in closed form: what structural search fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from latentdo.compilation import njit
from latentdo.model.fitted import Array, FittedModel, Topology, check_parameters

LOG_2PI = float(np.log(2.0 * np.pi))

_DENSE_LIMIT = 64  # with more variables most coefficients are zero, and multiplying zeros is most of the work


@njit
def _add_targets(z, density, reference, index, coefficients, variances):  # type: ignore[no-untyped-def]
    """Replace the reference terms in ``density [n, n_regimes]`` by the targets' own, in place."""
    n, d = z.shape
    used = np.empty(d, dtype=np.int64)
    for m in range(index.shape[0]):
        k, j = index[m, 0], index[m, 1]
        count = 0
        for i in range(d):
            if coefficients[m, 1 + i] != 0.0:
                used[count] = i
                count += 1
        constant = -0.5 * (LOG_2PI + np.log(variances[m]))
        for row in range(n):
            residual = z[row, j] - coefficients[m, 0]
            for a in range(count):
                residual -= coefficients[m, 1 + used[a]] * z[row, used[a]]
            density[row, k] += constant - 0.5 * residual * residual / variances[m] - reference[row, j]


@dataclass(frozen=True, eq=False)
class LinearMixture(FittedModel):
    r"""Every mechanism is :math:`z_j = b_{j0} + \sum_i b_{ji} z_i + \mathcal N(0, \sigma_j^2)` over the parents.

    Parameters
    ----------
    topology : Topology
        Graph, targets and weights.
    coefficients : ndarray [d, d + 1]
        Reference mechanisms, intercept first; zero for non-parents.
    variances : ndarray [d]
        Their noise variances.
    target_index : ndarray [m, 2] of int64
        The (regime, variable) pairs with a mechanism of their own, in the order of the next two.
    target_coefficients : ndarray [m, d + 1]
        Their mechanisms; only an intercept where the intervention is perfect.
    target_variances : ndarray [m]
        Their noise variances.
    """

    topology: Topology
    coefficients: Array
    variances: Array
    target_index: NDArray[np.int64]
    target_coefficients: Array
    target_variances: Array

    family: ClassVar[str] = "linear"
    _OWN_ARRAYS: ClassVar = (
        "coefficients", "variances", "target_index", "target_coefficients", "target_variances"
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Remember where each target's own mechanism stands."""
        place = {(int(k), int(j)): m for m, (k, j) in enumerate(self.target_index)}
        object.__setattr__(self, "_place", place)

    def mechanism(self, variable: int, regime: int) -> tuple[Array, float]:
        """Coefficients ``[d + 1]`` (intercept first) and noise variance of a variable in a regime."""
        m = cast("dict[tuple[int, int], int]", self._place).get((regime, variable))  # type: ignore[attr-defined]
        if m is None:
            return self.coefficients[variable], float(self.variances[variable])
        return self.target_coefficients[m], float(self.target_variances[m])

    def _mean(self, z: Array, coefficients: Array) -> Array:
        used = np.flatnonzero(coefficients[1:])
        return np.asarray(coefficients[0] + z[:, used] @ coefficients[1 + used])

    def _log_density(self, z: Array, variable: int, coefficients: Array, variance: float) -> Array:
        residual = z[:, variable] - self._mean(z, coefficients)
        return np.asarray(-0.5 * (LOG_2PI + np.log(variance) + residual**2 / variance))

    def reference_log_density(self, z: Array, variable: int) -> Array:
        """``log p(z_j | parents)`` under the reference mechanism, ``[n]``."""
        return self._log_density(z, variable, self.coefficients[variable], float(self.variances[variable]))

    def log_density(self, z: Array) -> Array:
        """``log p(z | regime)``, ``[n, n_regimes]``, the reference terms of all variables at once."""
        slopes = self.coefficients[:, 1:]
        wide = self.topology.n_variables > _DENSE_LIMIT
        means = (csr_array(slopes) @ z.T).T if wide else z @ slopes.T
        residual = z - means - self.coefficients[:, 0]
        reference = -0.5 * (LOG_2PI + np.log(self.variances) + residual**2 / self.variances)
        density = np.repeat(reference.sum(axis=1)[:, None], self.topology.n_regimes, axis=1)
        _add_targets(
            np.ascontiguousarray(z),
            density,
            reference,
            self.target_index,
            self.target_coefficients,
            self.target_variances,
        )
        return density

    def variable_log_density(self, z: Array, variable: int, regime: int) -> Array:
        """See :meth:`FittedModel.variable_log_density`."""
        return self._log_density(z, variable, *self.mechanism(variable, regime))

    def draw_variable(self, z: Array, variable: int, regime: int, rng: np.random.Generator) -> Array:
        """See :meth:`FittedModel.draw_variable`."""
        coefficients, variance = self.mechanism(variable, regime)
        return np.asarray(self._mean(z, coefficients) + np.sqrt(variance) * rng.standard_normal(len(z)))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See :meth:`FittedModel.to_arrays`."""
        return {
            "adjacency": self.topology.adjacency,
            "targets": self.topology.targets,
            "weights": self.topology.weights,
            "coefficients": self.coefficients,
            "variances": self.variances,
            "target_index": self.target_index,
            "target_coefficients": self.target_coefficients,
            "target_variances": self.target_variances,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """See :meth:`FittedModel.from_arrays`."""
        own = {name: np.array(arrays[name]) for name in cls._OWN_ARRAYS}
        topology = Topology.from_arrays(arrays)
        if own["target_index"].dtype != np.int64 or own["target_index"].shape != (topology.targets.sum(), 2):
            raise ValueError("target_index does not list the targets")
        model = cls(topology, **own)
        model._check()
        return model

    def _check(self) -> None:
        """Refuse arrays that do not fit together: compiled loops trust the indices, and would leave their bounds."""
        d, m = self.topology.n_variables, int(self.topology.targets.sum())
        found = [
            array.shape
            for array in (self.coefficients, self.variances, self.target_coefficients, self.target_variances)
        ]
        if found != [(d, d + 1), (d,), (m, d + 1), (m,)]:
            raise ValueError(f"coefficients and variances have the shapes {found}")
        if not np.array_equal(
            np.argwhere(self.topology.targets), self.target_index[np.lexsort(self.target_index.T[::-1])]
        ):
            raise ValueError("target_index does not list the targets")
        own = self.topology.adjacency.T == 0
        if (
            self.coefficients[:, 1:][own].any()
            or self.target_coefficients[:, 1:][own[self.target_index[:, 1]]].any()
        ):
            raise ValueError("a variable depends on others than its parents")
        for name in ("coefficients", "target_coefficients"):
            check_parameters(name, getattr(self, name))
        for name in ("variances", "target_variances"):
            check_parameters(name, getattr(self, name), positive=True)
