"""What failed checks leave of a posterior."""

from dataclasses import replace

import numpy as np
import pytest

from latentdo.checks import DOUBTS, Check, doubted
from latentdo.graphs.constraints import Constraints
from latentdo.solvers.settings import CAPPED, RIVAL_WEIGHT, SURE


@pytest.fixture
def result(make_result):
    """A chain a -> b -> c beside d, all of it sure."""
    found = make_result(n_variables=4, n_samples=60).result.with_names(("a", "b", "c", "d"))
    adjacency = np.zeros((4, 4), dtype=np.int8)
    adjacency[0, 1] = adjacency[1, 2] = 1
    ancestors = adjacency.astype(float)
    ancestors[0, 2] = 1.0
    topology = replace(found.model.topology, adjacency=adjacency)
    return replace(
        found,
        model=replace(found.model, topology=topology),
        edge_probabilities=0.98 * adjacency + 0.01 * adjacency.T,
        ancestor_probabilities=ancestors,
    )


def _failed(name, pairs=None):
    return Check(name, 1.0, 0.0, True, "Words.", pairs)


@pytest.mark.parametrize("name", [name for name in DOUBTS if name != "near copies"])
def test_no_statement_about_a_pair_in_doubt_is_sure(result, name):
    edges, ancestors = doubted(result, [_failed(name)])
    some = replace(result, edge_probabilities=edges, ancestor_probabilities=ancestors)
    for table in (some.edge_table(), some.adjacency_probability_table(), some.direction_probability_table()):
        assert table.loc["a", "b"] < 0.9
    assert edges[0, 1] == pytest.approx(CAPPED)
    assert ancestors.max() <= CAPPED + 1e-9
    # Connected, directed, absent: what was likeliest stays so, and the rest is a distribution.
    assert edges[0, 1] > max(edges[1, 0], 1.0 - edges[0, 1] - edges[1, 0])
    assert edges[3].max() == 0.0


def test_other_pairs_and_checks_that_only_warn_leave_probabilities_alone(result):
    edges, ancestors = doubted(result, [_failed("hidden causes", (("b", "a"),)), _failed("shared values")])
    assert edges[0, 1] == pytest.approx(CAPPED)
    assert edges[1, 2] == result.edge_probabilities[1, 2]
    assert ancestors[0, 2] == pytest.approx(CAPPED)  # by way of the arrow in doubt
    assert ancestors[1, 2] == 1.0
    passed = Check("skew", 0.0, None, False, "Words.")
    for checks in ([], [passed], [_failed("shared values"), _failed("local Markov")]):
        assert np.array_equal(doubted(result, checks)[0], result.edge_probabilities)


def test_copies_are_connected_and_nobody_knows_which_comes_first(result):
    edges, _ = doubted(result, [_failed("near copies", (("a", "b"),))])
    assert edges[0, 1] == edges[1, 0] == pytest.approx(0.99 / 2)


def test_what_a_user_knows_is_not_in_doubt(result):
    known = Constraints.build(result.columns, required=[("a", "b")], tiers=[["b"], ["c"]])
    edges, _ = doubted(result, [_failed("dependent rows")], known)
    assert edges[0, 1] == result.edge_probabilities[0, 1]
    assert edges[1, 2] / (edges[1, 2] + edges[2, 1]) == pytest.approx(0.98 / 0.99)
    assert edges[1, 2] < 0.9


@pytest.mark.parametrize("weight", [0.0, 0.1, RIVAL_WEIGHT, 0.5, 1.0])
def test_probabilities_are_means_over_explanations_as_probable_as_these_are(result, weight):
    refuted = doubted(result, [_failed("hidden factor")])
    weighed = replace(_failed("hidden factor"), failed=weight > RIVAL_WEIGHT, weight=weight)
    for found, alone, none in zip(doubted(result, [weighed]), refuted, doubted(result, []), strict=True):
        assert found == pytest.approx(weight * alone + (1.0 - weight) * none)
    certain = replace(result, edge_probabilities=np.round(result.edge_probabilities))
    assert (doubted(certain, [weighed])[0][0, 1] > SURE - 1e-9) == (weight <= RIVAL_WEIGHT)


def test_two_explanations_share_what_the_fit_loses(result):
    both = [replace(_failed(name), weight=0.5) for name in ("hidden factor", "measurement error")]
    assert doubted(result, both)[0] == pytest.approx(doubted(result, [_failed("hidden factor")])[0])
    assert doubted(result, [_failed("skew"), *both])[0].max() <= CAPPED + 1e-9
