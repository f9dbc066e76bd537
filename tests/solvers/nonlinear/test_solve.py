"""The nonlinear search from end to end, through the estimator."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo import LatentInterventionDAG
from latentdo.graphs import is_dag
from latentdo.metrics import adjusted_rand_index
from latentdo.model.mechanisms import LinearMechanism, NetworkMechanism
from latentdo.scm import simulate
from latentdo.solvers.nonlinear import order
from latentdo.solvers.nonlinear import solve as module


@pytest.fixture(scope="module")
def data():
    return simulate(4, 1, "nonlinear", n_samples=1200, random_state=1)


@pytest.fixture(scope="module")
def latent(data):
    return _fit(data)


@pytest.fixture(scope="module")
def small():
    """For what does not depend on whether the graph is right."""
    return simulate(3, 1, "nonlinear", n_samples=600, random_state=0)


@pytest.fixture(scope="module")
def small_fit(small):
    return _fit(small)


def _fit(data, *, regimes=None, targets=None, progress=None, **options):
    options = {"density": "nonlinear", "solver": "search", "random_state": 0} | options
    return LatentInterventionDAG(**options).fit(data.X, regimes=regimes, targets=targets, progress=progress)


def _check(est, data):
    """What holds for every fit."""
    result = est.result_
    assert all(isinstance(one, NetworkMechanism) for one in result.model.reference)
    assert all(isinstance(one, NetworkMechanism | LinearMechanism) for one in result.model.own.values())
    assert sorted(result.model.own) == [tuple(at) for at in np.argwhere(result.model.topology.targets)]
    assert result.solver == "search"
    assert is_dag(result.adjacency)
    assert np.isfinite(result.evidence)
    assert sum(result.evidence_terms.values()) == pytest.approx(result.evidence)
    assert result.responsibilities.shape == (len(data.X), result.n_regimes)
    np.testing.assert_allclose(result.responsibilities.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(result.model.topology.weights.sum(), 1.0)
    for probabilities in (
        result.edge_probabilities,
        result.ancestor_probabilities,
        result.target_probabilities,
    ):
        assert ((np.asarray(probabilities) >= 0.0) & (np.asarray(probabilities) <= 1.0)).all()
    edges = np.asarray(result.edge_probabilities)
    np.testing.assert_array_equal(edges > 0.5, np.asarray(result.adjacency) == 1)
    assert not np.asarray(result.targets)[0].any()
    seconds = [entry["seconds"] for entry in result.history]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(("d", "seed"), [(3, 0), (3, 2), (4, 1)])
def test_hidden_regimes_are_found(d, seed):
    data = simulate(d, 1, "nonlinear", n_samples=300 * d, random_state=seed)
    est = _fit(data)
    _check(est, data)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    assert adjusted_rand_index(data.regimes, est.result_.regimes) > 0.95
    found = {tuple(row) for row in np.asarray(est.result_.targets)}
    assert found == {tuple(row) for row in data.targets.to_numpy()}


def test_the_model_is_the_one_that_was_scored(data, latent):
    """Reported likelihood and responsibilities are those of the reported model."""
    result = latent.result_
    z = result.preprocessor.forward(data.X.to_numpy())
    assert result.model.score_samples(z).sum() == pytest.approx(
        result.evidence_terms["log_likelihood"], rel=0.01
    )
    assert (result.model.responsibilities(z).argmax(axis=1) == result.regimes).mean() > 0.99


def test_given_regimes_are_kept_and_their_targets_found(data):
    est = _fit(data, regimes=data.regimes)
    _check(est, data)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.result_.targets, data.targets)
    np.testing.assert_array_equal(est.result_.regimes, data.regimes)


def test_given_targets_are_kept(data):
    est = _fit(data, regimes=data.regimes, targets=data.targets)
    _check(est, data)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.result_.targets, data.targets)
    np.testing.assert_array_equal(est.result_.target_probabilities, data.targets)


def test_some_labels(data):
    labels = np.where(np.arange(len(data.X)) % 5 == 0, data.regimes, -1)
    est = _fit(data, regimes=labels)
    _check(est, data)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.result_.targets, data.targets)
    np.testing.assert_array_equal(est.result_.regimes[labels >= 0], labels[labels >= 0])
    assert adjusted_rand_index(data.regimes, est.result_.regimes) > 0.95


def test_labels_of_some_regimes_leave_the_others_to_be_found(data):
    labels = np.where((data.regimes < 2) & (np.arange(len(data.X)) % 2 == 0), data.regimes, -1)
    est = _fit(data, regimes=labels)
    _check(est, data)
    assert est.result_.n_regimes == len(data.targets)
    assert adjusted_rand_index(data.regimes, est.result_.regimes) > 0.95


@pytest.mark.parametrize("labelled", [False, True])
def test_one_regime(labelled):
    data = simulate(3, 1, "nonlinear", n_samples=900, n_regimes=1, random_state=2)
    est = _fit(data, max_regimes=1, regimes=data.regimes if labelled else None)
    _check(est, data)
    assert est.result_.n_regimes == 1
    assert not np.asarray(est.result_.targets).any()


@pytest.mark.parametrize("known", [False, True])
def test_labels_that_leave_variables_alone(known):
    """One regime of two targets one variable of four; the others have parents all the same."""
    data = simulate(4, 1, "nonlinear", n_samples=1000, n_regimes=2, random_state=0)
    est = _fit(data, regimes=data.regimes, targets=data.targets if known else None)
    _check(est, data)
    # Regimes that overlap are worth something if nobody says who belongs to which: about 0.1 nats per row here.
    assert est.evidence_ > _fit(data).evidence_ - 150.0, "labels cannot make it much worse"
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)


def test_flexible_noise():
    data = simulate(3, 1, "nonlinear", n_samples=900, random_state=0)
    est = _fit(data, density="flow")
    _check(est, data)
    assert est.result_.density == "nonlinear-mixed"
    assert all(one.noise.weights.size == 3 for one in est.result_.model.reference)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    assert adjusted_rand_index(data.regimes, est.result_.regimes) > 0.9


def test_search_is_what_auto_means(small, small_fit):
    est = _fit(small, solver="auto")
    assert est.result_.solver == "search"
    assert est.evidence_ == small_fit.evidence_


def test_the_same_seed_gives_the_same_fit(small, small_fit):
    again = _fit(small)
    np.testing.assert_array_equal(again.adjacency_, small_fit.adjacency_)
    np.testing.assert_array_equal(again.result_.responsibilities, small_fit.result_.responsibilities)
    np.testing.assert_array_equal(again.result_.edge_probabilities, small_fit.result_.edge_probabilities)
    for name, array in small_fit.result_.model.to_arrays().items():
        np.testing.assert_array_equal(again.result_.model.to_arrays()[name], array)


def test_the_order_of_the_history(latent):
    steps = [entry["step"] for entry in latent.result_.history]
    assert steps[:2] == ["regimes", "moves"]
    assert steps[2:4] == ["start 2, mixture: regimes", "start 2, mixture: moves"]
    assert steps[-2:] == ["parents", "final"]
    evidence = [entry["evidence"] for entry in latent.result_.history]
    assert evidence[1] >= evidence[0]
    assert evidence[-1] >= evidence[-2]


def test_one_start_and_one_process_if_no_more_are_asked_for(small):
    steps = [entry["step"] for entry in _fit(small, n_init=1).result_.history]
    assert not any(step.startswith("start") for step in steps)


def test_processes_do_not_change_the_fit(small, small_fit):
    again = _fit(small, n_jobs=2)
    assert "start 2, mixture: moves" in [entry["step"] for entry in again.result_.history]
    np.testing.assert_array_equal(again.result_.responsibilities, small_fit.result_.responsibilities)
    for name, array in small_fit.result_.model.to_arrays().items():
        np.testing.assert_array_equal(again.result_.model.to_arrays()[name], array)


def test_save_and_load(data, latent, tmp_path):
    latent.save(tmp_path / "model.safetensors")
    again = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.adjacency_, latent.adjacency_)
    np.testing.assert_array_equal(again.predict(data.X), latent.predict(data.X))
    np.testing.assert_array_equal(again.score_samples(data.X), latent.score_samples(data.X))


def test_new_rows_are_assigned(latent):
    """The first 1200 of 3000 rows of one model; graph and mechanisms do not depend on the number of rows."""
    more = simulate(4, 1, "nonlinear", n_samples=3000, random_state=1)
    regimes = latent.predict(more.X)
    assert adjusted_rand_index(more.regimes, regimes) > 0.9
    np.testing.assert_allclose(latent.predict_proba(more.X).sum(axis=1), 1.0)
    assert np.isfinite(latent.score_samples(more.X)).all()


def test_constraints_hold_against_the_truth(data):
    (i, j), (k, m) = np.argwhere(data.adjacency.to_numpy())[:2]
    name = list(data.X.columns)
    est = _fit(data, forbidden=[(name[i], name[j])], required=[(name[m], name[k])], max_parents=1)
    adjacency = np.asarray(est.adjacency_)
    assert adjacency[i, j] == 0
    assert adjacency[m, k] == 1
    assert (adjacency.sum(axis=0) <= 1).all()
    assert is_dag(adjacency)
    tiers = [[name[j]], [n for n in name if n != name[j]]]
    assert np.asarray(_fit(data, tiers=tiers).adjacency_)[:, j].sum() == 0


@pytest.mark.parametrize("max_regimes", [1, 2, 3])
def test_max_regimes_is_a_limit(small, max_regimes):
    est = _fit(small, max_regimes=max_regimes)
    _check(est, small)
    assert est.result_.n_regimes <= max_regimes


@pytest.mark.parametrize("step", ["regimes", "moves", "parents", "final"])
def test_an_interrupt_keeps_the_best_state_so_far(small, step):
    def stop(entry):
        if entry["step"] == step:
            raise KeyboardInterrupt

    try:
        with pytest.warns(UserWarning, match="interrupted"):
            est = _fit(small, progress=stop)
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("the interrupt was not caught although a state had been reported")
    assert est.result_.status == "interrupted"
    assert est.result_.history[-1]["step"] == step
    assert is_dag(est.adjacency_)


def test_an_interrupt_before_the_first_state_is_passed_on(small, monkeypatch):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(order, "rough_graph", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _fit(small)


def test_structure_found_on_some_rows_holds_for_all(data, monkeypatch):
    monkeypatch.setattr(module, "NETWORK_SEARCH_ROWS", 700)
    est = _fit(data)
    _check(est, data)
    assert est.result_.history[-1]["step"] == "all rows"
    assert (np.asarray(est.adjacency_) != data.adjacency.to_numpy()).sum() <= 1
    assert adjusted_rand_index(data.regimes, est.result_.regimes) > 0.95


@pytest.mark.parametrize("n", [12, 30, 60])
def test_few_rows_are_no_reason_to_fail_or_to_overfit(n):
    rng = np.random.default_rng(0)
    est = LatentInterventionDAG(density="nonlinear").fit(rng.standard_normal((n, 3)))
    assert np.asarray(est.adjacency_).sum() == 0, "all columns are noise"


def test_a_single_column():
    est = LatentInterventionDAG(density="nonlinear").fit(np.random.default_rng(0).standard_normal((300, 1)))
    assert est.result_.n_regimes == 1
    assert np.isfinite(est.score_samples(np.zeros((1, 1)))).all()


def test_no_target_is_certain_that_is_not_shown():
    """Where networks misfit, many regimes would gain by targets that the search refuses."""
    data = simulate(5, 1, "nonadditive", n_samples=2000, random_state=1301)
    result = _fit(data, regimes=data.regimes, density="flow").result_
    assert (result.target_probabilities[result.model.topology.targets == 0] <= 0.5).all()


def test_progress_tells_the_time_left_and_names_no_step_twice(small):
    told = []
    _fit(small, density="flow", progress=told.append)
    steps = [entry["step"] for entry in told]
    assert (steps[0], steps[-1]) == ("regimes", "final")
    assert len(set(steps)) == len(steps)
    assert all(entry["left"] >= 0.0 for entry in told)
    assert told[-1]["left"] == 0.0
