"""The sceptic: data without interventions stay without them, planted interventions are found."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo import LatentInterventionDAG
from latentdo.metrics import adjusted_rand_index
from latentdo.scm import simulate
from latentdo.solvers.search.single_regime import fit_null


def _noise(rng, kind, size):
    if kind == "gaussian":
        return rng.normal(size=size)
    if kind == "t20":
        return rng.standard_t(20, size=size)
    return rng.gamma(4.0, size=size)  # skewness 1


def _observational(kind, seed, n=1000, d=4):
    """A linear model without interventions."""
    rng = np.random.default_rng(seed)
    x = _noise(rng, kind, (n, d))
    for j in range(1, d):
        x[:, j] += x[:, :j] @ (rng.choice([-1.0, 1.0], j) * rng.uniform(0.4, 1.2, j) * (rng.random(j) < 0.5))
    return x


@pytest.mark.parametrize("noise", ["auto", "gaussian"])
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("gaussian", 0),
        ("gaussian", 1),
        ("gaussian", 2),
        ("t20", 0),
        ("t20", 1),
        ("skewed", 0),
        ("skewed", 1),
    ],
)
def test_no_hidden_interventions_where_there_are_none(kind, seed, noise):
    est = LatentInterventionDAG(n_init=2, noise=noise).fit(_observational(kind, seed))
    assert est.n_regimes_ == 1
    assert est.has_observational_
    assert not est.targets_.to_numpy().any()
    np.testing.assert_array_equal(est.regimes_, 0)
    chosen = {entry["model"]: entry["chosen"] for entry in est.result_.comparison}
    assert not chosen.get("hidden interventions", noise == "gaussian"), "Gaussian fits must have been doubted"


@pytest.mark.parametrize("seed", range(3))
def test_planted_interventions_are_found(seed):
    data = simulate(n_variables=4, edges_per_node=1, n_samples=1000, random_state=400 + seed)
    est = LatentInterventionDAG(density="linear", n_init=2).fit(data.X)
    assert adjusted_rand_index(data.regimes, est.regimes_) > 0.9
    chosen = [entry["model"] for entry in est.result_.comparison if entry["chosen"]]
    assert chosen == ["hidden interventions"]


def test_flexible_noise_pays_only_where_noise_is_not_gaussian(make_problem):
    gaussian = fit_null(make_problem(_observational("gaussian", 0)))
    assert gaussian.evidence == pytest.approx(gaussian.state.evidence)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 2))
    x[:, 1] = x[:, 0] + rng.exponential(size=1500)
    skewed = fit_null(make_problem(x))
    assert skewed.state.n_regimes == 1
    assert skewed.evidence > skewed.state.evidence + 50.0


def test_flexible_noise_is_a_real_likelihood(make_problem):
    """Noise from a known mixture: the evidence must be close to that of the true density, and not far above it."""
    rng = np.random.default_rng(2)
    n = 4000
    x = np.where(rng.random(n) < 0.2, 4.0, 1.0) * rng.normal(size=n)
    density = 0.8 * np.exp(-0.5 * x**2) + 0.2 * np.exp(-0.5 * (x / 4.0) ** 2) / 4.0
    truth = (np.log(density / np.sqrt(2 * np.pi)) + np.log(x.std())).sum()
    null = fit_null(make_problem(x[:, None]))
    dearest, cheapest = (
        0.5 * 8 * np.log(n),
        0.5 * 3 * np.log(n),
    )  # three to eight parameters describe the noise
    assert truth - dearest - 5.0 < null.evidence < truth - cheapest + 8.0
