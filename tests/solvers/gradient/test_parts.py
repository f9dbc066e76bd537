"""Acyclicity measures, the augmented Lagrangian, the cut to a DAG, configuration and clustering."""

import math

import numpy as np
import pytest
import torch

from latentdo.data import Dataset
from latentdo.graphs import all_dags, is_dag
from latentdo.solvers.gradient import AugmentedLagrangian, GradientConfiguration
from latentdo.solvers.gradient.acyclicity import MEASURES, trace_exponential
from latentdo.solvers.gradient.configuration import TEXT_OF_THE_PAPER
from latentdo.solvers.gradient.dag import nearest_dag
from latentdo.solvers.gradient.starts import cluster_rows, search_structure


@pytest.mark.parametrize("name", list(MEASURES))
def test_zero_on_every_dag_positive_on_cycles(name):
    measure = MEASURES[name]
    for adjacency in all_dags(3):
        assert measure(torch.tensor(adjacency).double()).item() == pytest.approx(0.0, abs=1e-9)
    two = torch.tensor([[0.0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]).double()
    three = torch.tensor([[0.0, 0.5, 0], [0, 0, 0.5], [0.5, 0, 0]]).double()
    assert measure(two) > 1e-3
    assert measure(three) > 1e-3
    assert measure(two) > measure(0.5 * two)


@pytest.mark.parametrize("name", ["trace-exponential", "log-determinant"])
def test_gradients_of_measures(name):
    weights = torch.rand(4, 4).double().mul(0.2).requires_grad_()
    assert torch.autograd.gradcheck(MEASURES[name], (weights,))


def test_spectral_gradient_at_convergence():
    torch.manual_seed(0)
    weights = torch.rand(4, 4).double().requires_grad_()
    value = MEASURES["spectral"](weights)
    radius = torch.linalg.eigvals(weights.detach()).abs().max()
    assert value.item() == pytest.approx(radius.item(), rel=1e-6)
    (gradient,) = torch.autograd.grad(value, weights)
    step = 1e-5 * torch.rand(4, 4).double()
    moved = torch.linalg.eigvals(weights.detach() + step).abs().max()
    assert (gradient * step).sum().item() == pytest.approx((moved - radius).item(), rel=1e-3)


def test_lagrangian_follows_the_paper_and_is_a_new_one_each_time():
    first = AugmentedLagrangian(0.0, 1e-8, 2.0, 0.9)
    second = first.update(4.0)
    assert (first.multiplier, first.penalty) == (0.0, 1e-8)
    assert second.multiplier == pytest.approx(4e-8)
    assert second.penalty == 1e-8  # the first violation has nothing to be compared with
    assert second.update(3.9).penalty == 2e-8  # too little progress
    assert second.update(2.0).penalty == 1e-8
    h = torch.tensor(3.0)
    assert AugmentedLagrangian(2.0, 4.0).cost(h).item() == pytest.approx(2 * 3 + 0.5 * 4 * 9)


def test_lagrangian_solves_a_constrained_problem():
    """Minimise (x - 3)^2 subject to x = 1."""
    x = torch.tensor(0.0, requires_grad=True)
    lagrangian = AugmentedLagrangian(0.0, 1.0, 2.0, 0.5)
    for _ in range(30):
        optimiser = torch.optim.LBFGS([x], max_iter=20)

        def closure(optimiser=optimiser, lagrangian=lagrangian):
            optimiser.zero_grad()
            loss = (x - 3) ** 2 + lagrangian.cost(x - 1)
            loss.backward()
            return loss

        optimiser.step(closure)
        lagrangian = lagrangian.update(x.item() - 1)
    assert x.item() == pytest.approx(1.0, abs=1e-4)
    assert lagrangian.multiplier == pytest.approx(4.0, abs=1e-2)


def test_nearest_dag_drops_the_least_probable_edge_of_a_cycle():
    p = torch.zeros(3, 3)
    p[0, 1], p[1, 2], p[2, 0] = 0.9, 0.6, 0.8
    assert nearest_dag(p).tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    required = torch.zeros(3, 3, dtype=torch.bool)
    required[1, 2] = True
    assert nearest_dag(p, required).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert is_dag(nearest_dag(torch.tensor(rng.random((6, 6)))).numpy())


def test_configuration_refuses_by_name_and_knows_the_paper():
    with pytest.raises(ValueError, match="density='cubic'"):
        GradientConfiguration(density="cubic")
    with pytest.raises(ValueError, match="learning_rate"):
        GradientConfiguration(learning_rate=0.0)
    paper = GradientConfiguration.paper(density="flow", **TEXT_OF_THE_PAPER)
    assert (paper.max_regimes, paper.embedding_size, paper.width, paper.n_blocks) == (12, 264, 32, 2)
    assert (paper.flow_layers, paper.flow_units, paper.concentration) == (2, 12, 9.0)
    assert (paper.first_steps, paper.steps, paper.weight_decay) == (500, 50, 1e-6)
    assert paper.learning_rate == pytest.approx(10**-2.5)
    assert paper.lagrangian == AugmentedLagrangian(0.0, 1e-8, 2.0, 0.9)
    assert paper.edge_log_odds in (-0.1, -0.01, 0.0, 0.01, 0.1)
    assert paper.target_log_odds in (-0.1, -0.01)
    assert (paper.train_fraction, paper.per_row_priors, paper.tolerance) == (0.8, True, 1e-8)


def test_temperature_falls_geometrically_over_the_first_subproblem():
    c = GradientConfiguration(temperature=1.0, final_temperature=0.25, first_steps=100)
    assert c.temperature_at(0) == 1.0
    assert c.temperature_at(50) == pytest.approx(0.5)
    assert c.temperature_at(1000) == pytest.approx(0.25)


def test_clusters_find_separated_regimes_and_the_reference():
    rng = np.random.default_rng(0)
    shifts = np.zeros((4, 3))
    shifts[[1, 2, 3], [0, 1, 2]] = 8.0
    truth = rng.integers(0, 4, 800)
    z = shifts[truth] + rng.normal(size=(800, 3))
    found = cluster_rows(z, np.full(800, -1), 4, rng)
    assert np.mean(found[truth == 0] == 0) > 0.95
    labels = np.where(rng.random(800) < 0.1, truth, -1)
    found = cluster_rows(z, labels, 4, rng)
    assert np.mean(found == truth) > 0.95
    assert math.isclose(np.mean(found[labels >= 0] == truth[labels >= 0]), 1.0)


def test_trace_exponential_is_the_papers():
    weights = torch.rand(5, 5).double()
    assert trace_exponential(weights).item() == pytest.approx(
        torch.linalg.matrix_exp(weights).trace().item() - 5
    )


def test_networks_start_from_a_search_that_sees_curves():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 600)
    x = rng.normal(size=1200)
    y = np.where(labels == 0, np.abs(x), 3.0 + rng.normal(size=1200)) + 0.1 * rng.normal(size=1200)
    dataset = Dataset.from_table(np.stack([x, y], axis=1), regimes=labels)
    found = search_structure(dataset, GradientConfiguration(density="nonlinear"))
    assert found.adjacency.to_numpy().tolist() == [[0, 1], [0, 0]]
    assert found.model.topology.targets.tolist() == [[0, 0], [0, 1]]
