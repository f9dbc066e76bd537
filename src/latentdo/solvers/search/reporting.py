"""What all structural searches report: the course of a fit, and regimes in an order that users can rely on."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.model.series import Series
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State

Progress = Callable[[Mapping[str, Any]], None]


class Journal:
    """Keeps the history of a fit and the state that an interrupted one would return, and reports progress."""

    def __init__(self, progress: Progress | None, prefix: str = "") -> None:
        self.began = time.perf_counter()
        self.entries: list[Mapping[str, Any]] = []
        self._kept: list[Any] = [None]
        self._progress = progress
        self._prefix = prefix

    def under(self, name: str) -> Journal:
        """The same journal for a search within a search: the name is put before its steps."""
        within = Journal(self._progress, f"{self._prefix}{name}: ")
        within.began, within.entries, within._kept = self.began, self.entries, self._kept
        return within

    def keep(self, standing: Any) -> None:
        """Store the state to return if the search is interrupted from here on."""
        self._kept[0] = standing

    @property
    def latest(self) -> Any:
        """The state stored last."""
        return self._kept[0]

    def note(self, step: str, state: State, left: float | None = None) -> None:
        """Record the state of the fit after a step, and report about how many seconds are ``left``."""
        entry = {
            "step": f"{self._prefix}{step}",
            "evidence": state.evidence,
            "regimes": state.n_regimes,
            "edges": int(state.adjacency.sum()),
            "seconds": time.perf_counter() - self.began,
        }
        self.entries.append(entry)
        if self._progress is not None:
            self._progress(entry if left is None else {**entry, "left": left})


def canonical(
    problem: Problem, responsibilities: NDArray[np.float64], targets: NDArray[np.int8]
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Responsibilities and targets with regime 0 as the reference.

    Labelled regimes keep their places, and free ones without targets join regime 0. Without labels, regimes
    without targets become regime 0 (an empty one if there are none) and the others follow by size. Which of two regimes
    is the reference may be arbitrary; over time it is the one that lasts longer in total.
    """
    resp = responsibilities
    n_regimes = resp.shape[1]
    if problem.n_labelled:
        free = np.arange(n_regimes) >= problem.n_labelled
        plain = np.flatnonzero(free & (targets.sum(axis=1) == 0))
        kept = np.setdiff1d(np.arange(n_regimes), plain)
        joined = resp[:, kept]
        joined[:, 0] += resp[:, plain].sum(axis=1)
        return joined, targets[kept]
    counts = problem.counts(resp)
    plain = np.flatnonzero(targets.sum(axis=1) == 0)
    lasting = isinstance(problem.units, Series) and plain.size == 1 and n_regimes - plain.size == 1
    if lasting and counts.argmax() != plain[0]:
        return resp[:, [1 - plain[0], plain[0]]], np.sort(targets, axis=0)
    others = [int(k) for k in np.argsort(-counts, kind="stable") if targets[k].any()]
    reference = resp[:, plain].sum(axis=1) if plain.size else np.zeros(len(resp))
    zero = np.zeros((1, problem.n_variables), dtype=np.int8)
    return np.column_stack([reference, resp[:, others]]), np.vstack([zero, targets[others]])


def regime_names(dataset: Dataset, n_regimes: int) -> tuple[Hashable, ...]:
    """The user's labels, then the numbers of regimes that have none."""
    labels = list(dataset.regime_labels)
    fresh = iter(k for k in range(n_regimes + len(labels)) if k not in labels)
    return tuple(labels) + tuple(next(fresh) for _ in range(n_regimes - len(labels)))
