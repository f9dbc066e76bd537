"""The preset ``field``: what its tables promise, and what can be said of every table of its kind."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from latentdo.graphs import is_dag
from latentdo.scm import PRESETS, SCM, Gaussian, Heteroscedastic, Linear, Multiplicative, Smooth, simulate
from latentdo.scm.noise import NOISE_FAMILIES
from latentdo.scm.violations import VIOLATIONS

MECHANISMS = ("linear", "smooth", "multiplicative")


def field(seed=0, **arguments):
    return simulate(preset="field", random_state=seed, **arguments)


def in_model_units(data):
    return data.X * data.scale + data.mean


def test_the_default_table():
    data = field()
    assert data.X.shape == (2998, 8)  # shares of 3000, rounded down
    sizes = np.bincount(data.regimes)
    assert len(sizes) == 5
    assert sizes[0] == 1200
    assert sizes[1] / sizes[-1] == pytest.approx(3, rel=0.02)
    assert (np.diff(sizes) < 0).all()
    assert data.targets.loc[1:].sum(axis=1).between(1, 2).all()
    edges = np.mean([field(seed, n_samples=100).adjacency.to_numpy().sum() for seed in range(40)])
    assert edges == pytest.approx(12, abs=1.2)
    assert data.responded.sum() == (data.regimes > 0).sum()


@pytest.mark.parametrize("regimes", [1, 2, 5, 9])
def test_any_number_of_regimes_leaves_two_fifths_to_the_reference(regimes):
    data = field(n_regimes=regimes, n_samples=5000)
    assert data.n_regimes == regimes
    assert data.regime_weights[0] == pytest.approx(1.0 if regimes == 1 else 0.4, abs=0.01)


@pytest.mark.parametrize("noise_scale", ["constant", "growing"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_signal_and_noise_are_about_equal_along_the_whole_order(mechanism, noise_scale):
    data = field(
        1, n_variables=12, mechanism=mechanism, noise_scale=noise_scale, n_regimes=1, n_samples=20_000
    )
    rows = in_model_units(data)
    for name in data.X:
        variable = data.scm[name]
        assert variable.noise.variance == pytest.approx(1.0)
        if not variable.parents:
            continue
        parents = rows[list(variable.parents)].to_numpy()
        signal = variable.mechanism(parents, np.zeros(len(parents)))
        assert 0.6 < signal.var() < 1.6
        assert np.mean((rows[name] - signal) ** 2) == pytest.approx(1.0, abs=0.1)
        assert abs(rows[name].mean()) < 0.1


@pytest.mark.parametrize("noise", sorted(NOISE_FAMILIES))
def test_a_perfect_intervention_moves_the_noise_and_cuts_the_parents(noise):
    data = field(2, noise=noise, separation=3.0, n_samples=20_000)
    rows = in_model_units(data)
    reference = rows[data.regimes == 0]
    for regime, scm in enumerate(data.regime_scms[1:], start=1):
        for name in scm.targets:
            assert scm[name].parents == ()
            assert abs(scm[name].noise.mean) == pytest.approx(3.0 * reference[name].std(), rel=0.05)
            assert scm[name].noise.variance == pytest.approx(data.scm[name].noise.variance)
            assert rows.loc[data.regimes == regime, name].mean() == pytest.approx(
                scm[name].noise.mean, abs=0.15
            )


@pytest.mark.parametrize("noise_scale", ["constant", "growing"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_soft_intervention_adds_its_shift_and_keeps_all_else(mechanism, noise_scale):
    data = field(3, mechanism=mechanism, noise_scale=noise_scale, intervention="soft")
    for scm in data.regime_scms[1:]:
        plain, moved = data.scm.sample(4000, 0), scm.sample(4000, 0)
        first = next(name for name in data.scm.order if name in scm.targets)
        shift = moved[first] - plain[first]
        assert np.ptp(shift) < 1e-9
        assert abs(shift[0]) == pytest.approx(2.5 * plain[first].std(), rel=0.05)
        assert scm[first].parents == data.scm[first].parents


def test_soft_interventions_exist_in_every_preset():
    data = simulate(4, intervention="soft")
    for scm, name in zip(data.regime_scms[1:], data.X, strict=True):
        assert scm[name].mechanism is data.scm[name].mechanism
        assert 1.2 <= abs(scm[name].noise.mean) <= 2.2


def test_rows_that_do_not_respond_are_reference_rows():
    whole = field(4, shuffle=False)
    partial = field(4, shuffle=False, penetrance=0.7)
    intervened = partial.assigned > 0
    np.testing.assert_array_equal(partial.assigned, whole.regimes)
    assert partial.responded[intervened].mean() == pytest.approx(0.7, abs=0.04)
    assert not partial.responded[~intervened].any()
    np.testing.assert_array_equal(partial.regimes, np.where(partial.responded, partial.assigned, 0))
    same = partial.responded | ~intervened
    np.testing.assert_array_equal(partial.X[same], whole.X[same])
    plain = field(4, shuffle=False, penetrance=1e-9)
    np.testing.assert_array_equal(partial.X[~same], plain.X[~same])
    assert (plain.regimes == 0).all()


def test_units_are_arbitrary_unless_asked_otherwise():
    data = field(5, n_variables=20)
    deviations = data.X.std()
    assert deviations.max() / deviations.min() > 100
    np.testing.assert_allclose(field(5, n_variables=20, standardize=True).X.std(ddof=0), 1.0)
    np.testing.assert_allclose(
        in_model_units(data), field(5, n_variables=20, standardize=False).X, rtol=1e-6, atol=1e-6
    )


def test_streams_are_separate():
    data = field(6)
    longer = field(6, n_samples=6000)
    assert repr(longer.regime_scms) == repr(data.regime_scms)
    np.testing.assert_array_equal(data.targets, field(6, mechanism="smooth", noise="gamma").targets)
    np.testing.assert_array_equal(data.regimes, field(6, intervention="soft").regimes)
    assert data.X.equals(field(6).X)
    assert not data.X.equals(field(7).X)
    assert pickle.loads(pickle.dumps(data)).X.equals(data.X)


@pytest.mark.parametrize("noise_scale", ["constant", "growing"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_true_responsibilities_are_calibrated(mechanism, noise_scale):
    data = field(8, mechanism=mechanism, noise_scale=noise_scale, noise="laplace", n_samples=10_000)
    truth = data.bayes_responsibilities()
    right = truth.argmax(axis=1) == data.regimes
    assert right.mean() == pytest.approx(truth.max(axis=1).mean(), abs=0.02)
    assert right.mean() > 0.7


@pytest.mark.parametrize(
    "mechanism",
    [
        Smooth(["a"], [2.0], [0.5], curves=["wavy"]),
        Multiplicative(["a"], [0.7], [1.5], -1.0, 2.0),
        Heteroscedastic(Linear({"a": 1.0}), unit=2.0, spread=0.5, intercept=1.0),
    ],
)
def test_densities_of_new_mechanisms_are_those_of_their_samples(mechanism):
    scm = SCM({"a": Gaussian(), "b": (mechanism, Gaussian())})
    held = scm.do(a=0.8)
    values = held.sample(4000, 0)["b"].to_numpy()
    grid = np.linspace(values.min() - 1, values.max() + 1, 4001)
    density = np.exp(held["b"].log_density(grid, np.full((len(grid), 1), 0.8)))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)
    distribution = np.cumsum(density) * (grid[1] - grid[0])
    assert stats.kstest(values, lambda x: np.interp(x, grid, distribution)).pvalue > 1e-3


def test_noise_grows_with_the_signal():
    mechanism = Heteroscedastic(Linear({"a": 1.0}))
    _, spread = mechanism.location_and_spread(np.array([[-10.0], [0.0], [10.0], [20.0]]))
    assert (spread > 0).all()
    assert (np.diff(spread) > 0).all()
    assert spread[3] - spread[2] == pytest.approx(10.0, abs=1e-3)


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_violations_change_the_table_and_leave_the_truth(violation):
    plain, broken = field(9), field(9, violation=violation)
    assert not broken.X.equals(plain.X)
    assert np.isfinite(broken.X.to_numpy()).all()
    assert is_dag(broken.adjacency.to_numpy())
    assert list(broken.adjacency) == list(broken.targets) == list(broken.X)
    np.testing.assert_array_equal(broken.adjacency.loc[plain.X.columns, plain.X.columns], plain.adjacency)
    np.testing.assert_array_equal(broken.regimes, plain.regimes)
    assert broken.X.equals(field(9, violation=violation).X)
    with pytest.raises(NotImplementedError, match=violation):
        broken.log_density()


def test_what_single_violations_do():
    plain = field(9)
    assert (field(9, violation="rounding").X.nunique() < 80).all()
    censored = field(9, violation="detection-limit").X
    assert np.allclose((censored == censored.min()).mean(), 0.2, atol=0.01)
    assert np.allclose((field(9, violation="zeros").X == 0).mean(), 0.2, atol=0.03)
    error = field(9, violation="measurement-error").X - plain.X
    np.testing.assert_allclose(error.std() / plain.X.std(), 0.5, atol=0.03)
    factor = (field(9, violation="common-factor").X - plain.X).corr()
    np.testing.assert_allclose(factor, 1.0, atol=1e-6)
    assert (field(9, violation="log-normal").X > 0).all(axis=None)
    copied = field(9, violation="copies")
    for name in copied.X.columns.difference(plain.X.columns):
        original = name.removesuffix("_copy")
        assert copied.adjacency[name].to_dict() == {other: int(other == original) for other in copied.X}
        assert copied.X[name].corr(copied.X[original]) > 0.999
        assert copied.targets[name].sum() == 0
    ordered = field(9, violation="dependent-rows", n_regimes=1, shuffle=False).X
    assert (ordered.apply(lambda column: column.autocorr()) > 0.5).all()


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_violations_survive_constant_columns(violation):
    data = simulate(1, intervention="atomic", observational=False, n_samples=50, violation=violation)
    assert np.isfinite(data.X.to_numpy()).all()


def test_tables_of_one_variable():
    data = field(n_variables=1, n_regimes=3)
    assert (data.targets.loc[1:, "X1"] == 1).all()
    assert field(n_variables=1, violation="copies").X.shape[1] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mechanism": "nonlinear"}, "mechanism='nonlinear' needs another preset"),
        ({"intervention": "imperfect"}, "intervention='imperfect' needs another preset.*soft"),
        ({"preset": "paper", "mechanism": "smooth"}, "mechanism='smooth' needs another preset.*field"),
        ({"preset": "paper", "noise_scale": "growing"}, "noise_scale='growing' needs another preset"),
        ({"noise_scale": "huge"}, "noise_scale='huge' is unknown"),
        ({"noise": "pink"}, "noise='pink' is unknown.*bimodal"),
        ({"penetrance": 0.0}, "penetrance=0.0 must be above 0 and at most 1"),
        ({"penetrance": 1.5}, "penetrance=1.5"),
        ({"violation": "holes"}, "violation='holes' is unknown: choose one of rounding"),
        ({"n_samples": 10}, "leaves regime"),
    ],
)
def test_nonsense_is_refused_with_a_remedy(arguments, words):
    with pytest.raises(ValueError, match=words):
        simulate(**{"preset": "field", **arguments})


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Smooth(["a"], [1.0], [1.0], curves=["straight"]), "curve 'straight' is unknown"),
        (lambda: Smooth(["a"], [1.0], [1.0], curves=[]), "as many curves"),
        (lambda: Smooth(["a"], [1.0, 2.0], [1.0], curves=["wavy"]), "weights must have shape"),
        (lambda: Multiplicative(["a"], [1.0], [0.0]), "units must be positive"),
        (lambda: Heteroscedastic(Linear(), unit=0.0), "unit must be a positive number"),
        (lambda: replace(PRESETS["field"], reference_share=1.0), "reference_share=1.0"),
        (lambda: replace(PRESETS["field"], signal_to_noise=(2.0, 1.0)), "signal_to_noise must be a range"),
    ],
)
def test_bad_parts_are_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()
    with pytest.raises(TypeError, match="AdditiveMechanism"):
        Heteroscedastic("linear")
