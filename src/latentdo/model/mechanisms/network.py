r"""Networks: a linear function of the parents plus a few rectified units, plus noise.

.. math:: f(x) = c + s^\top x + \sum_h v_h \max(0, a_h + w_h^\top x).

With so few parameters it can be fitted to the noise floor by second-order steps (:mod:`latentdo.solvers.nonlinear`),
which no amount of first-order training of a large network did in our studies. The parameters are one flat vector
:math:`(c, s, (v_1, a_1, w_1), (v_2, a_2, w_2), \dots)`, because that is what second-order steps move in.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import AdditiveNoise, Array
from latentdo.model.mechanisms.noise import Noise


class NetworkMechanism(AdditiveNoise):
    """A network of the parents plus noise; ``parameters`` are those of the module's formula."""

    family: ClassVar[str] = "network"

    @classmethod
    def of(cls, parameters: Array, noise: Noise, n_inputs: int) -> Self:
        """A network that was fitted.

        A unit has one parameter less than numbers: what multiplies it may as well multiply its inside.
        """
        free = parameters.size - n_units(parameters, n_inputs) + noise.n_parameters
        return cls(parameters, noise, n_free=free)

    def mean(self, x: Array) -> Array:
        """See :class:`AdditiveNoise`."""
        return np.asarray(evaluate(np.ascontiguousarray(x), self.parameters))

    def with_last_layer(self, coefficients: Array, n_inputs: int, noise: Noise) -> Self:
        """The same hidden units under another last layer: ``coefficients`` of a one, the inputs and the units."""
        parameters = self.parameters.copy()
        parameters[: 1 + n_inputs] = coefficients[: 1 + n_inputs]
        parameters[1 + n_inputs :: n_inputs + 2] = coefficients[1 + n_inputs :]
        return type(self)(parameters, noise, n_free=coefficients.size + noise.n_parameters)

    @classmethod
    def check(cls, parameters: Array, n_parents: int) -> None:
        """See :class:`AdditiveNoise`."""
        count, rest = divmod(parameters.size - 1 - n_parents, n_parents + 2)
        if count < 0 or rest:
            raise ValueError(f"a network of {parameters.size} parameters does not have {n_parents} inputs")


def n_units(parameters: Array, n_inputs: int) -> int:
    """Number of rectified units in a flat parameter vector."""
    return (parameters.size - 1 - n_inputs) // (n_inputs + 2)


@njit
def evaluate(x, parameters):  # type: ignore[no-untyped-def]
    """Values ``[n]`` of the network at ``x [n, p]``."""
    n, p = x.shape
    units = (parameters.shape[0] - 1 - p) // (p + 2)
    values = np.empty(n)
    for i in range(n):
        total = parameters[0]
        for a in range(p):
            total += parameters[1 + a] * x[i, a]
        place = 1 + p
        for _ in range(units):
            inner = parameters[place + 1]
            for a in range(p):
                inner += parameters[place + 2 + a] * x[i, a]
            if inner > 0.0:
                total += parameters[place] * inner
            place += p + 2
        values[i] = total
    return values


def hidden(x: Array, parameters: Array) -> Array:
    """Activations of the units, ``[n, units]``."""
    p = x.shape[1]
    rows = parameters[1 + p :].reshape(n_units(parameters, p), p + 2)
    return np.asarray(np.maximum(x @ rows[:, 2:].T + rows[:, 1], 0.0))


def without_input(parameters: Array, n_inputs: int, place: int) -> Array:
    """The same network with one input cut off; only its constant if that was the only one."""
    if n_inputs == 1:
        return parameters[:1].copy()
    rows = parameters[1 + n_inputs :].reshape(-1, n_inputs + 2)
    skip = np.delete(parameters[1 : 1 + n_inputs], place)
    return np.concatenate([parameters[:1], skip, np.delete(rows, 2 + place, axis=1).ravel()])


def without_unit(parameters: Array, n_inputs: int, unit: int) -> Array:
    """The same network with one unit cut off."""
    first = 1 + n_inputs + unit * (n_inputs + 2)
    return np.delete(parameters, np.arange(first, first + n_inputs + 2))


def with_input(parameters: Array, n_inputs: int, place: int) -> Array:
    """The same function with one more input, ignored so far, at ``place``."""
    rows = parameters[1 + n_inputs :].reshape(-1, n_inputs + 2)
    skip = np.insert(parameters[1 : 1 + n_inputs], place, 0.0)
    return np.concatenate([parameters[:1], skip, np.insert(rows, 2 + place, 0.0, axis=1).ravel()])


def with_inputs(parameters: Array, inputs: list[int], wanted: list[int]) -> Array:
    """A network of some inputs, ascending, as one of those wanted: the others are cut off, new ones ignored so far."""
    inputs = list(inputs)
    for i in sorted(set(inputs) - set(wanted)):
        parameters = without_input(parameters, len(inputs), inputs.index(i))
        inputs.remove(i)
    for i in sorted(set(wanted) - set(inputs)):
        inputs = sorted([*inputs, i])
        parameters = with_input(parameters, len(inputs) - 1, inputs.index(i))
    return parameters
