"""Graph, targets, embeddings and sticks against torch.distributions, enumeration and Monte Carlo."""

import itertools

import pytest
import torch
from torch.distributions import Bernoulli, Beta, Normal, kl_divergence

from latentdo.model.variational.embeddings import EmbeddingPosterior
from latentdo.model.variational.graph import GraphPosterior, GraphSample
from latentdo.model.variational.sticks import StickPosterior
from latentdo.model.variational.targets import TargetPosterior


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def test_expected_log_prior_is_the_sum_over_all_graphs():
    graph = GraphPosterior(2)
    with torch.no_grad():
        graph.logits.copy_(torch.randn(2, 2))
    xi = torch.tensor([[0.0, -1.3], [0.4, 0.0]])
    p = graph.probabilities()
    exact = torch.zeros(())
    for a, b in itertools.product([0.0, 1.0], repeat=2):
        weight = p[0, 1] ** a * (1 - p[0, 1]) ** (1 - a) * p[1, 0] ** b * (1 - p[1, 0]) ** (1 - b)
        log_prior = Bernoulli(logits=xi[0, 1]).log_prob(torch.tensor(a))
        log_prior = log_prior + Bernoulli(logits=xi[1, 0]).log_prob(torch.tensor(b))
        exact = exact + weight * log_prior
    torch.testing.assert_close(graph.expected_log_prior(xi), exact)


def test_a_scalar_prior_is_a_constant_matrix():
    graph = GraphPosterior(4, initial_logit=0.3)
    torch.testing.assert_close(
        graph.expected_log_prior(-0.7), graph.expected_log_prior(torch.full((4, 4), -0.7))
    )


def test_graph_samples_are_hard_have_the_right_mean_and_carry_gradients():
    graph = GraphPosterior(3)
    with torch.no_grad():
        graph.logits.copy_(torch.randn(3, 3))
    sample = graph.sample(20_000, temperature=0.5)
    assert set(sample.values.detach().unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(sample.values.mean(0), graph.probabilities(), atol=0.02, rtol=0)
    sample.values.sum().backward()
    off = ~torch.eye(3, dtype=torch.bool)
    assert (graph.logits.grad[off] > 0).all()
    assert (graph.logits.grad[~off] == 0).all()


def test_constraints_hold_in_probabilities_and_samples():
    forbidden = torch.zeros(3, 3, dtype=torch.bool)
    forbidden[0, 1] = True
    required = torch.zeros(3, 3, dtype=torch.bool)
    required[1, 2] = True
    graph = GraphPosterior(3, allowed=~forbidden, required=required)
    for values in (graph.probabilities()[None], graph.sample(50).values):
        assert (values[:, 0, 1] == 0).all()
        assert (values[:, 1, 2] == 1).all()
        assert (values.diagonal(dim1=1, dim2=2) == 0).all()
    with pytest.raises(ValueError, match="required and forbidden"):
        GraphPosterior(3, allowed=~required, required=required)


def test_groups_of_rows_share_a_graph():
    sample = GraphSample(torch.arange(3.0)[:, None, None].expand(3, 2, 2))
    assert sample.of_rows(7)[:, 0, 0].tolist() == [0, 0, 0, 1, 1, 1, 2]
    split = sample.split(torch.ones(7, 2))
    assert split.shape == (3, 3, 2)
    assert split.sum() == 14


def test_target_divergence_is_that_of_torch_and_ignores_what_is_known():
    known = torch.full((3, 4), torch.nan)
    known[2, 1] = 1.0
    targets = TargetPosterior(3, 4, known=known)
    with torch.no_grad():
        targets.logits.copy_(torch.randn(3, 4))
    each = kl_divergence(Bernoulli(logits=targets.logits), Bernoulli(logits=torch.tensor(-0.4)))
    expected = each[1:].sum() - each[2, 1]
    torch.testing.assert_close(targets.divergence(-0.4), expected)
    assert targets.probabilities()[0].eq(0).all()
    assert targets.probabilities()[2, 1] == 1
    assert TargetPosterior(2, 2, pin_reference=False).probabilities()[0, 0] == 0.5


def test_relaxed_targets_approach_bernoulli_draws():
    targets = TargetPosterior(2, 1, initial_logit=-1.0)
    draws = torch.stack([targets.sample(0.05)[1, 0] for _ in range(4000)])
    torch.testing.assert_close(draws.mean(), torch.sigmoid(torch.tensor(-1.0)), atol=0.03, rtol=0)


def test_embedding_divergence_and_draws():
    u = EmbeddingPosterior(3, 5, initial_scale=0.3)
    q = Normal(u.mean, u.log_scale.exp())
    torch.testing.assert_close(u.divergence(), kl_divergence(q, Normal(0.0, 1.0)).sum())
    draws = torch.stack([u.sample() for _ in range(4000)])
    torch.testing.assert_close(draws.mean(0), u.mean, atol=0.03, rtol=0)
    torch.testing.assert_close(draws.std(0), u.log_scale.exp(), atol=0.03, rtol=0)


def _random_sticks() -> StickPosterior:
    sticks = StickPosterior(4, concentration=3.0).double()
    with torch.no_grad():
        sticks.location.copy_(torch.randn(3))
        sticks.log_strength.copy_(torch.tensor([3.0, 1.0, 5.0]))
    return sticks


def test_stick_divergence_is_from_posterior_to_prior():
    sticks = _random_sticks()
    q, p = sticks.posterior(), Beta(torch.ones(3).double(), torch.full((3,), 3.0).double())
    v = q.sample((200_000,))
    monte_carlo = (q.log_prob(v) - p.log_prob(v)).mean(0).sum()
    torch.testing.assert_close(sticks.divergence(), monte_carlo, atol=0.06, rtol=0)
    reverse = kl_divergence(p, q).sum()
    assert abs(sticks.divergence() - reverse) > 0.1


def test_expected_log_weights_against_draws_of_whole_sticks():
    sticks = _random_sticks()
    v = sticks.posterior().sample((400_000,))
    v = torch.cat([v, torch.ones(len(v), 1)], dim=1)  # the last stick is taken whole
    rest = torch.cat([torch.ones(len(v), 1), (1 - v[:, :-1]).cumprod(1)], dim=1)
    weights = v * rest
    torch.testing.assert_close(weights.sum(1), torch.ones(len(v), dtype=v.dtype))
    torch.testing.assert_close(sticks.expected_log_weights(), weights.log().mean(0), atol=0.02, rtol=0)


def test_a_single_regime_has_all_the_weight():
    assert StickPosterior(1, 9.0).expected_log_weights().tolist() == [0.0]
    assert StickPosterior(1, 9.0).divergence() == 0


def test_sticks_start_at_equal_weights():
    weights = StickPosterior(5, 9.0).posterior().mean
    torch.testing.assert_close(weights, 1.0 / torch.tensor([5.0, 4.0, 3.0, 2.0]))
