"""What one fit says of all parent sets: against fits, and against regressions where those are exact."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.solvers.search.quick_scores import SetScores
from latentdo.solvers.search.rows import RowLearner

N = 1500
ALL = [np.array(one, dtype=np.int64) for size in range(4) for one in combinations(range(3), size)]
"""Every set of parents of the last variable."""


def _scores(make_problem, noise, curve, family):
    """Of the last of four variables, which has two causes among three; the best set is fitted."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((N, 3))
    x[:, 2] += 0.6 * x[:, 1]
    y = curve(x[:, 0]) + 0.7 * x[:, 1] + noise(rng)
    table = pd.DataFrame(np.column_stack([x, y]), columns=list("abcy"))
    problem = make_problem(table)
    problem = replace(problem, learner=RowLearner.of(family, problem.z))
    statistics = problem.learner.statistics(problem, np.ones((N, 1)))
    scores = SetScores(problem.learner, problem, statistics, 3, None)
    assert scores.anchor(np.array([0, 1]))
    return scores


def test_with_gaussian_lines_a_needless_parent_scores_as_in_a_fit(make_problem):
    scores = _scores(make_problem, lambda rng: rng.standard_normal(N), lambda x: 0.8 * x, AnyNoise)
    needless = np.array([0, 1, 2])
    assert scores.rough(needless) == pytest.approx(scores.fit(needless), abs=0.1)


@pytest.mark.parametrize("curve", [lambda x: 0.8 * x, lambda x: np.tanh(2.0 * x)], ids=["line", "curve"])
@pytest.mark.parametrize("noise", ["laplace", "gamma"])
def test_scores_without_a_fit_are_lower_bounds(make_problem, noise, curve):
    """About: shapes of noise, and how much parents bend, are chosen by approximations on both sides."""
    draw = {"laplace": lambda rng: rng.laplace(size=N), "gamma": lambda rng: rng.gamma(2.0, size=N)}[noise]
    scores = _scores(make_problem, draw, curve, AdditiveMechanism)
    rough = np.array([scores.rough(one) for one in ALL])
    fitted = np.array([scores.fit(one) for one in ALL])
    assert (rough < fitted + 3.0).all()
    assert ALL[int(rough.argmax())].tolist() == ALL[int(fitted.argmax())].tolist() == [0, 1]


def test_sets_that_do_not_seem_to_pay_are_not_fitted(make_problem):
    scores = _scores(make_problem, lambda rng: rng.laplace(size=N), np.tanh, AdditiveMechanism)
    needless = np.array([0, 1, 2])
    assert scores(needless) == scores.rough(needless) < scores(np.array([0, 1]))
