"""What searches report alike: regimes in a reliable order, their names, and the course of a fit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from latentdo.data import Dataset
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.reporting import Journal, canonical, regime_names


def _rows(counts):
    return np.repeat(np.eye(len(counts)), counts, axis=0)


def test_regimes_without_targets_come_first_and_the_others_by_size(make_problem):
    problem = make_problem(np.random.default_rng(0).standard_normal((100, 2)))
    targets = np.array([[1, 0], [0, 0], [0, 1], [0, 0]], dtype=np.int8)
    responsibilities, ordered = canonical(problem, _rows([20, 10, 40, 30]), targets)
    np.testing.assert_array_equal(ordered, [[0, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(responsibilities.sum(axis=0), [40, 40, 20])
    np.testing.assert_array_equal(responsibilities.sum(axis=1), 1.0)


def test_without_observational_rows_regime_0_is_empty(make_problem):
    problem = make_problem(np.random.default_rng(0).standard_normal((30, 2)))
    responsibilities, ordered = canonical(problem, _rows([10, 20]), np.array([[1, 0], [0, 1]], dtype=np.int8))
    np.testing.assert_array_equal(ordered, [[0, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(responsibilities.sum(axis=0), [0, 20, 10])


def test_labelled_components_keep_their_places(make_problem):
    labels = np.repeat([0, 1, -1], [20, 20, 60])
    problem = make_problem(
        np.random.default_rng(0).standard_normal((100, 2)), labels=labels, known=np.full((2, 2), FREE)
    )
    targets = np.array([[0, 0], [1, 0], [0, 0], [0, 1]], dtype=np.int8)
    before = _rows([20, 20, 25, 35])
    kept = before.copy()
    responsibilities, ordered = canonical(problem, before, targets)
    np.testing.assert_array_equal(ordered, [[0, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(responsibilities.sum(axis=0), [45, 20, 35])
    np.testing.assert_array_equal(before, kept)


@pytest.mark.parametrize(
    ("labels", "n_regimes", "names"),
    [
        (None, 3, (0, 1, 2)),
        (["control", "drug"], 2, ("control", "drug")),
        (["control", "drug"], 4, ("control", "drug", 0, 1)),
        ([0, 2], 4, (0, 2, 1, 3)),
    ],
)
def test_new_regimes_get_names_that_are_free(labels, n_regimes, names):
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((40, 2)), columns=["a", "b"])
    regimes = None if labels is None else np.array(labels, dtype=object)[np.arange(40) % 2]
    options = {} if labels is None or 0 in labels else {"observational": labels[0]}
    dataset = Dataset.from_table(table, regimes=regimes, **options)
    assert regime_names(dataset, n_regimes) == names


def test_a_journal_keeps_and_tells():
    heard = []
    journal = Journal(heard.append)
    state = SimpleNamespace(evidence=-1.5, n_regimes=3, adjacency=np.array([[0, 1], [0, 0]], dtype=np.int8))
    journal.note("first", state)
    journal.note("second", state)
    assert heard == journal.entries
    assert [entry["step"] for entry in heard] == ["first", "second"]
    assert heard[0] | {"seconds": 0} == {
        "step": "first", "evidence": -1.5, "regimes": 3, "edges": 1, "seconds": 0,
    }  # fmt: skip
    assert heard[0]["seconds"] <= heard[1]["seconds"]
    journal.note("third", state, left=3.0)
    assert heard[2] == {**journal.entries[2], "left": 3.0}
    assert "left" not in journal.entries[2]  # a guess is not part of the history
    Journal(None).note("nobody listens", state)
