"""Gradient fits of columns of every kind: every variant, both estimators, and what becomes of trained networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG
from latentdo.data import Dataset
from latentdo.graphs import is_dag
from latentdo.model.fitted import FittedModel
from latentdo.solvers.gradient import AugmentedLagrangian, GradientConfiguration, solve

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

QUICK = GradientConfiguration(
    mechanisms="networks",
    max_regimes=3,
    embedding_size=4,
    width=8,
    n_blocks=1,
    first_steps=30,
    steps=10,
    final_steps=10,
    max_subproblems=3,
    refresh=10,
    batch_size=None,
    graph_samples=8,
    learning_rate=1e-2,
    propose=False,
    lagrangian=AugmentedLagrangian(0.0, 1.0, 10.0, 0.9),
)


def table(n=120, seed=1000):
    """tissue -> dose -> failed, dose -> clicks; a third of the clicks are set."""
    rng = np.random.default_rng(seed)
    regimes = (rng.random(n) < 0.35).astype(np.int64)
    tissue = rng.choice(3, n)
    dose = 1.5 * (tissue - 1.0) + rng.normal(size=n)
    failed = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * dose))).astype(np.int64)
    clicks = rng.poisson(np.where(regimes == 1, 25.0, np.exp(0.8 + 0.6 * dose)))
    names = np.array(["liver", "lung", "skin"])[tissue]
    return pd.DataFrame({"tissue": names, "dose": dose, "failed": failed, "clicks": clicks}), regimes


def data(variant):
    X, regimes = table()
    known = {}
    if variant in ("unknown", "known", "semi-supervised"):
        known["regimes"] = regimes
    if variant == "known":
        known["targets"] = {1: "clicks"}
    if variant == "semi-supervised":
        known["regimes"] = [int(k) if row % 3 == 0 else None for row, k in enumerate(regimes)]
    return Dataset.from_table(X, kinds={"clicks": "count"}, **known)


@pytest.mark.parametrize("estimator", ["exact", "sampled"])
@pytest.mark.parametrize("variant", ["latent", "semi-supervised", "unknown", "known", "observational"])
def test_every_variant(variant, estimator):
    dataset = data(variant)
    c = replace(QUICK, estimator=estimator, max_regimes=1 if variant == "observational" else 3)
    result = solve(dataset, c)
    topology = result.model.topology
    assert is_dag(topology.adjacency)
    assert np.isfinite(result.evidence)
    assert np.isfinite(result.model.score_samples(dataset.z)).all()
    assert ((result.edge_probabilities >= 0.0) & (result.edge_probabilities <= 1.0)).all()
    if variant in ("unknown", "known"):
        np.testing.assert_array_equal(result.regimes, dataset.regimes)
    if variant == "known":
        np.testing.assert_array_equal(topology.targets, dataset.targets)
    again = FittedModel.from_arrays(result.model.to_arrays())
    np.testing.assert_array_equal(again.log_density(dataset.z), result.model.log_density(dataset.z))


@pytest.mark.parametrize("density", ["nonlinear", "flow"])
def test_networks_have_heads_too(density):
    dataset = data("unknown")
    result = solve(dataset, replace(QUICK, density=density, intervention="imperfect", first_steps=20))
    assert np.isfinite(result.evidence)
    drawn = result.model.sample(200, 1, np.random.default_rng(0))
    assert set(np.unique(drawn[:, 0])) <= {0.0, 1.0, 2.0}
    assert set(np.unique(drawn[:, 2])) <= {0.0, 1.0}
    assert not (drawn[:, 3] % 1.0).any()


def test_training_finds_what_counts_and_levels_depend_on():
    """With the labels known: the set clicks are the target, and their rate is that of the rows."""
    X, regimes = table(n=400)
    dataset = Dataset.from_table(X, kinds={"clicks": "count"}, regimes=regimes)
    c = replace(
        QUICK, first_steps=250, final_steps=150, max_subproblems=12, learning_rate=2e-2, train_fraction=1.0
    )
    result = solve(dataset, c)
    model = result.model
    assert model.topology.targets.tolist() == [[0, 0, 0, 0], [0, 0, 0, 1]]
    drawn = model.sample(4000, 1, np.random.default_rng(0))
    assert drawn[:, 3].mean() == pytest.approx(X["clicks"][regimes == 1].mean(), rel=0.15)
    assert drawn[:, 2].mean() == pytest.approx(X["failed"].mean(), abs=0.1)
    skeleton = model.topology.adjacency | model.topology.adjacency.T
    assert skeleton[1, [0, 2, 3]].all()  # dose belongs to all others


def test_users_ask_and_holes_are_summed_out(tmp_path, monkeypatch):
    X, regimes = table(n=150)
    est = LatentInterventionDAG(solver="paper", max_regimes=2, kinds={"clicks": "count"}, missing="model")
    quick = {"first_steps": 20, "steps": 5, "max_subproblems": 2, "embedding_size": 4, "width": 6}
    paper = GradientConfiguration.paper
    monkeypatch.setattr(GradientConfiguration, "paper", lambda **more: paper(**quick | more))
    est.fit(X, regimes=regimes)
    holes = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.2)
    assert np.isfinite(est.score_samples(holes)).all()
    assert set(est.sample(20)["tissue"]) <= {"liver", "lung", "skin"}
    est.save(tmp_path / "m")
    np.testing.assert_array_equal(
        LatentInterventionDAG.load(tmp_path / "m").score_samples(X), est.score_samples(X)
    )
    with pytest.raises(ValueError, match=r"offset= is not available.*solver='search'"):
        est.fit(X, regimes=regimes, offset=np.ones(150))
