"""One contract for every family: shape, normalisation, masking, gradients, saving; then what is special to each."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from latentdo.model.variational.densities import FAMILIES, ClosedFormLinearDensity, FlowDensity, LinearDensity
from latentdo.model.variational.densities.flow import sigmoidal_layer
from latentdo.model.variational.graph import GraphPosterior, GraphSample
from latentdo.model.variational.moments import Moments

D, K, H = 3, 4, 5


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        yield


def make(name: str, perfect: bool = True):
    density = FAMILIES[name](D, H, perfect=perfect, width=8, n_blocks=2).double().eval()
    x, u = torch.randn(6, D).double(), torch.randn(K, H).double()
    graph = GraphSample(torch.tensor([[[0.0, 1, 1], [0, 0, 1], [0, 0, 0]]]).double())
    return density, x, u, graph


every = pytest.mark.parametrize("perfect", [True, False])
family = pytest.mark.parametrize("name", list(FAMILIES))


@family
@every
def test_every_conditional_density_integrates_to_one(name, perfect):
    density, _, u, graph = make(name, perfect)
    points = torch.linspace(-60, 60, 24_001).double()
    for j in range(D):
        x = torch.randn(1, D).double().repeat(len(points), 1)
        x[:, j] = points
        rows = torch.arange(len(points))
        for value in (
            density.reference(x, graph, u)[:, j],
            density.intervened(x, graph, u, rows, torch.full_like(rows, 2))[:, j],
        ):
            assert torch.trapezoid(value.exp(), points).item() == pytest.approx(1.0, abs=1e-4)


@family
@every
def test_masked_inputs_have_zero_gradient_and_parents_do_not(name, perfect):
    density, x, u, graph = make(name, perfect)
    x.requires_grad_()
    value = density.reference(x, graph, u)
    for j in range(D):
        (gradient,) = torch.autograd.grad(value[:, j].sum(), x, retain_graph=True)
        for i in range(D):
            seen = i == j or graph.values[0, i, j] == 1
            assert bool((gradient[:, i] != 0).all()) == bool(seen)
    rows = torch.arange(len(x))
    own = density.intervened(x, graph, u, rows, torch.full_like(rows, 1))
    (gradient,) = torch.autograd.grad(own[:, 2].sum(), x)
    assert bool((gradient[:, 0] != 0).any()) != perfect  # 0 -> 2 is an edge


@family
@every
def test_all_regimes_at_once_equal_pairs_one_by_one(name, perfect):
    density, x, u, graph = make(name, perfect)
    weights = torch.rand(K, D).double()
    together = density.intervened_sum(x, graph, u, weights)
    for k in range(K):
        rows = torch.arange(len(x))
        one = density.intervened(x, graph, u, rows, torch.full_like(rows, k))
        torch.testing.assert_close(together[:, k], one @ weights[k])


@family
@every
def test_one_variable_alone_equals_the_batch(name, perfect):
    density, x, u, graph = make(name, perfect)
    rows = torch.arange(len(x))
    regimes = torch.full_like(rows, 3)
    for j in range(D):
        one = density.only(j)
        torch.testing.assert_close(one.reference(x, graph, u)[:, 0], density.reference(x, graph, u)[:, j])
        torch.testing.assert_close(
            one.intervened(x, graph, u, rows, regimes)[:, 0],
            density.intervened(x, graph, u, rows, regimes)[:, j],
        )


@family
@every
def test_gradients_agree_with_finite_differences(name, perfect):
    density, x, u, graph = make(name, perfect)
    values = graph.values.clone().requires_grad_()
    u.requires_grad_()
    rows = torch.arange(len(x))

    def total(values, u):
        sample = GraphSample(values)
        own = density.intervened(x, sample, u, rows, torch.full_like(rows, 1))
        return density.reference(x, sample, u).sum() + own.sum()

    assert gradcheck(total, (values, u), atol=1e-5, rtol=1e-3)


@family
@every
def test_draws_follow_the_density(name, perfect):
    density, _, u, graph = make(name, perfect)
    x = torch.randn(1, D).double().repeat(2000, 1)
    for intervened in (False, True):
        with torch.no_grad():
            drawn = density.draw(x, graph, u, 1, intervened=intervened, noise=torch.randn(2000, D).double())
            j = 2
            points = torch.linspace(float(drawn[:, j].min()), float(drawn[:, j].max()), 4001).double()
            at = x[:1].repeat(len(points), 1)
            at[:, j] = points
            rows = torch.arange(len(points))
            value = (
                density.intervened(at, graph, u, rows, torch.full_like(rows, 1))
                if intervened
                else density.reference(at, graph, u)
            )[:, j]
        mean = torch.trapezoid(points * value.exp(), points)
        spread = torch.trapezoid((points - mean) ** 2 * value.exp(), points).sqrt()
        assert abs(drawn[:, j].mean() - mean) < 0.1 * spread
        assert drawn[:, j].std().item() == pytest.approx(spread.item(), rel=0.1)


def test_rows_in_groups_see_their_own_graph():
    for name in FAMILIES:
        density, x, u, _ = make(name, perfect=False)
        graphs = GraphPosterior(D).double().sample(3).values.detach()
        together = density.reference(x, GraphSample(graphs), u)
        for row in range(len(x)):
            alone = density.reference(x[row : row + 1], GraphSample(graphs[row // 2][None]), u)
            torch.testing.assert_close(together[row], alone[0])


@every
def test_linear_expectation_over_edges_is_exact(perfect):
    density, x, u, _ = make("linear", perfect)
    p = torch.rand(D, D).double() * (1 - torch.eye(D).double())
    exact = density.reference(x, GraphSample(p[None], expected=True), u)
    draws = (torch.rand(2000, D, D).double() < p).double()
    sampled = torch.stack([density.reference(x, GraphSample(a[None]), u) for a in draws]).mean(0)
    torch.testing.assert_close(exact, sampled, rtol=0.05, atol=0.1)


@every
def test_linear_moments_equal_rows(perfect):
    density, x, u, _ = make("linear", perfect)
    assert isinstance(density, LinearDensity)
    q = torch.softmax(torch.randn(len(x), K), 1).double()
    targets = torch.rand(K, D).double()
    targets[0] = 0
    graph = GraphSample((torch.rand(1, D, D).double()) * (1 - torch.eye(D).double()), expected=True)
    reference = density.reference(x, graph, u)
    rows = (q * (reference.sum(1, keepdim=True) - reference @ targets.T)).sum()
    rows = rows + (q * density.intervened_sum(x, graph, u, targets)).sum()
    torch.testing.assert_close(density.log_likelihood(Moments.of(x, q), graph, u, targets), rows)


def test_flow_inverts_and_its_determinant_is_the_derivative():
    density, x, u, graph = make("flow")
    assert isinstance(density, FlowDensity)
    out = density.reference_outputs(x, graph, u).detach()
    points = (3 * torch.randn(D, len(x))).double().requires_grad_()
    y, log_derivative = density.transform(points, out)
    (slope,) = torch.autograd.grad(y.sum(), points)
    torch.testing.assert_close(slope.log(), log_derivative)
    torch.testing.assert_close(density.inverse(y.detach(), out), points.detach(), atol=1e-8, rtol=0)


def test_flow_layer_stays_finite_far_out_in_float32():
    points = torch.tensor([-1e4, -50.0, 0.0, 50.0, 1e4])
    y, log_derivative = (v[0] for v in sigmoidal_layer(points[None], torch.randn(1, 36, 1).expand(1, 36, 5)))
    assert y.isfinite().all()
    assert log_derivative.isfinite().all()
    assert (y.diff() > 0).all()


def test_narrow_interventions_survive_float32():
    density = LinearDensity(1, 1, perfect=True, width=2, n_blocks=1)
    with torch.no_grad():
        density.trunk.output.weight.zero_()
        density.trunk.output.bias[0, 0] = torch.tensor([0.0, 1.5, -9.0])
    x = torch.full((4, 1), 1.5)
    value = density.intervened_sum(x, GraphSample(torch.zeros(1, 1, 1)), torch.zeros(2, 1), torch.ones(2, 1))
    assert value.detach().numpy() == pytest.approx(np.full((4, 2), 9.0 - 0.9189385), abs=1e-2)


@every
def test_closed_form_mechanisms_maximise_the_expected_likelihood(perfect):
    """No small change of any coefficient, intercept or scale raises the likelihood under relaxed edges."""
    density = ClosedFormLinearDensity(D, K, perfect=perfect).double()
    x = torch.randn(200, D).double() @ torch.randn(D, D).double()
    q = torch.softmax(torch.randn(200, K), 1).double()
    targets = torch.rand(K, D).double()
    targets[0] = 0
    graph = GraphSample(torch.rand(1, D, D).double() * (1 - torch.eye(D).double()), expected=True)
    moments, u = Moments.of(x, q), torch.zeros(K, 1).double()
    density.refit(moments, graph, targets)
    best = density.log_likelihood(moments, graph, u, targets).item()
    for name in ("coefficients", "intercept", "log_scale"):
        buffer = getattr(density, name)
        for _ in range(10):
            saved = buffer.clone()
            buffer += 0.02 * torch.randn_like(buffer)
            assert density.log_likelihood(moments, graph, u, targets).item() < best + 1e-6
            buffer.copy_(saved)
