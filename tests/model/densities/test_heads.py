"""Heads for columns of every kind: probabilities against enumeration, densities against quadrature, all variants."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import nbinom, poisson
from torch.autograd import gradcheck

from latentdo.model.mechanisms.binary import BinaryMechanism
from latentdo.model.mechanisms.neural import Networks, NeuralMechanism
from latentdo.model.variational.densities import MixedDensity
from latentdo.model.variational.densities.heads import count_log_probability, level_log_probabilities
from latentdo.model.variational.graph import GraphPosterior, GraphSample
from latentdo.model.variational.mixture import Architecture, LatentMixture

RECIPES = ((2.0, 3.0, 0.0), (0.0, 0.0, 0.0), (2.0, 2.0, 0.0), (1.0, 1.2, 0.7), (0.0, 0.0, 0.0))
"""A category of three levels, a measurement, a binary variable, a count, and another measurement."""

D, K, H = len(RECIPES), 3, 4
SMALL = {"width": 6, "n_blocks": 1}
family = pytest.mark.parametrize("name", ["linear", "nonlinear", "flow"])
every = pytest.mark.parametrize("perfect", [True, False])


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        yield


def rows(n=8):
    kinds = (
        torch.randint(3, (n,)),
        torch.randn(n),
        torch.randint(2, (n,)),
        torch.randint(9, (n,)),
        torch.randn(n),
    )
    return torch.stack([one.double() for one in kinds], dim=1)


def make(name, perfect=True):
    density = MixedDensity(name, RECIPES, H, perfect=perfect, **SMALL).double().eval()
    graph = GraphSample(torch.triu(torch.ones(D, D), 1)[None].double())
    return density, rows(), torch.randn(K, H).double(), graph


def values_of(j):
    """All values of a variable, or a grid, and what each stands for."""
    what, first, _ = RECIPES[j]
    if what == 0.0:
        grid = torch.linspace(-60.0, 60.0, 24_001, dtype=torch.float64)
        return grid, torch.full_like(grid, float(grid[1] - grid[0]))
    number = int(first) if what == 2.0 else 20_000
    return torch.arange(number).double(), torch.ones(number).double()


@family
@every
def test_every_conditional_sums_to_one(name, perfect):
    density, x, u, graph = make(name, perfect)
    for j in range(D):
        points, widths = values_of(j)
        whole = x[:1].repeat(len(points), 1)
        whole[:, j] = points
        places = torch.arange(len(points))
        one = density.only(j)
        for value in (
            one.reference(whole, graph, u)[:, 0],
            one.intervened(whole, graph, u, places, torch.full_like(places, 2))[:, 0],
        ):
            assert (value.exp() * widths).sum().item() == pytest.approx(1.0, abs=1e-4)


@family
@every
def test_only_parents_matter(name, perfect):
    density, x, u, _ = make(name, perfect)
    graph = torch.zeros(1, D, D).double()
    graph[0, [0, 3], [2, 4]] = 1.0  # category -> binary, count -> measurement
    value = density.reference(x, GraphSample(graph), u)
    for i, j in ((0, 2), (3, 4), (1, 2), (0, 4), (2, 3)):
        moved = x.clone()
        moved[:, i] = (moved[:, i] + 1.0) % (3.0 if i == 0 else 2.0 if i == 2 else 50.0)
        change = (density.reference(moved, GraphSample(graph), u) - value)[:, j].abs()
        assert bool((change > 1e-9).all()) == bool(graph[0, i, j])
    places = torch.arange(len(x))
    own = density.intervened(x, GraphSample(graph), u, places, torch.ones_like(places))
    moved = x.clone()
    moved[:, 0] = (moved[:, 0] + 1.0) % 3.0
    again = density.intervened(moved, GraphSample(graph), u, places, torch.ones_like(places))
    assert bool((own[:, 2] == again[:, 2]).all()) == perfect


@family
@every
def test_batches_pairs_groups_and_single_variables_agree(name, perfect):
    density, x, u, graph = make(name, perfect)
    weights = torch.rand(K, D).double()
    together = density.intervened_sum(x, graph, u, weights)
    places = torch.arange(len(x))
    for k in range(K):
        one = density.intervened(x, graph, u, places, torch.full_like(places, k))
        torch.testing.assert_close(together[:, k], one @ weights[k])
        for j in range(D):
            alone = density.only(j).intervened(x, graph, u, places, torch.full_like(places, k))
            torch.testing.assert_close(alone[:, 0], one[:, j])
    graphs = GraphPosterior(D).double().sample(3).values.detach()
    several = density.reference(x, GraphSample(graphs), u)
    for row in range(len(x)):
        alone = density.reference(x[row : row + 1], GraphSample(graphs[row // 3][None]), u)
        torch.testing.assert_close(several[row], alone[0])


@family
@every
def test_gradients_agree_with_finite_differences(name, perfect):
    density, x, u, graph = make(name, perfect)
    edges = graph.values.clone().requires_grad_()
    u.requires_grad_()
    places = torch.arange(4)

    def total(edges, u):
        own = density.intervened(x[:4], GraphSample(edges), u, places, torch.ones_like(places))
        return density.reference(x[:4], GraphSample(edges), u).sum() + own.sum()

    assert gradcheck(total, (edges, u), atol=1e-5, rtol=1e-3)


@family
@every
def test_draws_follow_the_probabilities(name, perfect):
    density, x, u, graph = make(name, perfect)
    whole = x[:1].repeat(1500, 1)
    for intervened in (False, True):
        with torch.no_grad():
            noise = torch.randn(1500, D).double()
            drawn = density.draw(whole, graph, u, 1, intervened=intervened, noise=noise)
            for j in (0, 2, 3):
                points = values_of(j)[0][:3]
                at = x[:1].repeat(len(points), 1)
                at[:, j] = points
                places, one = torch.arange(len(points)), density.only(j)
                chances = (
                    one.intervened(at, graph, u, places, torch.ones_like(places))
                    if intervened
                    else one.reference(at, graph, u)
                )[:, 0].exp()
                for value, chance in zip(points, chances, strict=True):
                    share = (drawn[:, j] == value).double().mean().item()
                    assert share == pytest.approx(chance.item(), abs=0.05)


def test_laws_are_those_of_scipy():
    y = torch.arange(0.0, 60.0)
    for mean, size in ((0.3, 0.5), (20.0, 3.0)):
        found = count_log_probability(y, torch.tensor(mean).log(), torch.tensor(size).log())
        np.testing.assert_allclose(found, nbinom.logpmf(y, size, size / (size + mean)), atol=1e-4)
    found = count_log_probability(y, torch.tensor(7.0).log(), torch.tensor(12.0))
    np.testing.assert_allclose(found, poisson.logpmf(y, 7.0), atol=0.02)
    assert (
        count_log_probability(torch.tensor([1e9]), torch.tensor([20.7]), torch.tensor([1.0])).isfinite().all()
    )


def test_two_levels_are_a_logistic_regression():
    eta = torch.linspace(-3.0, 3.0, 7)
    found = level_log_probabilities(eta[None], 2)
    law = BinaryMechanism(np.array([[0.0, 1.0]]))
    for y in (0, 1):
        np.testing.assert_allclose(found[y], law.log_density(eta.numpy()[:, None], np.full(7, y)), atol=1e-6)


def test_parameters_are_counted_by_columns():
    density, *_ = make("linear")
    assert (
        density.n_parameters(0, [1, 3]) == 2 + 2 * 2
    )  # two predictors: constants, and slopes of two columns
    assert density.n_parameters(1, [0]) == 2 + 2
    assert density.n_parameters(3, [0, 1]) == 2 + 3
    edges = torch.triu(torch.rand(D, D).double(), 1)
    by_hand = sum(
        edges[i, j] * (density.n_parameters(j, [i]) - density.n_parameters(j, []))
        for i in range(D)
        for j in range(D)
    )
    torch.testing.assert_close(density.edge_parameters(edges), by_hand)


@family
@every
def test_trained_networks_are_mechanisms_and_survive_packing(name, perfect):
    shape = Architecture(name, perfect, D, K, embedding_size=H, recipes=RECIPES, **SMALL)
    mixture = LatentMixture(shape)
    state = {key: value.numpy() for key, value in mixture.density.state_dict().items()}
    networks = Networks(shape, mixture.embeddings.mean.detach().numpy(), state)
    parents = [np.arange(j) for j in range(D)]
    mechanisms = [NeuralMechanism(networks, j, parents[j]) for j in range(D)]
    mechanisms.append(NeuralMechanism(networks, 3, parents[3], 1, intervened=True))
    assert [one.n_levels for one in mechanisms] == [3, None, 2, 0, None, 0]
    x = rows(40).numpy()
    again = NeuralMechanism.unpack(NeuralMechanism.pack(mechanisms), [*parents, parents[3]])
    for one, other in zip(mechanisms, again, strict=True):
        j = one.variable
        np.testing.assert_array_equal(
            one.log_density(x[:, :j], x[:, j]), other.log_density(x[:, :j], x[:, j])
        )
        assert one.n_parameters == other.n_parameters
    count = mechanisms[3]
    share = np.full(40, 0.6)
    found = count.quantile(x[:, :3], share)
    for row, value in enumerate(found):
        below = np.arange(value + 1.0)
        chances = np.exp(count.log_density(np.tile(x[row, :3], (below.size, 1)), below))
        assert chances[:-1].sum() < 0.6 + 1e-4 <= chances.sum() + 2e-4
    broken = NeuralMechanism.pack(mechanisms)
    broken["recipes"] = broken["recipes"][:2]
    with pytest.raises(ValueError, match="every variable"):
        NeuralMechanism.unpack(broken, [*parents, parents[3]])
