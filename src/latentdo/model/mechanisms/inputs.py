r"""What parents of every kind give to a mechanism: one expansion for all responses.

A continuous or binary parent is a column as it is; a count is :math:`\log(1 + y)`, standardised, because what a count
does hardly grows in proportion to it; a category is one indicator per level but the first. Where rows have a known
exposure (:mod:`.exposed`), a count causes by its rate: :math:`\log(1 + y e^{-o})`, with :math:`o` the offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.data.kinds import LARGEST_COUNT, MOST_LEVELS, Kind
from latentdo.model.mechanisms.base import Array, Mechanism, Parents, join, split
from latentdo.model.mechanisms.exposed import ExposedCount
from latentdo.model.mechanisms.registry import mechanism_class

AS_IT_IS: Final = 0.0
LOGARITHM: Final = 1.0
LEVELS: Final = 2.0


@dataclass(frozen=True, eq=False)
class Inputs:
    """How the columns of parents are expanded.

    Parameters
    ----------
    recipes : ndarray [p, 3]
        For every parent ``AS_IT_IS``, ``LOGARITHM`` with the mean and the scale of the logarithm, or ``LEVELS`` with
        their number.
    """

    recipes: Array

    def __post_init__(self) -> None:
        """Refuse what no table gives, also in files."""
        what, first, second = self.recipes.T
        sizes = first[what == LEVELS]
        fine = np.isin(what, (AS_IT_IS, LOGARITHM, LEVELS)).all() and np.isfinite(self.recipes).all()
        if not (
            fine
            and (second[what == LOGARITHM] > 0.0).all()
            and np.isin(sizes, range(2, MOST_LEVELS + 1)).all()
        ):
            raise ValueError("inputs of a mechanism are not such as a table gives")

    @classmethod
    def of(cls, kinds: Sequence[Kind], z: Array, offset: Array | None = None) -> Self:
        """The inputs that columns of these kinds are, ``z [n, d]`` their values, NaN where one is missing."""
        recipes = np.zeros((len(kinds), 3))
        for j, kind in enumerate(kinds):
            if kind.kind == "count":
                logs = _log_rate(z[:, j], offset)
                logs = logs[~np.isnan(logs)]
                recipes[j] = LOGARITHM, logs.mean(), max(logs.std(), 1e-6)
            elif kind.kind == "categorical":
                recipes[j] = LEVELS, len(kind.levels), 0.0
        return cls(recipes)

    @classmethod
    def of_laws(cls, mechanisms: Sequence[Mechanism]) -> Self:
        """The same for columns that follow these mechanisms; logarithms of counts as they are."""
        recipes = np.zeros((len(mechanisms), 3))
        for j, mechanism in enumerate(mechanisms):
            if mechanism.n_levels == 0:
                recipes[j] = LOGARITHM, 0.0, 1.0
            elif mechanism.n_levels is not None:
                recipes[j] = LEVELS, mechanism.n_levels, 0.0
        return cls(recipes)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Columns that every parent becomes, ``[p]``."""
        return np.where(self.recipes[:, 0] == LEVELS, self.recipes[:, 1] - 1.0, 1.0).astype(np.int64)

    @cached_property
    def are_plain(self) -> bool:
        """Whether all columns stay what they are."""
        return not self.recipes[:, 0].any()

    def take(self, parents: NDArray[np.int64]) -> Inputs:
        """Of some of the parents."""
        return Inputs(self.recipes[parents])

    def columns(self, parents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which columns of the expansion of all belong to some of the parents."""
        last = np.cumsum(self.widths)
        own = [np.arange(last[i] - self.widths[i], last[i]) for i in parents]
        return np.concatenate([np.empty(0, dtype=np.int64), *own])

    def expand(self, x: Array, offset: Array | None = None) -> Array:
        """Columns ``[n, q]`` for the values ``[n, p]`` of the parents; ``offset [n]`` if rows have an exposure."""
        if self.are_plain or not x.shape[1]:
            return x
        parts = []
        for (what, first, second), column in zip(self.recipes, x.T, strict=True):
            if what == LOGARITHM:
                parts.append((_log_rate(column, offset)[:, None] - first) / second)
            elif what == LEVELS:
                parts.append((column[:, None] == np.arange(1, int(first))).astype(np.float64))
            else:
                parts.append(column[:, None])
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def contract(self, columns: Array, kinds: Sequence[Kind], offset: Array | None = None) -> Array:
        """The values ``[n, p]`` that columns ``[n, q]`` of any numbers are nearest to: undoes :meth:`expand`."""
        ends = np.cumsum(self.widths)
        parts = np.split(columns, ends[:-1], axis=1)
        out = np.empty((len(columns), len(kinds)))
        for j, (kind, own) in enumerate(zip(kinds, parts, strict=True)):
            if kind.levels:
                first = 1.0 - own.sum(axis=1, keepdims=True)
                out[:, j] = np.concatenate([first, own], axis=1).argmax(axis=1)
            elif kind.kind == "count":
                _, mean, scale = self.recipes[j]
                log = np.minimum(own[:, 0] * scale + mean, np.log(LARGEST_COUNT))
                rate = np.expm1(log) * (1.0 if offset is None else np.exp(offset))
                out[:, j] = np.maximum(rate.round(), 0.0)
            else:
                out[:, j] = own[:, 0]
        return out


def _log_rate(counts: Array, offset: Array | None) -> Array:
    """What a count does as a cause, before it is standardised."""
    counts = np.maximum(counts, 0.0)
    return np.asarray(np.log1p(counts if offset is None else counts * np.exp(-offset)))


def expanded(inputs: Inputs, x: Array, inner: type, *, exposed: bool) -> Array:
    """What a mechanism inside is given for the columns ``x``, of which the last is the offset if rows are exposed."""
    if not exposed:
        return inputs.expand(x)
    parents, offset = x[:, :-1], x[:, -1]
    columns = inputs.expand(parents, offset)
    return (
        np.column_stack([columns, offset])
        if issubclass(inner, ExposedCount)
        else np.ascontiguousarray(columns)
    )


@dataclass(frozen=True, eq=False)
class Expanded(Mechanism):
    """A mechanism whose parents are expanded before it sees them.

    Parameters
    ----------
    inputs : Inputs
        How.
    inner : Mechanism
        What is then given to.
    exposed : bool
        Whether rows have an exposure: the offset is then the last column, after the parents.
    """

    family: ClassVar[str] = "expanded"

    inputs: Inputs
    inner: Mechanism
    exposed: bool = False

    def inside(self, x: Array) -> Array:
        """What the mechanism inside is given."""
        return expanded(self.inputs, x, type(self.inner), exposed=self.exposed)

    @property
    def takes_offset(self) -> bool:
        """See :class:`Mechanism`."""
        return self.exposed

    @property
    def n_parameters(self) -> int:
        """See :class:`Mechanism`."""
        return self.inner.n_parameters

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`."""
        return self.inner.log_density(self.inside(x), y)

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        return self.inner.draw(self.inside(x), rng)

    def below(self, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        return self.inner.below(self.inside(x), y, rng)

    def parts(self, x: Array, y: Array) -> list[Array]:
        """See :class:`Mechanism`."""
        return self.inner.parts(self.inside(x), y)

    @property
    def n_levels(self) -> int | None:
        """See :class:`Mechanism`."""
        return self.inner.n_levels

    def quantile(self, x: Array, uniform: Array) -> Array:
        """See :class:`Mechanism`."""
        return self.inner.quantile(self.inside(x), uniform)

    @classmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """See :class:`Mechanism`; the mechanisms inside, family by family."""
        arrays = join("inputs", [one.inputs.recipes.ravel() for one in mechanisms])
        if any(one.exposed for one in mechanisms):
            arrays["exposed"] = np.array([one.exposed for one in mechanisms], dtype=np.int64)
        for kind in sorted({type(one.inner) for one in mechanisms}, key=lambda kind: kind.family):
            places = [place for place, one in enumerate(mechanisms) if type(one.inner) is kind]
            packed = kind.pack([mechanisms[place].inner for place in places])
            packed["places"] = np.array(places, dtype=np.int64)
            arrays |= {f"{kind.family}.{name}": array for name, array in packed.items()}
        return arrays

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """See :class:`Mechanism`."""
        recipes = split("inputs", arrays)
        inputs = []
        for flat, own in zip(recipes, parents, strict=True):
            if flat.size != 3 * own.size:
                raise ValueError(f"{own.size} parents have {flat.size} numbers that say how to expand them")
            inputs.append(Inputs(flat.reshape(-1, 3)))
        exposed = np.array(arrays.get("exposed", np.zeros(len(inputs))))
        if exposed.shape != (len(inputs),) or not np.isin(exposed, (0, 1)).all():
            raise ValueError("it is not said of every mechanism whether its rows are exposed")
        found: dict[int, Self] = {}
        for family in sorted({name.split(".")[0] for name in arrays if "." in name}):
            packed = {
                name.removeprefix(f"{family}."): array
                for name, array in arrays.items()
                if name.startswith(f"{family}.")
            }
            places = [int(place) for place in packed["places"]]
            widths = [np.arange(int(inputs[place].widths.sum())) for place in places]
            for place, inner in zip(places, mechanism_class(family).unpack(packed, widths), strict=True):
                found[place] = cls(inputs[place], inner, bool(exposed[place]))
        if sorted(found) != list(range(len(inputs))):
            raise ValueError("mechanisms with expanded inputs are not complete")
        return [found[place] for place in range(len(inputs))]


def opened(mechanism: Mechanism) -> Mechanism:
    """The mechanism inside, or the mechanism itself."""
    return mechanism.inner if isinstance(mechanism, Expanded) else mechanism
