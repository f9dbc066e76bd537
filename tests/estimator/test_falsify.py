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
    assert fitted.result_.warnings[0] in set(table.words[table.failed])
    assert set(table.columns) == {"statistic", "p_value", "failed", "words"}


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
