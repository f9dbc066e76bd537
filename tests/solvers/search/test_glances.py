"""What a glance says of parent sets: against fits, and against regressions where those are exact."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.set_scores import SetScores

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
    scores.fit(np.array([0, 1]))
    return scores


def test_with_gaussian_lines_a_needless_parent_scores_as_in_a_fit(make_problem):
    scores = _scores(make_problem, lambda rng: rng.standard_normal(N), lambda x: 0.8 * x, AnyNoise)
    needless = np.array([0, 1, 2])
    assert scores.rough(needless) == pytest.approx(scores.fit(needless), abs=0.1)


@pytest.mark.parametrize("curve", [lambda x: 0.8 * x, lambda x: np.tanh(2.0 * x)], ids=["line", "curve"])
@pytest.mark.parametrize("noise", ["laplace", "gamma"])
def test_a_glance_is_no_more_than_a_fit_and_hardly_less_at_the_causes(make_problem, noise, curve):
    """About: shapes of noise, and how much parents bend, are chosen by approximations on both sides."""
    draw = {"laplace": lambda rng: rng.laplace(size=N), "gamma": lambda rng: rng.gamma(2.0, size=N)}[noise]
    scores = _scores(make_problem, draw, curve, AdditiveMechanism)
    rough = np.array([scores.rough(one) for one in ALL])
    fitted = np.array([scores.fit(one) for one in ALL])
    assert (rough < fitted + 3.0).all()
    assert rough.max() == pytest.approx(fitted.max(), abs=5.0)
    assert ALL[int(rough.argmax())].tolist() == ALL[int(fitted.argmax())].tolist() == [0, 1]


def test_with_gaussian_lines_every_set_scores_as_in_a_fit(make_problem):
    scores = _scores(make_problem, lambda rng: rng.standard_normal(N), lambda x: 0.8 * x, AnyNoise)
    rough = {tuple(one): scores.rough(one) for one in ALL}
    for one in ALL:
        assert rough[tuple(one)] == pytest.approx(scores.fit(one), abs=3.0)


def test_a_regime_with_a_line_of_its_own_does_not_keep_it_without_parents(make_problem):
    """Where interventions may be imperfect, what regimes that leave a mechanism gain depends on parents too."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((N, 3))
    resp = np.eye(2)[(np.arange(N) > N // 2).astype(int)]
    y = np.where(resp[:, 1] == 1, -1.5, 1.5) * x[:, 0] + 0.3 * rng.standard_normal(N)
    problem = make_problem(pd.DataFrame(np.column_stack([x, y]), columns=list("abcy")))
    problem = replace(problem, learner=RowLearner.of(AnyNoise, problem.z), imperfect=True)
    statistics = problem.learner.statistics(problem, resp)
    scores = SetScores(problem.learner, problem, statistics, 3, None)
    scores.fit(np.array([0]))
    assert not problem.learner.local(problem, statistics, 3, np.array([0])).shares.all()
    for one in ALL:
        assert scores.rough(one) < scores.fit(one) + 3.0


def test_a_climb_fits_no_set_that_cannot_pay(make_problem):
    scores = _scores(make_problem, lambda rng: rng.laplace(size=N), np.tanh, AdditiveMechanism)
    needless, without_causes = np.array([0, 1, 2]), np.array([], dtype=np.int64)
    best = scores.fit(np.array([0, 1]))
    for hopeless in (needless, without_causes):
        assert scores.rough(hopeless) + scores.slack(hopeless) < best
        assert not scores.is_fitted(hopeless)
    assert scores.slack(np.array([0, 1])) == 0.0
