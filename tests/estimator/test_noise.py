"""The shape of the noise: what is asked for, what "auto" finds, and who has no choice."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from latentdo import LatentInterventionDAG


def table(noise, n=600):
    """A line of two variables."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": a + noise(rng, n)})


@pytest.fixture(scope="module")
def skewed():
    return table(lambda rng, n: rng.exponential(size=n))


def fit(X, **options):
    return LatentInterventionDAG(**({"density": "linear", "max_regimes": 1} | options)).fit(X)


def is_gaussian(est):
    return [one.noise.is_gaussian for one in est.result_.model.reference]


def test_auto_takes_another_shape_where_a_mechanism_needs_it(skewed):
    fits = {noise: fit(skewed, noise=noise) for noise in ("auto", "gaussian", "any")}
    assert is_gaussian(fits["gaussian"]) == [True, True]
    for noise in ("auto", "any"):
        assert is_gaussian(fits[noise]) == [True, False]
        assert fits[noise].evidence_ > fits["gaussian"].evidence_
        assert fits[noise].adjacency_.loc["a", "b"] == 1, "the shape of the noise tells the direction"
    assert {est.result_.density for est in fits.values()} == {"linear"}


def test_auto_is_the_gaussian_fit_of_gaussian_rows():
    X = table(lambda rng, n: rng.normal(size=n))
    assert fit(X).evidence_ == fit(X, noise="gaussian").evidence_


@pytest.mark.parametrize(
    ("density", "noise", "fitted"),
    [
        ("nonlinear", "auto", "nonlinear"),
        ("nonlinear", "any", "nonlinear-mixed"),
        ("nonlinear-mixed", "gaussian", "nonlinear"),
        ("flow", "gaussian", "nonlinear"),
        ("flow", "auto", "nonlinear-mixed"),
    ],
)
def test_networks_have_the_noise_that_was_asked_for(skewed, density, noise, fitted):
    assert fit(skewed.head(300), density=density, noise=noise).result_.density == fitted


def test_the_choice_of_a_density_keeps_to_the_noise(skewed):
    assert all(is_gaussian(fit(skewed, density="auto", noise="gaussian")))
    assert not all(is_gaussian(fit(skewed, density="auto", noise="any")))


def test_rows_in_parts_have_gaussian_noise(skewed):
    by_default, asked = (
        LatentInterventionDAG(max_regimes=1, noise=noise).fit_stream([skewed])
        for noise in ("auto", "gaussian")
    )
    assert is_gaussian(by_default) == is_gaussian(asked) == [True, True]
    assert by_default.evidence_ == asked.evidence_
    with pytest.raises(ValueError, match=r"noise='any' needs all rows in memory.*noise='gaussian'"):
        LatentInterventionDAG(noise="any").fit_stream([skewed])


def test_the_noise_is_an_argument_like_others_and_moves_none_of_them(skewed, tmp_path):
    est = LatentInterventionDAG("linear", "perfect", "search", 1, noise="any")
    assert clone(est).get_params() == est.get_params()
    assert (est.intervention, est.solver, est.max_regimes, est.noise) == ("perfect", "search", 1, "any")
    est.fit(skewed).save(tmp_path / "m")
    kept = LatentInterventionDAG.load(tmp_path / "m")
    assert kept.noise == "any"
    assert is_gaussian(kept) == [True, False]
