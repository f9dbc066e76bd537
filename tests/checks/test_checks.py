"""Each check on rows whose answer is known: silent on the true model, loud on its violation."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import kstest

from latentdo.checks.check import p_value, z_value
from latentdo.checks.columns import check_atoms, check_copies, check_measured, check_skew
from latentdo.checks.dependence import check_local_markov, hidden_cause_hints
from latentdo.checks.hidden_factor import WithFactor, look_for_factor
from latentdo.checks.measurement_error import look_for_errors
from latentdo.checks.neighbours import check_neighbours, given_neighbours, row_before
from latentdo.checks.regimes import check_breadth, check_invariance
from latentdo.checks.residuals import Residuals, in_order
from latentdo.checks.rivals import best_lines
from latentdo.checks.starts import Start, explore
from latentdo.data import Dataset, Kind
from latentdo.data.atoms import Atoms
from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.mixed import MixedFamily
from latentdo.model.mechanisms.noise import Noise
from latentdo.solvers.settings import FACTOR_LOADINGS

NAMES = ("a", "b", "c", "d")


def _model(shift=3.0):
    """A chain a -> b -> c beside d, and a regime that shifts b."""
    adjacency = np.zeros((4, 4), dtype=np.int8)
    adjacency[0, 1] = adjacency[1, 2] = 1
    targets = np.zeros((2, 4), dtype=np.int8)
    targets[1, 1] = 1

    def line(*coefficients):
        return LinearMechanism(np.array(coefficients), Noise.gaussian(1.0))

    reference = (line(0.0), line(0.0, 1.0), line(0.0, -1.0), line(0.0))
    return FittedModel(Topology(adjacency, targets, np.array([0.7, 0.3])), reference, {(1, 1): line(shift)})


def _rows(model, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = np.vstack([model.sample(int(n * 0.7), 0, rng), model.sample(n - int(n * 0.7), 1, rng)])
    return z[rng.permutation(n)]


def _residuals(model, z):
    return Residuals.of(model, z, model.responsibilities(z))


@pytest.fixture(scope="module")
def model():
    return _model()


@pytest.mark.parametrize("shift", [3.0, 0.7])
def test_a_true_model_passes_though_regimes_overlap(shift):
    model = _model(shift)
    residuals = _residuals(model, _rows(model))
    hints, moved = hidden_cause_hints(residuals, NAMES)
    checks = [
        moved,
        check_local_markov(residuals, NAMES),
        check_neighbours(residuals, given_neighbours(residuals), NAMES, "pass time="),
        check_invariance(residuals, NAMES, (0, 1)),
        check_breadth(model.topology, (0, 1)),
    ]
    assert hints == []
    assert [one.check for one in checks if one.failed] == []
    assert all(one.p_value is None or one.p_value > 0.01 for one in checks)


def test_statistics_of_a_true_model_are_standard_normal():
    model = _model(1.0)
    found = [z_value(_residuals(model, _rows(model, 400, seed)).products(2, 3)) for seed in range(200)]
    assert kstest(found, "norm").pvalue > 0.01


def test_residuals_that_move_together_are_named(model):
    z = _rows(model)
    shared = np.random.default_rng(1).standard_normal(len(z))
    z[:, 0] += 0.5 * shared
    z[:, 3] += 0.5 * shared
    hints, check = hidden_cause_hints(_residuals(model, z), NAMES)
    assert check.failed
    assert (hints[0].first, hints[0].second) == ("a", "d")
    assert "a and d" in check.words


def test_a_missing_arrow_shows_in_what_is_left(model):
    z = _rows(model)
    z[:, 2] += 0.5 * z[:, 3] ** 2
    check = check_local_markov(_residuals(model, z), NAMES)
    assert check.failed
    assert "c on d" in check.words


def test_neighbours_that_resemble_each_other(model):
    z = _rows(model)
    walk = np.convolve(np.random.default_rng(2).standard_normal(len(z) + 9), np.ones(10), "valid") / 10**0.5
    z[:, 3] = walk
    residuals = _residuals(model, z)
    check = check_neighbours(residuals, given_neighbours(residuals), NAMES, "pass time=")
    assert check.failed
    assert check.pairs == (("a", "d"), ("b", "d"), ("c", "d"))
    assert "d (" in check.words
    assert "time=" in check.words


@pytest.mark.parametrize("shift", [3.0, 2.0, 1.0])
def test_neighbours_are_alike_in_a_table_that_is_sorted_by_regime_and_pass(shift):
    model, rng = _model(shift), np.random.default_rng(3)
    z = np.vstack([model.sample(n, k, rng) for k, n in enumerate((2100, 900))])
    residuals = _residuals(model, z)
    alone = check_neighbours(residuals, residuals.responsibilities, NAMES, "pass time=")
    check = check_neighbours(residuals, given_neighbours(residuals), NAMES, "pass time=")
    assert np.corrcoef(z[1:, 1], z[:-1, 1])[0, 1] > 0.05
    assert check.statistic <= alone.statistic
    assert not check.failed
    assert check.p_value > 0.01


def test_rows_are_neighbours_in_time_whatever_their_order_in_the_table():
    rng = np.random.default_rng(5)
    x, order = rng.standard_normal((60, 2)), rng.permutation(60)
    dataset = Dataset.from_table(pd.DataFrame(x, columns=["a", "b"]), time=np.argsort(order).astype(float))
    before = row_before(dataset)
    assert np.array_equal(in_order(before), order)
    assert before[order[0]] == -1
    gap = pd.DataFrame(np.where(np.arange(60)[:, None] == 20, np.nan, x), columns=["a", "b"])
    assert row_before(Dataset.from_table(gap, missing="drop")).tolist() == [
        -1,
        *range(19),
        -1,
        *range(20, 58),
    ]


def test_a_mechanism_that_does_not_hold_in_a_regime(model):
    z = _rows(model)
    z[model.responsibilities(z)[:, 1] > 0.5, 3] += 1.0
    check = check_invariance(_residuals(model, z), NAMES, ("usual", "drug"))
    assert check.failed
    assert "d in regime drug" in check.words


def test_a_regime_that_changes_most_variables_is_a_population(model):
    topology = model.topology
    targets = topology.targets.copy()
    targets[1, :3] = 1
    broad = Topology(topology.adjacency, targets, topology.weights)
    check = check_breadth(broad, ("usual", "drug"))
    assert check.failed
    assert "drug (3 of 4)" in check.words
    assert not check_breadth(broad, ("usual", "drug"), 0.8 * targets).failed  # not so surely


@pytest.mark.parametrize(
    ("hit", "d", "failed"), [(2, 8, False), (4, 8, False), (5, 8, True), (3, 5, False), (4, 5, True)]
)
def test_one_target_that_a_wrong_arrow_added_makes_no_population(hit, d, failed):
    targets = np.zeros((2, d), dtype=np.int8)
    targets[1, :hit] = 1
    topology = Topology(np.zeros((d, d), dtype=np.int8), targets, np.array([0.7, 0.3]))
    assert check_breadth(topology, ("usual", "drug"), targets.astype(float)).failed == failed


def _preprocessor(x, transform="none"):
    return Dataset.from_table(pd.DataFrame(x, columns=NAMES), transform=transform).preprocessor


def test_columns():
    x = np.random.default_rng(3).standard_normal((1000, 4))
    assert not any(
        check.failed
        for check in (
            check_atoms(x, Atoms.of(x), NAMES),
            check_skew(x, NAMES, _preprocessor(x)),
            check_copies(x, NAMES),
        )
    )
    raw = np.column_stack([np.exp(x[:, 0]), *x[:, 1:].T])
    check = check_skew(raw, NAMES, _preprocessor(raw))
    assert check.failed
    assert check.words.startswith("a is skewed")
    assert not check_skew(raw, NAMES, _preprocessor(np.exp(x), "log")).failed
    holes = np.where(np.arange(1000)[:, None] % 7 == np.arange(4), np.nan, raw)
    assert check_skew(holes, NAMES, _preprocessor(raw)).words.startswith("a is skewed")
    copied = np.column_stack([x[:, :3], x[:, 0] + 0.005 * x[:, 3]])
    check = check_copies(copied, NAMES)
    assert check.failed
    assert "a and d" in check.words
    cut = np.maximum(x, np.quantile(x, 0.2, axis=0))
    check = check_atoms(cut, Atoms.of(cut), NAMES)
    assert check.failed
    assert "20%" in check.words


def _sparse(n, seed, loading=0.0, error=0.0):
    """Six variables in a chain, or three pairs that a hidden variable moves; maybe measured with errors."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 6))
    regimes = rng.integers(0, 3, n)
    z[regimes == 1, 0] += 3.0
    for j in range(1, 6):
        z[:, j] += z[:, j - 1] * (j % 2 == 1 or not loading)
        if j == 3:
            z[regimes == 2, j] = 3.0 + rng.standard_normal((regimes == 2).sum())
    z += loading * z.std(axis=0) * rng.standard_normal((n, 1)) + error * z.std(axis=0) * rng.standard_normal(
        (n, 6)
    )
    return (z - z.mean(axis=0)) / z.std(axis=0), np.eye(3)[regimes]


@pytest.mark.parametrize(("loading", "error"), [(0.0, 0.0), (0.7, 0.0), (0.0, 0.6)])
def test_rivals_win_where_they_are_true(loading, error):
    z, q = _sparse(2000, 4, loading, error)
    plain = best_lines(z, q)
    factor, errors = look_for_factor(z, q, plain), look_for_errors(z, q, plain)
    assert (factor.gain > max(10.0, errors.gain)) == (loading > 0.0)
    assert (errors.gain > max(10.0, factor.gain)) == (error > 0.0)
    if loading:
        assert factor.loaded.size > 3
        assert factor.arrows[1] == 3


def test_rivals_find_the_regimes_that_a_fit_has_missed():
    """One regime of three was split and half of another lies in it: from there alone a hidden variable loses."""
    z, q = _sparse(2000, 4, loading=0.7)
    wrong = np.argmax(q, axis=1)
    wrong[(wrong == 0) & (z[:, 2] > 0.0)] = 3
    wrong[(wrong == 1) & (z[:, 4] > 0.5)] = 0
    begun = np.eye(4)[wrong]
    plain = best_lines(z, begun)
    rival = WithFactor(6)
    starts = [Start(rival, partial(rival.start, loading=loading)) for loading in FACTOR_LOADINGS]
    once = max(start.climb(z, begun).evidence for start in starts)
    found = explore(starts, z, begun, plain.evidence)
    assert found.reached.evidence > once + 1.0
    assert found.gain == pytest.approx(found.reached.evidence - plain.evidence)
    told = explore(starts, z, begun, plain.evidence, told=True)
    assert np.array_equal(told.reached.responsibilities, begun)


def test_evidence_of_lines_is_that_of_the_search():
    from latentdo.solvers.search.driver import SearchConfiguration, make_problem
    from latentdo.solvers.search.em import weigh

    z, q = _sparse(500, 5)
    plain = best_lines(z, q)
    problem = make_problem(Dataset.from_table(pd.DataFrame(z, columns=list("abcdef"))), SearchConfiguration())
    assert plain.evidence == pytest.approx(weigh(problem, plain.model).evidence, abs=1e-6)


def test_corrected_for_the_number_of_places():
    assert p_value(0.0, 1) == 1.0
    assert p_value(1.959963985, 1) == pytest.approx(0.05)
    assert p_value(-3.290526731, 10) == pytest.approx(0.01)


def test_residuals_of_every_kind_are_uniform_and_parents_of_every_kind_are_opened():
    rng = np.random.default_rng(6)
    cause, tissue = rng.standard_normal(4000), rng.integers(0, 3, 4000)
    effect = cause + 2.0 * (tissue == 1)
    z = np.column_stack(
        [cause, tissue, rng.random(4000) < expit(effect), rng.poisson(np.exp(0.5 * effect)), effect]
    ).astype(float)
    z[:, 4] += rng.standard_normal(4000)
    levels = Kind("categorical", ("a", "b", "c")), Kind("binary", ("no", "yes"))
    family = MixedFamily((Kind(), *levels, Kind("count"), Kind()), AnyNoise)
    prepared, parents = family.prepare(z), np.array([0, 1])
    for j in (2, 3, 4):
        x, y = z[:, :2], np.ascontiguousarray(z[:, j])
        fitted = family.of(j).given(prepared, parents).fit(x, y, np.ones(4000))
        below = fitted.below(x, y, rng)
        assert kstest(below, "uniform").pvalue > 0.01
        assert np.array_equal(below, fitted.below(x, y, rng)) == (
            j == 4
        )  # a formula, or ties broken at random


@pytest.mark.parametrize(
    ("kinds", "told", "failed"),
    [
        (("binary", "categorical"), False, True),
        (("binary", "categorical"), True, False),
        (("binary", "count"), False, False),
        (("continuous", "binary"), False, False),
    ],
)
def test_levels_alone_hardly_show_a_regime(kinds, told, failed):
    levels = {"binary": ("0", "1"), "categorical": ("a", "b", "c")}
    found = check_measured([Kind(kind, levels.get(kind, ())) for kind in kinds], told=told)
    assert found.failed is failed
    assert ("regimes=" in found.words) is failed
