"""What every mechanism offers: the conditional density of a variable given its parents, in one regime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from latentdo.model.mechanisms.growth import NO_GROWTH, check_growth, log_scales, n_rises
from latentdo.model.mechanisms.noise import Noise

STRETCHES = 4
"""Parts of noise whose Gaussians stand in a row; about as many as of noise whose Gaussians are free."""

RANKED_DRAWS = 63
"""Draws among which a value is ranked where a family has no formula for its distribution: levels of one in 64."""

Array = NDArray[np.float64]
Parents = NDArray[np.int64]


class LinearForm(NamedTuple):
    """A mechanism as an equation, ``y = c + b' x`` and centred noise.

    ``coefficients`` are ``c`` and ``b``, or ``c`` alone where parents do not matter; ``variance`` is that of the noise.
    """

    coefficients: Array
    variance: float


class Mechanism(ABC):
    """A conditional density ``p(y | x)`` of a variable ``y`` given its parents ``x [n, p]``, in standardised units."""

    family: ClassVar[str]
    """Name under which the registry knows the class, and files hold its mechanisms."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Free parameters: what the mechanism is charged for."""

    @abstractmethod
    def log_density(self, x: Array, y: Array) -> Array:
        """``log p(y | x)`` of every row, ``[n]``."""

    @abstractmethod
    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """One value per row of ``x``, ``[n]``."""

    def below(self, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """Probability of a value below ``y`` given ``x``, ``[n]``: uniform if the mechanism is the true one.

        Where there is no formula for it, ``y`` is ranked among draws. Ties are broken at random, so that it is uniform
        for discrete variables too.
        """
        smaller, equal = np.zeros(len(y)), np.ones(len(y))
        for _ in range(RANKED_DRAWS):
            drawn = self.draw(x, rng)
            smaller += drawn < y
            equal += drawn == y
        return np.asarray((smaller + equal * rng.random(len(y))) / (RANKED_DRAWS + 1))

    def parts(self, x: Array, y: Array) -> list[Array]:  # noqa: ARG002
        """Shares ``[n]`` of the rows in the parts that the density is a mixture of; none, unless it is one.

        An intervention that has no regime yet may hide in one of them.
        """
        return []

    @property
    def n_levels(self) -> int | None:
        """How many values there are: 0 if all whole numbers from 0 on, None where values have densities."""
        return None

    @property
    def takes_offset(self) -> bool:
        """Whether the last column of ``x``, after the parents, is the offset of the rows; see :mod:`.exposed`."""
        return False

    def quantile(self, x: Array, uniform: Array) -> Array:
        """The count that a share ``uniform [n]`` of rows does not exceed, ``[n]``; of mechanisms of counts."""
        raise NotImplementedError(f"a {self.family!r} mechanism is not one of counts")

    @property
    def linear_form(self) -> LinearForm | None:
        """The equation, of a mechanism that has one."""
        return None

    @classmethod
    def log_densities(
        cls, mechanisms: Sequence[Self], z: Array, variables: Sequence[int], parents: Sequence[Parents]
    ) -> Array:
        """Log-densities of several mechanisms of this family at once, ``[m, n]``: a family may have a faster way."""
        return np.stack(
            [
                mechanism.log_density(np.ascontiguousarray(z[:, inputs]), z[:, variable])
                for mechanism, variable, inputs in zip(mechanisms, variables, parents, strict=True)
            ]
        )

    @classmethod
    @abstractmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """Parameters of several mechanisms as named arrays, for a file."""

    @classmethod
    @abstractmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """Undo :meth:`pack`, given everybody's parents; what does not fit together is a :class:`ValueError`."""


@dataclass(frozen=True, eq=False)
class AdditiveNoise(Mechanism):
    r"""A function of the parents, the signal, plus noise: :math:`y = f(x) + e^{g(f(x))} \varepsilon`.

    Parameters
    ----------
    parameters : ndarray
        Of the function, flat.
    noise : Noise
        Density of the rest.
    n_free : int, optional
        How many parameters, of function and noise, were fitted, if not all: what is shared is charged once.
    growth : ndarray [2, m]
        How the logarithm of the scale of the noise depends on the signal, :math:`g`, see :mod:`.growth`; empty where
        noise does not depend on parents.
    """

    parameters: Array
    noise: Noise
    n_free: int | None = None
    growth: Array = field(default_factory=NO_GROWTH.copy)

    @property
    def n_parameters(self) -> int:
        """Free parameters of function and noise."""
        if self.n_free is not None:
            return self.n_free
        return self.parameters.size + self.noise.n_parameters + int(n_rises(self.growth))

    @property
    def is_plain(self) -> bool:
        """Whether the noise is one Gaussian, the same for all parents."""
        return self.noise.weights.size == 1 and not self.grows

    @property
    def grows(self) -> bool:
        """Whether the scale of the noise depends on the signal."""
        return bool(self.growth.shape[1])

    @abstractmethod
    def mean(self, x: Array) -> Array:
        """Value of the function, ``[n]``."""

    @classmethod
    @abstractmethod
    def check(cls, parameters: Array, n_parents: int) -> None:
        """Refuse parameters that cannot belong to so many parents: compiled loops trust their sizes."""

    def scaled(self, signal: Array) -> Array:
        """Logarithm of the scale of the noise, ``[n]``, where the function has these values."""
        return np.asarray(log_scales(signal, self.growth))

    def residual(self, x: Array, y: Array) -> tuple[Array, Array]:
        """What is left of ``y``, in units of the noise, and the logarithm of these units, both ``[n]``."""
        signal = self.mean(x)
        if not self.grows:
            return y - signal, np.zeros(len(y))
        log_scale = self.scaled(signal)
        return (y - signal) * np.exp(-log_scale), log_scale

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`."""
        residual, log_scale = self.residual(x, y)
        return self.noise.log_density(residual) - log_scale

    def below(self, x: Array, y: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002  (a formula)
        """See :class:`Mechanism`."""
        return self.noise.below(self.residual(x, y)[0])

    def parts(self, x: Array, y: Array) -> list[Array]:
        """See :class:`Mechanism`: the Gaussians of the noise, or stretches of those that stand in a row."""
        if self.noise.weights.size == 1:
            return []
        shares = softmax(self.noise.log_joint(self.residual(x, y)[0]), axis=1).T
        return list(shares.reshape(STRETCHES, -1, len(y)).sum(axis=1) if self.noise.is_row else shares)

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        signal = self.mean(x)
        return signal + np.exp(self.scaled(signal)) * self.noise.draw(len(x), rng)

    @classmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """See :class:`Mechanism`; lists of different lengths are joined, their lengths beside them."""
        free = [-1 if one.n_free is None else one.n_free for one in mechanisms]
        return {
            **join("parameters", [one.parameters for one in mechanisms]),
            **join("noises", [one.noise.to_array() for one in mechanisms]),
            "n_free": np.array(free, dtype=np.int64),
            **join("growth", [one.growth.ravel() for one in mechanisms]),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """See :class:`Mechanism`."""
        found = []
        parts = (
            split("parameters", arrays),
            split("noises", arrays),
            arrays["n_free"].tolist(),
            split("growth", arrays),
        )
        for parameters, noise, free, flat, inputs in zip(*parts, parents, strict=True):
            cls.check(parameters, inputs.size)
            growth = check_growth(flat)
            found.append(cls(parameters, Noise.from_array(noise), None if free < 0 else int(free), growth))
        return found


def join(name: str, parts: list[Array]) -> dict[str, NDArray[Any]]:
    """Lists of different lengths as one array, their lengths beside it."""
    sizes = np.array([part.size for part in parts], dtype=np.int64)
    return {name: np.concatenate([*parts, np.empty(0)]), f"{name}_sizes": sizes}


def split(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[Array]:
    """Undo :func:`join`; lengths that do not add up are a :class:`ValueError`."""
    joined, sizes = (
        np.array(arrays[name], dtype=np.float64),
        np.array(arrays[f"{name}_sizes"], dtype=np.int64),
    )
    if not (joined.ndim == sizes.ndim == 1 and (sizes >= 0).all() and sum(sizes.tolist()) == joined.size):
        raise ValueError(f"the lengths of {name} do not add up to their number")
    return list(np.split(joined, np.cumsum(sizes)))[:-1]
