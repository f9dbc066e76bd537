"""The bound against the exact marginal likelihood, and exact against sampled expectations."""

import itertools
import math

import pytest
import torch

from latentdo.model.variational.assignments import (
    UNKNOWN,
    AmortisedAssignments,
    exact_row_bounds,
    responsibilities,
)
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.mixture import Architecture, Draws, LatentMixture, Priors
from latentdo.model.variational.moments import Moments


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        yield


def make(density="linear", perfect=True, n_regimes=3, d=2, **options) -> LatentMixture:
    shape = Architecture(density, perfect, d, n_regimes, embedding_size=4, width=6, n_blocks=1, **options)
    model = LatentMixture(shape).double().eval()
    with torch.no_grad():
        for p in (model.graph.logits, model.targets.logits, model.sticks.location):
            p.copy_(torch.randn_like(p))
    return model


def free(n: int) -> torch.Tensor:
    return torch.full((n,), UNKNOWN)


def test_bound_is_below_the_marginal_and_equal_at_the_exact_posterior():
    """Three binary targets of one regime, two rows: everything can be summed out by hand."""
    model = make(n_regimes=2, d=2)
    x = torch.randn(3, 2).double()
    graph = GraphSample(torch.tensor([[[0.0, 1.0], [0.0, 0.0]]]).double())
    u = model.embeddings.mean.detach()
    gamma, log_weights = -0.3, model.sticks.expected_log_weights().detach()
    prior = Priors(target_log_odds=gamma)

    def joint(targets):
        """log p(rows, targets), the rows' regimes summed out, for fixed stick weights."""
        density = model.regime_log_density(x, graph, u, targets) + log_weights
        log_prior = (targets[1] * gamma - math.log1p(math.exp(gamma))).sum()
        return torch.logsumexp(density, 1).sum() + log_prior

    choices = [torch.tensor([[0.0, 0], [a, b]]).double() for a, b in itertools.product([0, 1], repeat=2)]
    joints = torch.stack([joint(t) for t in choices])
    marginal = torch.logsumexp(joints, 0).item()

    def bound():
        e = model.exact_evidence(x, free(3), prior, 3, graph=graph, u=u)
        return (e.log_likelihood - e.assignment_divergence - e.target_divergence).item()

    for _ in range(20):
        with torch.no_grad():
            model.targets.logits.copy_(3 * torch.randn(2, 2))
        assert bound() <= marginal + 1e-9
    # with certain regimes the posterior of the targets factorises over variables, and the bound is reached
    labels = torch.tensor([1, 1, 1])
    densities = [model.regime_log_density(x, graph, u, t)[:, 1] + log_weights[1] for t in choices]
    priors = [(t[1] * gamma - math.log1p(math.exp(gamma))).sum() for t in choices]
    joints = torch.stack([v.sum() + p for v, p in zip(densities, priors, strict=True)])
    posterior = torch.softmax(joints, 0)
    pi = sum(p * t[1] for p, t in zip(posterior, choices, strict=True))
    with torch.no_grad():
        model.targets.logits[1] = torch.logit(pi)
    e = model.exact_evidence(x, labels, prior, 3, graph=graph, u=u)
    reached = e.log_likelihood - e.assignment_divergence - e.target_divergence
    assert reached.item() == pytest.approx(torch.logsumexp(joints, 0).item(), abs=1e-9)


def test_exact_assignments_beat_every_other_and_labels_replace_them():
    joint = torch.randn(5, 3).double()
    best = exact_row_bounds(joint, free(5))
    for _ in range(50):
        q = torch.softmax(torch.randn(5, 3).double(), 1)
        assert ((q * (joint - q.log())).sum(1) <= best + 1e-12).all()
    q = responsibilities(joint, free(5))
    torch.testing.assert_close((q * (joint - q.log())).sum(1), best)
    labels = torch.tensor([2, UNKNOWN, 0, UNKNOWN, 1])
    torch.testing.assert_close(exact_row_bounds(joint, labels)[0], joint[0, 2])
    assert responsibilities(joint, labels)[2].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("density", ["linear", "nonlinear", "flow"])
@pytest.mark.parametrize("perfect", [True, False])
def test_candidates_only_lower_the_bound(density, perfect):
    model = make(density, perfect)
    x = torch.randn(6, 2).double()
    graph = GraphSample(torch.tensor([[[0.0, 1.0], [0.0, 0.0]]]).double())
    u = model.embeddings.mean.detach()
    everything = torch.ones(6, 3, dtype=torch.bool)
    pi = model.targets.probabilities()
    full = model.regime_log_density(x, graph, u, pi)
    torch.testing.assert_close(model.regime_log_density(x, graph, u, pi, everything), full)
    some = everything.clone()
    some[:, 2] = False
    part = model.exact_evidence(x, free(6), Priors(), 6, graph=graph, u=u, candidates=some)
    assert part.total < model.exact_evidence(x, free(6), Priors(), 6, graph=graph, u=u).total
    assert part.total.isfinite()


@pytest.mark.parametrize("perfect", [True, False])
def test_moments_touch_the_exact_bound_at_the_best_responsibilities(perfect):
    model = make(perfect=perfect)
    with torch.no_grad():
        model.embeddings.log_scale.fill_(-40.0)
    x = torch.randn(30, 2).double()
    q = responsibilities(model.log_joint(x), free(30)).detach()
    exact = model.exact_evidence(x, free(30), Priors(), 30)
    moments = model.moment_evidence(Moments.of(x, q), Priors())
    torch.testing.assert_close(moments.total, exact.total)
    torch.testing.assert_close(moments.log_likelihood, exact.log_likelihood)
    worse = model.moment_evidence(Moments.of(x, torch.full_like(q, 1 / 3)), Priors())
    assert worse.total < exact.total


def test_sampled_expectations_agree_with_exact_ones():
    """With q(z) at its optimum and cold relaxations, the paper's estimator averages to the exact bound."""
    model = make(amortised=True)
    with torch.no_grad():
        model.embeddings.log_scale.fill_(-40.0)
    x = torch.randn(8, 2).double()
    labels = torch.randint(0, 3, (8,))
    exact = model.exact_evidence(x, labels, Priors(), 8)
    # many copies of the rows at a time, each with a graph of its own
    batch, known = x.repeat(25, 1), labels.repeat(25)
    draws = torch.stack(
        [model.sampled_evidence(batch, known, Priors(), 8, draws=Draws(200, 0.02)).total for _ in range(120)]
    ).detach()
    assert abs(draws.mean() - exact.total) < 4 * draws.std() / math.sqrt(len(draws)) + 0.02 * abs(exact.total)


def test_every_term_is_named_and_a_batch_is_scaled_up():
    model = make()
    x = torch.randn(10, 2).double()
    u = model.embeddings.mean.detach()
    priors = Priors(-0.1, -0.2, parameter_cost=2.0)
    one = model.exact_evidence(x, free(10), priors, 10, u=u).to_floats()
    twice = model.exact_evidence(x, free(10), priors, 20, u=u).to_floats()
    assert twice["log_likelihood"] == pytest.approx(2 * one["log_likelihood"])
    for name in ("graph_log_prior", "target_divergence", "embedding_divergence", "stick_divergence"):
        assert twice[name] == pytest.approx(one[name])
    assert one["total"] == pytest.approx(
        one["log_likelihood"]
        - one["assignment_divergence"]
        + one["graph_log_prior"]
        - one["target_divergence"]
        - one["embedding_divergence"]
        - one["stick_divergence"]
        - one["parameter_cost"]
    )


def test_the_paper_weighs_global_terms_once_a_row():
    model = make()
    x = torch.randn(10, 2).double()
    u = model.embeddings.mean.detach()
    once = model.exact_evidence(x, free(10), Priors(-0.1, -0.2), 10, u=u)
    rows = model.exact_evidence(x, free(10), Priors(-0.1, -0.2, per_row=True), 10, u=u)
    literal = Priors(-0.1, -0.2, per_row=True, per_row_target_entropy=True)
    as_written = model.exact_evidence(x, free(10), literal, 10, u=u)
    torch.testing.assert_close(as_written.target_divergence, 10 * once.target_divergence)
    charged, entropy = model.targets.cross_entropy(-0.2), model.targets.entropy()
    torch.testing.assert_close(rows.target_divergence, 10 * charged - entropy)
    torch.testing.assert_close(rows.graph_log_prior, 10 * once.graph_log_prior)
    torch.testing.assert_close(rows.embedding_divergence, once.embedding_divergence)
    torch.testing.assert_close(rows.log_likelihood, once.log_likelihood)


def test_amortised_assignments_normalise_and_relax():
    net = AmortisedAssignments(3, 4, 6, 1)
    log_q = net.log_probabilities(torch.randn(7, 3), torch.randn(5, 4))
    torch.testing.assert_close(log_q.exp().sum(1), torch.ones(7))
    z = torch.stack([net.relax(log_q, 0.05) for _ in range(3000)])
    torch.testing.assert_close(z.sum(2), torch.ones(3000, 7))
    torch.testing.assert_close(z.mean(0), log_q.exp(), atol=0.05, rtol=0)
