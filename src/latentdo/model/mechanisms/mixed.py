"""Tables with columns of several kinds: every variable has the family of its own kind, and parents of all kinds.

Continuous variables keep the family that was asked for, such as lines or curves with noise of any shape; its parents
are expanded (:mod:`.inputs`) like those of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.data.kinds import Kind
from latentdo.model.mechanisms.base import Array, Mechanism, Parents
from latentdo.model.mechanisms.binary import BinaryMechanism
from latentdo.model.mechanisms.categorical import CategoricalMechanism, Levels
from latentdo.model.mechanisms.count import CountMechanism
from latentdo.model.mechanisms.exposed import ExposedCount
from latentdo.model.mechanisms.family import Fits, RowFamily
from latentdo.model.mechanisms.inputs import Expanded, Inputs, expanded, opened

_RESPONSES: dict[str, type[RowFamily]] = {
    "binary": BinaryMechanism,
    "count": CountMechanism,
    "categorical": CategoricalMechanism,
}


class Prepared(NamedTuple):
    """What is known of a table before any fit: how its columns are expanded, and what the continuous family knows."""

    inputs: Inputs
    continuous: Any


@dataclass(frozen=True)
class MixedFamily:
    """The families of all variables, see :class:`.family.Families`.

    Parameters
    ----------
    kinds : sequence of Kind
        What the variables are.
    continuous : subclass of RowFamily
        The family of the continuous ones.
    exposed : bool
        Whether rows have an exposure: the last of their columns, after the variables, is the offset.
    """

    kinds: Sequence[Kind]
    continuous: type[RowFamily]
    exposed: bool = False

    def _split(self, z: Array) -> tuple[Array, Array | None]:
        return (z[:, :-1], z[:, -1]) if self.exposed else (z, None)

    def prepare(self, z: Array) -> Prepared:
        """See :class:`RowFamily`."""
        values, offset = self._split(z)
        inputs = Inputs.of(self.kinds, values, offset)
        return Prepared(inputs, self.continuous.prepare(inputs.expand(values, offset)))

    def functions(self, prepared: Prepared, z: Array) -> Array:
        """See :class:`RowFamily`: as many for each variable, those that it does not need zero."""
        columns = prepared.inputs.expand(*self._split(z))
        found = self.continuous.functions(prepared.continuous, columns)
        length = found.shape[1] // columns.shape[1]
        widths = prepared.inputs.widths
        longest = max(length, int(widths.max()))
        out = np.zeros((len(z), len(widths), longest))
        for j, width in enumerate(widths):
            (first, *_) = prepared.inputs.columns(np.array([j]))
            if width == 1:
                out[:, j, :length] = found[:, first * length : (first + 1) * length]
            else:
                out[:, j, :width] = columns[:, first : first + width]
        return out.reshape(len(z), -1)

    def widths(self, prepared: Prepared, n_variables: int) -> NDArray[np.int64]:  # noqa: ARG002
        """See :class:`Families`."""
        return prepared.inputs.widths

    def of(self, variable: int) -> VariableFamily:
        """The family of one variable."""
        kind = self.kinds[variable]
        family = _RESPONSES.get(kind.kind, self.continuous)
        if self.exposed and kind.kind == "count":
            family = ExposedCount
        return VariableFamily(family, kind, self.exposed)


@dataclass(frozen=True)
class VariableFamily:
    """The family of one variable whose parents are of several kinds; the methods are those of :class:`RowFamily`."""

    family: type[RowFamily]
    kind: Kind
    is_exposed: bool = False

    @property
    def is_discrete(self) -> bool:
        """See :class:`RowFamily`."""
        return self.kind.is_discrete

    def given(self, prepared: Prepared, parents: Parents) -> Fits:
        """See :class:`RowFamily`."""
        inputs = prepared.inputs.take(parents)
        fits: Fits = self.family
        if self.kind.kind == "categorical":
            fits = Levels(len(self.kind.levels), self.kind.ordered)
        elif not self.kind.is_discrete and prepared.continuous is not None:
            fits = self.family.given(prepared.continuous, prepared.inputs.columns(parents))
        return _Fits(inputs, fits, self.family, self.is_exposed)

    def glance(self, x: Array, y: Array, weights: Array) -> Mechanism | None:
        """See :class:`RowFamily`."""
        return self.family.glance(x, y, weights)

    def may_differ(
        self, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`."""
        return self.family.may_differ(_expanded(reference, x), y, responsibilities, opened(reference))

    def intervene(
        self, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> Mechanism:
        """See :class:`RowFamily`."""
        inside = _expanded(reference, x)
        found = self.family.intervene(inside, y, weights, opened(reference), imperfect=imperfect)
        return _in_place_of(reference, found)

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
        """See :class:`RowFamily`."""
        inside = _expanded(reference, x)
        found = self.family.follow(inside, y, weights, opened(reference), opened(before), imperfect=imperfect)
        return _in_place_of(reference, found)


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits to parents that are expanded before."""

    inputs: Inputs
    fits: Fits
    family: type[RowFamily]
    exposed: bool

    def fit(self, x: Array, y: Array, weights: Array, start: Any = None) -> Mechanism:
        inside = None if start is None else opened(start)
        return self._closed(self.fits.fit(self._expanded(x), y, weights, inside))

    def refit(self, x: Array, y: Array, weights: Array, start: Mechanism) -> Mechanism:
        return self._closed(self.fits.refit(self._expanded(x), y, weights, opened(start)))

    def _expanded(self, x: Array) -> Array:
        return expanded(self.inputs, x, self.family, exposed=self.exposed)

    def _closed(self, found: Mechanism) -> Mechanism:
        plain = self.inputs.are_plain and not self.exposed
        return found if plain else Expanded(self.inputs, found, self.exposed)


def _in_place_of(reference: Mechanism, found: Mechanism) -> Mechanism:
    return replace(reference, inner=found) if isinstance(reference, Expanded) else found


def _expanded(mechanism: Mechanism, x: Array) -> Array:
    return mechanism.inside(x) if isinstance(mechanism, Expanded) else x
