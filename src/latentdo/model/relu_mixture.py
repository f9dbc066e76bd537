"""The nonlinear family of structural search: small networks with Gaussian or mixed noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import SUM_TOLERANCE, Array, FittedModel, Topology, check_parameters
from latentdo.model.relu_network import evaluate, hidden

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Noise:
    """Density of what a mechanism leaves over: a mixture of Gaussians, often of one.

    Parameters
    ----------
    weights, means, variances : ndarray [c]
        Of its components.
    """

    weights: Array
    means: Array
    variances: Array

    @classmethod
    def gaussian(cls, variance: float) -> Self:
        """One component around zero."""
        return cls(np.ones(1), np.zeros(1), np.array([variance]))

    @property
    def n_parameters(self) -> int:
        """Free parameters beyond the mechanism's own constant."""
        return 3 * self.weights.size - 2

    def log_joint(self, residual: Array) -> Array:
        """``log p(residual, component)``, ``[n, c]``."""
        centred = residual[:, None] - self.means
        return np.asarray(
            np.log(self.weights) - 0.5 * (LOG_2PI + np.log(self.variances) + centred**2 / self.variances)
        )

    def log_density(self, residual: Array) -> Array:
        """``log p(residual)``, ``[n]``."""
        # Component by component: sums over rows of three numbers are slow.
        return np.asarray(reduce(np.logaddexp, self.log_joint(residual).T))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Samples ``[n]``."""
        component = rng.choice(self.weights.size, size=n, p=self.weights / self.weights.sum())
        return np.asarray(self.means[component] + np.sqrt(self.variances[component]) * rng.standard_normal(n))


@dataclass(frozen=True, eq=False)
class OwnMechanism:
    """What an intervention puts in place of a mechanism: a constant, or a function of parents and hidden units.

    Parameters
    ----------
    coefficients : ndarray [1], [1 + p] or [1 + p + units]
        Of a one, the parents, and the hidden units of the reference network (whose last layer an imperfect
        intervention changes).
    noise : Noise
        Density of the rest.
    """

    coefficients: Array
    noise: Noise

    @property
    def n_parameters(self) -> int:
        """Free parameters of function and noise."""
        return int(self.coefficients.size) + self.noise.n_parameters


@dataclass(frozen=True, eq=False)
class ReluMixture(FittedModel):
    """Every reference mechanism is a small network (:mod:`.relu_network`) of the parents plus noise.

    Parameters
    ----------
    topology : Topology
        Graph, targets and weights.
    networks : tuple of ndarray
        Flat parameters of every variable's network over its parents in ascending order.
    noises : tuple of Noise
        Their noise.
    own : mapping (regime, variable) -> OwnMechanism
        Intervened mechanisms, one a target.
    """

    topology: Topology
    networks: tuple[Array, ...]
    noises: tuple[Noise, ...]
    own: Mapping[tuple[int, int], OwnMechanism]

    family: ClassVar[str] = "relu"

    @cached_property
    def parents(self) -> tuple[NDArray[np.int64], ...]:
        """Parents of every variable, ascending."""
        return tuple(np.flatnonzero(column) for column in self.topology.adjacency.T)

    def reference_mean(self, z: Array, variable: int) -> Array:
        """Value of the reference mechanism without its noise, ``[n]``."""
        x = np.ascontiguousarray(z[:, self.parents[variable]])
        return np.asarray(evaluate(x, self.networks[variable]))

    def own_mean(self, z: Array, variable: int, own: OwnMechanism) -> Array:
        """Value of an intervened mechanism without its noise, ``[n]``."""
        coefficients, p = own.coefficients, self.parents[variable].size
        value = np.full(len(z), coefficients[0])
        if coefficients.size > 1:
            x = z[:, self.parents[variable]]
            value += x @ coefficients[1 : 1 + p]
            if coefficients.size > 1 + p:
                value += hidden(x, self.networks[variable]) @ coefficients[1 + p :]
        return value

    def mean(self, z: Array, variable: int, regime: int) -> Array:
        """Value of the mechanism of a variable in a regime without its noise, ``[n]``."""
        own = self.own.get((regime, variable))
        return self.reference_mean(z, variable) if own is None else self.own_mean(z, variable, own)

    def reference_log_density(self, z: Array, variable: int) -> Array:
        """``log p(z_j | parents)`` under the reference mechanism, ``[n]``."""
        return self.noises[variable].log_density(z[:, variable] - self.reference_mean(z, variable))

    def own_log_density(self, z: Array, variable: int, own: OwnMechanism) -> Array:
        """``log p(z_j | parents)`` under an intervened mechanism, in the model or not, ``[n]``."""
        return own.noise.log_density(z[:, variable] - self.own_mean(z, variable, own))

    def noise(self, variable: int, regime: int) -> Noise:
        """Noise of a variable in a regime."""
        own = self.own.get((regime, variable))
        return self.noises[variable] if own is None else own.noise

    def variable_log_density(self, z: Array, variable: int, regime: int) -> Array:
        """See :meth:`FittedModel.variable_log_density`."""
        return self.noise(variable, regime).log_density(z[:, variable] - self.mean(z, variable, regime))

    def draw_variable(self, z: Array, variable: int, regime: int, rng: np.random.Generator) -> Array:
        """See :meth:`FittedModel.draw_variable`."""
        return self.mean(z, variable, regime) + self.noise(variable, regime).draw(len(z), rng)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See :meth:`FittedModel.to_arrays`; lists of different lengths are joined, their lengths beside them."""
        keys = sorted(self.own)
        own = [self.own[key] for key in keys]
        return {
            "adjacency": self.topology.adjacency,
            "targets": self.topology.targets,
            "weights": self.topology.weights,
            "target_index": np.array(keys, dtype=np.int64).reshape(-1, 2),
            **_join("networks", list(self.networks)),
            **_join("own", [mechanism.coefficients for mechanism in own]),
            **_join("noises", [_flat(noise) for noise in self.noises]),
            **_join("own_noises", [_flat(mechanism.noise) for mechanism in own]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """See :meth:`FittedModel.from_arrays`."""
        topology = Topology.from_arrays(arrays)
        index = np.array(arrays["target_index"])
        if index.dtype != np.int64 or index.shape != (topology.targets.sum(), 2):
            raise ValueError("target_index does not list the targets")
        keys = [(int(k), int(j)) for k, j in index]
        noises = tuple(_noise(flat) for flat in _split("noises", arrays))
        own_noises = [_noise(flat) for flat in _split("own_noises", arrays)]
        coefficients = _split("own", arrays)
        own = {
            key: OwnMechanism(c, noise) for key, c, noise in zip(keys, coefficients, own_noises, strict=True)
        }
        model = cls(topology, tuple(_split("networks", arrays)), noises, own)
        model._check()
        return model

    def _check(self) -> None:
        """Refuse parts that do not fit together: compiled loops trust the sizes, and would leave their bounds."""
        d = self.topology.n_variables
        if (len(self.networks), len(self.noises)) != (d, d):
            raise ValueError(
                f"there are {len(self.networks)} networks and {len(self.noises)} noises for {d} variables"
            )
        if sorted(self.own) != [(int(k), int(j)) for k, j in np.argwhere(self.topology.targets)]:
            raise ValueError("the own mechanisms do not belong to the targets")
        units = []
        for network, parents in zip(self.networks, self.parents, strict=True):
            count, rest = divmod(network.size - 1 - parents.size, parents.size + 2)
            if count < 0 or rest:
                raise ValueError(
                    f"a network of {network.size} parameters does not have {parents.size} inputs"
                )
            units.append(count)
        for (_, j), mechanism in self.own.items():
            p = self.parents[j].size
            if mechanism.coefficients.size not in (1, 1 + p, 1 + p + units[j]):
                raise ValueError(f"an own mechanism has {mechanism.coefficients.size} coefficients")
        every = (*self.noises, *(mechanism.noise for mechanism in self.own.values()))
        for network in self.networks:
            check_parameters("networks", network)
        for mechanism in self.own.values():
            check_parameters("own mechanisms", mechanism.coefficients)
        for noise in every:
            check_parameters("means of the noise", noise.means)
            check_parameters("variances of the noise", noise.variances, positive=True)
            check_parameters("weights of the noise", noise.weights, positive=True)
            if not abs(noise.weights.sum() - 1.0) <= SUM_TOLERANCE:
                raise ValueError("weights of the noise do not sum to one")


def _flat(noise: Noise) -> Array:
    return np.concatenate([noise.weights, noise.means, noise.variances])


def _noise(flat: Array) -> Noise:
    weights, means, variances = flat.reshape(3, -1)
    return Noise(weights, means, variances)


def _join(name: str, parts: list[Array]) -> dict[str, NDArray[np.generic]]:
    sizes = np.array([part.size for part in parts], dtype=np.int64)
    return {name: np.concatenate([*parts, np.empty(0)]), f"{name}_sizes": sizes}


def _split(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> list[Array]:
    values, sizes = np.array(arrays[name]), np.array(arrays[f"{name}_sizes"])
    if (values.dtype, sizes.dtype) != (np.float64, np.int64) or (values.ndim, sizes.ndim) != (1, 1):
        raise ValueError(f"{name} are not lists of numbers")
    # each is compared first: a sum of huge sizes would wrap around
    if not ((sizes >= 0) & (sizes <= values.size)).all() or sizes.sum() != values.size:
        raise ValueError(f"{name} have other sizes than {name}_sizes says")
    return list(np.split(values, np.cumsum(sizes)))[:-1]
