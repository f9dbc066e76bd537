"""The family of densities that "auto" chooses."""

from dataclasses import replace

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import Dataset
from latentdo.solvers import auto_density
from latentdo.solvers.search.solve import SearchConfiguration, solve


def table(mechanism, seed=0):
    return simulate(4, 1.0, mechanism, "stochastic", 2500, "paper", random_state=seed)


def curved(n=3000, seed=0):
    """A quarter of the rows hit in the effect of a bent curve."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    hit = np.arange(n) < n // 4
    y = np.where(hit, 6.0, np.abs(x)) + 0.1 * rng.normal(size=n)
    return np.column_stack([x, y, rng.normal(size=n)])


@pytest.mark.parametrize("seed", [0, 3])
def test_straight_mechanisms_do_not_want_networks(seed):
    dataset = Dataset.from_table(table("linear", seed).X)
    how = SearchConfiguration()
    assert not auto_density.wants_networks(dataset, how, solve(dataset, how))


def test_auto_is_the_linear_fit_on_linear_data():
    data = table("linear")
    auto = LatentInterventionDAG().fit(data.X)
    linear = LatentInterventionDAG(density="linear").fit(data.X)
    assert auto.result_.density == "linear"
    assert auto.result_.evidence == linear.result_.evidence


def test_auto_takes_networks_where_they_explain_more_and_says_so():
    model = LatentInterventionDAG().fit(curved())
    assert model.result_.density in ("nonlinear", "nonlinear-mixed")
    assert model.adjacency_.to_numpy().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    entries = {entry["model"]: entry for entry in model.result_.comparison}
    assert entries[f"{model.result_.density} mechanisms"]["chosen"]
    assert not entries["linear mechanisms"]["chosen"]


@pytest.mark.parametrize("seed", [pytest.param(1200, marks=pytest.mark.slow), 1201])
def test_lines_that_follow_a_curve_with_invented_regimes_lose(seed):
    data = simulate(5, 1, "nonlinear", n_samples=3000, random_state=seed)
    model = LatentInterventionDAG().fit(data.X)
    assert model.result_.density != "linear"
    np.testing.assert_array_equal(model.adjacency_, data.adjacency)
    entries = {entry["model"]: entry for entry in model.result_.comparison}
    assert entries["linear mechanisms"]["targets"] > model.targets_.to_numpy().sum()


@pytest.mark.parametrize(("gain", "wins"), [(1.0, False), (100.0, True)])
def test_networks_have_to_win_clearly_and_nothing_else_counts(monkeypatch, gain, wins):
    dataset, how = Dataset.from_table(curved()), SearchConfiguration()
    found = solve(dataset, how)
    networks = replace(found, evidence=found.evidence + gain, density="nonlinear")
    monkeypatch.setattr(auto_density, "search_linear", lambda *_: found)
    monkeypatch.setattr(auto_density, "is_bent", lambda *_: True)
    monkeypatch.setattr(auto_density, "search_networks", lambda *_: networks)
    assert (auto_density.solve(dataset, how).density == "nonlinear") == wins


def test_where_networks_lose_on_a_bent_table_gaussian_noise_is_tried(monkeypatch):
    dataset, how = Dataset.from_table(curved()), SearchConfiguration()
    found = solve(dataset, how)
    worth = {"auto": -100.0, "nonlinear": 100.0}
    monkeypatch.setattr(auto_density, "search_linear", lambda *_: found)
    monkeypatch.setattr(auto_density, "is_bent", lambda *_: True)
    monkeypatch.setattr(
        auto_density,
        "search_networks",
        lambda _, __, kind, *___: replace(found, evidence=found.evidence + worth[kind], density="nonlinear"),
    )
    result = auto_density.solve(dataset, how)
    assert result.evidence == found.evidence + 100.0
    assert [entry["chosen"] for entry in result.comparison[:3]] == [False, False, True]


def test_a_product_of_two_causes_is_found():
    """Neither of them explains anything alone, so that lines and curves have no parents to show it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1500, 2))
    y = np.where(np.arange(1500) < 400, 4.0, x[:, 0] * x[:, 1]) + 0.3 * rng.normal(size=1500)
    dataset, how = Dataset.from_table(np.column_stack([x, y])), SearchConfiguration(n_init=1)
    gains = auto_density.product_gains(dataset, solve(dataset, how))
    assert gains[2] > 50.0
    assert not gains[:2].any()
    plain = Dataset.from_table(np.column_stack([x, x.sum(axis=1) + rng.normal(size=1500)]))
    assert not auto_density.product_gains(plain, solve(plain, how)).any()


def test_networks_must_win_on_the_whole_against_curves_and_anywhere_against_lines(monkeypatch):
    dataset, how = Dataset.from_table(table("linear").X), SearchConfiguration(n_init=1)
    lines = solve(dataset, how)
    monkeypatch.setattr(auto_density, "product_gains", lambda *_: np.array([0.0, 0.0, 0.0, 100.0]))
    monkeypatch.setattr(auto_density, "network_gains", lambda *_: np.array([0.0, -150.0, 0.0, 0.0]))
    assert auto_density.wants_networks(dataset, how, lines)
    curves = replace(lines, density="additive")
    assert not auto_density.wants_networks(dataset, how, curves)
    broad = curves.model.topology.targets.copy()
    broad[-1, :3] = 1  # a regime that hits most variables may be a piece of a product
    topology = replace(curves.model.topology, targets=broad)
    assert auto_density.wants_networks(
        dataset, how, replace(curves, model=replace(curves.model, topology=topology))
    )
    monkeypatch.setattr(auto_density, "network_gains", lambda *_: np.array([0.0, -50.0, 0.0, 0.0]))
    assert auto_density.wants_networks(dataset, how, replace(lines, density="additive"))


def test_wide_tables_get_networks_from_what_was_found_before(monkeypatch):
    monkeypatch.setattr("latentdo.solvers.nonlinear.order.WIDEST", 2)
    monkeypatch.setattr("latentdo.solvers.nonlinear.order.rough_graph", None)  # nobody looks for an order
    result = auto_density.solve(Dataset.from_table(curved()), SearchConfiguration())
    entries = {entry["model"]: entry for entry in result.comparison}
    assert any(name.startswith("nonlinear") for name in entries)
    assert np.asarray(result.adjacency).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_an_interrupt_of_the_second_search_keeps_the_first(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(auto_density, "search_networks", interrupted)
    result = auto_density.solve(Dataset.from_table(curved()), SearchConfiguration())
    assert (result.status, result.density) == ("interrupted", "linear")


@pytest.mark.slow
def test_skewed_noise_is_not_drawn_by_regimes():
    """The default on a table that lines with Gaussian noise cut into all the regimes they are allowed."""
    data = simulate(
        n_variables=4,
        n_samples=1200,
        preset="field",
        noise="gamma",
        n_regimes=3,
        separation=3.0,
        random_state=1,
    )
    gaussian = LatentInterventionDAG(noise="gaussian", density="linear", max_regimes=6, n_init=1).fit(data.X)
    found = LatentInterventionDAG(max_regimes=6, n_init=1).fit(data.X)
    np.testing.assert_array_equal(found.adjacency_, data.adjacency)
    assert found.n_regimes_ <= 4 < gaussian.n_regimes_
    assert found.evidence_ > gaussian.evidence_ + 100.0
    assert found.result_.density == "additive"
