"""``groups=``: rows that share one regime, from the table to what is saved."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

import latentdo
from latentdo import BootstrapDAG, LatentInterventionDAG, TunedDAG, simulate
from latentdo.metrics import adjusted_rand_index
from latentdo.tuning import held_out_log_likelihood

LINES = {"density": "linear", "noise": "gaussian", "n_init": 2}


@pytest.fixture(scope="module")
def weak():
    """Shifts of one standard deviation: single rows hardly show them."""
    return simulate(
        n_variables=4, n_samples=1500, preset="dcdi", separation=1.0, random_state=1000, group_size=20
    )


@pytest.fixture(scope="module")
def grouped(weak):
    return LatentInterventionDAG(**LINES).fit(weak.X, groups=weak.groups)


def test_groups_show_what_single_rows_do_not(weak, grouped):
    first = np.unique(weak.groups, return_index=True)[1]
    best = weak.bayes_responsibilities(groups=weak.groups).argmax(axis=1)
    ceiling = adjusted_rand_index(weak.regimes[first], best[first])
    reached = adjusted_rand_index(weak.regimes[first], grouped.regimes_[first])
    assert reached >= min(0.95, ceiling)
    np.testing.assert_array_equal(grouped.adjacency_, weak.adjacency)
    assert (
        adjusted_rand_index(weak.regimes, grouped.predict(weak.X)) < 0.3
    )  # the same model, without the groups
    for group in np.unique(weak.groups):
        rows = grouped.responsibilities_[weak.groups == group]
        assert (rows == rows[0]).all()


@pytest.mark.slow
def test_the_bar_of_weak_shifts():
    """The benchmark as it is, ten variables and 10 000 rows: groups of 20 give nearly all groups and the graph."""
    agreement, distance = [], []
    for seed in range(1000, 1004):
        data = simulate(preset="dcdi", separation=1.0, random_state=seed, group_size=20)
        est = LatentInterventionDAG(density="linear", noise="gaussian").fit(data.X, groups=data.groups)
        first = np.unique(data.groups, return_index=True)[1]
        agreement.append(adjusted_rand_index(data.regimes[first], est.regimes_[first]))
        distance.append((est.adjacency_.to_numpy() != data.adjacency.to_numpy()).sum())
    assert np.mean(agreement) >= 0.95  # knowing the model, nobody reaches more than 0.963
    assert np.mean(distance) <= 0.5


def test_groups_of_one_row_change_no_digit(data):
    plain = LatentInterventionDAG(**LINES).fit(data.X)
    alone = LatentInterventionDAG(**LINES).fit(data.X, groups=[f"row {i}" for i in range(len(data.X))])
    assert plain.evidence_ == alone.evidence_
    np.testing.assert_array_equal(plain.responsibilities_, alone.responsibilities_)
    np.testing.assert_array_equal(plain.edge_probabilities_, alone.edge_probabilities_)
    np.testing.assert_array_equal(
        plain.predict_proba(data.X), alone.predict_proba(data.X, groups=data.groups)
    )


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter(weak, grouped):
    order = np.random.default_rng(0).permutation(len(weak.X))
    names = np.array([f"plate {chr(65 + g % 7)}{g}" for g in weak.groups])
    again = LatentInterventionDAG(**LINES).fit(weak.X.iloc[order], groups=names[order])
    assert adjusted_rand_index(grouped.regimes_[order], again.regimes_) == 1.0
    assert again.evidence_ == pytest.approx(grouped.evidence_, rel=1e-6)
    np.testing.assert_array_equal(again.adjacency_, grouped.adjacency_)


def test_new_rows_are_assigned_and_scored_by_groups(weak, grouped):
    """Against a sum over all joint assignments of three small groups."""
    X, groups = weak.X.iloc[:6], np.array([0, 1, 0, 2, 1, 0])
    result = grouped.result_
    z = result.preprocessor.forward(X.to_numpy())
    density, log_weights = result.model.log_density(z), np.log(result.model.topology.weights)
    n_regimes = grouped.n_regimes_
    terms = {
        joint: sum(log_weights[k] + density[groups == g, k].sum() for g, k in enumerate(joint))
        for joint in itertools.product(range(n_regimes), repeat=3)
    }
    total = logsumexp(list(terms.values()))
    posterior = np.zeros((3, n_regimes))
    for joint, term in terms.items():
        posterior[[0, 1, 2], list(joint)] += np.exp(term - total)
    np.testing.assert_allclose(grouped.predict_proba(X, groups=groups), posterior[groups])
    np.testing.assert_array_equal(grouped.predict(X, groups=groups), posterior.argmax(axis=1)[groups])
    jacobian = result.preprocessor.log_jacobian(X.to_numpy()).sum()
    assert grouped.score_samples(X, groups=groups).sum() == pytest.approx(total + jacobian)
    assert grouped.score(X, groups=groups) == pytest.approx((total + jacobian) / 6)


def test_predictions_of_the_fitted_rows_are_the_fit(weak, grouped):
    np.testing.assert_allclose(
        grouped.predict_proba(weak.X, groups=weak.groups), grouped.responsibilities_, atol=1e-9
    )


def test_explanations_add_up_to_the_log_odds_of_the_group(weak, grouped):
    rows = np.flatnonzero(np.isin(weak.groups, (0, 1)))
    table = grouped.explain(weak.X.iloc[rows], groups=weak.groups[rows], against=0)
    probability = grouped.predict_proba(weak.X.iloc[rows], groups=weak.groups[rows])
    for place, row in enumerate(weak.X.index[rows]):
        lines = table[table["row"] == row]
        k = grouped.regime_names_.index(lines["regime"].iloc[0])
        odds = np.log(probability[place, k]) - np.log(probability[place, 0])
        assert lines["log_ratio"].sum() == pytest.approx(odds, abs=1e-6)
        assert "(other rows of the group)" in set(lines["variable"])
    alone = grouped.explain(weak.X.iloc[:2])
    assert "(other rows of the group)" not in set(alone["variable"])


def test_missing_groups_are_rows_on_their_own(weak):
    names = pd.Series([f"plate {g}" for g in weak.groups], dtype=object)
    names[weak.groups == 0] = None
    est = LatentInterventionDAG(**LINES).fit(weak.X, groups=names)
    alone = int((weak.groups == 0).sum())
    assert est.result_.n_groups == np.unique(weak.groups).size - 1 + alone
    table = est.result_.regime_table()
    assert table["group"].isna().sum() == alone
    assert (table["group"].dropna() == names.dropna()).all()
    rows = est.responsibilities_[weak.groups == 0]
    assert not np.allclose(rows, rows[0])


def test_a_label_of_one_row_is_that_of_its_group(weak):
    first = np.unique(weak.groups, return_index=True)[1][::3]
    labels = np.full(len(weak.X), -1)
    labels[first] = weak.regimes[first]
    est = LatentInterventionDAG(**LINES).fit(weak.X, regimes=labels, groups=weak.groups)
    known = np.isin(weak.groups, weak.groups[first])
    np.testing.assert_array_equal(est.regimes_[known], weak.regimes[known])
    assert (est.responsibilities_[known].max(axis=1) == 1.0).all()
    assert est.result_.configuration["labelled_rows"] == known.sum()
    assert adjusted_rand_index(weak.regimes, est.regimes_) > 0.9


def test_conflicting_labels_name_group_rows_and_remedy(weak):
    labels = np.array(["drug"] * 5 + ["control"] * (len(weak.X) - 5), dtype=object)
    groups = np.array([f"plate {g}" for g in weak.groups], dtype=object)
    groups[[3, 7]] = "plate X"
    with pytest.raises(ValueError, match=r"(?s)'plate X'.*row 3.*'drug'.*row 7.*'control'.*split the group"):
        LatentInterventionDAG(observational="control").fit(
            weak.X.iloc[:9], regimes=labels[:9], groups=groups[:9]
        )


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        ("plate", TypeError, "one label per row"),
        ([1, 2], ValueError, r"2 entries.*1500 rows"),
        ([[1]] * 1500, TypeError, "hashable"),
        (np.zeros((1500, 2)), ValueError, "1D"),
    ],
)
def test_groups_that_are_none_are_refused(weak, groups, error, words):
    with pytest.raises(error, match=rf"groups.*{words}"):
        LatentInterventionDAG().fit(weak.X, groups=groups)


def test_a_series_in_another_order_is_refused(weak):
    groups = pd.Series(weak.groups, index=weak.X.index)[::-1]
    with pytest.raises(ValueError, match=r"groups.loc\[X.index\]"):
        LatentInterventionDAG().fit(weak.X, groups=groups)


@pytest.mark.parametrize("solver", ["gradient", "paper"])
def test_solvers_that_assign_single_rows_refuse_groups(weak, solver):
    with pytest.raises(ValueError, match=rf"groups= .*solver='{solver}'.*solver='search'"):
        LatentInterventionDAG(solver=solver).fit(weak.X, groups=weak.groups)


def test_dropped_rows_leave_their_groups(weak):
    X = weak.X.copy()
    X.iloc[4, 0] = np.nan
    est = LatentInterventionDAG(**LINES, missing="drop", max_regimes=2).fit(X, groups=weak.groups)
    expected = np.delete(weak.groups, 4)
    assert est.result_.n_groups == np.unique(expected).size
    np.testing.assert_array_equal(est.result_.regime_table()["group"].to_numpy(), expected)


def test_more_rows_than_are_searched(weak, monkeypatch):
    """Structure is searched on whole groups, and all rows are then assigned by groups."""
    from latentdo.solvers.search import solve

    monkeypatch.setattr(solve, "LINEAR_SEARCH_ROWS", 800)
    monkeypatch.setattr(solve, "ROWS_PER_REGIME", 1)
    est = LatentInterventionDAG(**LINES).fit(weak.X, groups=weak.groups)
    assert any(entry["step"] == "all rows" for entry in est.history_)
    assert adjusted_rand_index(weak.regimes, est.regimes_) > 0.9
    for group in np.unique(weak.groups):
        rows = est.responsibilities_[weak.groups == group]
        assert (rows == rows[0]).all()


def test_saved_and_loaded(grouped, weak, tmp_path):
    path = tmp_path / "model.safetensors"
    grouped.save(path)
    loaded = LatentInterventionDAG.load(path)
    assert loaded.result_.n_groups == grouped.result_.n_groups
    pd.testing.assert_frame_equal(loaded.result_.regime_table(), grouped.result_.regime_table())
    np.testing.assert_array_equal(
        loaded.predict(weak.X, groups=weak.groups), grouped.predict(weak.X, groups=weak.groups)
    )


def test_metadata_can_be_routed(weak):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        est = LatentInterventionDAG(**LINES).set_fit_request(groups=True).set_score_request(groups=True)
        requests = clone(est).get_metadata_routing()
    assert requests.fit.requests["groups"] is True
    assert requests.score.requests["groups"] is True


@pytest.mark.parametrize("resample", ["half", "bootstrap"])
def test_resamples_are_of_whole_groups(weak, resample, monkeypatch):
    seen = []
    fit = LatentInterventionDAG.fit

    def watched(self, X, *args, **known):
        seen.append((X, known["groups"]))
        return fit(self, X, *args, **known)

    monkeypatch.setattr(LatentInterventionDAG, "fit", watched)
    base = LatentInterventionDAG(**LINES | {"n_init": 1})
    boot = BootstrapDAG(base, n_resamples=2, resample=resample).fit(weak.X, groups=weak.groups)
    rows_of = dict(zip(weak.X["X1"], weak.groups, strict=True))
    sizes = np.bincount(weak.groups)
    for X, groups in seen[1:]:
        origin = np.array([rows_of[x] for x in X["X1"]])
        for group in np.unique(groups):  # a group that was drawn twice is two groups
            (name,) = np.unique(origin[groups == group])
            assert (groups == group).sum() == sizes[name]
        expected = sizes.size // 2 if resample == "half" else sizes.size
        assert np.unique(groups).size == expected
    assert boot.regime_stability_["stability"].mean() > 0.7
    other = BootstrapDAG(base, n_resamples=2, resample=resample, warm_start=True)
    other.__dict__.update({name: value for name, value in boot.__dict__.items() if name.endswith("_")})
    with pytest.raises(ValueError, match="other groups"):
        other.fit(weak.X)


def test_held_out_groups_are_whole(weak):
    tuned = TunedDAG(LatentInterventionDAG(**LINES | {"n_init": 1}), n_trials=1)
    tuned.fit(weak.X, groups=weak.groups)
    assert tuned.best_estimator_.result_.n_groups == np.unique(weak.groups).size
    np.testing.assert_array_equal(
        tuned.predict(weak.X, groups=weak.groups),
        tuned.best_estimator_.predict(weak.X, groups=weak.groups),
    )
    assert tuned.score(weak.X, groups=weak.groups) > tuned.score(weak.X)


def test_a_labelled_group_is_scored_with_its_label_once(weak, grouped):
    X, groups = weak.X.iloc[:3], np.array(["a", "a", "b"])
    label = grouped.regime_names_[1]
    scores = held_out_log_likelihood(grouped, X, [label, label, None], groups=groups)
    z = grouped.result_.preprocessor.forward(X.to_numpy())
    joint = grouped.result_.model.log_density(z[:2]).sum(axis=0) + np.log(grouped.regime_weights_)
    jacobian = grouped.result_.preprocessor.log_jacobian(X.to_numpy())
    assert scores[:2].sum() == pytest.approx(joint[1] + jacobian[:2].sum())
    assert scores[2] == pytest.approx(grouped.score_samples(X.iloc[2:])[0])


def test_a_diagnosis_draws_groups(grouped):
    diagnosis = grouped.diagnose(n_repeats=1)
    assert diagnosis.repeats["ceiling"].iloc[0] > 0.8  # single rows: below 0.2
    assert diagnosis.regimes["recognised"].min() > 0.8


def test_effects_know_the_rows_behind_mechanisms(grouped, weak):
    cause, effect = next((a, b) for a in weak.adjacency for b in weak.adjacency if weak.adjacency.loc[a, b])
    table = grouped.effect(cause, on=effect)
    assert table["low"].iloc[0] < table["change"].iloc[0] < table["high"].iloc[0]


@pytest.mark.parametrize("density", ["additive"])
def test_families_fitted_to_rows_take_groups(density):
    data = simulate(n_variables=3, n_samples=600, preset="dcdi", random_state=1001, group_size=10)
    est = LatentInterventionDAG(density=density).fit(data.X, groups=data.groups)
    assert adjusted_rand_index(data.regimes, est.regimes_) > 0.8
    np.testing.assert_allclose(
        est.responsibilities_, est.predict_proba(data.X, groups=data.groups), atol=1e-9
    )


def test_the_public_names_did_not_grow():
    assert not hasattr(latentdo, "Groups")
