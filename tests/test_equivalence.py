"""Essential graphs against brute force: classes of all small DAGs, by definitions that share no code."""

from collections import defaultdict
from itertools import chain, combinations, product

import numpy as np
import pandas as pd
import pytest

from latentdo import graphs
from latentdo.graphs import equivalence


def skeleton_and_colliders(adjacency):
    """The Verma-Pearl invariants of a DAG, straight from the definition."""
    d = len(adjacency)
    skeleton = frozenset((i, j) for i, j in combinations(range(d), 2) if adjacency[i, j] or adjacency[j, i])
    colliders = frozenset(
        (i, k, j)
        for i, j in combinations(range(d), 2)
        for k in range(d)
        if adjacency[i, k] and adjacency[j, k] and (i, j) not in skeleton
    )
    return skeleton, colliders


def augmented(adjacency, changed):
    """Add one node a set of changed mechanisms, pointing at them."""
    d = len(adjacency)
    whole = np.zeros((d + len(changed), d + len(changed)), dtype=int)
    whole[:d, :d] = adjacency
    for node, members in enumerate(changed):
        whole[d + node, list(members)] = 1
    return whole


def invariants(adjacency, family, intervention):
    """Everything data from the regimes of a family can tell about a DAG."""
    if (
        intervention == "perfect"
    ):  # Hauser and Bühlmann: the graph in which incoming edges of the targets are cut
        cut = [adjacency * ~np.isin(np.arange(len(adjacency)), list(targets)) for targets in family]
        return tuple(skeleton_and_colliders(graph) for graph in cut)
    # Yang, Katcoff and Uhler: each regime in turn serves as the reference for all others.
    return tuple(
        skeleton_and_colliders(
            augmented(
                adjacency, [set(other) | set(reference) for k, other in enumerate(family) if k != place]
            )
        )
        for place, reference in enumerate(family)
    )


def check_family(d, family, intervention):
    """Essential graph == union of the class, for every DAG; equal if and only if in the same class."""
    dags = list(graphs.all_dags(d))
    classes = defaultdict(list)
    for graph in dags:
        classes[invariants(graph, family, intervention)].append(graph)
    targets = np.array([[j in members for j in range(d)] for members in family], dtype=int).reshape(-1, d)
    for members in classes.values():
        union = np.maximum.reduce(members)
        for graph in members:
            found = equivalence.essential_graph(graph, targets, intervention=intervention)
            assert np.array_equal(found, union), (graph, family, found, union)


def subsets(d):
    return list(chain.from_iterable(combinations(range(d), size) for size in range(d + 1)))


@pytest.mark.parametrize("intervention", ["imperfect", "perfect"])
def test_three_variables_every_family_of_at_most_three_regimes(intervention):
    for number in (1, 2, 3):
        for family in combinations(subsets(3), number):
            conservative = not set.intersection(*(set(members) for members in family))
            if intervention == "imperfect" or conservative:
                check_family(3, family, intervention)


@pytest.mark.parametrize(
    "family",
    [
        [()],
        [(), (0,)],
        [(), (0, 1)],
        [(), (1,), (2,)],
        [(), (0, 2), (2, 3)],
        [(0,), (1,)],
        [(0,), (1, 2), (3,)],
    ],
)
@pytest.mark.parametrize("intervention", ["imperfect", "perfect"])
def test_four_variables(family, intervention):
    check_family(4, family, intervention)


@pytest.mark.parametrize("family", [[(0,)], [(0,), (0,)], [(0,), (0, 1)], [(0, 1), (0, 2), (0,)]])
def test_four_variables_families_that_never_spare_the_first(family):
    check_family(4, family, "imperfect")


def test_five_variables_observational():
    rng = np.random.default_rng(0)
    classes = defaultdict(lambda: np.zeros((5, 5), dtype=np.int64))
    dags = list(graphs.all_dags(5))
    chosen = set(rng.choice(len(dags), 60, replace=False).tolist())
    keys = {place: skeleton_and_colliders(dags[place]) for place in chosen}
    wanted = set(keys.values())
    skeletons = {tuple((a | a.T).ravel()) for a in (dags[place] for place in chosen)}
    for graph in dags:
        if tuple((graph | graph.T).ravel()) in skeletons and (key := skeleton_and_colliders(graph)) in wanted:
            classes[key] |= graph
    for place in chosen:
        assert np.array_equal(equivalence.essential_graph(dags[place]), classes[keys[place]])


def test_meek_closure_with_background_knowledge():
    """All four rules, the fourth included, against the DAGs of the class that agree with known directions."""
    dags = list(graphs.all_dags(4))
    classes = defaultdict(list)
    for graph in dags:
        classes[skeleton_and_colliders(graph)].append(graph)
    checked = 0
    for members in classes.values():
        cpdag = np.maximum.reduce(members)
        open_pairs = [(i, j) for i, j in combinations(range(4), 2) if cpdag[i, j] and cpdag[j, i]]
        for graph in members[::3]:
            for known in product((False, True), repeat=len(open_pairs)):
                partial = cpdag.copy()
                for (i, j), is_known in zip(open_pairs, known, strict=True):
                    if is_known:
                        partial[i, j], partial[j, i] = graph[i, j], graph[j, i]
                agreeing = [other for other in members if (other <= partial).all()]
                assert np.array_equal(equivalence.meek_closure(partial), np.maximum.reduce(agreeing))
                checked += 1
    assert checked > 500


def test_meek_closure_refuses_contradictions():
    with pytest.raises(ValueError, match="contradict"):  # 0 -> 1 - 2 <- 3 with 0, 2 and 1, 3 apart
        equivalence.meek_closure([[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]])


def test_order_of_variables_does_not_matter():
    rng = np.random.default_rng(5)
    for _ in range(20):
        graph = graphs.random_dag(8, edges_per_node=1.5, rng=rng)
        targets = np.vstack([np.zeros(8, dtype=int), rng.integers(0, 2, (1, 8))])
        p = rng.permutation(8)
        plain = equivalence.essential_graph(graph, targets)
        assert np.array_equal(
            equivalence.essential_graph(graph[np.ix_(p, p)], targets[:, p]), plain[np.ix_(p, p)]
        )


def test_frames_are_aligned_by_name():
    names = list("abc")
    graph = pd.DataFrame([[0, 1, 0], [0, 0, 1], [0, 0, 0]], index=names, columns=names)
    targets = pd.DataFrame([[0, 0, 0], [0, 0, 1]], columns=["b", "a", "c"])
    expected = equivalence.essential_graph(graph.to_numpy(), targets[names].to_numpy())
    assert np.array_equal(equivalence.essential_graph(graph.loc[list("cab")], targets), expected)
    shuffled = graph.loc[list("cab"), list("cba")]
    assert equivalence.interventionally_equivalent(graph, shuffled, targets)
    assert not equivalence.interventionally_equivalent(graph, graph.T, targets)
    assert equivalence.interventionally_equivalent(graph, graph.T)
    with pytest.raises(ValueError, match=r"targets: x, b, c; adjacency: a, b, c"):
        equivalence.essential_graph(graph, pd.DataFrame([[0, 0, 0]], columns=list("xbc")))
    with pytest.raises(ValueError, match="same variable names"):
        equivalence.interventionally_equivalent(graph, graph.rename(index={"a": "x"}, columns={"a": "x"}))


@pytest.mark.parametrize(
    ("graph", "targets", "intervention", "message"),
    [
        ([[0, 1], [1, 0]], None, "imperfect", "0 -> 1 -> 0"),
        ([[0, 1], [0, 0]], [[0, 0, 0]], "imperfect", "one column per variable"),
        ([[0, 1], [0, 0]], [[0, 0.5]], "imperfect", "only 0 and 1"),
        ([[0, 1], [0, 0]], [[0, np.nan]], "imperfect", "only 0 and 1"),
        ([[0, 1], [0, 0]], [[0, 1]], "soft", "soft"),
        ([[0, 1], [0, 0]], [[0, 1], [1, 1]], "perfect", "every regime hits X1"),
    ],
)
def test_refuses(graph, targets, intervention, message):
    with pytest.raises(ValueError, match=message):
        equivalence.essential_graph(graph, targets, intervention=intervention)
