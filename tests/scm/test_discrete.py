"""Binary variables, counts and categories: probabilities, moments, draws and interventions against closed forms."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from latentdo.scm import (
    SCM,
    Atomic,
    Bent,
    Bernoulli,
    Categorical,
    Effects,
    Gaussian,
    Heteroscedastic,
    Imperfect,
    Linear,
    Logits,
    NegativeBinomial,
    PerLevel,
    PerLog,
    Poisson,
    Stochastic,
    Variable,
)

COUNTS = [Poisson(3.5), NegativeBinomial(4.0, 0.7), NegativeBinomial(0.5, 0.1)]
TISSUE = Categorical({"liver": 0.5, "lung": 0.3, "skin": 0.2})


@pytest.mark.parametrize("noise", [*COUNTS, Bernoulli(0.2)])
@pytest.mark.parametrize("signal", [-1.0, 0.0, 0.8])
def test_probabilities_sum_to_one_and_have_the_moments_they_claim(noise, signal):
    values = np.arange(2 if noise.kind == "binary" else 400, dtype=float)
    shares = np.exp(noise.log_probability(values, np.full(len(values), signal)))
    moved = noise.shifted(signal)
    assert shares.sum() == pytest.approx(1.0)
    assert shares @ values == pytest.approx(moved.mean)
    assert shares @ values**2 - moved.mean**2 == pytest.approx(moved.variance)
    np.testing.assert_allclose(np.exp(moved.log_density(values)), shares, atol=1e-12)


def test_probabilities_are_those_of_scipy():
    k = np.arange(60)
    np.testing.assert_allclose(Poisson(3.5).log_density(k), stats.poisson(3.5).logpmf(k))
    size, mean = 1 / 0.7, 4.0
    np.testing.assert_allclose(
        NegativeBinomial(mean, 0.7).log_density(k), stats.nbinom(size, size / (size + mean)).logpmf(k)
    )
    np.testing.assert_allclose(Bernoulli(0.2).log_density(k[:2]), np.log([0.8, 0.2]))
    np.testing.assert_allclose(TISSUE.log_density(k[:3]), np.log([0.5, 0.3, 0.2]))


@pytest.mark.parametrize("noise", [*COUNTS, Bernoulli(0.2), TISSUE])
def test_draws_invert_the_distribution_function(noise):
    values = np.arange({"binary": 2, "categorical": 3}.get(noise.kind, 60), dtype=float)
    below = np.cumsum(np.exp(noise.log_density(values)))
    for shift in (-1e-9, 1e-9):
        place = noise.quantile(below[:-1] + shift, np.zeros(len(values) - 1))
        sure = below[:-1] < 1 - 1e-6
        np.testing.assert_array_equal(place[sure], (values[:-1] + (shift > 0))[sure])


@pytest.mark.parametrize("noise", [*COUNTS, Bernoulli(0.2), TISSUE, Variable(noise=Bernoulli(0.2)).noise])
@pytest.mark.parametrize("value", [-1.0, 0.5, np.nan, np.inf])
def test_what_cannot_be_has_no_probability(noise, value):
    assert np.isneginf(noise.log_density(np.array([value])))


def test_large_counts_stay_finite():
    noise = NegativeBinomial(1e9, 0.3)
    assert np.isfinite(noise.log_density(np.array([0.0, 1e9, 3e9]))).all()
    draws = noise.sample(np.random.default_rng(0), 50)
    assert ((draws > 0) & (draws < 1e11)).all()


def small_model():
    """Every kind as parent and as child; counts are held small, so that all cells can be visited."""
    return SCM(
        {
            "smoker": Bernoulli(0.3),
            "tissue": (
                Logits(
                    {
                        "liver": Effects(),
                        "lung": Effects({"smoker": 1.2}),
                        "skin": Effects({"smoker": -0.4}, intercept=0.1),
                    }
                ),
                TISSUE,
            ),
            "cells": (Effects({"tissue": PerLevel((0.0, 0.7, -0.7))}, -0.5), Poisson(0.8)),
            "ill": (Effects({"cells": PerLog(0.9), "smoker": 0.5}), Bernoulli(0.1)),
        }
    )


def cells_of(d_counts=25):
    return np.array(list(itertools.product((0, 1), range(3), range(d_counts), (0, 1))), dtype=float)


def test_a_small_model_is_its_own_enumeration():
    table = cells_of()
    shares = np.exp(small_model().log_density(table))
    assert shares.sum() == pytest.approx(1.0, abs=1e-9)
    by_hand = 0.0
    for smoker, tissue, cells, ill in table.astype(int):
        p = 0.3 if smoker else 0.7
        weights = np.array([0.5, 0.3 * math.exp(1.2 * smoker), 0.2 * math.exp(0.1 - 0.4 * smoker)])
        p *= weights[tissue] / weights.sum()
        rate = 0.8 * math.exp((0.0, 0.7, -0.7)[tissue] - 0.5)
        p *= math.exp(-rate) * rate**cells / math.factorial(cells)
        sick = special.expit(special.logit(0.1) + 0.9 * math.log1p(cells) + 0.5 * smoker)
        p *= sick if ill else 1 - sick
        by_hand += abs(p - shares[(table == (smoker, tissue, cells, ill)).all(axis=1)][0])
    assert by_hand < 1e-12


@pytest.mark.parametrize(
    "interventions",
    [
        {},
        {"tissue": "lung"},
        {"smoker": 1},
        {"cells": Stochastic(Poisson(2.0))},
        {"cells": Imperfect(noise=Poisson(2.0)), "tissue": Categorical({"liver": 1, "lung": 2, "skin": 3})},
        {"ill": Imperfect(Effects({"smoker": -2.0}))},
    ],
)
def test_samples_follow_the_enumerated_model_under_interventions(interventions):
    model = small_model().do(interventions)
    table = cells_of()
    shares = np.exp(model.log_density(table))
    assert shares.sum() == pytest.approx(1.0, abs=1e-8)
    rows = model.columns_of(model.sample(20_000, random_state=3))
    for j in range(4):  # all margins and all pairs
        for value in np.unique(rows[:, j])[:3]:
            expected = shares[table[:, j] == value].sum()
            error = math.sqrt(expected * (1 - expected) / len(rows)) + 1e-12
            assert abs((rows[:, j] == value).mean() - expected) < 4.5 * error
            for i in range(j):
                expected = shares[(table[:, j] == value) & (table[:, i] == 1)].sum()
                error = math.sqrt(expected * (1 - expected) / len(rows)) + 1e-12
                assert abs(((rows[:, j] == value) & (rows[:, i] == 1)).mean() - expected) < 4.5 * error


def test_tables_have_integers_and_categories_and_can_be_read_back():
    model = small_model()
    X = model.sample(200, random_state=1)
    assert [X[name].dtype.kind for name in ("smoker", "cells", "ill")] == ["i", "i", "i"]
    assert isinstance(X["tissue"].dtype, pd.CategoricalDtype)
    assert list(X["tissue"].cat.categories) == ["liver", "lung", "skin"]
    assert model.kinds == {"smoker": "binary", "tissue": "categorical", "cells": "count", "ill": "binary"}
    values = model.sample_array(200, 1)
    np.testing.assert_array_equal(model.columns_of(X), values)
    text = X.astype({"tissue": str})  # as a csv file has it
    np.testing.assert_array_equal(model.log_density(text), model.log_density(values))
    np.testing.assert_array_equal(
        model.sample(200, random_state=1, variables=["tissue"])["tissue"], X["tissue"]
    )


def test_rows_of_one_seed_can_be_compared_one_by_one():
    model = small_model()
    plain, held = model.sample(500, 7), model.do(cells=3).sample(500, 7)
    pd.testing.assert_frame_equal(plain[["smoker", "tissue"]], held[["smoker", "tissue"]])
    more = model.do(cells=Imperfect(noise=Poisson(4.0))).sample(500, 7)
    assert (more["cells"] >= plain["cells"]).all()  # the same quantile of a larger distribution
    assert (more["ill"] >= plain["ill"]).all()


def test_an_exposure_multiplies_means_and_effects_see_rates():
    model = SCM(
        {
            "gene": NegativeBinomial(5.0, 0.2),
            "other": (Effects({"gene": PerLog(0.5)}), Poisson(2.0)),
            "score": (Effects({"gene": PerLog(1.0)}), Gaussian(scale=0.1)),
        }
    )
    exposure = np.exp(np.random.default_rng(0).normal(0, 0.5, size=300))
    X = model.sample(300, random_state=2, exposure=exposure)
    terms = model.log_density_terms(X, exposure=exposure)
    rate = X["gene"] / exposure
    size = 1 / 0.2
    np.testing.assert_allclose(
        terms[:, 0], stats.nbinom(size, size / (size + 5.0 * exposure)).logpmf(X["gene"]), atol=1e-9
    )
    np.testing.assert_allclose(
        terms[:, 1], stats.poisson(2.0 * exposure * (1 + rate) ** 0.5).logpmf(X["other"]), atol=1e-9
    )
    np.testing.assert_allclose(terms[:, 2], stats.norm(np.log1p(rate), 0.1).logpdf(X["score"]), atol=1e-9)
    np.testing.assert_allclose(model.log_density(X, exposure), terms.sum(axis=1))


def test_exact_moments_know_discrete_causes():
    model = SCM({"on": Bernoulli(0.25), "clicks": Poisson(4.0), "cost": Linear({"on": 2.0, "clicks": 0.5})})
    assert model.is_linear
    assert model.mean()["cost"] == pytest.approx(2.5)
    assert model.covariance().loc["cost", "cost"] == pytest.approx(4 * 0.1875 + 0.25 * 4 + 1)
    assert not small_model().is_linear
    with pytest.raises(ValueError, match=r"'ill' has Bernoulli.*0\.9 log"):
        SCM({"cells": Poisson(), "ill": (Effects({"cells": PerLog(0.9)}), Bernoulli())}).mean()


def test_models_are_described_in_words_of_their_kind():
    text = repr(small_model().do(tissue="lung", smoker=1))
    assert "held at lung" in text
    assert "held at 1" in text
    assert "Poisson(rate=0.8), log-rate + [0, 0.7, -0.7][tissue] + -0.5" in text
    assert "lung: 1.2 smoker" in repr(small_model())


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Bernoulli(1.0), ValueError, "between 0 and 1.*do"),
        (lambda: Poisson(0.0), ValueError, "rate must be a positive"),
        (lambda: NegativeBinomial(1.0, -1.0), ValueError, "dispersion must be a positive"),
        (lambda: Categorical({"a": 1.0}), ValueError, "at least two levels"),
        (lambda: Categorical({"a": 1.0, "b": 0.0}), ValueError, "must be positive"),
        (lambda: Variable(Linear({"a": 1.0}), TISSUE), TypeError, "Logits.*liver, lung, skin"),
        (lambda: Variable(Logits({"liver": Effects()}), TISSUE), None, None),
        (lambda: Variable(Logits({"x": Effects({"a": 1.0})}), TISSUE), TypeError, "Logits.*liver"),
        (lambda: Variable(Logits({"x": Effects()}), Poisson()), TypeError, "Categorical variables"),
        (lambda: Variable(Heteroscedastic(Linear({"a": 1.0})), Poisson()), TypeError, "Effects"),
        (lambda: Effects({"a": np.nan}), ValueError, "a must be finite"),
        (lambda: Effects([("a", 1.0)]), TypeError, "terms must map"),
        (lambda: Bent(1.0, "square"), ValueError, "'square' is unknown"),
        (lambda: Bent(1.0, "wavy", 0.0), ValueError, "unit must be"),
        (lambda: Logits({"a": 1.0}), TypeError, "signal"),
        (lambda: small_model().do(tissue="brain"), ValueError, "'tissue' with 'brain'.*liver, lung, skin"),
        (lambda: small_model().do(smoker=2), ValueError, "'smoker' with 2.*0 or 1"),
        (lambda: small_model().do(cells=1.5), ValueError, "'cells' with 1.5.*integer"),
        (lambda: small_model().do(cells=Gaussian()), ValueError, "'cells' is count.*continuous"),
        (lambda: small_model().do(tissue=Categorical({"a": 1, "b": 1})), ValueError, "levels"),
        (lambda: small_model().sample(3, exposure=[1.0, 2.0]), ValueError, "each of the 3 rows"),
        (lambda: small_model().sample(2, exposure=[1.0, 0.0]), ValueError, "row 1 .* has 0"),
        (
            lambda: small_model().log_density(
                pd.DataFrame({"smoker": [0], "tissue": ["eye"], "cells": 1, "ill": 0})
            ),
            ValueError,
            "row 0.*'tissue' is 'eye'.*liver",
        ),
    ],
)
def test_mistakes_are_named(make, error, match):
    if error is None:  # without parents there is nothing to mistake
        make()
        return
    with pytest.raises(error, match=match):
        make()


def test_what_was_held_can_be_held_again():
    model = small_model().do(tissue="lung").do(tissue=Atomic("skin"))
    assert (model.sample(5)["tissue"] == "skin").all()
