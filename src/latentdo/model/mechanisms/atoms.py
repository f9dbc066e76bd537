r"""Point masses beside a density: limits that cut values off, and values apart from the rest such as zeros.

With probability :math:`\pi_a` the value is a mass :math:`a` that is apart, whatever the parents are; otherwise an inner
mechanism :math:`f` gives it, cut off at a limit :math:`b`:

.. math::
    \log p(a \mid x) = \log \pi_a, \qquad
    \log p(b \mid x) = \log \bar\pi + \log F(b \mid x), \qquad
    \log p(y \mid x) = \log \bar\pi + \log f(y \mid x), \qquad \bar\pi = 1 - \sum_a \pi_a.

What a parent at one of *its* masses would have been is not known, so in such rows the variable has a second mechanism:
a line in the other parents, with a constant for every mass and noise of its own.

An intervention keeps the probabilities of masses that are apart. So their rows tell nothing about regimes, and cannot
make one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from latentdo.data.atoms import SHARED, Mass
from latentdo.model.mechanisms.any_noise import AnyNoise, Shaped
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism, Parents, join, split
from latentdo.model.mechanisms.family import RowFamily, evidence
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR, Noise
from latentdo.model.mechanisms.registry import mechanism_class

AT: Final = 1e-9
"""A standardised value this close to a mass is at it: what changing units back and forth may lose."""

GUESS_TURNS: Final = 4
"""How often a Gaussian line and the values beyond a limit take turns, before the first fit."""

TURNS: Final = 2
"""How often a fit and the values beyond a limit take turns then."""

_GOLDEN: Final = (
    0.6180339887498949,
    0.7548776662466927,
)  # steps that fill the unit interval evenly, and jointly

Fit = Callable[[Array, Array, Array], Any]


@dataclass(frozen=True, eq=False)
class AtomicMechanism(Mechanism):
    """A mechanism with point masses, its own or those of its parents.

    Parameters
    ----------
    masses : tuple of Mass
        Of the variable, in standardised units.
    shares : ndarray
        Probability of every mass that is apart.
    inputs : tuple of ndarray
        Values at which every parent has a mass.
    clean : Mechanism
        Where no parent is at a mass.
    beside : Mechanism, optional
        Where some parent is; None if no parent has masses, or if parents do not matter.
    n_free : int
        Parameters that were fitted.
    """

    family: ClassVar[str] = "atoms"

    masses: tuple[Mass, ...]
    shares: Array
    inputs: tuple[Array, ...]
    clean: Mechanism
    beside: Mechanism | None
    n_free: int

    @property
    def n_parameters(self) -> int:
        """See :class:`Mechanism`."""
        return self.n_free

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`."""
        if self.beside is None:
            return self._log_density(self.clean, x, y)
        near = at_mass(x, self.inputs)
        out = np.empty(len(y))
        out[~near] = self._log_density(self.clean, x[~near], y[~near])
        out[near] = self._log_density(self.beside, expand(x[near], self.inputs), y[near])
        return out

    def _log_density(self, inner: Mechanism, x: Array, y: Array) -> Array:
        rest = float(np.log1p(-self.shares.sum()))
        out = np.asarray(inner.log_density(np.ascontiguousarray(x), y) + rest)
        shares = iter(self.shares)
        for mass in self.masses:
            rows = np.abs(y - mass.value) <= AT
            if mass.side == 0:
                out[rows] = np.log(next(shares))
            else:
                beyond = logsumexp(_log_beyond(inner, x[rows], mass)[0], axis=1)
                out[rows] = beyond + rest
        return out

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        y = self.clean.draw(x, rng)
        if self.beside is not None:
            near = at_mass(x, self.inputs)
            y[near] = self.beside.draw(expand(x[near], self.inputs), rng)
        for mass in self.masses:
            if mass.side:
                y = np.minimum(y, mass.value) if mass.side > 0 else np.maximum(y, mass.value)
        chance, first = rng.random(len(x)), 0.0
        for mass, share in zip((mass for mass in self.masses if mass.side == 0), self.shares, strict=True):
            y[(chance >= first) & (chance < first + share)] = mass.value
            first += share
        return y

    def parts(self, x: Array, y: Array) -> list[Array]:
        """See :class:`Mechanism`: those of the clean rows; the others belong to none."""
        near = at_mass(x, self.inputs) if self.beside is not None else np.zeros(len(y), dtype=bool)
        rows = ~near & ~apart(y, self.masses)
        parts = []
        for found in self.clean.parts(x[rows], y[rows]):
            part = np.zeros(len(y))
            part[rows] = found
            parts.append(part)
        return parts

    @classmethod
    def pack(cls, mechanisms: Sequence[Self]) -> dict[str, NDArray[Any]]:
        """See :class:`Mechanism`."""
        inner = {
            "clean": {place: one.clean for place, one in enumerate(mechanisms)},
            "beside": {place: one.beside for place, one in enumerate(mechanisms) if one.beside is not None},
        }
        return {
            **join("masses", [np.array(one.masses, dtype=np.float64).ravel() for one in mechanisms]),
            **join("shares", [one.shares for one in mechanisms]),
            **join("inputs", [values for one in mechanisms for values in one.inputs]),
            "n_free": np.array([one.n_free for one in mechanisms], dtype=np.int64),
            **{
                f"{name}.{key}": array
                for name, several in inner.items()
                for key, array in _pack(several).items()
            },
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]) -> list[Self]:
        """See :class:`Mechanism`."""
        inputs, sizes = split("inputs", arrays), [mine.size for mine in parents]
        if len(inputs) != sum(sizes):
            raise ValueError("the list of parents' masses is shorter or longer than that of parents")
        ends = np.cumsum([0, *sizes])
        several = [tuple(inputs[first:last]) for first, last in pairwise(ends)]
        clean = _unpack("clean.", arrays, parents)
        beside = _unpack("beside.", arrays, [np.arange(_width(mine)) for mine in several])
        found = []
        numbers = (split("masses", arrays), split("shares", arrays), arrays["n_free"].tolist(), several)
        for place, (flat, shares, n_free, mine) in enumerate(zip(*numbers, strict=True)):
            if flat.size % 2 or not np.isfinite(flat).all() or not np.isin(flat[1::2], (-1, 0, 1)).all():
                raise ValueError("point masses are not pairs of a value and a side")
            masses = tuple(Mass(float(value), int(side)) for value, side in flat.reshape(-1, 2))  # type: ignore[arg-type]
            if shares.size != sum(mass.side == 0 for mass in masses) or not (
                (shares > 0.0).all() and shares.sum() < 1.0
            ):
                raise ValueError("the shares of point masses are not probabilities, one for each")
            inner = [one for one in (clean[place], beside.get(place)) if one is not None]
            if any(mass.side for mass in masses) and not all(isinstance(one, AdditiveNoise) for one in inner):
                raise ValueError("a limit needs a mechanism with additive noise")
            found.append(cls(masses, shares, mine, clean[place], beside.get(place), int(n_free)))
        return found


@dataclass(frozen=True, eq=False)
class AtomicFamily:
    """What :class:`RowFamily` asks, of a family whose variable or parents have point masses.

    Parameters
    ----------
    inner : RowFamily
        Fitted to the rows that are at no mass.
    masses : tuple of Mass
        Of the variable. A limit counts as apart where the inner family cannot say what lies beyond.
    inputs : tuple of ndarray
        Values at which every parent has a mass.
    """

    inner: type[RowFamily]
    masses: tuple[Mass, ...]
    inputs: tuple[Array, ...]

    def __post_init__(self) -> None:
        """Noise of any shape has a distribution function, other families may not."""
        if not issubclass(self.inner, Shaped):
            object.__setattr__(self, "masses", tuple(mass._replace(side=0) for mass in self.masses))

    def fit(self, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> AtomicMechanism:
        """See :class:`RowFamily`."""
        begin = start.clean if isinstance(start, AtomicMechanism) else start
        counts = [weights[np.abs(y - mass.value) <= AT].sum() for mass in self.masses if mass.side == 0]
        shares = (np.array(counts, dtype=np.float64) + 0.5) / (weights.sum() + 0.5 * (len(counts) + 1))
        rest, near = ~apart(y, self.masses), at_mass(x, self.inputs)
        clean = self._fit_some(
            lambda x, y, w: self.inner.fit(x, y, w, begin), x, y, weights, rest & ~near, rest
        )
        n_free, beside = clean.n_parameters + shares.size, None
        if any(values.size for values in self.inputs):
            beside = self._fit_some(AnyNoise.fit, expand(x, self.inputs), y, weights, rest & near, rest)
            n_free += beside.n_parameters
        return AtomicMechanism(self.masses, shares, self.inputs, clean, beside, n_free)

    def may_differ(
        self, x: Array, y: Array, responsibilities: Array, reference: AtomicMechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`: by the rows that are at no mass."""
        rows = ~apart(y, self.masses) & ~at_mass(x, self.inputs)
        return self.inner.may_differ(x[rows], y[rows], responsibilities[rows], reference.clean)

    def intervene(
        self, x: Array, y: Array, weights: Array, reference: AtomicMechanism, *, imperfect: bool
    ) -> AtomicMechanism:
        """See :class:`RowFamily`; masses that are apart keep their shares."""
        rest, near = ~apart(y, self.masses), at_mass(x, self.inputs)
        same = (self.masses, reference.shares, self.inputs)

        def own(family: type[RowFamily], beside: Mechanism, *, imperfect: bool) -> Fit:
            return lambda x, y, w: family.intervene(x, y, w, beside, imperfect=imperfect)

        fit = own(self.inner, reference.clean, imperfect=False)
        clean = self._fit_some(fit, x[:, :0], y, weights, rest, rest)
        found = [AtomicMechanism(*same, clean, None, clean.n_parameters)]
        if imperfect and x.shape[1]:
            fit = own(self.inner, reference.clean, imperfect=True)
            clean = self._fit_some(fit, x, y, weights, rest & ~near, rest)
            n_free, beside = clean.n_parameters, reference.beside
            if beside is not None and weights[rest & near].sum() >= SHARED:
                fit = own(AnyNoise, beside, imperfect=True)
                beside = self._fit_some(fit, expand(x, self.inputs), y, weights, rest & near, rest)
                n_free += beside.n_parameters
            found.append(AtomicMechanism(*same, clean, beside, n_free))
        return max(found, key=lambda one: evidence(one, x, y, weights))

    def _fit_some(
        self,
        fit: Fit,
        x: Array,
        y: Array,
        weights: Array,
        rows: NDArray[np.bool_],
        otherwise: NDArray[np.bool_],
    ) -> Any:
        """Fit to some rows, or to others if those are too few to say anything."""
        if weights[rows].sum() < SHARED:
            rows = otherwise
        if weights[rows].sum() < SHARED:
            rows, weights = np.ones(len(y), dtype=bool), np.ones(len(y))
        x, y, weights = np.ascontiguousarray(x[rows]), y[rows], np.ascontiguousarray(weights[rows])
        hidden = [
            (at, mass) for mass in self.masses if mass.side and (at := np.flatnonzero(y == mass.value)).size
        ]
        if not hidden:
            return fit(x, y, weights)
        y = _guessed(x, y, weights, hidden)
        for turn in range(TURNS):
            found = fit(x, y, weights)
            if turn + 1 < TURNS:
                _fill(found, x, y, hidden)
        return found


def apart(y: Array, masses: Sequence[Mass]) -> NDArray[np.bool_]:
    """Rows whose value is a mass that is apart, ``[n]``."""
    rows = np.zeros(len(y), dtype=bool)
    for mass in masses:
        if mass.side == 0:
            rows |= np.abs(y - mass.value) <= AT
    return rows


def at_mass(x: Array, inputs: Sequence[Array]) -> NDArray[np.bool_]:
    """Rows in which some parent is at a mass, ``[n]``."""
    rows = np.zeros(len(x), dtype=bool)
    for values, column in zip(inputs, x.T, strict=False):
        for value in values:
            rows |= np.abs(column - value) <= AT
    return rows


def expand(x: Array, inputs: Sequence[Array]) -> Array:
    """Parents with zero in the place of their masses, and a 0/1 column for each mass, ``[n, q]``.

    If only one parent has masses, its own column has nothing to say, nor has that of its first mass.
    """
    alone = sum(values.size > 0 for values in inputs) == 1
    columns, marks = [], []
    for values, column in zip(inputs, x.T, strict=False):
        mine = [np.abs(column - value) <= AT for value in values]
        if not (alone and mine):
            columns.append(np.where(np.any(mine, axis=0), 0.0, column) if mine else column)
        marks += mine[1:] if alone else mine
    return np.column_stack([np.empty((len(x), 0)), *columns, *marks]).astype(np.float64)


def _width(inputs: Sequence[Array]) -> int:
    """Columns of :func:`expand`."""
    return int(expand(np.zeros((1, len(inputs))), inputs).shape[1])


def _log_beyond(inner: Mechanism, x: Array, mass: Mass) -> tuple[Array, Array]:
    """Log-probabilities that a value lies beyond a limit and comes from each Gaussian of the noise; and the means."""
    assert isinstance(inner, AdditiveNoise)
    noise, mean = inner.noise, inner.mean(np.ascontiguousarray(x))
    reach = -mass.side * (mass.value - mean[:, None] - noise.means) / np.sqrt(noise.variances)
    return np.log(noise.weights) + log_ndtr(reach), mean


def _fill(inner: Mechanism, x: Array, y: Array, hidden: Sequence[tuple[NDArray[np.int64], Mass]]) -> None:
    """Put values that the mechanism might have given in the place of what a limit hides; evenly, not at random."""
    assert isinstance(inner, AdditiveNoise)
    for rows, mass in hidden:
        first, second = (np.arange(1, rows.size + 1)[:, None] * np.array(_GOLDEN) % 1.0).T
        joint, mean = _log_beyond(inner, x[rows], mass)
        chance = np.exp(joint - joint.max(axis=1, keepdims=True)).cumsum(axis=1)
        component = (second[:, None] * chance[:, -1:] > chance).sum(axis=1)
        noise = inner.noise
        inside = joint[np.arange(rows.size), component] - np.log(noise.weights[component])
        off = -mass.side * ndtri_exp(np.log(first) + inside)
        value = mean + noise.means[component] + np.sqrt(noise.variances[component]) * off
        limit = mass.value
        y[rows] = np.where(
            np.isfinite(value), np.maximum(value, limit) if mass.side > 0 else np.minimum(value, limit), limit
        )


def _guessed(x: Array, y: Array, weights: Array, hidden: Sequence[tuple[NDArray[np.int64], Mass]]) -> Array:
    """Values with a guess of what limits hide: Gaussian lines take turns with what lies beyond under them."""
    y = y.copy()
    design = np.column_stack([np.ones(len(y)), x])
    root = np.sqrt(weights)
    for _ in range(GUESS_TURNS):
        line = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        variance = max(float(weights @ (y - design @ line) ** 2 / weights.sum()), VARIANCE_FLOOR)
        _fill(LinearMechanism(line, Noise.gaussian(variance)), x, y, hidden)
    return y


def _pack(mechanisms: Mapping[int, Mechanism]) -> dict[str, NDArray[Any]]:
    """Mechanisms of any families by their places, as named arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    for kind in sorted({type(one) for one in mechanisms.values()}, key=lambda kind: kind.family):
        places = [place for place, one in mechanisms.items() if type(one) is kind]
        packed = {
            "places": np.array(places, dtype=np.int64),
            **kind.pack([mechanisms[place] for place in places]),
        }
        arrays |= {f"{kind.family}.{name}": array for name, array in packed.items()}
    return arrays


def _unpack(
    prefix: str, arrays: Mapping[str, NDArray[Any]], parents: Sequence[Parents]
) -> dict[int, Mechanism]:
    """Undo :func:`_pack`."""
    mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    found: dict[int, Mechanism] = {}
    for family in sorted({name.split(".")[0] for name in mine}):
        packed = {
            name.removeprefix(f"{family}."): array
            for name, array in mine.items()
            if name.startswith(f"{family}.")
        }
        places = [int(place) for place in packed["places"]]
        kind = mechanism_class(family)
        if not all(0 <= place < len(parents) and place not in found for place in places):
            raise ValueError("the mechanisms beside point masses do not belong to the variables")
        if kind is AtomicMechanism:
            raise ValueError("point masses cannot be beside a density that has some")
        found |= zip(places, kind.unpack(packed, [parents[place] for place in places]), strict=True)
    return found
