r"""What every solver returns: a mixture of intervened structural causal models that share one DAG.

The paper's equation for a row ``z`` of regime ``k`` (its section 3.3, :math:`r_{kj}` the targets) is

.. math::
    \log p(z \mid k) = \sum_j (1 - r_{kj}) \log p_j(z_j \mid z_{pa(j)}) + r_{kj} \log p_{kj}(z_j \mid z_{pa(j)}).

What :math:`p_j` and :math:`p_{kj}` are is up to the :mod:`mechanisms <latentdo.model.mechanisms>`, of any families;
everything a user asks of a fitted model (responsibilities, scores, samples, what-if) follows here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import is_dag, topological_order
from latentdo.model.assignment import SEPARATE, Assignment, Prior, Units
from latentdo.model.mechanisms.base import Mechanism, Parents
from latentdo.model.mechanisms.noise import SUM_TOLERANCE
from latentdo.model.mechanisms.registry import mechanism_class

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Topology:
    """The discrete part of a fitted model.

    Parameters
    ----------
    adjacency : ndarray [d, d] of int8
        The shared DAG; ``adjacency[i, j] == 1`` means ``i -> j``.
    targets : ndarray [n_regimes, d] of int8
        ``targets[k, j] == 1``: regime ``k`` changed the mechanism of variable ``j``. Row 0 is zero.
    weights : ndarray [n_regimes]
        Share of the rows (of the groups, where rows are grouped) in every regime; sums to one, entry 0 may be zero.
    duration : float
        Time after which a regime is drawn anew, where rows are in order of time; 0 where they are not.
    """

    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]
    weights: Array
    duration: float = 0.0

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The discrete part of a saved model; refuses what no fit could have found, before anything trusts it.

        Raises
        ------
        ValueError
            Naming the array.
        """
        adjacency, targets, weights = (np.array(arrays[name]) for name in ("adjacency", "targets", "weights"))
        d, k = len(np.atleast_1d(adjacency)), len(np.atleast_1d(targets))
        for name, array, shape in (
            ("adjacency", adjacency, (d, d)),
            ("targets", targets, (k, d)),
            ("weights", weights, (k,)),
        ):
            if array.shape != shape or array.size == 0:
                raise ValueError(f"{name} has the shape {array.shape}")
        for name, array in (("adjacency", adjacency), ("targets", targets)):
            if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
                raise ValueError(f"{name} holds other values than 0 and 1")
        if not is_dag(adjacency):
            raise ValueError("adjacency has a cycle")
        if targets[0].any():
            raise ValueError("targets change the reference, whose row must be zero")
        if weights.dtype != np.float64 or not ((weights >= 0.0) & (weights <= 1.0 + SUM_TOLERANCE)).all():
            raise ValueError("weights of regimes are not shares between 0 and 1")
        if not abs(weights.sum() - 1.0) <= SUM_TOLERANCE:
            raise ValueError("weights of regimes do not sum to one")
        duration = np.array(arrays.get("duration", 0.0))
        if duration.shape != () or not 0.0 <= duration < np.inf:
            raise ValueError("duration of regimes is not a time")
        return cls(adjacency.astype(np.int8), targets.astype(np.int8), weights, float(duration))

    @property
    def n_regimes(self) -> int:
        """Number of regimes, the reference included."""
        return int(self.targets.shape[0])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.adjacency.shape[0])


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted mixture of intervened structural causal models, in standardised units ``z``.

    Rows ``z [n, d]`` of counts over a known exposure have one more column, the offset (:mod:`.mechanisms.exposed`).

    Parameters
    ----------
    topology : Topology
        Graph, targets and weights.
    reference : tuple of Mechanism
        The reference mechanism of every variable, over its parents in ascending order.
    own : mapping (regime, variable) -> Mechanism
        What interventions put in their place, one per target.
    """

    topology: Topology
    reference: tuple[Mechanism, ...]
    own: Mapping[tuple[int, int], Mechanism]

    @cached_property
    def parents(self) -> tuple[Parents, ...]:
        """Parents of every variable, ascending."""
        return tuple(np.flatnonzero(column) for column in self.topology.adjacency.T)

    @cached_property
    def is_exposed(self) -> bool:
        """Whether rows end with an offset."""
        return any(mechanism.takes_offset for mechanism in self.reference)

    @cached_property
    def sources(self) -> tuple[Parents, ...]:
        """Columns of ``z`` that the mechanisms of every variable are given: its parents, and the offset if any."""
        if not self.is_exposed:
            return self.parents
        return tuple(np.append(parents, self.topology.n_variables) for parents in self.parents)

    def blank(self, n: int) -> Array:
        """Rows of zeros: what is drawn goes there. An offset of 0 is a typical exposure."""
        return np.zeros((n, self.topology.n_variables + self.is_exposed))

    def mechanism(self, variable: int, regime: int) -> Mechanism:
        """The mechanism of a variable in a regime; the reference mechanism if it is not a target."""
        return self.own.get((regime, variable), self.reference[variable])

    def inputs(self, z: Array, variable: int) -> Array:
        """The parents' columns of ``z [n, d]``, ``[n, p]``, and the offset if there is one."""
        return np.ascontiguousarray(z[:, self.sources[variable]])

    def log_density_under(self, z: Array, variable: int, mechanism: Mechanism) -> Array:
        """``log p(z_j | parents)`` under a mechanism, whether it is the model's or not, ``[n]``."""
        return mechanism.log_density(self.inputs(z, variable), z[:, variable])

    def variable_log_density(self, z: Array, variable: int, regime: int) -> Array:
        """``log p(z_j | parents, regime)`` for every row, ``[n]``."""
        return self.log_density_under(z, variable, self.mechanism(variable, regime))

    def draw_variable(self, z: Array, variable: int, regime: int, rng: np.random.Generator) -> Array:
        """Draw variable ``j`` given the parents' columns of ``z [n, d]`` (other columns are ignored), ``[n]``."""
        return self.mechanism(variable, regime).draw(self.inputs(z, variable), rng)

    def _log_densities(self, z: Array, uses: list[tuple[int, Mechanism]]) -> Array:
        """Log-densities of (variable, mechanism) pairs, ``[m, n]``, family by family."""
        out = np.empty((len(uses), len(z)))
        kinds: dict[type[Mechanism], list[int]] = {}
        for place, (_, mechanism) in enumerate(uses):
            kinds.setdefault(type(mechanism), []).append(place)
        for kind, places in kinds.items():
            variables = [uses[place][0] for place in places]
            mechanisms = [uses[place][1] for place in places]
            out[places] = kind.log_densities(mechanisms, z, variables, [self.sources[j] for j in variables])
        return out

    def log_density(self, z: Array) -> Array:
        """``log p(z | regime)``, ``[n, n_regimes]``: reference terms once, then only what targets change."""
        d = self.topology.n_variables
        keys = list(self.own)
        terms = self._log_densities(z, [*enumerate(self.reference), *((j, self.own[k, j]) for k, j in keys)])
        density = np.repeat(terms[:d].sum(axis=0)[:, None], self.topology.n_regimes, axis=1)
        for (k, j), own in zip(keys, terms[d:], strict=True):
            density[:, k] += own - terms[j]
        return density

    def log_joint(self, z: Array) -> Array:
        """``log p(z, regime)``, ``[n, n_regimes]``; minus infinity for a regime without weight."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.log_density(z) + np.log(self.topology.weights))

    def assign(
        self, z: Array, labels: NDArray[np.int64] | None = None, units: Units = SEPARATE
    ) -> Assignment:
        """The E-step: responsibilities and log-likelihood of rows, certain where there is a label."""
        return units.assign(self.log_density(z), self.prior, labels)

    def responsibilities(self, z: Array, units: Units = SEPARATE) -> Array:
        """Posterior probability of every regime for every row, ``[n, n_regimes]``."""
        return self.assign(z, units=units).responsibilities

    def score_samples(self, z: Array, units: Units = SEPARATE) -> Array:
        """``log p(z)`` of every row, regimes summed out, ``[n]``; of rows that belong together, an equal part."""
        return self.assign(z, units=units).log_likelihood

    def sample(
        self,
        n: int,
        regime: int,
        rng: np.random.Generator,
        do: Mapping[int, float] | None = None,
        offset: Array | float = 0.0,
    ) -> Array:
        """Ancestral samples ``[n, d]`` of one regime; ``do`` sets variables to constants on top of it.

        Of exposed rows, those at a typical exposure unless an ``offset`` is given, which is then their last column.
        """
        do, z = do or {}, self.blank(n)
        z[:, self.topology.n_variables :] = np.reshape(offset, (-1, 1))
        for j in topological_order(self.topology.adjacency):
            z[:, j] = do[j] if j in do else self.draw_variable(z, j, regime, rng)
        return z

    @property
    def prior(self) -> Prior:
        """What the model believes of the regime of a row that it has not seen."""
        return Prior(self.topology.weights, self.topology.duration)

    def with_prior(self, prior: Prior) -> Self:
        """The same model under other weights of its regimes, and another duration."""
        topology = replace(self.topology, weights=prior.weights, duration=prior.duration)
        return replace(self, topology=topology)

    def with_weights(self, weights: Array) -> Self:
        """The same model under other weights of its regimes."""
        return replace(self, topology=replace(self.topology, weights=weights))

    def keep(self, regimes: NDArray[np.int64]) -> Self:
        """The same model with some of its regimes, in this order; their weights are scaled to sum to one."""
        weights = self.topology.weights[regimes]
        total = weights.sum()
        weights = weights / total if total > 0 else np.full(len(regimes), 1.0 / len(regimes))
        own = {
            (place, j): self.own[int(k), j]
            for place, k in enumerate(regimes)
            for j in np.flatnonzero(self.topology.targets[k]).tolist()
        }
        return replace(
            self,
            topology=replace(self.topology, targets=self.topology.targets[regimes], weights=weights),
            own=own,
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as named arrays, family by family; :meth:`from_arrays` restores the same model."""
        keys = [*((0, j) for j in range(self.topology.n_variables)), *sorted(self.own)]
        mechanisms = [*self.reference, *(self.own[key] for key in sorted(self.own))]
        arrays: dict[str, NDArray[Any]] = {
            "adjacency": self.topology.adjacency,
            "targets": self.topology.targets,
            "weights": self.topology.weights,
            **({"duration": np.array(self.topology.duration)} if self.topology.duration else {}),
        }
        for kind in sorted({type(mechanism) for mechanism in mechanisms}, key=lambda kind: kind.family):
            places = [place for place, mechanism in enumerate(mechanisms) if type(mechanism) is kind]
            index = np.array([keys[place] for place in places], dtype=np.int64).reshape(-1, 2)
            packed = {"index": index, **kind.pack([mechanisms[place] for place in places])}
            arrays |= {f"{kind.family}.{name}": array for name, array in packed.items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Restore a model from :meth:`to_arrays`; what does not fit together is a :class:`ValueError`."""
        topology = Topology.from_arrays(arrays)
        parents = [np.flatnonzero(column) for column in topology.adjacency.T]
        found: dict[tuple[int, int], Mechanism] = {}
        listed: list[tuple[int, int]] = []
        for family in sorted({name.split(".")[0] for name in arrays if "." in name}):
            packed = {
                name.removeprefix(f"{family}."): array
                for name, array in arrays.items()
                if name.startswith(f"{family}.")
            }
            kind = mechanism_class(family)
            try:
                keys = [(int(k), int(j)) for k, j in packed["index"]]
                unpacked = kind.unpack(packed, [parents[j] for _, j in keys])
            except LookupError as error:
                raise ValueError(f"the {family} mechanisms are not complete ({error})") from error
            listed += keys
            found |= zip(keys, unpacked, strict=True)
        d = topology.n_variables
        wanted = [*((0, j) for j in range(d)), *((int(k), int(j)) for k, j in np.argwhere(topology.targets))]
        if sorted(listed) != sorted(wanted):
            raise ValueError("the mechanisms do not belong to the variables and targets")
        reference = tuple(found.pop((0, j)) for j in range(d))
        model = cls(topology, reference, found)
        if unknown := set(arrays) - set(model.to_arrays()):
            raise ValueError(f"a model has no {sorted(unknown)[0]}")
        return model


def own_mechanisms(
    targets: NDArray[np.int8], mechanisms: Iterable[Mechanism]
) -> dict[tuple[int, int], Mechanism]:
    """Mechanisms of targets, given in the order of ``np.argwhere(targets)``, by (regime, variable)."""
    keys = [(int(k), int(j)) for k, j in np.argwhere(targets)]
    return dict(zip(keys, mechanisms, strict=True))
