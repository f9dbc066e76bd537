"""What stays fixed during one structural search: rows, labels, prior knowledge and costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs.constraints import Constraints
from latentdo.model.assignment import SEPARATE, Prior, Units
from latentdo.model.fitted import FittedModel
from latentdo.model.penalties import Penalties
from latentdo.ranks import Ranks
from latentdo.solvers.search.learner import Learner, MomentLearner
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.settings import MIN_ROWS


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and everything known about them.

    Regimes are numbered from 0. The first ``n_labelled`` carry the user's labels (regime 0 the observational
    one); the others are free and may be born, merged and dropped.

    Parameters
    ----------
    design : ndarray [n, d + 1]
        Ones, then the standardised rows.
    offset : ndarray [n]
        Logarithm of the exposure of rows, in units of a typical one; empty where counts have none.
    labels : ndarray [n] of int64
        Known regime of every row, -1 where unknown.
    known : ndarray [n_labelled, d] of int8
        ``FREE``, ``REFERENCE`` or ``TARGET`` for every (labelled regime, variable).
    constraints, penalties
        Prior knowledge of the graph, and what structure costs.
    imperfect : bool
        Whether an intervened mechanism may still use its parents.
    max_regimes : int
        Largest number of regimes.
    min_rows : float
        A regime with fewer (soft) rows is dropped.
    units : Units
        How rows belong together: which rows are assigned jointly, the units of which the weights of regimes are shares,
        and how often each row counts.
    learner : Learner
        The family of mechanisms: how they are learnt from assigned rows.
    n_total : int
        Rows of all ranks together; by default those here.
    ranks : Ranks
        Processes that hold further rows of the same table; whatever is summed over rows is summed over them.
    """

    design: NDArray[np.float64]
    labels: NDArray[np.int64]
    known: NDArray[np.int8]
    constraints: Constraints
    penalties: Penalties
    imperfect: bool
    max_regimes: int
    min_rows: float = MIN_ROWS
    units: Units = SEPARATE
    learner: Learner = field(default_factory=MomentLearner)
    n_total: int = 0
    ranks: Ranks = field(default_factory=Ranks)
    offset: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        """Without other ranks, the rows here are all rows."""
        if self.ranks.size == 1:
            object.__setattr__(self, "n_total", self.n_rows)

    @cached_property
    def z(self) -> NDArray[np.float64]:
        """The standardised rows ``[n, d]``, as a model is given them: with the offset, if there is one, as the last."""
        rows = self.design[:, 1:]
        return np.column_stack([rows, self.offset]) if self.offset.size else rows

    def inputs(self, parents: NDArray[np.int64]) -> NDArray[np.float64]:
        """Inputs of a mechanism with these parents, ``[n, p]``, with the offset if there is one."""
        columns = np.append(parents, self.n_variables) if self.offset.size else parents
        return np.ascontiguousarray(self.z[:, columns])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.design.shape[0])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.design.shape[1] - 1)

    @property
    def n_labelled(self) -> int:
        """Number of regimes that carry a label."""
        return int(self.known.shape[0])

    @property
    def all_labelled(self) -> bool:
        """Whether nothing is left to assign."""
        return bool((self.labels >= 0).all())

    def fixed(self, n_regimes: int) -> NDArray[np.int8]:
        """What is known of every (regime, variable), ``[n_regimes, d]``."""
        fixed = np.full((n_regimes, self.n_variables), FREE, dtype=np.int8)
        fixed[: self.n_labelled] = self.known
        return fixed

    def clamp(self, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Assign labelled rows to their labels; the others stay."""
        rows = np.flatnonzero(self.labels >= 0)
        if rows.size:
            responsibilities[rows] = 0.0
            responsibilities[rows, self.labels[rows]] = 1.0
        return responsibilities

    def moments(self, responsibilities: NDArray[np.float64]) -> Moments:
        """Moments of every regime under soft assignments of the rows, those of other ranks included."""
        return Moments(self.ranks.sum(Moments.of(self.design, self.counted(responsibilities)).matrices))

    def counts(self, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Soft) number of rows of every regime, those of other ranks included."""
        return self.ranks.sum(self.counted(responsibilities).sum(axis=0))

    def counted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of rows, ``[n, ...]``, repeated as often as they count: mechanisms are fitted to these."""
        return self.units.counted(values)

    @property
    def repeats(self) -> NDArray[np.float64]:
        """How often every row counts, ``[n]``."""
        return self.counted(np.ones(self.n_rows))

    @cached_property
    def n_counted(self) -> float:
        """The total weight of the rows here."""
        return float(self.repeats.sum())

    @property
    def n_units(self) -> float:
        """Number of units, those of other ranks included."""
        return self.units.number(self.n_total)

    def unit_counts(self, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Soft) number of units of every regime, those of other ranks included."""
        return self.ranks.sum(self.units.total(responsibilities))

    def prior(self, responsibilities: NDArray[np.float64], before: FittedModel | None = None) -> Prior:
        """The prior of units under this assignment.

        Parameters that can only be guessed are taken from the model ``before``, if there is one.
        """
        if self.units.single:
            return Prior(self.counts(responsibilities) / self.n_units)
        prior = self.units.prior(responsibilities)
        if before is not None and before.topology.duration > 0.0:
            prior = prior._replace(duration=before.topology.duration)
        return prior

    def weighted(
        self,
        model: FittedModel,
        responsibilities: NDArray[np.float64],
        before: FittedModel | None = None,
    ) -> FittedModel:
        """A model that was fitted to rows, with the prior that its regimes have among units."""
        if self.units.single:
            return model  # rows are units, and the shares of rows that learners know are the weights
        return model.with_prior(self.prior(responsibilities, before))

    def cost(self, model: FittedModel, responsibilities: NDArray[np.float64]) -> float:
        """Cost of a model under this assignment of rows; see :class:`.Penalties`."""
        counts = None if self.units.single else self.counts(responsibilities)
        return self.penalties.cost(model, self.n_units, counts)

    def shared(self, ranks: Ranks) -> Problem:
        """The same problem with this rank's share of the rows.

        Groups may lie anywhere in the table; where there are some, every rank has all rows.
        """
        if ranks.size == 1 or self.units is not SEPARATE:
            return self
        mine = self.take(np.arange(self.n_rows)[ranks.share(self.n_rows)])
        return replace(mine, ranks=ranks, n_total=self.n_rows)

    def take(self, rows: NDArray[np.int64]) -> Problem:
        """The same problem on some of the rows."""
        return replace(
            self,
            design=np.ascontiguousarray(self.design[rows]),
            labels=self.labels[rows],
            units=self.units.take(rows),
            offset=self.offset[rows] if self.offset.size else self.offset,
        )


def known_targets(
    targets: NDArray[np.int8] | None, n_labelled: int, n_variables: int, *, observational: bool
) -> NDArray[np.int8]:
    """What the user's labels and targets fix, as codes ``[n_labelled, d]``."""
    if targets is not None:
        return np.where(targets == 1, TARGET, REFERENCE).astype(np.int8)
    known = np.full((n_labelled, n_variables), FREE, dtype=np.int8)
    if n_labelled and observational:
        known[0] = REFERENCE
    return known
