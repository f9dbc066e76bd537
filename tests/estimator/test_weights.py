"""``sample_weight``: a row of weight 2 is the row twice, one of weight 0 is not there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentdo import BootstrapDAG, LatentInterventionDAG, TunedDAG

LINES = {"density": "linear", "noise": "gaussian", "n_init": 1}
pytestmark = pytest.mark.filterwarnings("ignore:.*rows repeat")


class Chain:
    """a -> b -> c, and two interventions that nobody can miss; four rows in a row share their regime."""

    def __init__(self, n=400, seed=1000):
        rng = np.random.default_rng(seed)
        self.groups = np.arange(n) // 4
        self.regimes = rng.choice(3, n // 4, p=[0.6, 0.2, 0.2])[self.groups]
        a = rng.normal(size=n)
        b = np.where(self.regimes == 1, 8.0 + 0.5 * rng.normal(size=n), 1.5 * a + rng.normal(size=n))
        c = np.where(self.regimes == 2, -9.0 + 0.5 * rng.normal(size=n), -1.2 * b + rng.normal(size=n))
        self.X = pd.DataFrame({"a": a, "b": b, "c": c})
        self.targets = {1: ["b"], 2: ["c"]}


@pytest.fixture(scope="module")
def data():
    return Chain()


@pytest.fixture(scope="module")
def counts(data):
    return np.random.default_rng(0).integers(0, 4, len(data.X))


@pytest.fixture(scope="module")
def again(counts):
    return np.repeat(np.arange(len(counts)), counts)


def _same(one, two, nats=1e-2):
    assert one.evidence_ == pytest.approx(two.evidence_, abs=nats)
    pd.testing.assert_frame_equal(one.adjacency_, two.adjacency_)
    np.testing.assert_array_equal(one.targets_, two.targets_)
    np.testing.assert_allclose(one.regime_weights_, two.regime_weights_, atol=1e-3)
    # Half-samples of repeated rows are others than those of rows that count several times.
    np.testing.assert_allclose(one.model_edge_probabilities_, two.model_edge_probabilities_, atol=1e-2)


@pytest.mark.parametrize(
    "arguments", [LINES, {**LINES, "noise": "any"}, {"density": "additive", "n_init": 1}]
)
def test_a_fit_to_weighted_rows_is_that_to_repeated_rows(data, counts, again, arguments):
    curves = arguments.get("density") == "additive"
    # The knots of curves depend on rows, whatever these count: labels keep the search from going another way.
    labels = data.regimes if curves else None
    one = LatentInterventionDAG(**arguments).fit(data.X, regimes=labels, sample_weight=counts)
    two = LatentInterventionDAG(**arguments).fit(
        data.X.iloc[again], regimes=labels[again] if curves else None
    )
    _same(one, two, nats=1.0 if curves else 1e-2)
    np.testing.assert_allclose(one.predict_proba(data.X), two.predict_proba(data.X), atol=1e-2)
    assert one.score(data.X, sample_weight=counts) == pytest.approx(two.score(data.X.iloc[again]), rel=1e-3)
    assert len(one.regimes_) == np.count_nonzero(counts)


@pytest.mark.parametrize("known", ["labels", "some labels", "groups", "labels and targets"])
def test_weights_beside_what_else_is_known(data, counts, again, known):
    labels = pd.Series(data.regimes).astype(object)
    labels[1::2] = None if known == "some labels" else labels[1::2]
    told = {
        "labels": {"regimes": labels},
        "some labels": {"regimes": labels},
        "groups": {"groups": pd.Series(data.groups)},
        "labels and targets": {"regimes": labels},
    }[known]
    rest = {"targets": data.targets} if "targets" in known else {}
    est = LatentInterventionDAG(**LINES)
    one = LatentInterventionDAG(**LINES).fit(data.X, **told, **rest, sample_weight=counts)
    repeated = {name: column.iloc[again].to_numpy() for name, column in told.items()}
    _same(one, est.fit(data.X.iloc[again], **repeated, **rest))
    if known == "groups":
        members = data.groups
        assert one.score(data.X, groups=members, sample_weight=counts) == pytest.approx(
            est.score(data.X.iloc[again], groups=members[again]), rel=1e-4
        )


def test_a_row_of_weight_zero_is_not_there(data):
    weights = (np.arange(len(data.X)) % 5 > 0).astype(float) * 1.5
    rows = np.flatnonzero(weights)
    one = LatentInterventionDAG(**LINES).fit(data.X, sample_weight=weights)
    two = LatentInterventionDAG(**LINES).fit(data.X.iloc[rows], sample_weight=weights[rows])
    assert one.evidence_ == two.evidence_
    np.testing.assert_array_equal(one.responsibilities_, two.responsibilities_)
    assert one.score(data.X, sample_weight=weights) == pytest.approx(two.score(data.X.iloc[rows]))


def test_equal_weights_are_none_or_so_many_rows(data):
    plain = LatentInterventionDAG(**LINES).fit(data.X)
    ones = LatentInterventionDAG(**LINES).fit(data.X, sample_weight=np.ones(len(data.X)))
    assert ones.evidence_ == plain.evidence_
    _same(
        LatentInterventionDAG(**LINES).fit(data.X, sample_weight=2.0),
        LatentInterventionDAG(**LINES).fit(pd.concat([data.X, data.X])),
    )
    assert plain.score(data.X, sample_weight=3.0) == pytest.approx(plain.score(data.X))


def test_weights_in_order_of_time(data):
    weights, time = np.random.default_rng(1).uniform(0.5, 1.5, len(data.X)), np.arange(len(data.X))
    est = LatentInterventionDAG(**LINES, lags=0).fit(data.X, time=time, sample_weight=weights)
    plain = LatentInterventionDAG(**LINES, lags=0).fit(data.X, time=time)
    pd.testing.assert_frame_equal(est.adjacency_, plain.adjacency_)
    pd.testing.assert_frame_equal(est.segments_[["start", "end"]], plain.segments_[["start", "end"]])
    assert est.duration_ == pytest.approx(plain.duration_, rel=0.05)
    np.testing.assert_array_equal(est.result_.where.weight, weights)
    scores = [one.score(data.X, time=time, sample_weight=weights) for one in (est, plain)]
    assert scores[0] > scores[1]  # what was fitted to these weights


def test_weights_are_kept_with_the_fit(data, counts, tmp_path):
    est = LatentInterventionDAG(**LINES).fit(data.X, sample_weight=counts)
    assert est.result_.configuration["weight"] == counts.sum()
    np.testing.assert_array_equal(est.result_.regime_table()["weight"], counts[counts > 0])
    est.save(tmp_path / "model.safetensors")
    again = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.result_.where.weight, est.result_.where.weight)
    assert np.isfinite(est.diagnose(n_repeats=1).ceiling)


def test_networks_and_gradients_say_that_they_take_every_row_once(data, counts):
    for arguments in ({"density": "nonlinear"}, {"solver": "gradient"}, {"solver": "paper"}):
        with pytest.raises(ValueError, match=r"sample_weight= is not available with .*use .*repeat rows"):
            LatentInterventionDAG(**arguments).fit(data.X, sample_weight=counts)
    est = LatentInterventionDAG(n_init=1, max_regimes=1).fit(data.X, sample_weight=counts)
    assert any("networks" in note for note in est.result_.warnings)


def test_scores_refuse_bad_weights(data):
    est = LatentInterventionDAG(**LINES, max_regimes=1).fit(data.X)
    with pytest.raises(ValueError, match="row 3 "):
        est.score(data.X, sample_weight=np.where(np.arange(len(data.X)) == 3, -1.0, 1.0))


def test_weights_are_routed_by_scikit_learn(data, counts):
    with sklearn.config_context(enable_metadata_routing=True):
        est = LatentInterventionDAG(**LINES, max_regimes=1)
        est.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True).set_output(transform="pandas")
        pipeline = make_pipeline(scaler, est).fit(data.X, sample_weight=counts)
        assert pipeline[-1].result_.configuration["weight"] == counts.sum()
        found = cross_validate(est, data.X, params={"sample_weight": counts}, cv=2, return_estimator=True)
        half = len(data.X) - len(data.X) // 2
        rest, part = data.X.iloc[half:], counts[:half]
        expected = found["estimator"][1].score(data.X.iloc[half:], sample_weight=counts[half:])
        assert found["test_score"][1] == pytest.approx(expected)
        alone = LatentInterventionDAG(**LINES, max_regimes=1).fit(data.X.iloc[:half], sample_weight=part)
        assert alone.score(rest, sample_weight=counts[half:]) == pytest.approx(expected)


def test_resamples_and_trials_have_their_weights(data, counts, tmp_path):
    base = LatentInterventionDAG(**LINES)
    boot = BootstrapDAG(base, n_resamples=2).fit(data.X, sample_weight=counts)
    assert len(boot.resamples_) == 2
    assert "weight" in boot.fingerprint_
    boot.warm_start = True
    with pytest.raises(ValueError, match="other weight"):
        boot.fit(data.X, sample_weight=counts + (counts > 0))
    tuned = TunedDAG(base, n_trials=2, space={"edge_prior": [-1.0, -2.0]}).fit(data.X, sample_weight=counts)
    assert tuned.best_estimator_.result_.configuration["weight"] == counts.sum()
    assert tuned.score(data.X, sample_weight=counts) == tuned.best_estimator_.score(
        data.X, sample_weight=counts
    )
