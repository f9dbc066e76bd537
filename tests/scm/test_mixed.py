"""Presets whose columns are of several kinds: what they promise, and that their densities are those of their rows."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import special

from latentdo.scm import PRESETS, Bernoulli, Categorical, KindSettings, Poisson, simulate

SMALL = {"mixed": 900, "counts": 600, "binary": 900, "screen": 700}


@pytest.fixture(scope="module", params=list(SMALL))
def data(request):
    return simulate(preset=request.param, n_samples=SMALL[request.param], random_state=1003)


def test_columns_have_the_types_of_their_kinds(data):
    assert set(data.kinds) == set(data.X.columns)
    for name, kind in data.kinds.items():
        column = data.X[name]
        if kind == "categorical":
            assert isinstance(column.dtype, pd.CategoricalDtype)
            assert 3 <= len(column.cat.categories) <= 4
        elif kind == "continuous":
            assert column.dtype == np.float64
        else:
            assert column.dtype == np.int64
            assert column.min() >= 0
            assert column.max() <= 1 or kind == "count"


def test_presets_are_what_the_docstring_says():
    kinds = {name: Counter(PRESETS[name].kinds.of(PRESETS[name].n_variables)) for name in SMALL}
    assert kinds["mixed"] == {"continuous": 4, "binary": 2, "count": 2, "categorical": 2}
    assert kinds["counts"] == {"count": 8}
    assert kinds["binary"] == {"binary": 8}
    assert kinds["screen"] == {"count": 9, "continuous": 3}
    mixed = simulate(preset="mixed", random_state=1000)
    assert mixed.X.shape[1] == 10
    assert 4995 < len(mixed.X) <= 5000
    assert mixed.n_regimes == 5
    assert mixed.targets.sum(axis=1).iloc[1:].between(1, 2).all()


def test_densities_are_those_of_each_model_by_itself(data):
    values = data.X.copy()
    for name, kind in data.kinds.items():
        if kind == "continuous":
            values[name] = values[name] * data.scale[name] + data.mean[name]
    exposure = None if data.exposure is None else data.exposure.to_numpy()
    expected = np.column_stack([scm.log_density(values, exposure) for scm in data.regime_scms])
    np.testing.assert_allclose(data.log_density(), expected + np.log(data.scale).sum(), rtol=1e-9)
    assert np.isfinite(data.log_density()[np.arange(len(values)), data.regimes]).all()
    posterior = data.bayes_responsibilities()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    joint = expected + np.log(data.regime_weights)
    np.testing.assert_allclose(posterior, special.softmax(joint, axis=1), atol=1e-9)


def test_the_best_assignment_is_calibrated():
    data = simulate(preset="mixed", random_state=1001)
    posterior = data.bayes_responsibilities()
    right = posterior[np.arange(len(posterior)), data.regimes]
    gap = right - (posterior**2).sum(axis=1)
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))


@pytest.mark.parametrize("intervention", ["stochastic", "soft", "atomic"])
def test_interventions_hit_their_targets_and_no_others(intervention):
    data = simulate(preset="mixed", n_samples=400, intervention=intervention, random_state=1002)
    for regime, scm in enumerate(data.regime_scms):
        assert list(data.targets.columns[data.targets.iloc[regime] == 1]) == list(scm.targets)
        for name in scm.targets:
            assert scm[name].kind == data.scm[name].kind
            assert (scm[name].parents == data.scm[name].parents) == (
                intervention == "soft" or not data.scm[name].parents
            )
            if intervention == "atomic":
                held = data.X.loc[data.regimes == regime, name]
                assert (held == held.iloc[0]).all()


def test_the_first_target_of_a_regime_can_be_seen():
    for seed in range(1000, 1006):
        data = simulate(preset="mixed", n_samples=200, random_state=seed)
        shown = [name for name, kind in data.kinds.items() if kind in ("continuous", "count")]
        assert (data.targets[shown].iloc[1:].sum(axis=1) >= 1).all()
    free = replace(PRESETS["mixed"], kinds=replace(PRESETS["mixed"].kinds, leading=KindSettings.leading[:0]))
    hidden = [
        simulate(preset=free, n_samples=200, random_state=seed, targets_per_regime=1)
        for seed in range(1000, 1004)
    ]
    assert any((one.targets[["X2", "X5", "X7", "X10"]].sum().sum()) for one in hidden)


def test_knock_downs_lower_their_targets():
    data = simulate(preset="screen", n_samples=300, random_state=1000)
    for scm in data.regime_scms[1:]:
        (target,) = scm.targets
        assert scm[target].noise.mean == pytest.approx(data.scm[target].noise.mean * np.exp(-3 * 0.8))


def test_signals_and_levels_are_as_large_as_promised():
    data = simulate(preset="mixed", n_samples=20_000, n_regimes=1, random_state=1005, standardize=False)
    settings = PRESETS["mixed"].kinds
    values = data.scm.columns_of(data.X)
    seen = set()
    for name in data.X.columns:
        variable = data.scm[name]
        if not variable.parents:
            continue
        signal = variable.mechanism.location(
            values[:, [data.X.columns.get_loc(parent) for parent in variable.parents]]
        )
        seen.add(variable.kind)
        if variable.kind == "count":
            assert settings.log_mean_signal[0] * 0.9 < signal.std() < settings.log_mean_signal[1] * 1.1
            assert data.X[name].mean() == pytest.approx(variable.noise.mean, rel=0.1)
        elif variable.kind == "continuous":
            assert 0.6 < signal.var() < 1.6
        else:
            size = np.atleast_2d(signal.T)[-1].std()
            assert settings.log_odds_signal[0] * 0.9 < size < settings.log_odds_signal[1] * 1.1
    assert len(seen) >= 3


def test_smooth_mechanisms_bend_the_effects_of_continuous_parents():
    plain = simulate(preset="mixed", n_samples=300, random_state=1000)
    smooth = simulate(preset="mixed", n_samples=300, random_state=1000, mechanism="smooth")
    pd.testing.assert_frame_equal(plain.adjacency, smooth.adjacency)
    assert any(word in repr(smooth.scm) for word in ("saturating", "wavy", "softplus"))
    assert smooth.X.shape == plain.X.shape


def test_rows_of_other_sizes_share_model_and_exposure_is_given_back():
    few, many = (simulate(preset="counts", n_samples=n, random_state=1000) for n in (200, 400))
    assert repr(few.scm) == repr(many.scm)
    assert len(few.exposure) == len(few.X)
    with pytest.raises(ValueError, match="exposure="):
        few.log_density(few.X)
    np.testing.assert_array_equal(few.log_density(few.X, few.exposure), few.log_density())
    np.testing.assert_array_equal(
        few.bayes_responsibilities(few.X, exposure=few.exposure), few.bayes_responsibilities()
    )


@pytest.mark.parametrize("violation", ["rounding", "zeros", "common-factor", "copies", "dependent-rows"])
def test_violations_befall_what_they_can(violation):
    plain = simulate(preset="mixed", n_samples=500, random_state=1000)
    data = simulate(preset="mixed", n_samples=500, random_state=1000, violation=violation)
    for name in ("X2", "X5", "X7", "X10"):
        assert data.X[name].dtype == plain.X[name].dtype
    assert data.X["X3"].dtype == np.int64
    if violation == "zeros":
        assert (data.X["X3"] == 0).mean() > (plain.X["X3"] == 0).mean() + 0.05
    if violation == "copies":
        copied = [name for name in data.X.columns if name.endswith("_copy")]
        assert [data.kinds[name] for name in copied] == ["continuous"] * 2


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"preset": "mixed", "mechanism": "multiplicative"}, "all continuous"),
        ({"preset": "mixed", "noise_scale": "growing"}, "all continuous"),
        ({"preset": "mixed", "intervention": "imperfect"}, "imperfect"),
        ({"preset": "binary", "violation": "rounding"}, "has none"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        simulate(n_samples=200, **arguments)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: KindSettings(("integer",)), "'integer' is unknown"),
        (lambda: KindSettings(()), "at least one"),
        (lambda: KindSettings(("binary",), probability=(0.5, 1.0)), "probability"),
        (lambda: KindSettings(("count",), level=(2.0, 1.0)), "level"),
        (lambda: replace(PRESETS["paper"], kinds=KindSettings(("binary",))), "signal_to_noise"),
    ],
)
def test_settings_are_checked(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_kinds_of_noise_are_drawn_as_asked():
    data = simulate(preset="mixed", n_samples=200, n_variables=20, random_state=1001)
    families = {type(variable.noise) for variable in data.scm.variables.values()}
    assert {Bernoulli, Categorical, Poisson} <= families
