"""What the published algorithm needs where no labels are known: every option that departs from the paper's text."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.data import Dataset
from latentdo.graphs import is_dag
from latentdo.graphs.constraints import Constraints
from latentdo.model.variational.densities import LinearDensity
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.mixture import LatentMixture
from latentdo.model.variational.supervision import Supervision
from latentdo.solvers.gradient import AugmentedLagrangian, GradientConfiguration, solve
from latentdo.solvers.gradient.build import build, training_rows
from latentdo.solvers.gradient.configuration import TEXT_OF_THE_PAPER
from latentdo.solvers.gradient.harden import harden
from latentdo.solvers.gradient.loop import Trainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:solver='paper' needs:UserWarning"),
]

QUICK = GradientConfiguration.paper(
    max_regimes=4,
    embedding_size=4,
    width=8,
    n_blocks=1,
    regime_steps=20,
    free_target_steps=10,
    first_steps=10,
    steps=5,
    max_subproblems=2,
    batch_size=None,
    refresh=10,
)


def small(labels: bool = False) -> Dataset:
    s = simulate(3, 1, n_samples=300, random_state=0)
    return Dataset.from_table(s.X, **({"regimes": s.regimes} if labels else {}))


def trainer(c: GradientConfiguration, dataset: Dataset, seed: int = 0) -> tuple[Trainer, LatentMixture]:
    supervision = Supervision.from_dataset(dataset, c.max_regimes)
    rows = training_rows(dataset.z.copy(), supervision, c, np.random.default_rng(0))
    torch.manual_seed(seed)
    mixture = build(3, supervision, c)
    return Trainer(mixture, rows, c), mixture


def states(c: GradientConfiguration, dataset: Dataset) -> list:
    seen: list = []
    one, _ = trainer(c, dataset)
    one.run(one.initial_state(), after=seen.append)
    return seen


def test_edges_wait_until_regimes_have_formed():
    start = trainer(QUICK, small())[1].graph.logits.detach().clone()
    seen = states(QUICK, small())
    for state in seen:
        moved = not torch.equal(state.model["graph.logits"], start)
        assert moved == (state.step > QUICK.regime_steps)
    assert max(state.step for state in seen if state.subproblem == 0) < 20 + 10  # the last chunk ends it
    assert next(state.step for state in seen if state.subproblem == 1) == 20 + 10


def test_known_labels_need_no_regime_steps():
    seen = states(QUICK, small(labels=True))
    assert next(state.step for state in seen if state.subproblem == 1) == QUICK.first_steps


def test_targets_cost_nothing_at_first():
    dear = replace(QUICK, target_log_odds=-50.0, target_jitter=0.0, regime_steps=20)
    charged = states(replace(dear, free_target_steps=0), small())
    free = states(replace(dear, free_target_steps=20), small())

    def mean_at(seen: list, step: int) -> float:
        return next(float(s.model["targets.logits"][1:].mean()) for s in seen if s.step == step)

    assert mean_at(charged, 20) < -0.2
    assert abs(mean_at(free, 20)) < 0.1
    assert free[-1].model["targets.logits"][1:].mean() < mean_at(free, 20)


def test_regimes_form_under_all_edges_of_a_random_order():
    def first_edges(seed: int, **changes) -> np.ndarray:
        c = replace(QUICK, **{"regime_graph": "ordered", **changes})
        return trainer(c, small(), seed)[0].first_edges.numpy()

    told = Constraints.build(["X0", "X1", "X2"], forbidden=[("X0", "X1")], required=[("X1", "X2")])
    drawn = [first_edges(seed) for seed in range(20)]
    assert all(edges.sum() == 3 and is_dag(edges) for edges in drawn)
    assert len({edges.tobytes() for edges in drawn}) > 3
    for seed in range(20):
        edges = first_edges(seed, constraints=told)
        assert is_dag(edges)
        assert edges[1, 2]
        assert not edges[0, 1]
    assert first_edges(0, regime_graph="empty").sum() == 0


def test_targets_and_mechanisms_start_anew_when_edges_appear():
    built = trainer(QUICK, small())[1].density.own_reference.detach().clone()
    seen = {s.step: s.model for s in states(replace(QUICK, fresh_start=True), small())}
    before, formed, after = (
        (seen[step]["targets.logits"][1:], seen[step]["density.own_reference"]) for step in (10, 20, 30)
    )
    assert (formed[0] == QUICK.target_logit).all()
    assert torch.equal(formed[1], built)
    for then in (before, after):
        assert (then[0] != QUICK.target_logit).any()
        assert not torch.equal(then[1], built)
    labelled = trainer(replace(QUICK, fresh_start=True), small(labels=True))[0].initial_state()
    assert (labelled.model["targets.logits"] == QUICK.target_logit).all()
    kept = {s.step: s.model for s in states(QUICK, small())}
    assert (kept[20]["targets.logits"][1:] != QUICK.target_logit).any()


def test_rows_stay_in_the_regimes_that_have_formed():
    def moved(c: GradientConfiguration, dataset: Dataset, first: int, last: int) -> set[str]:
        seen = {s.step: s.model for s in states(c, dataset)}
        return {name for name, value in seen[first].items() if not torch.equal(value, seen[last][name])}

    held = {"embeddings.mean", "assignments.first.weight", "assignments.trunk.output.weight"}
    assert moved(QUICK, small(), 10, 20) >= held
    c = replace(QUICK, hold_regimes=True)
    assert not moved(c, small(), 20, 35) & held
    assert moved(c, small(), 20, 35) >= {"graph.logits", "targets.logits"}
    assert moved(QUICK, small(), 20, 35) >= held
    assert "embeddings.mean" in moved(c, small(labels=True), 5, 10)


def test_the_start_with_the_best_bound_goes_on(monkeypatch):
    bounds: list[float] = []
    run = Trainer.run

    def spy(self, state, *arguments, until=float("inf"), **more):
        end, interrupted = run(self, state, *arguments, until=until, **more)
        if until == QUICK.regime_steps:
            bounds.append(end.evidence)
            assert end.step == QUICK.regime_steps
        return end, interrupted

    monkeypatch.setattr(Trainer, "run", spy)
    result = solve(small(), replace(QUICK, regime_starts=4))
    assert len(set(bounds)) == 4
    formed = next(entry for entry in result.history if entry["step"] == QUICK.regime_steps)
    assert formed["evidence"] == max(bounds)


def test_a_stopped_choice_of_starts_ends_the_fit():
    def stop(entry) -> None:
        if entry["step"] == 10:
            raise KeyboardInterrupt

    result = solve(small(), replace(QUICK, regime_starts=2), progress=stop)
    assert result.status == "interrupted"


def test_a_killed_fit_resumes_from_the_start_that_was_chosen(tmp_path):
    c = replace(QUICK, regime_starts=2, checkpoint=tmp_path / "run", checkpoint_seconds=0.0)
    whole = solve(small(), replace(c, checkpoint=None))

    def die(entry) -> None:
        if entry["step"] > QUICK.regime_steps + QUICK.first_steps:
            raise MemoryError("killed")

    with pytest.raises(MemoryError):
        solve(small(), c, die)
    steps: list[int] = []
    resumed = solve(small(), c, lambda entry: steps.append(entry["step"]))
    assert min(steps) > QUICK.regime_steps
    assert resumed.evidence == whole.evidence
    np.testing.assert_array_equal(resumed.responsibilities, whole.responsibilities)


def test_a_fixed_embedding_scale_stays():
    def last(c: GradientConfiguration) -> torch.Tensor:
        return states(c, small())[-1].model["embeddings.log_scale"]

    expected = torch.full((4, 4), QUICK.embedding_scale).log()
    torch.testing.assert_close(last(QUICK), expected)
    assert not torch.allclose(last(replace(QUICK, fixed_embedding_scale=False)), expected, atol=0.01)


def test_a_free_reference_owes_nothing_to_embeddings():
    torch.manual_seed(0)
    density = LinearDensity(3, 4, perfect=True, width=8, free_reference=True)
    with torch.no_grad():
        density.own_reference.normal_()
    x, graph = torch.randn(5, 3), GraphSample(torch.triu(torch.ones(1, 3, 3), 1))
    first, second = (density.reference(x, graph, torch.randn(2, 4)) for _ in range(2))
    torch.testing.assert_close(first, second)
    slopes, constant, log_scale = (
        part.detach()[0] for part in density.reference_mechanism(torch.zeros(2, 4))
    )
    mean = x @ (graph.values[0] * slopes) + constant
    expected = torch.distributions.Normal(mean, log_scale.exp()).log_prob(x)
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(density.only(1).reference(x, graph, torch.zeros(2, 4)), expected[:, 1:2])
    drawn = density.draw(x, graph, torch.zeros(2, 4), 1, intervened=False, noise=torch.zeros(5, 3))
    torch.testing.assert_close(drawn, mean)


def test_a_hardened_model_has_the_free_reference():
    mixture = trainer(QUICK, small())[1]
    with torch.no_grad():
        mixture.density.own_reference.copy_(torch.arange(15.0).reshape(3, 5) / 10)
    adjacency = np.triu(np.ones((3, 3), dtype=np.int8), 1)
    model = harden(mixture, adjacency, np.full(4, 0.25))
    np.testing.assert_allclose(model.reference[2].parameters, [1.3, 1.0, 1.1], rtol=1e-6)


def test_random_starts_tell_regimes_apart():
    mixture = trainer(QUICK, small())[1]
    assert mixture.targets.logits.std() > 0.5
    assert (trainer(replace(QUICK, target_jitter=0.0), small())[1].targets.logits == 0.0).all()


def test_held_out_rows_choose_among_priors_and_restarts():
    grid = ((-0.1, -0.1), (0.1, -0.01))
    result = solve(small(), replace(QUICK, prior_grid=grid, n_init=2))
    tried = [(run["edge_log_odds"], run["target_log_odds"]) for run in result.comparison]
    assert tried == [grid[0], grid[0], grid[1], grid[1]]
    chosen = (result.configuration["edge_log_odds"], result.configuration["target_log_odds"])
    held_out = [run["held_out"] for run in result.comparison]
    assert result.evidence_terms["held_out"] in held_out
    assert chosen == tried[held_out.index(result.evidence_terms["held_out"])]


@pytest.mark.parametrize("density", ["linear", "nonlinear", "flow"])
@pytest.mark.parametrize("intervention", ["perfect", "imperfect"])
def test_every_family_trains_without_labels_on_a_named_device(density, intervention):
    c = replace(QUICK, density=density, intervention=intervention, device="cpu:0", flow_units=4)
    result = solve(small(), c)
    assert is_dag(result.model.topology.adjacency)
    assert result.solver == "paper"
    assert np.isfinite(result.evidence)


def test_regimes_that_lie_apart_are_found_without_labels():
    s = simulate(3, 1, n_samples=1500, preset="released", random_state=1000)
    c = GradientConfiguration.paper(
        max_regimes=16,
        embedding_size=16,
        target_log_odds=-0.01,
        regime_steps=200,
        free_target_steps=150,
        first_steps=50,
        steps=10,
        max_subproblems=10,
        batch_size=500,
        lagrangian=AugmentedLagrangian(0.0, 1e-2, 3.0, 0.5),
        tolerance=1e-3,
    )
    result = solve(Dataset.from_table(s.X), c)
    assert metrics.adjusted_rand_index(s.regimes, result.regimes) > 0.5


def test_known_labels_keep_the_schedule_of_the_text(monkeypatch):
    s = simulate(3, 1, n_samples=60, random_state=0)
    seen = []

    def stop(_, configuration, *__):
        seen.append(configuration)
        raise InterruptedError

    monkeypatch.setattr("latentdo.solvers.gradient.solve", stop)
    some = [int(k) if row % 2 else None for row, k in enumerate(s.regimes)]
    for regimes in (s.regimes, some, None):
        with pytest.raises(InterruptedError):
            LatentInterventionDAG("linear", solver="paper", max_regimes=4).fit(s.X, regimes=regimes)
    schedules = [c.regime_steps for c in seen]
    assert schedules == [
        0,
        GradientConfiguration.paper().regime_steps,
        GradientConfiguration.paper().regime_steps,
    ]
    assert seen[0].lagrangian == TEXT_OF_THE_PAPER["lagrangian"]
    assert not seen[0].per_row_target_entropy


def test_every_departure_from_the_text_is_named_and_explained():
    paper = GradientConfiguration.paper()
    letter = GradientConfiguration.paper(**TEXT_OF_THE_PAPER)
    differ = {f.name for f in fields(paper) if getattr(paper, f.name) != getattr(letter, f.name)}
    assert differ == set(TEXT_OF_THE_PAPER)
    page = (Path(__file__).parents[3] / "docs" / "mathematics.md").read_text("utf-8")
    assert not [name for name in TEXT_OF_THE_PAPER if f"`{name}`" not in page]
