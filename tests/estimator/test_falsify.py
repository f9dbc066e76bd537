import contextlib
import warnings
from dataclasses import replace

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import DataWarning


@pytest.fixture(scope="module")
def copies():
    data = simulate(
        n_variables=4, edges_per_node=1, n_samples=400, preset="field", n_regimes=2, random_state=1000
    )
    shared = np.random.default_rng(0).standard_normal(len(data.X))
    X = data.X.copy()
    X["X1"] = X["X1"].rolling(8, min_periods=1).mean()
    X["X2"] = shared
    X["X3"] = shared**3 + 0.01 * X["X3"] / X["X3"].std()
    return X


@pytest.fixture(scope="module")
def fitted(copies):
    with pytest.warns(DataWarning, match="Neighbouring rows"):
        return LatentInterventionDAG(density="linear", noise="gaussian", max_regimes=2).fit(copies)


def test_failures_come_first_among_warnings(fitted):
    table = fitted.falsify(refits=False)
    assert table.loc["dependent rows", "failed"]
    assert list(table.failed) == sorted(table.failed, reverse=True)
    first, second, *_ = fitted.result_.warnings
    assert "do not support arrows" in first
    assert "time=" in first
    assert second in set(table.words[table.failed])
    assert set(table.columns) == {"statistic", "p_value", "failed", "words"}


def test_nothing_is_sure_beside_a_check_that_contradicts_it(fitted):
    tables = [
        getattr(fitted, f"{name}_probabilities_") for name in ("edge", "ancestor", "adjacency", "direction")
    ]
    assert max(table.loc["X1"].max() for table in tables) < 0.9
    plain = fitted.model_edge_probabilities_
    assert (plain + plain.T).loc["X2", "X3"] > 0.9
    assert (
        fitted.adjacency_probabilities_.loc["X2", "X3"] > 0.9
    )  # neighbours do not resemble each other there


def test_checks_survive_a_file_and_need_the_rows(fitted, copies, tmp_path):
    fitted.save(tmp_path / "m.safetensors")
    loaded = LatentInterventionDAG.load(tmp_path / "m.safetensors")
    assert loaded.result_.checks == fitted.result_.checks
    assert loaded.hidden_cause_hints_.equals(fitted.hidden_cause_hints_)
    with pytest.raises(ValueError, match="pass them"):
        loaded.falsify()
    with pytest.raises(ValueError, match="10 rows, but 400"):
        loaded.falsify(copies.head(10))
    assert loaded.falsify(copies, refits=False).equals(fitted.falsify(refits=False))


def test_refits_add_checks(fitted):
    steps = []
    table = fitted.falsify(progress=steps.append)
    assert {"regimes in halves", "self-compatibility", "held-out regime"} <= set(table.index)
    assert len(steps) >= 4


FIELD = {"preset": "field", "n_variables": 3, "n_samples": 820, "n_regimes": 2, "random_state": 1000}


def _told(way):
    """A table, what the estimator is told of it, and what the fit is."""
    data = simulate(**FIELD | ({"preset": "mixed"} if way == "kinds" else {}))
    X, rng = data.X, np.random.default_rng(0)
    parameters = {"density": "linear"} | ({} if way == "kinds" else {"noise": "gaussian"})
    if way in ("model", "drop"):
        X, parameters["missing"] = X.mask(rng.random(X.shape) < 0.05), way
    fits = {
        "groups": {"groups": np.repeat(np.arange(82), 10)},
        "time": {"time": np.arange(820.0)},
        "batch": {"batch": rng.integers(0, 2, 820)},
        "weights": {"sample_weight": rng.uniform(0.5, 1.5, 820)},
        "labels": {"regimes": data.regimes},
        "kinds": {"regimes": data.regimes},
    }
    return X, parameters, fits.get(way, {})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["model", "drop", "groups", "time", "batch", "weights", "labels", "kinds"])
def test_checks_and_half_samples_whatever_is_told_of_rows(way, tmp_path):
    X, parameters, told = _told(way)
    est = LatentInterventionDAG(**parameters, max_regimes=2, n_init=1, resamples=2).fit(X, **told)
    assert est.result_.model_edge_probabilities is not None
    assert ((est.edge_probabilities_ >= 0.0) & (est.adjacency_probabilities_ <= 1.0)).to_numpy().all()
    table = est.falsify(refits=False)
    assert np.isfinite(table.statistic).all()
    rivals = {"hidden factor", "measurement error"} & set(table.index)
    assert not rivals if way == "kinds" else len(rivals) == 2
    est.save(tmp_path / "m.safetensors")
    loaded = LatentInterventionDAG.load(tmp_path / "m.safetensors")
    loaded._adopt(replace(loaded.result_, checks=()))  # as in a file of an earlier version
    again = loaded.falsify(X, refits=False)
    assert set(again.index) == set(table.index)
    near = table.statistic.drop(rivals)
    assert again.statistic[near.index].to_numpy() == pytest.approx(near.to_numpy(), abs=0.15)


def test_skew_is_said_before_the_fit_and_not_twice():
    raw = np.exp(simulate(**FIELD | {"n_samples": 300}).X.apply(lambda column: column / column.std()))
    heard_before = []

    def first_step(_):
        heard_before.extend(str(one.message) for one in heard)
        raise KeyboardInterrupt

    est = LatentInterventionDAG(density="linear", noise="gaussian", max_regimes=2, n_init=1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with contextlib.suppress(KeyboardInterrupt):
            est.fit(raw, progress=first_step)
    assert any("transform='log'" in words for words in heard_before)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        est.fit(raw)
    said = [str(one.message) for one in heard]
    assert sum("transform='log'" in words for words in said) == 1
    assert est.falsify(refits=False).loc["skew", "failed"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        est.set_params(transform="log").fit(raw.iloc[:, :2])
