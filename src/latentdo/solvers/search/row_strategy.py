"""Any family of mechanisms: from what lines with Gaussian noise find, and from one regime, to what the family finds.

Lines are quick, and their graph is a good first guess. Their regimes are one, too, unless they are as many as are
allowed: then most were invented to follow curves or the shape of the noise, and are used only if they explain more than
what grows from one regime. From there one regime for each variable starts at once (:func:`.starts.minorities`), on the
best graph for one regime and again on the graph found since; splits, merges and graph search follow. Finally edges are
reversed together with regimes, and regimes are merged and split again. One regime is a state like any other: what it
lacks in regimes it must make up in evidence, with the same mechanisms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from latentdo.data import Dataset, Kind
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.family import Families, RowFamily
from latentdo.model.mechanisms.mixed import MixedFamily
from latentdo.result import FitResult
from latentdo.solvers.search import driver, fewer_regimes, regime_moves, starts
from latentdo.solvers.search.driver import Conclusion, Run, SearchConfiguration, Standing
from latentdo.solvers.search.em import assign_rows, refine, relearn, search_graph, weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import LinearStanding, LinearStrategy, conclude
from latentdo.solvers.search.state import State
from latentdo.solvers.search.turned_edges import turn_edges_while_better, with_edges_turned
from latentdo.solvers.settings import (
    ALL_ROWS_STEPS,
    FAMILY_RESTARTS,
    FAMILY_ROUNDS_AT_LIMIT,
    FAMILY_SEARCH_ROWS,
    GRAPH_GAIN,
)


def solve(
    dataset: Dataset,
    configuration: SearchConfiguration,
    family: Families,
    density: str,
    progress: Progress | None = None,
    lines: FittedModel | None = None,
) -> FitResult:
    """Fit mechanisms of any family by structural EM, see :func:`.driver.search`.

    ``lines`` is what lines with Gaussian noise found, if that is known already.
    """
    return driver.search(dataset, configuration, RowStrategy(family, density, lines), progress)


def solve_mixed(
    dataset: Dataset,
    configuration: SearchConfiguration,
    family: type[RowFamily],
    density: str,
    progress: Progress | None = None,
) -> FitResult:
    """The same for columns of several kinds; ``family`` is that of the continuous ones."""
    mixed = MixedFamily(dataset.kinds, family, exposed=dataset.offset is not None)
    strategy = MixedStrategy(mixed, density, kinds=dataset.kinds)
    return driver.search(dataset, configuration, strategy, progress)


def go_on(
    dataset: Dataset,
    configuration: SearchConfiguration,
    family: Families,
    found: FitResult,
    progress: Progress | None = None,
    *,
    rescaled: bool = False,
) -> FitResult:
    """Fit rows that have changed a little since a fit, from what it found.

    If they were ``rescaled``, the regimes of rows and the graph are all that still holds.
    """
    rows = found.responsibilities if rescaled else None
    strategy = Continuation(family, found.density, found.model, rows)
    return replace(driver.search(dataset, configuration, strategy, progress), comparison=found.comparison)


@dataclass(frozen=True, eq=False)
class RowStrategy:
    """Structural EM with fits to weighted rows, started from lines.

    Parameters
    ----------
    family, density
        The family of mechanisms, and its name.
    start : FittedModel, optional
        What lines with Gaussian noise found, if that is known already.
    """

    family: Families
    density: str
    start: FittedModel | None = None
    _learners: WeakKeyDictionary[Problem, RowLearner] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    def search_rows(self, problem: Problem, configuration: SearchConfiguration) -> int:
        """See :class:`.driver.Strategy`."""
        return min(FAMILY_SEARCH_ROWS, LinearStrategy().search_rows(problem, configuration))

    def search(self, run: Run) -> Standing:
        """See :class:`.driver.Strategy`."""
        lines = self._lines(run)
        problem = self._problem(run.problem)
        if problem.all_labelled or problem.max_regimes == 1:
            state = relearn(problem, lines.responsibilities, adjacency=lines.adjacency, thorough=True)
            run.journal.note("graph", state)
            return Standing(state)
        state, single = self._grow(run, problem, lines)
        state = fewer_regimes.fit_afresh(problem, state)
        state = regime_moves.merge_and_split_while_better(problem, state)
        state = fewer_regimes.drop_targets_while_better(problem, state)
        state = fewer_regimes.drop_while_better(problem, state)
        state = fewer_regimes.drop_doubtful(problem, state)
        found = _best_graph(problem, state)
        if not np.array_equal(found.adjacency, state.adjacency):
            # Regimes may have been needed for the graph before.
            found = _simplest(problem, _grown(problem, found))
        state = found
        if problem.n_labelled == 0:
            state = fewer_regimes.fit_into(problem, state, problem.max_regimes)
            state = fewer_regimes.larger_reference(problem, state)
        run.journal.note("final", state)
        if single is None or state.n_regimes == 1:
            return Standing(state)
        doubtful, comparison = driver.doubt(problem, state.evidence, {"one regime": single.evidence})
        return Standing(_best_graph(problem, single) if doubtful else state, comparison)

    def salvage(self, run: Run) -> Standing:
        """See :class:`.driver.Strategy`: what lines found, if the family has nothing yet."""
        latest = run.journal.latest
        if latest is None:
            raise KeyboardInterrupt
        problem = self._problem(run.problem)
        state = latest.state
        if isinstance(latest, LinearStanding):
            state = refine(problem, state.responsibilities, state.adjacency, iterations=1)
        return Standing(state)

    def on_all_rows(self, problem: Problem, configuration: SearchConfiguration, standing: Standing) -> State:
        """See :class:`.driver.Strategy`."""
        state = configuration.ranks.from_first(standing.state)
        responsibilities, _ = assign_rows(problem, state.model)
        return refine(
            self._problem(problem),
            responsibilities,
            state.adjacency,
            iterations=ALL_ROWS_STEPS,
            model=state.model,
        )

    def conclude(
        self,
        problem: Problem,
        configuration: SearchConfiguration,
        standing: Standing,  # noqa: ARG002
        state: State,
        regimes: tuple[NDArray[np.float64], NDArray[np.int8]],
    ) -> Conclusion:
        """See :class:`.driver.Strategy`."""
        return conclude(
            self._problem(problem),
            configuration,
            state.adjacency,
            *regimes,
            density=self.density,
            model=state.model,
        )

    def _problem(self, problem: Problem) -> Problem:
        """The problem with a learner of the family; it remembers what it has done for these rows."""
        if problem not in self._learners:
            self._learners[problem] = RowLearner.of(self.family, problem.z)
        return replace(problem, learner=self._learners[problem])

    def _lines(self, run: Run) -> State:
        """What lines with Gaussian noise find."""
        if self.start is not None:
            return weigh(run.problem, self.start)
        quick = replace(run, journal=run.journal.under("lines"))
        return LinearStrategy(enough=lambda *_: True).search(quick).state

    def _grow(self, run: Run, problem: Problem, lines: State) -> tuple[State, State | None]:
        """The best state from what lines found and from one regime, and the best with one regime, if that may be."""
        start = refine(problem, lines.responsibilities, lines.adjacency, iterations=1, targets=lines.targets)
        start = refine(problem, start.responsibilities, lines.adjacency, model=start.model)
        if problem.n_labelled:
            return turn_edges_while_better(problem, self._from_lines(run, problem, start)), None
        everyone = np.ones((problem.n_rows, 1))
        state = None
        if 1 < lines.n_regimes < problem.max_regimes:
            state = self._from_lines(run, problem, start)
            if state.n_regimes >= lines.n_regimes:  # none of them was invented
                state = turn_edges_while_better(problem, state)
                return state, relearn(problem, everyone, adjacency=state.adjacency)
        single = relearn(problem, everyone, adjacency=lines.adjacency, thorough=True)
        born = self._from_one(run, problem, single)
        # As many as are allowed were invented to draw curves and shapes, unless they explain more than those born.
        if state is None and start.evidence > born.evidence:
            state = self._from_lines(run, problem, start)
        state = born if state is None else max(state, born, key=_evidence)
        state = turn_edges_while_better(problem, state)
        again = self._born_again(run, problem, state, single)
        return (state if again is state else turn_edges_while_better(problem, again)), single

    def _born_again(self, run: Run, problem: Problem, state: State, single: State) -> State:
        """Regimes born anew on the graph of a state, as long as that is better."""
        everyone = np.ones((problem.n_rows, 1))
        for _ in range(FAMILY_RESTARTS):
            # The graph is better than those of the starts, and has no regimes that were only needed on the way.
            if np.array_equal(state.adjacency, single.adjacency):
                break
            again = self._from_one(run, problem, refine(problem, everyone, state.adjacency, iterations=1))
            if again.evidence < state.evidence + GRAPH_GAIN:
                break
            same, state = np.array_equal(again.adjacency, state.adjacency), again
            run.journal.keep(Standing(state))
            if same:
                break
        return state

    def _from_lines(self, run: Run, problem: Problem, start: State) -> State:
        """What regimes of lines grow into that the family cannot do without."""
        kept = fewer_regimes.drop_while_better(problem, start)
        # The graph of unborn regimes is another one: it is searched when all are there.
        state = _grown(problem, kept, same_graph=True)
        state = _simplest(problem, _grown(problem, state))
        run.journal.note("from lines", state)
        run.journal.keep(Standing(state))
        return state

    def _from_one(self, run: Run, problem: Problem, single: State) -> State:
        """What one regime grows into."""
        state = starts.minorities(problem, single)
        state = _simplest(problem, _grown(problem, state, same_graph=True))
        state = _simplest(problem, _grown(problem, state))
        run.journal.note("from one regime", state)
        run.journal.keep(Standing(state))
        return state


@dataclass(frozen=True, eq=False)
class MixedStrategy(RowStrategy):
    """The same for columns of several kinds, from one regime and no edges.

    Lines with Gaussian noise could have any density on a value that many rows share, and on normal scores
    (:func:`normal_scores`) they need as many regimes as they may have. They are a start only where labels say of some
    rows, and not of others, what to begin with.
    """

    kinds: tuple[Kind, ...] = ()

    def _lines(self, run: Run) -> State:
        """The best graph with one regime, or with those of the labels, if all rows have one."""
        problem = run.problem
        if problem.n_labelled and not problem.all_labelled:
            rows = problem.design[:, 1:].copy()
            if problem.offset.size:
                counted = [kind.kind == "count" for kind in self.kinds]
                rows[:, counted] *= np.exp(-problem.offset)[:, None]
            scores = normal_scores(rows, self.kinds, run.configuration.random_state)
            design = np.column_stack([np.ones(len(scores)), scores])
            plain = replace(problem, design=design, offset=np.empty(0))
            return super()._lines(replace(run, problem=plain))
        labels = problem.labels if problem.n_labelled else np.zeros(problem.n_rows, dtype=np.int64)
        state = relearn(self._problem(problem), np.eye(max(problem.n_labelled, 1))[labels], thorough=True)
        run.journal.note("one regime" if problem.n_labelled == 0 else "labels", state)
        return state

    def _grow(self, run: Run, problem: Problem, lines: State) -> tuple[State, State | None]:
        if problem.n_labelled:
            return super()._grow(run, problem, lines)
        state = self._born_again(run, problem, self._from_one(run, problem, lines), lines)
        turned = with_edges_turned(problem, state)
        if not np.array_equal(turned, state.adjacency):
            everyone = np.ones((problem.n_rows, 1))
            again = self._from_one(run, problem, refine(problem, everyone, turned, iterations=1))
            state = max(state, again, key=_evidence)
        return turn_edges_while_better(problem, state), lines

    def search(self, run: Run) -> Standing:
        """See :class:`.driver.Strategy`: where nothing is left to assign, the first graph is the last."""
        if run.problem.all_labelled or run.problem.max_regimes == 1:
            return Standing(self._lines(run))
        return super().search(run)


def normal_scores(z: NDArray[np.float64], kinds: Sequence[Kind], random_state: int) -> NDArray[np.float64]:
    """Rows ``[n, d]`` whose discrete columns are normal quantiles of their ranks, ties broken at random."""
    rng = np.random.default_rng([random_state, *b"scores"])
    out = np.array(z)
    for j in [j for j, kind in enumerate(kinds) if kind.is_discrete]:
        order = np.lexsort((rng.random(len(z)), z[:, j]))
        out[order, j] = ndtri((np.arange(len(z)) + 0.5) / len(z))
    return out


@dataclass(frozen=True, eq=False)
class Continuation(RowStrategy):
    """The same from a model of the family itself, ``start``, that was fitted to nearly the same rows.

    If mechanisms are now in other units, ``responsibilities`` say how all rows were assigned under it.
    """

    responsibilities: NDArray[np.float64] | None = None

    def search(self, run: Run) -> Standing:
        """See :class:`.driver.Strategy`."""
        assert self.start is not None
        problem = self._problem(run.problem)
        if self.responsibilities is None:
            begin = weigh(problem, self.start)
            state = refine(problem, begin.responsibilities, begin.adjacency, model=self.start)
        else:
            begun = self.responsibilities[run.rows]
            state = refine(problem, begun, self.start.topology.adjacency)
        state = _simplest(problem, _grown(problem, state, same_graph=True))
        run.journal.note("again", state)
        run.journal.keep(Standing(state))
        state = _best_graph(problem, state)
        if problem.n_labelled == 0:
            state = fewer_regimes.fit_into(problem, state, problem.max_regimes)
            state = fewer_regimes.larger_reference(problem, state)
        run.journal.note("graph again", state)
        return Standing(state)


def _evidence(state: State) -> float:
    return state.evidence


def _grown(problem: Problem, state: State, *, same_graph: bool = False) -> State:
    return regime_moves.improve(problem, state, rounds_at_limit=FAMILY_ROUNDS_AT_LIMIT, same_graph=same_graph)


def _best_graph(problem: Problem, state: State) -> State:
    """The graph searched by all means there are, for the rows as they are assigned now."""
    rows, model = state.responsibilities, state.model
    graph = search_graph(problem, rows, state.adjacency, model=model, thorough=True)
    if np.array_equal(graph, state.adjacency):
        return state
    again = relearn(problem, rows, adjacency=graph, thorough=True, model=model)
    return max(again, state, key=_evidence)


def _simplest(problem: Problem, state: State) -> State:
    """Without regimes that evidence does not ask for, and with shapes of noise chosen once more."""
    state = fewer_regimes.drop_while_better(problem, state)
    return max(refine(problem, state.responsibilities, state.adjacency), state, key=_evidence)
