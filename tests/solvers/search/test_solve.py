"""The solver from end to end, below the estimator: subsampling, limits, journal and numbering."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.data import Dataset
from latentdo.graphs.constraints import Constraints
from latentdo.metrics import adjusted_rand_index
from latentdo.scm import simulate
from latentdo.solvers.search import solve as solve_module
from latentdo.solvers.search.solve import SearchConfiguration, make_problem, solve


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=4, edges_per_node=1, n_samples=4000, random_state=3)


@pytest.fixture(scope="module")
def dataset(data):
    return Dataset.from_table(data.X)


def test_structure_found_on_some_rows_holds_for_all(data, dataset):
    """Searched on 1800 rows, reported on 4000."""
    result = solve(dataset, SearchConfiguration(max_regimes=6, search_rows=500))
    assert [entry["step"] for entry in result.history][-1] == "all rows"
    assert len(result.responsibilities) == 4000
    np.testing.assert_array_equal(result.adjacency, data.adjacency)
    assert adjusted_rand_index(data.regimes, result.regimes) > 0.97
    z = dataset.z
    assert result.model.score_samples(z).sum() == pytest.approx(
        result.evidence_terms["log_likelihood"], abs=2.0
    )


def test_labels_survive_subsampling(data):
    labelled = Dataset.from_table(data.X, regimes=np.where(np.arange(4000) % 3 == 0, data.regimes, -1))
    result = solve(labelled, SearchConfiguration(max_regimes=6, search_rows=500))
    np.testing.assert_array_equal(result.adjacency, data.adjacency)
    np.testing.assert_array_equal(result.targets, data.targets)
    np.testing.assert_array_equal(result.regimes[::3], data.regimes[::3])


@pytest.mark.parametrize("max_regimes", [1, 2, 3, 4])
@pytest.mark.parametrize("observational", [True, False])
def test_max_regimes_counts_the_reference(data, max_regimes, observational):
    rows = data.regimes > (-1 if observational else 0)
    result = solve(
        Dataset.from_table(data.X[rows][:1200]), SearchConfiguration(max_regimes=max_regimes, n_init=1)
    )
    assert result.n_regimes <= max_regimes
    np.testing.assert_allclose(result.responsibilities.sum(axis=1), 1.0, atol=1e-9)


def test_regimes_are_numbered_by_size_after_the_reference():
    data = simulate(
        n_variables=3,
        edges_per_node=1,
        n_samples=2000,
        regime_weights=[0.1, 0.2, 0.3, 0.4],
        random_state=8,
    )
    result = solve(Dataset.from_table(data.X), SearchConfiguration())
    assert not result.targets.to_numpy()[0].any()
    weights = result.model.topology.weights
    assert (np.diff(weights[1:]) <= 0).all()
    assert result.regime_names == tuple(range(result.n_regimes))
    np.testing.assert_allclose(weights, [0.1, 0.4, 0.3, 0.2], atol=0.03)


def test_evidence_never_falls_along_the_history_of_the_winner(dataset):
    result = solve(dataset, SearchConfiguration())
    final = next(entry for entry in result.history if entry["step"] == "final")
    assert final["evidence"] >= max(entry["evidence"] for entry in result.history) - 1e-6
    assert result.evidence == pytest.approx(final["evidence"], abs=1.0)
    seconds = [entry["seconds"] for entry in result.history]
    assert seconds == sorted(seconds)
    assert result.seconds >= seconds[-1]


def test_labels_fix_what_is_known(data):
    labelled = Dataset.from_table(data.X, regimes=data.regimes)
    problem = make_problem(labelled, SearchConfiguration())
    assert problem.n_labelled == 5
    assert problem.all_labelled
    np.testing.assert_array_equal(problem.known[0], 0)  # the observational label has no targets
    assert (problem.known[1:] == -1).all()  # the others are open
    silent = make_problem(Dataset.from_table(data.X, regimes=np.full(4000, -1)), SearchConfiguration())
    assert silent.n_labelled == 0


def test_constraints_reach_every_start(data):
    """Forbidding a true edge must hold for every start that could win."""
    i, j = np.argwhere(data.adjacency.to_numpy())[0]
    names = list(data.X.columns)
    constraints = Constraints.build(names, forbidden=[(names[i], names[j])], max_parents=1)
    for seed in range(2):
        result = solve(
            Dataset.from_table(data.X[:1000]), SearchConfiguration(constraints=constraints, random_state=seed)
        )
        assert result.adjacency.iloc[i, j] == 0
        assert result.adjacency.to_numpy().sum(axis=0).max() <= 1
        assert result.edge_probabilities[i, j] == 0.0


def test_an_interrupt_at_the_very_end_loses_nothing(monkeypatch):
    """Probabilities come after the search; whoever stops there keeps what was found."""
    dataset = Dataset.from_table(simulate(n_variables=3, n_samples=200, random_state=1).X)
    whole = solve(dataset, SearchConfiguration())
    posterior, calls = solve_module.graph_posterior, []

    def interrupted_once(*arguments, **keywords):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return posterior(*arguments, **keywords)

    monkeypatch.setattr(solve_module, "graph_posterior", interrupted_once)
    stopped = solve(dataset, SearchConfiguration())
    assert (whole.status, stopped.status) == ("converged", "interrupted")
    np.testing.assert_array_equal(stopped.edge_probabilities, whole.edge_probabilities)
