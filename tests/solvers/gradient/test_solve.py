"""Whole fits on small data: every variant and family, resumption, interruption, breakdown, determinism."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from latentdo.data import Dataset
from latentdo.graphs import is_dag
from latentdo.graphs.constraints import Constraints
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.neural import NeuralMechanism
from latentdo.scm import simulate
from latentdo.solvers.gradient import AugmentedLagrangian, GradientConfiguration, Proposal, solve
from latentdo.solvers.gradient.loop import Trainer
from latentdo.solvers.gradient.starts import as_search, search_structure
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.solve import make_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

QUICK = GradientConfiguration(
    max_regimes=4,
    embedding_size=4,
    width=8,
    n_blocks=1,
    first_steps=40,
    steps=10,
    final_steps=10,
    max_subproblems=4,
    refresh=10,
    learning_rate=1e-2,
    lagrangian=AugmentedLagrangian(0.0, 1.0, 10.0, 0.9),
)


def data(variant: str = "latent", n: int = 300, seed: int = 0) -> Dataset:
    s = simulate(3, 1, n_samples=n, random_state=seed)
    known: dict[str, object] = {}
    if variant in ("unknown", "known", "semi-supervised"):
        known["regimes"] = s.regimes
    if variant == "known":
        known["targets"] = s.targets
    if variant == "semi-supervised":
        some = np.random.default_rng(seed).random(len(s.regimes)) < 0.3
        known["regimes"] = [int(k) if keep else None for k, keep in zip(s.regimes, some, strict=True)]
    return Dataset.from_table(s.X, **known)


def check(result, dataset):
    topology = result.model.topology
    assert is_dag(topology.adjacency)
    assert not topology.targets[0].any()
    assert topology.weights.sum() == pytest.approx(1.0)
    assert result.responsibilities.shape == (dataset.n_rows, topology.n_regimes)
    np.testing.assert_allclose(result.responsibilities.sum(axis=1), 1.0)
    assert result.edge_probabilities.shape == (3, 3)
    assert ((result.edge_probabilities >= 0) & (result.edge_probabilities <= 1)).all()
    assert len(result.regime_names) == topology.n_regimes == len(result.target_probabilities)
    assert np.isfinite(result.evidence)
    assert np.isfinite(result.model.score_samples(dataset.z)).all()


@pytest.mark.parametrize("estimator", ["exact", "sampled"])
@pytest.mark.parametrize("variant", ["latent", "semi-supervised", "unknown", "known", "observational"])
def test_every_variant(variant, estimator):
    dataset = data(variant)
    c = replace(QUICK, estimator=estimator, max_regimes=1 if variant == "observational" else 4)
    result = solve(dataset, c)
    check(result, dataset)
    assert variant in result.message or result.status == "not converged"
    if variant == "known":
        np.testing.assert_array_equal(result.model.topology.targets, dataset.targets)
    if variant in ("unknown", "known"):
        np.testing.assert_array_equal(result.regimes, dataset.regimes)
    if variant == "observational":
        assert result.n_regimes == 1


@pytest.mark.parametrize("estimator", ["exact", "sampled"])
@pytest.mark.parametrize("intervention", ["perfect", "imperfect"])
@pytest.mark.parametrize("density", ["nonlinear", "flow"])
def test_every_family(density, intervention, estimator):
    dataset = data()
    c = replace(
        QUICK,
        density=density,
        intervention=intervention,
        estimator=estimator,
        first_steps=20,
        max_subproblems=2,
    )
    result = solve(dataset, c)
    check(result, dataset)
    assert all(isinstance(one, NeuralMechanism) for one in result.model.reference)
    again = FittedModel.from_arrays(result.model.to_arrays())
    np.testing.assert_allclose(again.score_samples(dataset.z), result.model.score_samples(dataset.z))


@pytest.mark.parametrize("density", ["linear", "nonlinear"])
@pytest.mark.parametrize("variant", ["latent", "unknown"])
def test_progress_counts_the_regimes(variant, density):
    dataset, told = data(variant), []
    solve(dataset, replace(QUICK, density=density, first_steps=10, max_subproblems=1), told.append)
    counts = [entry["regimes"] for entry in told]
    assert counts
    if variant == "unknown":
        assert set(counts) == {len(dataset.regime_labels)}
    else:
        assert all(isinstance(count, int) and 1 <= count <= QUICK.max_regimes for count in counts)


def test_same_seed_same_result_and_the_global_generator_is_left_alone():
    dataset = data()
    before = torch.get_rng_state()
    first, second = solve(dataset, QUICK), solve(dataset, QUICK)
    assert torch.equal(before, torch.get_rng_state())
    assert first.evidence == second.evidence
    np.testing.assert_array_equal(first.responsibilities, second.responsibilities)
    other = solve(dataset, replace(QUICK, random_state=1))
    assert other.history[0]["evidence"] != first.history[0]["evidence"]  # another way, if to the same end


@pytest.mark.parametrize("density", ["linear", "nonlinear"])
def test_a_killed_fit_resumes_to_the_same_result(tmp_path, density):
    dataset = data("unknown")
    c = replace(QUICK, density=density, checkpoint=tmp_path / "run", checkpoint_seconds=0.0)
    whole = solve(dataset, replace(c, checkpoint=None))
    calls = 0

    def die(entry):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise MemoryError("killed")

    with pytest.raises(MemoryError):
        solve(dataset, c, die)
    steps = []
    resumed = solve(dataset, c, lambda entry: steps.append(entry["step"]))
    assert steps[0] > 20  # it did not start again
    assert resumed.evidence == whole.evidence
    np.testing.assert_array_equal(resumed.responsibilities, whole.responsibilities)
    assert not list(tmp_path.glob("*.tmp"))
    with pytest.raises(ValueError, match="other data or another configuration"):
        solve(dataset, replace(c, learning_rate=0.02))


def test_interruption_returns_the_best_so_far():
    dataset = data()

    def stop(entry):
        if entry["step"] >= 20:
            raise KeyboardInterrupt

    result = solve(dataset, QUICK, stop)
    assert result.status == "interrupted"
    check(result, dataset)


def test_interruption_while_regimes_are_searched_returns_what_there_is(monkeypatch):
    dataset = data()

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("latentdo.solvers.search.solve._begin", stop)
    result = solve(dataset, QUICK)
    assert result.status == "interrupted"
    assert is_dag(result.model.topology.adjacency)


def test_breakdown_backs_off_and_then_says_what_to_try(monkeypatch):
    dataset = data("unknown")
    original, broken = Trainer._step, [0]

    def sometimes(self, *args):
        evidence = original(self, *args)
        if broken[0] == 0 and args[1] == 15:
            broken[0] = 1
            with torch.no_grad():
                self.model.graph.logits.fill_(torch.nan)
        return evidence

    monkeypatch.setattr(Trainer, "_step", sometimes)
    result = solve(dataset, QUICK)
    check(result, dataset)
    assert "learning rate halved" in result.warnings[0]

    def always(self, *args):
        evidence = original(self, *args)
        with torch.no_grad():
            self.model.graph.logits.fill_(torch.nan)
        return evidence

    monkeypatch.setattr(Trainer, "_step", always)
    with pytest.raises(FloatingPointError, match="learning_rate"):
        solve(dataset, QUICK)


def test_an_unmet_constraint_is_reported_and_cut():
    dataset = data("unknown")
    c = replace(QUICK, max_subproblems=1, lagrangian=AugmentedLagrangian(), edge_logit=3.0, first_steps=2)
    with pytest.warns(ConvergenceWarning, match="cycles were cut"):
        result = solve(dataset, c)
    assert result.status == "not converged"
    check(result, dataset)


def test_constraints_on_edges_hold():
    dataset = data("unknown")
    a, b, _ = dataset.columns
    constraints = Constraints.build(dataset.columns, forbidden=[(a, b)], required=[(b, a)])
    result = solve(dataset, replace(QUICK, constraints=constraints))
    assert result.model.topology.adjacency[0, 1] == 0
    assert result.model.topology.adjacency[1, 0] == 1


@pytest.mark.slow  # a pool of processes that each import torch
def test_restarts_in_parallel_are_those_in_sequence():
    dataset = data("unknown", n=120)
    c = replace(QUICK, n_init=2, first_steps=10, max_subproblems=1)
    one, two = solve(dataset, c), solve(dataset, replace(c, n_jobs=2))
    assert len(one.comparison) == len(two.comparison) == 2
    assert [r["held_out"] for r in one.comparison] == pytest.approx([r["held_out"] for r in two.comparison])
    assert one.evidence == pytest.approx(two.evidence)


def test_restarts_share_held_out_rows_and_the_best_is_chosen():
    dataset = data("unknown", n=200)
    result = solve(dataset, replace(QUICK, n_init=3, first_steps=20, max_subproblems=2))
    assert 2 <= len(result.comparison) <= 3  # a third is not run if the first two agree
    best = max(result.comparison, key=lambda run: run["evidence"])
    assert result.evidence_terms["held_out"] == best["held_out"]


def test_minibatches_and_labels_only_in_part():
    dataset = data("semi-supervised")
    result = solve(dataset, replace(QUICK, density="nonlinear", batch_size=64))
    check(result, dataset)
    known = dataset.regimes >= 0
    np.testing.assert_array_equal(result.regimes[known], dataset.regimes[known])


def test_a_pair_with_known_interventions_is_oriented():
    s = simulate(preset="paper-pairs", random_state=3)
    assert s.adjacency.to_numpy().sum() == 1
    dataset = Dataset.from_table(s.X, regimes=s.regimes, targets=s.targets)
    c = replace(QUICK, first_steps=150, steps=20, max_subproblems=20, structure_rate=3.0)
    np.testing.assert_array_equal(solve(dataset, c).model.topology.adjacency, s.adjacency.to_numpy())


def test_a_useless_edge_is_pruned_and_a_useful_one_is_kept():
    rng = np.random.default_rng(0)
    n = 1500
    z = rng.normal(size=(n, 3))
    z[:, 1] = np.sin(2 * z[:, 0]) + 0.1 * rng.normal(size=n)
    both = np.zeros((3, 3), dtype=bool)
    both[[0, 2], 1] = True
    dataset = Dataset.from_table(z)
    constraints = replace(Constraints.build(dataset.columns), allowed=both)
    c = replace(
        QUICK, density="nonlinear", max_regimes=1, constraints=constraints, edge_logit=4.0, first_steps=100,
        max_subproblems=1, final_steps=200, edge_jitter=0.0, batch_size=300,
    )  # fmt: skip
    assert solve(dataset, c).model.topology.adjacency.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_a_proposal_is_where_the_fit_starts():
    s = simulate(3, 1, n_samples=300, random_state=0)
    dataset = Dataset.from_table(s.X)
    truth = Proposal(s.adjacency.to_numpy(np.int8), s.targets.to_numpy(np.int8), s.regimes)
    c = replace(QUICK, density="nonlinear", first_steps=4, max_subproblems=1, prune=False, learning_rate=1e-4)
    result = solve(dataset, c, start=truth)
    np.testing.assert_array_equal(result.model.topology.adjacency, s.adjacency)
    check(result, dataset)
    check(solve(dataset, QUICK, start=truth), dataset)


def test_compiling_falls_back_without_a_compiler(monkeypatch, caplog):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with caplog.at_level("INFO"):
        check(solve(data("unknown"), replace(QUICK, density="nonlinear", compile=True)), data("unknown"))
    assert "uncompiled" in caplog.text


@pytest.mark.parametrize("verbose", [False, True])
def test_progress_is_shown_when_asked(capsys, monkeypatch, verbose):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    solve(data("unknown"), replace(QUICK, verbose=verbose))
    assert ("evidence" in capsys.readouterr().out) == verbose


@pytest.mark.parametrize("density", ["linear", "nonlinear"])
def test_no_observational_rows(density):
    s = simulate(3, 1, n_samples=300, random_state=0, observational=False)
    dataset = Dataset.from_table(s.X, regimes=s.regimes, observational=None)
    result = solve(dataset, replace(QUICK, density=density))
    check(result, dataset)
    assert not result.has_observational


@pytest.mark.parametrize("density", ["linear", "nonlinear", "flow"])
def test_atomic_interventions_stay_finite(density):
    s = simulate(3, 1, intervention="atomic", n_samples=300, random_state=1)
    for known in ({}, {"regimes": s.regimes}):
        dataset = Dataset.from_table(s.X, **known)
        check(solve(dataset, replace(QUICK, density=density)), dataset)


def consistent(result):
    """An edge of the graph is at least as likely as its absence or its reversal, and no other exceeds one half."""
    shown, p = result.model.topology.adjacency == 1, result.edge_probabilities
    absent = 1.0 - p - p.T
    slack = 1e-6
    return bool(
        (p[shown] >= p.T[shown] - slack).all()
        and (p[shown] >= absent[shown] - slack).all()
        and (p[~shown] <= 0.5 + slack).all()
    )


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_a_small_table_without_labels_is_not_shattered(seed):
    dataset = data("latent", n=200, seed=seed)
    result = solve(dataset, GradientConfiguration(random_state=seed))
    assert result.n_regimes <= 5  # four generated them, sixteen were allowed
    assert consistent(result)


@pytest.mark.parametrize("density", ["linear", "nonlinear"])
def test_noise_alone_gives_one_regime(density):
    z = np.random.default_rng(0).normal(size=(150, 3))
    result = solve(Dataset.from_table(z), replace(QUICK, density=density, max_regimes=16))
    assert result.n_regimes == 1
    assert result.model.topology.adjacency.sum() == 0
    assert consistent(result)


@pytest.mark.parametrize("variant", ["latent", "semi-supervised", "unknown", "known", "observational"])
@pytest.mark.parametrize("density", ["linear", "nonlinear"])
def test_the_graph_never_contradicts_its_probabilities(variant, density):
    dataset = data(variant, seed=1)
    c = replace(QUICK, density=density, max_regimes=1 if variant == "observational" else 16)
    assert consistent(solve(dataset, c))


def test_a_latent_fit_never_ends_below_its_start():
    dataset = data("latent", n=400, seed=2)
    start = search_structure(dataset, QUICK)
    assert solve(dataset, QUICK).evidence >= start.evidence - 1e-6


@pytest.mark.parametrize("variant", ["latent", "semi-supervised", "unknown", "known"])
def test_two_solvers_give_the_same_evidence_to_the_same_state(variant):
    dataset = data(variant, n=400, seed=2)
    by_gradient = solve(dataset, QUICK)
    by_search = search_structure(dataset, QUICK)
    problem = make_problem(dataset, as_search(QUICK))
    for result in (by_gradient, by_search):
        assert weigh(problem, result.model).evidence == pytest.approx(result.evidence, abs=1e-8)
    if np.array_equal(by_gradient.adjacency, by_search.adjacency):
        assert by_gradient.evidence == pytest.approx(by_search.evidence, abs=1.0)


def test_a_published_fit_of_a_tiny_table_warns():
    dataset = data("latent", n=60)
    c = GradientConfiguration.paper(
        regime_steps=5, first_steps=5, steps=2, max_subproblems=1, embedding_size=4, width=4
    )
    with pytest.warns(UserWarning, match="not to be relied on"):
        result = solve(dataset, c)
    assert any("not to be relied on" in note for note in result.warnings)


def test_a_device_that_is_not_there_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match="device='cpu'"):
        solve(data("unknown"), replace(QUICK, device="cuda"))
    with pytest.raises(ValueError, match="torch knows"):
        solve(data("unknown"), replace(QUICK, device="abacus"))


def test_the_published_algorithm_finds_a_small_graph_with_known_targets():
    s = simulate(4, 1, n_samples=1000, random_state=1000)
    dataset = Dataset.from_table(s.X, regimes=s.regimes, targets=s.targets)
    c = GradientConfiguration.paper(
        labelled=True,
        first_steps=300,
        steps=25,
        max_subproblems=30,
        embedding_size=32,
        tolerance=1e-3,
        lagrangian=AugmentedLagrangian(0.0, 1e-2, 3.0, 0.9),
    )
    np.testing.assert_array_equal(solve(dataset, c).model.topology.adjacency, s.adjacency)
