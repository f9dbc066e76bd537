"""Any family of mechanisms: from what lines with Gaussian noise find, and from one regime, to what the family finds.

Lines are quick, and their graph and regimes are a good guess even where they need further regimes to draw curves or the
shape of a noise. So the family starts from one regime with a graph of its own, and from the state of the lines, less
the regimes that it can do without; births, merges and graph search go on from each, and the highest evidence wins. One
regime is a state like any other: what it lacks in regimes it must make up in evidence, with the same mechanisms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.family import RowFamily
from latentdo.result import FitResult
from latentdo.solvers.search import driver, regime_moves
from latentdo.solvers.search.driver import Conclusion, Run, SearchConfiguration, Standing
from latentdo.solvers.search.em import assign_rows, refine, relearn, weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import LinearStanding, LinearStrategy, conclude
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import ALL_ROWS_STEPS, FAMILY_LINE_STARTS, FAMILY_SEARCH_ROWS


def solve(
    dataset: Dataset,
    configuration: SearchConfiguration,
    family: type[RowFamily],
    density: str,
    progress: Progress | None = None,
    lines: FittedModel | None = None,
) -> FitResult:
    """Fit mechanisms of any family by structural EM, see :func:`.driver.search`.

    ``lines`` is what lines with Gaussian noise found, if that is known already.
    """
    return driver.search(dataset, configuration, RowStrategy(family, density, lines), progress)


def go_on(
    dataset: Dataset,
    configuration: SearchConfiguration,
    family: type[RowFamily],
    found: FitResult,
    progress: Progress | None = None,
) -> FitResult:
    """Fit rows that have changed a little since a fit, from what it found."""
    again = driver.search(dataset, configuration, Continuation(family, found.density, found.model), progress)
    return replace(again, comparison=found.comparison)


@dataclass(frozen=True, eq=False)
class RowStrategy:
    """Structural EM with fits to weighted rows, started from lines."""

    family: type[RowFamily]
    density: str
    lines: FittedModel | None = None

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
        states, single = [], None
        for name, start in self._starts(problem, lines):
            if start.n_regimes == 1 and (single is None or start.evidence > single.evidence):
                single = start
            # The graph of unborn regimes is another one: it is searched when all are there.
            states.append(_simplest(problem, regime_moves.improve(problem, start, same_graph=True)))
            run.journal.note(name, states[-1])
            run.journal.keep(Standing(max(states, key=_evidence)))
        state = _simplest(problem, regime_moves.improve(problem, max(states, key=_evidence)))
        state = regime_moves.fit_afresh(problem, state)
        state = regime_moves.drop_targets_while_better(problem, state)
        state = _best_graph(problem, state)
        if problem.n_labelled == 0:
            state = regime_moves.fit_into(problem, state, problem.max_regimes)
        run.journal.note("final", state)
        hidden = [state] if state.n_regimes > 1 else [one for one in states if one.n_regimes > 1]
        if single is None or not hidden:
            return Standing(state)
        if state.n_regimes == 1:
            single = max(single, state, key=_evidence)
        found = max(hidden, key=_evidence)
        doubtful, comparison = driver.doubt(problem, found.evidence, {"one regime": single.evidence})
        return Standing(_best_graph(problem, single) if doubtful else found, comparison)

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
        return replace(problem, learner=RowLearner.of(self.family, problem.z))

    def _lines(self, run: Run) -> State:
        """What lines with Gaussian noise find."""
        if self.lines is not None:
            return weigh(run.problem, self.lines)
        configuration = replace(run.configuration, n_init=min(run.configuration.n_init, FAMILY_LINE_STARTS))
        quick = replace(run, journal=run.journal.under("lines"), configuration=configuration)
        return LinearStrategy().search(quick).state

    def _starts(self, problem: Problem, lines: State) -> Iterator[tuple[str, State]]:
        """States to improve: one regime on its own graph, then what lines found, less what only they needed."""
        if problem.n_labelled:
            yield "as lines", refine(problem, lines.responsibilities, lines.adjacency)
            return
        everyone = np.ones((problem.n_rows, 1))
        on_theirs = refine(problem, everyone, lines.adjacency, iterations=1)
        yield "one regime", relearn(problem, everyone, adjacency=lines.adjacency, model=on_theirs.model)
        if lines.n_regimes > 1:
            first = refine(
                problem, lines.responsibilities, lines.adjacency, iterations=1, targets=lines.targets
            )
            start = refine(problem, first.responsibilities, lines.adjacency, model=first.model)
            yield "as lines", regime_moves.drop_while_better(problem, start)


@dataclass(frozen=True, eq=False)
class Continuation(RowStrategy):
    """The same from a model that was fitted before, ``lines``, to nearly the same rows."""

    def search(self, run: Run) -> Standing:
        """See :class:`.driver.Strategy`."""
        assert self.lines is not None
        problem = self._problem(run.problem)
        begin = weigh(problem, self.lines)
        state = refine(problem, begin.responsibilities, begin.adjacency, model=self.lines)
        state = _simplest(problem, regime_moves.improve(problem, state, same_graph=True))
        run.journal.note("again", state)
        run.journal.keep(Standing(state))
        state = _best_graph(problem, state)
        if problem.n_labelled == 0:
            state = regime_moves.fit_into(problem, state, problem.max_regimes)
        run.journal.note("graph again", state)
        return Standing(state)


def _evidence(state: State) -> float:
    return state.evidence


def _best_graph(problem: Problem, state: State) -> State:
    """The graph searched by all means there are, for the rows as they are assigned now."""
    again = relearn(
        problem, state.responsibilities, adjacency=state.adjacency, thorough=True, model=state.model
    )
    return max(again, state, key=_evidence)


def _simplest(problem: Problem, state: State) -> State:
    """Without regimes that evidence does not ask for, and with shapes of noise chosen once more."""
    state = regime_moves.drop_while_better(problem, state)
    return max(refine(problem, state.responsibilities, state.adjacency), state, key=_evidence)
