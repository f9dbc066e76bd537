"""Half-samples: which rows they hold, how often these count, and what their average is."""

from itertools import islice

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import Dataset
from latentdo.notices import as_part
from latentdo.solvers.search import resampling
from latentdo.solvers.search.driver import SearchConfiguration, make_problem


@pytest.fixture(scope="module")
def data():
    return simulate(preset="field", n_variables=4, n_samples=600, n_regimes=3, random_state=1000)


def _halves(problem, blocks=None, count=2):
    return list(islice(resampling._halves(problem, blocks, np.random.default_rng(0)), count))


def test_two_halves_make_the_table_and_count_twice(data):
    problem = make_problem(Dataset.from_table(data.X), SearchConfiguration())
    halves = _halves(problem)
    assert [half.n_counted for half in halves] == [600.0, 600.0]
    together = np.vstack([half.z for half in halves])
    assert np.array_equal(np.sort(together, axis=0), np.sort(problem.z, axis=0))
    both = sum(half.moments(np.ones((half.n_rows, 1))).matrices for half in halves)
    assert both == pytest.approx(2.0 * problem.moments(np.ones((600, 1))).matrices)


def test_groups_stay_whole_and_are_two_each(data):
    groups = np.repeat(np.arange(60), 10)
    problem = make_problem(Dataset.from_table(data.X, groups=groups), SearchConfiguration())
    for half in _halves(problem, groups):
        assert half.n_rows == 600
        assert half.n_units == 60
        assert (np.bincount(half.units.numbers()) == 10).all()


def test_stretches_of_time_stay_whole_and_have_a_series_each(data):
    dataset = Dataset.from_table(data.X, time=np.arange(600.0))
    problem = make_problem(dataset, SearchConfiguration())
    for half in _halves(problem, dataset.blocks):
        assert half.n_rows == 600
        assert np.isinf(half.units.gaps).sum() == 2
        assert (half.units.gaps == 1.0).mean() > 0.9
        rows, copies = half.z[:300], half.z[300:]
        assert np.array_equal(rows, copies)


def test_weights_of_rows_are_doubled(data):
    weights = np.linspace(0.5, 1.5, 600)
    problem = make_problem(Dataset.from_table(data.X, sample_weight=weights), SearchConfiguration())
    assert sum(half.n_counted for half in _halves(problem)) == pytest.approx(2.0 * weights.sum())


def test_probabilities_are_averages_and_the_plain_ones_stay(data):
    arguments = {"density": "linear", "noise": "gaussian", "max_regimes": 4, "n_init": 1}
    with as_part():
        plain = LatentInterventionDAG(**arguments).fit(data.X)
    est = LatentInterventionDAG(**arguments, resamples=4).fit(data.X)
    assert est.model_edge_probabilities_.equals(plain.edge_probabilities_)
    assert est.adjacency_.equals(plain.adjacency_)
    p = est.edge_probabilities_.to_numpy()
    assert ((p >= 0.0) & (p <= 1.0)).all()
    assert est.adjacency_probabilities_.to_numpy() == pytest.approx(np.minimum(p + p.T, 1.0))
    direction = est.direction_probabilities_.to_numpy()
    off = ~np.eye(4, dtype=bool)
    assert (direction + direction.T)[off] == pytest.approx(1.0)
    problem = make_problem(Dataset.from_table(data.X), SearchConfiguration(max_regimes=4, n_init=1))
    again = resampling.average(problem, plain.result_.model, 4, 7)
    other = resampling.average(problem, plain.result_.model, 4, 7)
    assert np.array_equal(again.edges, other.edges)


def test_required_edges_are_certain_in_every_half(data):
    est = LatentInterventionDAG(
        density="linear", noise="gaussian", max_regimes=2, n_init=1, required=[("X1", "X2")], resamples=2
    )
    est.fit(data.X)
    assert est.model_edge_probabilities_.loc["X1", "X2"] == pytest.approx(1.0)
    assert est.edge_probabilities_.loc["X1", "X2"] == pytest.approx(1.0)  # whatever checks say
