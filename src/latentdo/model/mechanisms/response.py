r"""What discrete responses have in common: probabilities of values through linear predictors.

.. math:: \eta_{ia} = c_a + b_a' x_i, \qquad a = 1, \dots, m

with one predictor for a binary variable or a count, and one per level but the first for a category. Fits are penalised
Newton steps: coefficients have a prior :math:`N(0, 1 / \lambda)` with :math:`\lambda` so weak that it matters only
where the likelihood has no maximum, as where a parent decides a binary child (separation), or a regime has no row of a
level. What is said to be the log-probability does not include it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.base import Array, Mechanism, Parents, join, split
from latentdo.model.mechanisms.family import MechanismFamily, evidence

RIDGE: Final = 0.01
"""Precision of the prior of a coefficient: a standard deviation of ten, where inputs have one of about one."""

FARTHEST: Final = 30.0
"""Linear predictors beyond are as good as certain: ``exp(30)`` is ten million million."""

MOST_STEPS: Final = 40
"""Newton steps. Five are usual; separation takes the most."""

TOLERANCE: Final = 1e-3
"""Nats that a last step may promise, and it is made all the same: it leaves about the square of that."""

SHORTEST: Final = 1e-3
"""Share of a step below which it is not halved again."""

_LARGEST = 1e50  # coefficient; predictors of what is far out then stay finite


@dataclass(frozen=True, eq=False)
class Response(MechanismFamily):
    """A discrete variable given its parents.

    Parameters
    ----------
    coefficients : ndarray [m, 1 + q]
        Constant and slopes of every linear predictor; constants alone, ``[m, 1]``, ignore the parents.
    shape : ndarray
        Further numbers, such as the dispersion of a count.
    n_free : int, optional
        How many of the numbers were fitted, if not all: what is shared with the reference is charged once.
    """

    coefficients: Array
    shape: Array = field(default_factory=lambda: np.empty(0))
    n_free: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no fit gives, whether it comes from one or from a file."""
        if not (np.abs(self.coefficients) < _LARGEST).all():
            raise ValueError(f"a coefficient of a {self.family!r} mechanism is not such as a fit gives")
        self.check()

    def check(self) -> None:
        """Refuse a wrong :attr:`shape`; there is none, unless the response has one."""
        if self.shape.size:
            raise ValueError(f"a {self.family!r} mechanism has no further numbers")

    @property
    def n_parameters(self) -> int:
        """See :class:`Mechanism`."""
        return self.n_all if self.n_free is None else self.n_free

    @property
    def n_all(self) -> int:
        """All numbers that a fit may choose."""
        return self.coefficients.size

    @classmethod
    def split(cls, x: Array) -> tuple[Array, Array]:
        """Inputs ``[n, q]`` that have coefficients, and what is known of every predictor beforehand, ``[n]``."""
        return x, np.zeros(len(x))

    @classmethod
    def without_parents(cls, x: Array) -> Array:
        """What an intervention that cuts parents off leaves of the columns."""
        return x[:, :0]

    def predictors(self, x: Array) -> Array:
        """Linear predictors ``[m, n]``, cut where they are certain."""
        slopes = np.ascontiguousarray(self.coefficients)
        return np.asarray(_predictors(np.ascontiguousarray(x[:, : slopes.shape[1] - 1]), slopes))

    def shifted(self, x: Array, y: Array, weights: Array) -> Self:
        """The same with constants of its own, fitted to rows: an intervention that leaves the slopes alone."""
        eta = self.predictors(x)
        constants = self.coefficients[:, 0].copy()
        self._shift(eta, y, weights, constants)
        moved = self.coefficients.copy()
        moved[:, 0] = constants
        return replace(self, coefficients=moved, n_free=constants.size)

    @abstractmethod
    def _shift(self, eta: Array, y: Array, weights: Array, constants: Array) -> None:
        """Move the constants, in place, to where they are likeliest given the predictors with the old ones."""

    @classmethod
    def intervene(
        cls, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> Mechanism:
        """See :class:`RowFamily`: the response without parents, with a shift, or with coefficients of its own."""
        found: list[Mechanism] = [cls.fit(cls.without_parents(x), y, weights, reference)]
        if not (imperfect and cls.split(x)[0].shape[1]):
            return found[0]
        assert isinstance(reference, cls)
        if reference.coefficients.shape[1] > 1:
            found.append(reference.shifted(x, y, weights))
        found.append(cls.fit(x, y, weights, reference))
        return max(found, key=lambda one: evidence(one, x, y, weights))

    @classmethod
    def follow(
        cls,
        x: Array,
        y: Array,
        weights: Array,
        reference: Mechanism,
        before: Mechanism,
        *,
        imperfect: bool,
    ) -> Mechanism:
        """See :class:`RowFamily`: as free of the parents and of the reference as before."""
        assert isinstance(reference, cls)
        assert isinstance(before, cls)
        if before.coefficients.shape[1] == 1:
            own: Mechanism = cls.refit(cls.without_parents(x), y, weights, before)
        elif not imperfect or before.coefficients.shape != reference.coefficients.shape:
            own = cls.intervene(x, y, weights, reference, imperfect=imperfect)
        elif before.n_free is not None:
            own = reference.shifted(x, y, weights)
        else:
            own = cls.refit(x, y, weights, before)
        return own

    @classmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """See :class:`Mechanism`."""
        free = [-1 if one.n_free is None else one.n_free for one in mechanisms]
        return {
            **join("coefficients", [one.coefficients.ravel() for one in mechanisms]),
            "n_predictors": np.array([len(one.coefficients) for one in mechanisms], dtype=np.int64),
            **join("shapes", [one.shape for one in mechanisms]),
            "n_free": np.array(free, dtype=np.int64),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """See :class:`Mechanism`."""
        found = []
        parts = (
            split("coefficients", arrays),
            arrays["n_predictors"].tolist(),
            split("shapes", arrays),
            arrays["n_free"].tolist(),
        )
        for flat, m, shape, free, inputs in zip(*parts, parents, strict=True):
            if m < 1 or flat.size not in (m, m * (1 + inputs.size)):
                raise ValueError(
                    f"a {cls.family!r} mechanism of {inputs.size} inputs has {flat.size} coefficients"
                )
            found.append(cls(flat.reshape(m, -1), shape, None if free < 0 else int(free)))
        return found


@njit
def _predictors(x, coefficients):  # type: ignore[no-untyped-def]
    m, q = coefficients.shape
    eta = np.empty((m, x.shape[0]))
    for a in range(m):
        for i in range(x.shape[0]):
            e = coefficients[a, 0]
            for b in range(1, q):
                e += coefficients[a, b] * x[i, b - 1]
            eta[a, i] = min(max(e, -FARTHEST), FARTHEST)
    return eta


def begin(start: Any, kind: type[Response], m: int, width: int) -> Array:
    """Coefficients to begin with: those of an earlier fit with as many inputs, else its constants."""
    beta = np.zeros((m, width))
    if isinstance(start, kind) and len(start.coefficients) == m:
        same = start.coefficients.shape[1] == width
        beta[:, : width if same else 1] = start.coefficients[:, : width if same else 1]
    return beta


def with_ones(x: Array) -> Array:
    """Ones and inputs as rows of a contiguous array, ``[1 + q, n]``: sums over the rows of a table are then quick."""
    found = np.empty((1 + x.shape[1], len(x)))
    found[0], found[1:] = 1.0, x.T
    return found


def alike(x: Array, y: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Rows without inputs that have the same value as one row with the weight of all, unless values are too many."""
    if x.shape[1] or not y.size or y.max() >= y.size:
        return x, y, weights
    counts = np.bincount(y.astype(np.int64), weights)
    values = np.flatnonzero(counts)
    return np.empty((values.size, 0)), values.astype(np.float64), counts[values].astype(np.float64)


@vectorised
def weighted_sums(inputs, weights, out):  # type: ignore[no-untyped-def]
    """Add the weighted sum of every input ``[q, n]`` to ``out [q]``."""
    for a in range(inputs.shape[0]):
        total = 0.0
        for i in range(inputs.shape[1]):
            total += weights[i] * inputs[a, i]
        out[a] += total


@vectorised
def weighted_products(inputs, weights, out):  # type: ignore[no-untyped-def]
    """Add the weighted sums of products of all pairs of inputs ``[q, n]`` to ``out [q, q]``."""
    q, n = inputs.shape
    scaled = np.empty(n)
    for a in range(q):
        for i in range(n):
            scaled[i] = weights[i] * inputs[a, i]
        for b in range(a + 1):
            total = 0.0
            for i in range(n):
                total += scaled[i] * inputs[b, i]
            out[a, b] += total
            if b < a:
                out[b, a] += total


@njit
def predict(inputs, beta, offset, out):  # type: ignore[no-untyped-def]
    """Fill ``out [n]`` with the linear predictor, cut where it is certain."""
    out[:] = offset
    for a in range(inputs.shape[0]):
        for i in range(out.shape[0]):
            out[i] += beta[a] * inputs[a, i]
    for i in range(out.shape[0]):
        out[i] = min(max(out[i], -FARTHEST), FARTHEST)
