r"""Mechanisms: how a variable depends on its parents and on its noise.

The structural equation of variable :math:`j` is :math:`x_j = \zeta_j(x_{\mathrm{pa}(j)}, \varepsilon_j)`. An
*additive* mechanism has the form :math:`\zeta_j = f_j(x_{\mathrm{pa}(j)}) + \varepsilon_j`; the conditional
density of :math:`x_j` is then that of the noise at the residual. A mechanism names its parents, so that it
can be read and moved by itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from latentdo.scm.noise import FloatArray

WeightSampler = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
"""Draws an array of weights of the given shape."""


class Mechanism(ABC):
    """A deterministic function of the parents and the noise."""

    parents: tuple[str, ...]

    @abstractmethod
    def __call__(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        """Values of the variable, shape ``[n]``, from ``parents [n, n_parents]`` and ``noise [n]``."""

    @abstractmethod
    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""


class AdditiveMechanism(Mechanism):
    """A mechanism whose noise is added at the end."""

    @abstractmethod
    def location(self, parents: FloatArray) -> FloatArray:
        """Compute the part that does not depend on the noise, shape ``[n]``."""

    def __call__(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        """Add the noise to `location`."""
        return np.asarray(self.location(parents) + noise)


class LayeredMechanism(Mechanism):
    """A mechanism with a last layer of weights, which the paper's imperfect interventions redraw."""

    @abstractmethod
    def redraw_last_layer(self, rng: np.random.Generator, draw: WeightSampler) -> "LayeredMechanism":
        """Return a copy whose last-layer weights (no biases, no earlier layers) are drawn afresh."""


@dataclass(frozen=True)
class Linear(AdditiveMechanism, LayeredMechanism):
    """Weighted sum of the parents plus an intercept; without parents it leaves the noise as it is.

    Parameters
    ----------
    weights
        Parent name to coefficient.
    intercept
        Added constant.

    Examples
    --------
    >>> Linear({"rain": 0.8, "sprinkler": -1.5}).formula()
    '0.8 rain - 1.5 sprinkler + e'
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    intercept: float = 0.0
    parents: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _vector: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parents = check_parents(_require_mapping(self.weights), "Linear")
        vector = check_array("Linear", "weights", list(self.weights.values()), (len(parents),))
        object.__setattr__(self, "weights", dict(zip(parents, vector.tolist(), strict=True)))
        object.__setattr__(self, "intercept", check_array("Linear", "intercept", self.intercept, ()).item())
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "_vector", vector)

    def location(self, parents: FloatArray) -> FloatArray:
        """Weighted sum of ``parents [n, n_parents]`` plus the intercept, shape ``[n]``."""
        return np.asarray(parents @ self._vector + self.intercept)

    def redraw_last_layer(self, rng: np.random.Generator, draw: WeightSampler) -> "Linear":
        """Return a copy with other weights: the only layer is the last one."""
        weights = draw(rng, (len(self.parents),)).tolist()
        return replace(self, weights=dict(zip(self.parents, weights, strict=True)))

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        terms = [f"{weight:+.3g} {name}" for name, weight in self.weights.items()]
        if self.intercept:
            terms.append(f"{self.intercept:+.3g}")
        # "+0.8 a", "-1.5 b" -> "0.8 a - 1.5 b"
        first, *rest = [*terms, "+e"]
        return " ".join([first.removeprefix("+"), *(f"{term[0]} {term[1:]}" for term in rest)])


@dataclass(frozen=True, eq=False)
class _Perceptron(LayeredMechanism):
    """One hidden layer of ReLU units; whether the noise is an input is left to the subclasses."""

    parents: tuple[str, ...]
    hidden_weights: FloatArray = field(repr=False)
    hidden_bias: FloatArray = field(repr=False)
    output_weights: FloatArray = field(repr=False)
    output_bias: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        owner = type(self).__name__
        parents = check_parents(self.parents, owner)
        if np.ndim(self.hidden_bias) != 1 or np.size(self.hidden_bias) == 0:
            raise ValueError(f"{owner}: hidden_bias must be a vector with one entry per hidden unit")
        units = np.size(self.hidden_bias)
        shapes: dict[str, tuple[int, ...]] = {
            "hidden_weights": (self._n_inputs(len(parents)), units),
            "hidden_bias": (units,),
            "output_weights": (units,),
        }
        object.__setattr__(self, "parents", parents)
        for name, shape in shapes.items():
            object.__setattr__(self, name, check_array(owner, name, getattr(self, name), shape))
        object.__setattr__(
            self, "output_bias", check_array(owner, "output_bias", self.output_bias, ()).item()
        )

    @classmethod
    def random(
        cls, parents: Iterable[str], rng: np.random.Generator, draw: WeightSampler, n_hidden: int = 5
    ) -> Self:
        """Draw all weights and biases with ``draw``."""
        names = check_parents(parents, cls.__name__)
        hidden_weights = draw(rng, (cls._n_inputs(len(names)), n_hidden))
        hidden_bias, output_weights = draw(rng, (n_hidden,)), draw(rng, (n_hidden,))
        return cls(names, hidden_weights, hidden_bias, output_weights, float(draw(rng, (1,))[0]))

    def redraw_last_layer(self, rng: np.random.Generator, draw: WeightSampler) -> Self:
        """Return a copy with other output weights; the hidden layer and all biases stay."""
        return replace(self, output_weights=draw(rng, self.output_weights.shape))

    @staticmethod
    def _n_inputs(n_parents: int) -> int:
        return n_parents

    def _forward(self, inputs: FloatArray) -> FloatArray:
        hidden = inputs @ self.hidden_weights + self.hidden_bias
        return np.asarray(np.maximum(hidden, 0.0) @ self.output_weights + self.output_bias)


@dataclass(frozen=True, eq=False)
class MLP(_Perceptron, AdditiveMechanism):
    r"""Additive network with one hidden layer of ReLU units.

    .. math:: x_j = w^\top \max(0, W^\top x_{\mathrm{pa}(j)} + b) + c + \varepsilon_j

    Parameters
    ----------
    parents
        Names, in the order of the rows of ``hidden_weights``.
    hidden_weights, hidden_bias, output_weights, output_bias
        ``W [n_parents, n_hidden]``, ``b [n_hidden]``, ``w [n_hidden]`` and ``c``.
    """

    def location(self, parents: FloatArray) -> FloatArray:
        """Output of the network for ``parents [n, n_parents]``, shape ``[n]``."""
        return self._forward(parents)

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        return f"MLP({', '.join(self.parents)}) + e"


@dataclass(frozen=True, eq=False)
class NonadditiveMLP(_Perceptron):
    r"""The same network with the noise as one more input: not Gaussian given the parents.

    .. math:: x_j = w^\top \max\bigl(0, W^\top (x_{\mathrm{pa}(j)}, \varepsilon_j) + b\bigr) + c

    Parameters
    ----------
    parents
        Names, in the order of the first rows of ``hidden_weights``.
    hidden_weights, hidden_bias, output_weights, output_bias
        As in `MLP`, but ``hidden_weights`` has ``n_parents + 1`` rows, the last one for the noise.
    """

    def __call__(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        """Feed parents and noise through the network."""
        return self._forward(np.column_stack([parents, noise]))

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        return f"MLP({', '.join((*self.parents, 'e'))})"

    @staticmethod
    def _n_inputs(n_parents: int) -> int:
        return n_parents + 1


@dataclass(frozen=True, eq=False)
class _OfFunction(Mechanism):
    """A Python function of the parents; whether the noise is an argument is left to the subclasses."""

    parents: tuple[str, ...]
    function: Callable[..., npt.ArrayLike]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "parents", check_parents(self.parents, owner))
        if not callable(self.function):
            raise TypeError(f"{owner}: the second argument must be a function, got {self.function!r}")

    def _values(self, arguments: tuple[FloatArray, ...], n: int) -> FloatArray:
        values = np.asarray(self.function(*arguments), dtype=np.float64)
        if values.shape not in {(), (n,)}:
            raise ValueError(
                f"{self.formula()}: the function must return {n} values, one per row, but returned shape "
                f"{values.shape}; write it with numpy operations that act on whole columns"
            )
        return np.broadcast_to(values, (n,))


@dataclass(frozen=True, eq=False)
class Function(_OfFunction, AdditiveMechanism):
    """Any Python function of the parents, plus noise.

    Parameters
    ----------
    parents
        Names; the function receives one array ``[n]`` for each, in this order.
    function
        Vectorised: returns an array ``[n]`` (or a constant).

    Examples
    --------
    >>> Function(["dose"], lambda dose: np.tanh(2 * dose)).formula()
    'f(dose) + e'
    """

    def location(self, parents: FloatArray) -> FloatArray:
        """Call the function on the columns of ``parents [n, n_parents]``; shape ``[n]``."""
        return self._values((*parents.T,), parents.shape[0])

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        return f"f({', '.join(self.parents)}) + e"


@dataclass(frozen=True, eq=False)
class NonadditiveFunction(_OfFunction):
    """Any Python function of the parents and the noise, for example multiplicative noise.

    Parameters
    ----------
    parents
        Names; the function receives one array ``[n]`` for each, in this order, and the noise last.
    function
        Vectorised: returns an array ``[n]``.
    """

    def __call__(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        """Call the function on the columns of ``parents [n, n_parents]`` and the noise ``[n]``."""
        return self._values((*parents.T, noise), parents.shape[0])

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        return f"f({', '.join((*self.parents, 'e'))})"


@dataclass(frozen=True)
class Heteroscedastic(Mechanism):
    r"""Noise that grows with the signal, as that of sensors and concentrations does.

    .. math:: x_j = c + f_j(x_{\mathrm{pa}(j)}) + a \log\bigl(1 + e^{1 + f_j(x_{\mathrm{pa}(j)}) / u}\bigr)\,
              \varepsilon_j

    The spread is proportional to large signals and small, but never zero, for very negative ones. It follows the
    signal of the parents alone, so that a change of the intercept :math:`c` moves the variable and nothing else.

    Parameters
    ----------
    mechanism
        The signal :math:`f_j`.
    unit
        :math:`u`, what counts as a large change of the signal: its standard deviation, say.
    spread
        Factor :math:`a` of the noise.
    intercept
        Added constant :math:`c`.
    """

    mechanism: AdditiveMechanism
    unit: float = 1.0
    spread: float = 1.0
    intercept: float = 0.0
    parents: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, AdditiveMechanism):
            raise TypeError(
                f"Heteroscedastic: the signal must be an AdditiveMechanism, got {self.mechanism!r}"
            )
        for name in ("unit", "spread"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"Heteroscedastic: {name} must be a positive number, got {value!r}")
        object.__setattr__(self, "parents", self.mechanism.parents)

    def location_and_spread(self, parents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and factor of the noise for ``parents [n, n_parents]``, both ``[n]``."""
        signal = self.mechanism.location(parents)
        return self.intercept + signal, np.asarray(self.spread * np.logaddexp(0.0, 1.0 + signal / self.unit))

    def __call__(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        """Add the noise, stretched by the signal."""
        location, spread = self.location_and_spread(parents)
        return np.asarray(location + spread * noise)

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        return f"m + s(m) e,  m = {self.mechanism.formula().removesuffix(' + e')}"


def check_parents(parents: Iterable[str], owner: str) -> tuple[str, ...]:
    """Names of parents as a tuple, each text and listed once; ``owner`` is for the error message."""
    if isinstance(parents, str):
        raise TypeError(
            f"{owner}: parents must be a list of names, got the text {parents!r}; write [{parents!r}]"
        )
    names = tuple(parents)
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"{owner}: a parent must be the name of a variable (text), got {name!r}")
        if name in names[:position]:
            raise ValueError(f"{owner}: parent {name!r} is listed twice; name every parent once")
    return names


def check_array(owner: str, name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Read-only copy of a parameter, finite and of the given shape."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{owner}: {name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{owner}: {name} must be finite, got {array}")
    array.setflags(write=False)
    return array


def _require_mapping(weights: object) -> Mapping[str, float]:
    if not isinstance(weights, Mapping):
        raise TypeError(f"Linear: weights must map parent names to numbers, got {weights!r}")
    return weights
