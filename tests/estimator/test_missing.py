"""Fits to tables with missing cells, and answers about rows that lack some."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from latentdo import BootstrapDAG, LatentInterventionDAG, TunedDAG, simulate
from latentdo.data import DataWarning
from latentdo.metrics import hamming_distance

LINES = {"density": "linear", "noise": "gaussian", "n_init": 1}


def with_holes(X, share=0.1, seed=0):
    return X.mask(np.random.default_rng(seed).random(X.shape) < share)


def fit(X, *, known=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return LatentInterventionDAG(**LINES | {"missing": "model"} | options).fit(X, **(known or {}))


@pytest.fixture(scope="module")
def data():
    options = {"n_variables": 4, "n_samples": 1000, "n_regimes": 2, "separation": 4.0}
    return simulate(preset="field", random_state=1004, **options)


@pytest.fixture(scope="module")
def holes(data):
    X = with_holes(data.X)
    X.iloc[7] = np.nan
    return X


@pytest.fixture(scope="module")
def fitted(holes):
    return fit(holes)


def test_what_is_found_in_whole_rows_is_found_in_these(data, fitted):
    assert hamming_distance(data.adjacency, fitted.adjacency_) <= 1  # the bar of the issue
    np.testing.assert_array_equal(fitted.targets_.to_numpy(), data.targets.to_numpy())
    assert (fitted.regimes_ == data.regimes).mean() > 0.9


def test_no_row_is_lost_and_an_empty_one_has_the_weights(holes, fitted):
    assert fitted.responsibilities_.shape == (len(holes), 2)
    np.testing.assert_allclose(fitted.responsibilities_[7], fitted.regime_weights_)
    np.testing.assert_allclose(fitted.predict_proba(holes), fitted.responsibilities_)


def test_rows_that_lack_cells_are_assigned_less_surely(data, holes, fitted):
    lacking = holes.isna().any(axis=1).to_numpy()
    sure = fitted.predict_proba(data.X).max(axis=1)
    assert fitted.responsibilities_.max(axis=1)[lacking].mean() < sure[lacking].mean()


def test_the_score_is_that_of_what_is_seen(data, fitted):
    """Summed over the values of a cell, the density of whole rows is that of rows without it."""
    row = data.X.iloc[[3]]
    middle, spread = data.X.iloc[:, 1].mean(), data.X.iloc[:, 1].std()
    grid = np.linspace(middle - 20.0 * spread, middle + 20.0 * spread, 20_001)
    whole = pd.concat([row] * grid.size).assign(**{row.columns[1]: grid})
    expected = np.log(np.exp(fitted.score_samples(whole)).sum() * (grid[1] - grid[0]))
    row = row.assign(**{row.columns[1]: np.nan})
    np.testing.assert_allclose(fitted.score_samples(row), [expected], atol=1e-6)
    assert fitted.score(row) == pytest.approx(expected, abs=1e-6)


def test_the_count_the_assumption_and_the_evidence_are_kept(holes, fitted, tmp_path):
    result = fitted.result_
    assert result.configuration["missing_cells"] == int(holes.isna().sum().sum())
    said = [one for one in result.warnings if "missing" in one]
    assert len(said) == 1, "nothing else is remarkable about cells that are missing by chance"
    assert "missing at random" in said[0]
    assert result.evidence == pytest.approx(sum(result.evidence_terms.values()), rel=1e-6)
    assert result.evidence_terms["missing cells"] != 0.0
    fitted.save(tmp_path / "model")
    again = LatentInterventionDAG.load(tmp_path / "model")
    assert again.missing == "model"
    np.testing.assert_array_equal(again.predict_proba(holes), fitted.predict_proba(holes))


def test_a_column_that_an_intervention_hides_is_named(data):
    hit = np.flatnonzero(data.targets.to_numpy()[1])[0]
    other = data.X.columns[0 if hit else 1]
    chance = np.where(data.regimes == 1, 0.5, 0.02)
    X = data.X.assign(**{other: data.X[other].mask(np.random.default_rng(0).random(len(data.X)) < chance)})
    with pytest.warns(DataWarning, match=f"in some regimes.*{other!r} in .* of the rows of regime"):
        est = LatentInterventionDAG(**LINES, missing="model").fit(X)
    assert any("in some regimes" in one for one in est.result_.warnings)


def test_fits_are_reproducible(holes, fitted):
    again = fit(holes)
    assert again.evidence_ == fitted.evidence_
    np.testing.assert_array_equal(again.responsibilities_, fitted.responsibilities_)


@pytest.mark.parametrize("effect", [0.0, 0.25])
def test_probabilities_are_as_sure_as_pairs_that_were_measured(effect):
    """Of two variables, rows without either say nothing of the other: draws in their place must not either."""
    odds = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=400)
        X = pd.DataFrame({"a": a, "b": effect * a + rng.normal(size=400)})
        holes = X.mask(rng.random(X.shape) < 0.2)
        found = (
            fit(x, missing=way, max_regimes=1) for x, way in ((X, "error"), (holes, "drop"), (holes, "model"))
        )
        odds.append([logit(one.edge_probabilities_.to_numpy().sum()) for one in found])
    whole, pairs, drawn = np.array(odds).T
    surplus = drawn - pairs  # of single tables up to 4
    assert abs(surplus.mean()) < 2.0 * surplus.std(ddof=1) / np.sqrt(surplus.size)
    assert drawn.mean() < whole.mean() - 2.0 or not effect


@pytest.mark.parametrize("few", [False, True])
def test_no_interventions_are_invented(few):
    options = {"n_variables": 3, "n_samples": 600, "n_regimes": 1, "noise": "gaussian"}
    X = with_holes(simulate(preset="field", random_state=1001, **options).X, 0.2)
    if few:  # rows without a hole do not suffice
        X.iloc[50:, 0] = X.iloc[50:, 0].mask(~X.iloc[50:].isna().any(axis=1))
    assert fit(X).n_regimes_ == 1


def test_groups_weights_and_labels_are_heeded(data, holes):
    groups = np.arange(len(holes)) // 2 * 2 + data.regimes * 100_000
    est = fit(holes, known={"groups": groups, "sample_weight": np.full(len(holes), 0.5)})
    pairs = pd.Series(est.regimes_).groupby(groups).nunique()
    assert (pairs == 1).all()
    known = fit(holes, known={"regimes": data.regimes})
    np.testing.assert_array_equal(known.regimes_, data.regimes)


@pytest.mark.parametrize("density", ["additive", "nonlinear"])
def test_curves_are_found_beside_holes(density):
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    X = with_holes(pd.DataFrame({"a": a, "b": np.tanh(2.0 * a) + 0.3 * rng.normal(size=300)}))
    est = fit(X, density=density, noise="auto", max_regimes=1)
    assert est.adjacency_.to_numpy().tolist() == [[0, 1], [0, 0]]
    assert np.isfinite(est.score_samples(X)).all()


def test_a_batch_or_label_without_whole_rows(data, holes):
    """The first fit is then to all rows, filled in."""
    X = holes.copy()
    second = np.arange(len(X)) >= 700
    X.loc[second, X.columns[0]] = X.loc[second, X.columns[0]].mask(~X[second].isna().any(axis=1))
    est = fit(X, known={"batch": np.where(second, "b", "a")}, max_regimes=1)
    assert est.predict(X, batch=np.where(second, "b", "a")).shape == (len(X),)
    with pytest.raises(ValueError, match=r"batch of row 0.*fill them in"):
        est.predict(X, batch=["c"] * len(X))
    known = fit(X, known={"regimes": second.astype(int)}, max_regimes=2)
    np.testing.assert_array_equal(known.regimes_, second)


def test_rows_in_order_of_time():
    rng = np.random.default_rng(0)
    n = 600
    noise = rng.normal(size=(n, 2))
    x = np.zeros((n, 2))
    for t in range(1, n):
        x[t] = 0.5 * x[t - 1] + noise[t]
    x[:, 1] += x[:, 0]
    X = with_holes(pd.DataFrame(x, columns=["a", "b"]))
    est = fit(X, known={"time": np.arange(n)}, max_regimes=2)
    assert len(est.regimes_) == n
    assert est.n_regimes_ == 1  # noise that remembers is no intervention, with holes in it either
    with pytest.raises(ValueError, match=r"row \d+ .*lacks '[ab]'.*lags=0"):
        est.predict(X, time=np.arange(n))
    plain = fit(X, known={"time": np.arange(n)}, max_regimes=2, lags=0)
    assert plain.predict(X, time=np.arange(n)).shape == (n,)


def test_resamples_and_trials_keep_the_holes(holes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = LatentInterventionDAG(**LINES, missing="model", max_regimes=1)
        support = BootstrapDAG(model, n_resamples=2).fit(holes)
        tuned = TunedDAG(model, n_trials=2).fit(holes)
    assert len(support.estimator_.regimes_) == len(tuned.best_estimator_.regimes_) == len(holes)


def test_what_is_refused_says_what_to_do(data, holes, fitted):
    lacking = holes.isna().any(axis=1).to_numpy()
    with pytest.raises(ValueError, match=f"row {lacking.argmax()} .*whole rows"):
        fitted.explain(holes)
    whole = int(np.flatnonzero(~lacking)[0])
    explained = fitted.explain(holes, rows=[whole])
    assert np.isfinite(explained["log_ratio"]).all()
    strict = LatentInterventionDAG(**LINES, max_regimes=1).fit(data.X)
    with pytest.raises(ValueError, match='missing="model"'):
        strict.predict(holes)
    assert strict.set_params(missing="model").predict(holes).shape == (len(holes),)
    with pytest.raises(ValueError, match="inf in row 0"):
        fitted.predict(holes.iloc[:1] * 0.0 + np.inf)
    with pytest.raises(ValueError, match="memory"):
        LatentInterventionDAG(missing="model").fit_stream([holes])


def of_all_kinds(n=1200, seed=1001):
    """tissue -> weight -> failed, weight -> clicks; in a third of the rows clicks are cut off and rise."""
    rng = np.random.default_rng(seed)
    regimes = (rng.random(n) < 0.35).astype(np.int64)
    tissue = rng.choice(3, n, p=[0.4, 0.35, 0.25])
    weight = np.array([-1.5, 0.0, 1.5])[tissue] + rng.normal(size=n)
    failed = (rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * weight))).astype(np.int64)
    clicks = rng.poisson(np.where(regimes == 1, 25.0, np.exp(0.8 + 0.6 * weight)))
    names = np.array(["liver", "lung", "skin"])[tissue]
    return pd.DataFrame({"tissue": names, "weight": weight, "failed": failed, "clicks": clicks}), regimes


@pytest.fixture(scope="module")
def mixed():
    X, regimes = of_all_kinds()
    X = with_holes(X)
    X.iloc[7] = np.nan
    return X, regimes, fit(X, density="linear", noise="auto")


def test_holes_in_columns_of_every_kind_leave_the_graph(mixed):
    X, regimes, est = mixed
    assert [kind.kind for kind in est.result_.kinds] == ["categorical", "continuous", "binary", "count"]
    found = {
        frozenset(pair) for pair in zip(*np.nonzero(est.adjacency_.to_numpy()), strict=True)
    }  # of tissue and weight the direction is open
    assert found == {frozenset((0, 1)), frozenset((1, 2)), frozenset((1, 3))}
    assert est.adjacency_.loc["weight", "clicks"] == 1
    assert est.targets_.to_numpy().tolist() == [[0, 0, 0, 0], [0, 0, 0, 1]]
    assert len(est.regimes_) == len(X)
    assert (est.regimes_ == regimes).mean() > 0.9
    np.testing.assert_allclose(est.responsibilities_[7], est.regime_weights_)
    np.testing.assert_allclose(est.predict_proba(X), est.responsibilities_)


@pytest.mark.parametrize("column", ["tissue", "failed", "clicks"])
def test_the_score_sums_over_levels_and_counts(mixed, column):
    X, _, est = mixed
    row = X[X.notna().all(axis=1)].iloc[[3]]
    values = {"tissue": ["liver", "lung", "skin"], "failed": [0, 1], "clicks": range(200)}[column]
    whole = pd.concat([row.assign(**{column: value}) for value in values])
    expected = np.log(np.exp(est.score_samples(whole)).sum())
    lacking = row.assign(**{column: pd.Series([None], index=row.index, dtype=object)})
    # Importance sampling where something follows from the cell
    assert est.score(lacking) == pytest.approx(expected, abs=1e-6 if column == "clicks" else 0.1)


def test_few_whole_rows_of_every_kind():
    X = of_all_kinds(n=300)[0]
    for place, name in enumerate(X.columns):  # no row is whole
        X[name] = X[name].mask(np.arange(len(X)) % len(X.columns) == place)
    est = fit(X, density="linear", noise="auto", max_regimes=1)
    assert est.adjacency_.to_numpy()[[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]].sum() >= 2  # of three
    drawn = est.sample(50)
    assert set(drawn["tissue"]) <= {"liver", "lung", "skin"}


def test_levels_that_cells_depend_on_are_named():
    X = of_all_kinds(n=600)[0]
    X["weight"] = X["weight"].mask((X["tissue"] == "lung") & (np.arange(600) % 2 == 0))
    with pytest.warns(DataWarning, match="'weight' more often where 'tissue' is 'lung'"):
        LatentInterventionDAG(**LINES | {"noise": "auto"}, missing="model", max_regimes=1).fit(X)
