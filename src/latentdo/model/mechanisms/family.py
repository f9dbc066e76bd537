"""What the search asks of a family of mechanisms: weighted fits, and what an intervention may put in their place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms.base import Array, Mechanism, Parents, join, split


class Fits(Protocol):
    """Fits to weighted rows; a :class:`RowFamily` says what each of them is."""

    def fit(self, x: Array, y: Array, weights: Array, start: Any = None) -> Any:
        """The most likely mechanism."""
        ...

    def refit(self, x: Array, y: Array, weights: Array, start: Mechanism) -> Any:
        """A quicker fit."""
        ...


class FamilyOfVariable(Protocol):
    """What the search asks of the family of one variable; see :class:`RowFamily`, whose subclasses are such."""

    @property
    def is_discrete(self) -> bool:
        """Whether values have probabilities: lines with Gaussian noise then say nothing of them."""
        ...

    @property
    def is_exposed(self) -> bool:
        """Whether the offset of rows follows the columns of parents."""
        ...

    def given(self, prepared: Any, parents: Parents) -> Fits:
        """Fits to rows with these parents."""
        ...

    def glance(self, x: Array, y: Array, weights: Array) -> Mechanism | None:
        """About the most likely mechanism, in a fraction of the time."""
        ...

    def may_differ(
        self, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """Regimes for which an intervention is worth fitting."""
        ...

    def intervene(
        self, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> Mechanism:
        """What an intervention puts in the place of the reference."""
        ...

    def follow(
        self,
        x: Array,
        y: Array,
        weights: Array,
        reference: Mechanism,
        before: Mechanism,
        *,
        imperfect: bool,
    ) -> Mechanism:
        """The same, where rows have changed a little since."""
        ...


class Families(Protocol):
    """What the search asks of the families of all variables: one for all, or one for each (:mod:`.mixed`)."""

    def prepare(self, z: Array) -> Any:
        """What to know of the variables before any fit."""
        ...

    def functions(self, prepared: Any, z: Array) -> Array:
        """Functions of every variable whose weighted sum is about a mean."""
        ...

    def widths(self, prepared: Any, n_variables: int) -> NDArray[np.int64]:
        """How many of these functions, the first, are the variable itself: one, or all levels but one."""
        ...

    def of(self, variable: int) -> FamilyOfVariable:
        """The family of one of them."""
        ...


class RowFamily(ABC):
    """A family of mechanisms that can be fitted to weighted rows; all methods are of the class."""

    is_discrete: ClassVar[bool] = False
    """Whether values have probabilities, rather than densities."""

    is_exposed: ClassVar[bool] = False
    """Whether the offset of rows follows the columns of parents."""

    @classmethod
    def widths(cls, prepared: Any, n_variables: int) -> NDArray[np.int64]:  # noqa: ARG003
        """See :class:`Families`."""
        return np.ones(n_variables, dtype=np.int64)

    @classmethod
    def of(cls, variable: int) -> FamilyOfVariable:  # noqa: ARG003
        """The family of a variable: this one, whatever the variable."""
        return cls

    @classmethod
    @abstractmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Any = None) -> Any:
        """The most likely mechanism of ``y [n]`` given its parents ``x [n, p]``, rows counted by ``weights [n]``.

        ``x`` may have no columns: such a mechanism takes the place of one whose parents an intervention cut off, and
        ignores the parents it is given later. ``start`` is an earlier fit of the same variable, maybe with other
        parents: a place to begin where one is needed.
        """

    @classmethod
    def prepare(cls, z: Array) -> Any:  # noqa: ARG003
        """What the family wants to know of the variables before any fit, if anything; for :meth:`given`."""
        return None

    @classmethod
    def functions(cls, prepared: Any, z: Array) -> Array:  # noqa: ARG003
        """Functions of every variable whose weighted sum is about a mean, ``[n, d L]``, the variable itself first.

        What moments say of them is a quick guess of who shares a mechanism. Lines, unless the family is prepared for
        something else.
        """
        return z

    @classmethod
    def glance(cls, x: Array, y: Array, weights: Array) -> Mechanism | None:  # noqa: ARG003
        """A line that explains rows about as well as a fit, in a fraction of the time, if the family knows of one.

        With that, most parent sets are never fitted (:mod:`latentdo.solvers.search.set_scores`).
        """
        return None

    @classmethod
    def given(cls, prepared: Any, parents: Parents) -> Fits:  # noqa: ARG003
        """The fits of the family to rows whose parents are these variables of those it was prepared for."""
        return cls

    @classmethod
    def refit(cls, x: Array, y: Array, weights: Array, start: Mechanism) -> Any:
        """A quicker fit that may keep whatever ``start`` chose, such as a number of knots; maybe with other parents."""
        return cls.fit(x, y, weights, start)

    @classmethod
    def may_differ(
        cls,
        x: Array,  # noqa: ARG003
        y: Array,  # noqa: ARG003
        responsibilities: Array,
        reference: Mechanism,  # noqa: ARG003
    ) -> NDArray[np.bool_]:
        """Regimes ``[K]`` for which an intervention is worth fitting: all, unless a family has a quick test."""
        return np.ones(responsibilities.shape[1], dtype=bool)

    @classmethod
    def intervene(
        cls, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> Mechanism:
        """What an intervention puts in the place of ``reference``, fitted to its rows.

        A perfect one ignores the parents; where imperfect ones are allowed, the one with the higher evidence is taken.
        """
        found: list[Mechanism] = [cls.fit(x[:, :0], y, weights)]
        if imperfect and x.shape[1]:
            found.append(cls.fit(x, y, weights, reference))
        return max(found, key=lambda one: evidence(one, x, y, weights))

    @classmethod
    def follow(
        cls,
        x: Array,
        y: Array,
        weights: Array,
        reference: Mechanism,
        before: Mechanism,  # noqa: ARG003
        *,
        imperfect: bool,
    ) -> Mechanism:
        """A quicker :meth:`intervene`, which may keep whatever it chose ``before`` for nearly the same rows."""
        return cls.intervene(x, y, weights, reference, imperfect=imperfect)


class MechanismFamily(Mechanism, RowFamily):
    """Mechanisms that can be fitted to weighted rows: all that the search asks of a family, also of a user's own.

    The class is the family, its instances are the mechanisms. See :func:`latentdo.register_family`, and
    :class:`ParametricFamily` for the short way.
    """

    summary: ClassVar[str]
    """What the family is: one phrase for messages, help and reports."""


@dataclass(frozen=True, eq=False)
class ParametricFamily(MechanismFamily):
    """Mechanisms that are a list of numbers: counted, saved and loaded by this class.

    A family of one's own has to add a name ``family``, a ``summary``, and the methods ``fit``, ``log_density`` and
    ``draw``, and may add a :meth:`check`.

    Parameters
    ----------
    parameters : ndarray
        All numbers, flat; all count as free.
    n_inputs : int
        Columns of ``x`` that the mechanism was fitted with: all parents, or none.
    """

    parameters: Array
    n_inputs: int

    def __post_init__(self) -> None:
        """Whether they come from a fit or from a file."""
        if not np.isfinite(self.parameters).all():
            raise ValueError(f"a parameter of a {self.family!r} mechanism is not a finite number")
        self.check()

    def check(self) -> None:
        """Refuse numbers that no fit gives, with a :class:`ValueError`; that they are finite is known."""

    def used(self, x: Array) -> Array:
        """The columns of ``x [n, p]`` that the mechanism knows: none, if an intervention cut its parents off."""
        return x[:, : self.n_inputs]

    @property
    def n_parameters(self) -> int:
        """See :class:`Mechanism`."""
        return self.parameters.size

    @classmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """See :class:`Mechanism`."""
        inputs = np.array([one.n_inputs for one in mechanisms], dtype=np.int64)
        return {**join("parameters", [one.parameters for one in mechanisms]), "n_inputs": inputs}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """See :class:`Mechanism`."""
        found = []
        parts = (split("parameters", arrays), arrays["n_inputs"].tolist(), parents)
        for parameters, n_inputs, inputs in zip(*parts, strict=True):
            if n_inputs not in (0, inputs.size):
                raise ValueError(f"a mechanism of {inputs.size} parents was fitted with {n_inputs}")
            found.append(cls(parameters, n_inputs))
        return found


def evidence(mechanism: Mechanism, x: Array, y: Array, weights: Array) -> float:
    """Log-likelihood of weighted rows, less the Schwarz cost of the mechanism's parameters."""
    loglik = float(weights @ mechanism.log_density(x, y))
    return loglik - 0.5 * mechanism.n_parameters * float(np.log(max(weights.sum(), 2.0)))
