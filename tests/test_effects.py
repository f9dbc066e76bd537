"""Effects and explanations against exact oracles, for the linear family and for one that only this file knows."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from latentdo import LatentInterventionDAG, simulate
from latentdo.effects import parameter_draws
from latentdo.model import FittedModel, Topology
from latentdo.model.mechanisms import LinearMechanism, Mechanism, Noise


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=4, edges_per_node=1, n_samples=1000, random_state=3)


@pytest.fixture(scope="module")
def fitted(data):
    """Odd units, known labels: the fit takes milliseconds."""
    units = data.X * [1.0, 50.0, 0.01, 3.0] + [10.0, 0.0, -5.0, 1e3]
    return LatentInterventionDAG(intervention="perfect").fit(units, regimes=data.regimes)


def _exact_slopes(est, equations, regime=0):
    """Total effect of one unit of the row variable on the column variable, in the user's units."""
    model, scale = est.result_.model, est.result_.preprocessor.scale
    direct = equations(model, regime)[0].T
    return np.linalg.inv(np.eye(len(scale)) - direct) * scale[None] / scale[:, None]


def test_shift_and_do_give_the_exact_total_effect(fitted, equations):
    slopes = _exact_slopes(fitted, equations)
    for i, cause in enumerate(fitted.adjacency_.columns):
        size = float(fitted.result_.preprocessor.scale[i])
        shifted = fitted.effect(cause, shift=2 * size)
        others = [j for j in range(4) if j != i]
        np.testing.assert_allclose(shifted["change"], 2 * size * slopes[i, others], rtol=1e-6, atol=1e-9)
        done = fitted.effect(cause, do=(-size, 3 * size))
        np.testing.assert_allclose(done["change"], 4 * size * slopes[i, others], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(done["after"] - done["before"], done["change"], rtol=1e-6, atol=1e-9)
        assert list(shifted.index) == [c for c in fitted.adjacency_.columns if c != cause]
        assert (shifted["low"] <= shifted["change"]).all()
        assert (shifted["change"] <= shifted["high"]).all()


def test_no_path_no_effect_but_a_probability(fitted, equations):
    paths = fitted.ancestor_probabilities_
    table = fitted.effect("X1")
    np.testing.assert_array_equal(table["path_probability"], paths.loc["X1", table.index])
    apart = _exact_slopes(fitted, equations)[0, 1:] == 0.0
    assert apart.any()
    assert (table.loc[apart, ["change", "low", "high"]] == 0.0).all(axis=None)
    assert (table.loc[apart, "before"] == table.loc[apart, "after"]).all()


def test_a_perfect_intervention_cuts_the_effect(fitted):
    cause, effect = fitted.result_.to_networkx().edges.__iter__().__next__()
    k = int(np.flatnonzero(fitted.targets_[effect])[0])
    assert fitted.effect(cause, on=effect)["change"].item() != 0.0
    assert fitted.effect(cause, on=effect, regime=fitted.regime_names_[k])["change"].item() == 0.0


def test_the_interval_is_that_of_a_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = 0.5 * x + rng.normal(size=200)
    X = pd.DataFrame({"x": x, "y": y})
    est = LatentInterventionDAG(max_regimes=1, required=[("x", "y")]).fit(X)
    row = est.effect("x", on="y", shift=1.0, level=0.9).iloc[0]
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - intercept - slope * x
    error = np.sqrt(residual.var() / (len(x) * x.var()))
    assert row["change"] == pytest.approx(slope, rel=1e-6)
    assert row["high"] - row["change"] == pytest.approx(1.645 * error, rel=0.2)
    assert row["change"] - row["low"] == pytest.approx(1.645 * error, rel=0.2)
    assert row["intervention"] == "x +1"
    wide = est.effect("x", on="y", shift=1.0, level=0.99).iloc[0]
    assert wide["high"] - wide["low"] > 1.2 * (row["high"] - row["low"])


def test_under_a_logarithm_the_median_is_multiplied():
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    X = pd.DataFrame(np.exp(np.column_stack([x, 2 * x + rng.normal(size=400)])), columns=["x", "y"])
    est = LatentInterventionDAG(max_regimes=1, transform="log", required=[("x", "y")]).fit(X)
    row = est.effect("x", on="y", do=(1.0, 2.0), statistic="median").iloc[0]
    slope = np.polyfit(np.log(X["x"]), np.log(X["y"]), 1)[0]
    assert row["after"] / row["before"] == pytest.approx(2.0**slope, rel=1e-3)


class Bent(Mechanism):
    """y = tanh(2 x) + noise: a family that the package does not know."""

    family: ClassVar[str] = "bent"
    n_parameters = 1

    def log_density(self, x, y):
        return norm(np.tanh(2 * x[:, 0]), 0.3).logpdf(y)

    def draw(self, x, rng):
        return np.tanh(2 * x[:, 0]) + 0.3 * rng.standard_normal(len(x))

    @classmethod
    def pack(cls, mechanisms):
        return {}

    @classmethod
    def unpack(cls, arrays, parents):
        return [cls() for _ in parents]


def _bent_model():
    """z2 = tanh(2 z1) + noise; regime 1 sets z2 to N(4, 0.1)."""
    topology = Topology(
        np.array([[0, 1], [0, 0]], dtype=np.int8),
        np.array([[0, 0], [0, 1]], dtype=np.int8),
        np.array([0.7, 0.3]),
    )
    root = LinearMechanism(np.zeros(1), Noise.gaussian(1.0))
    own = LinearMechanism(np.array([4.0]), Noise.gaussian(0.01))
    return FittedModel(topology, (root, Bent()), {(1, 1): own})


@pytest.fixture(scope="module")
def bent():
    rng = np.random.default_rng(0)
    est = LatentInterventionDAG(max_regimes=1).fit(rng.normal(size=(100, 2)))
    result = est.result_
    prep = replace(result.preprocessor, mean=np.zeros(2), scale=np.ones(2))
    est._adopt(
        replace(
            result,
            model=_bent_model(),
            preprocessor=prep,
            regime_names=("none", "drug"),
            responsibilities=np.full((100, 2), 0.5),
            target_probabilities=np.array([[0.0, 0.0], [0.0, 1.0]]),
        )
    )
    return est


def test_any_family_has_effects_but_only_the_linear_one_intervals(bent):
    table = bent.effect("X1", on="X2", do=(0.0, 1.0))
    row = table.iloc[0]
    assert row["change"] == pytest.approx(np.tanh(2.0), abs=1e-9)  # the noise is common to both worlds
    assert row["interval"] == "no interval: use bootstrap"
    assert not {"low", "high"} & set(table)
    assert table.notna().all(axis=None)
    assert "no interval: use bootstrap" in table.to_string()
    assert parameter_draws(bent.result_.model, 100, 0, 5) == []
    assert bent.effect("X1", on="X2", do=(0.0, 1.0), regime="drug")["change"].item() == 0.0
    shift = bent.effect("X1", shift=0.5, n=200_000)["change"].item()
    z = np.random.default_rng(5).normal(size=400_000)
    assert shift == pytest.approx((np.tanh(2 * (z + 0.5)) - np.tanh(2 * z)).mean(), abs=0.01)


def test_explanations_add_up_to_the_log_odds(bent, fitted, data):
    for est, rows in ((bent, np.array([[0.3, 4.0], [0.3, 0.5]])), (fitted, None)):
        X = est.sample(5, regime=1, random_state=0) if rows is None else rows
        table = est.explain(X)
        for r in table["row"].unique():
            part = table[table["row"] == r]
            probability = est.predict_proba(X)[r]
            k, other = (est.regime_names_.index(part[name].iloc[0]) for name in ("regime", "against"))
            assert k == probability.argmax()
            joint = est.result_.model.log_joint(est._read(X).z)[r]
            assert part["log_ratio"].sum() == pytest.approx(joint[k] - joint[other], rel=1e-6, abs=1e-6)
            assert len(part) == est.n_features_in_ + 1


def test_what_deviates_is_named(bent):
    table = bent.explain({"X1": 0.3, "X2": 4.0}).set_index("variable")
    assert table["regime"].iloc[0] == "drug"
    assert table["against"].iloc[0] == "none"
    assert table.index[0] == "X2"  # the weightiest first
    assert table.loc["X2", ["deviates", "target"]].tolist() == [True, True]
    assert not table.loc["X1", "deviates"]
    assert table.loc["X2", "expected"] == pytest.approx(np.tanh(0.6), abs=0.05)
    assert table.loc["X2", "expected_low"] == pytest.approx(np.tanh(0.6) - 1.645 * 0.3, abs=0.08)
    plain = bent.explain(pd.Series({"X1": 0.0, "X2": 0.0}, name="mine")).set_index("variable")
    assert plain["row"].unique().tolist() == ["mine"]
    assert plain["regime"].iloc[0] == "none"
    assert plain["against"].iloc[0] == "drug"
    assert not plain["deviates"].any()
    other = bent.explain([0.3, 4.0], against="drug")
    np.testing.assert_allclose(other["log_ratio"], 0.0)


def test_one_regime_has_no_rival(data):
    est = LatentInterventionDAG(max_regimes=1).fit(data.X)
    table = est.explain(data.X.head(2))
    np.testing.assert_allclose(table["log_ratio"], 0.0)
    assert (table["regime"] == table["against"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cause": "Z"}, "'Z' is not a variable"),
        ({"cause": "X1", "on": "Z"}, "'Z' is not a variable"),
        ({"cause": "X1", "do": (1.0, 2.0), "shift": 1.0}, "choose one"),
        ({"cause": "X1", "do": (1.0,)}, "two values"),
        ({"cause": "X1", "shift": np.nan}, "finite"),
        ({"cause": "X1", "level": 1.0}, "level=1.0"),
        ({"cause": "X1", "statistic": "mode"}, "'mode'"),
        ({"cause": "X1", "regime": "nowhere"}, "'nowhere'"),
        ({"cause": "X1", "n": 0}, "at least one row"),
    ],
)
def test_nonsense_is_refused(bent, arguments, message):
    with pytest.raises(ValueError, match=message):
        bent.effect(**arguments)


def test_reproducible_and_only_after_fitting(fitted, data):
    one, two = (fitted.effect("X2", random_state=4) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)
    for method in ("effect", "explain"):
        with pytest.raises(NotFittedError):
            getattr(LatentInterventionDAG(), method)("X1" if method == "effect" else data.X)
