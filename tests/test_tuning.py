"""TunedDAG: what it chooses, that it goes on where it stopped, and what it refuses."""

from __future__ import annotations

import sys
import types

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from latentdo import LatentInterventionDAG, simulate
from latentdo.cli import main
from latentdo.tuning import TunedDAG, default_space, held_out_log_likelihood
from latentdo.tuning.choice import choose

optuna = pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=3, n_samples=300, random_state=1)


@pytest.fixture(scope="module")
def one_regime():
    """Fits of one regime take milliseconds, and edges still depend on the prior."""
    return LatentInterventionDAG(max_regimes=1)


SPACE = {"edge_prior": (-400.0, 0.0)}


def test_what_is_varied_is_what_the_solver_has():
    def names(**arguments):
        return sorted(default_space(LatentInterventionDAG(**arguments), 3))

    assert names() == names(solver="search") == ["edge_prior", "target_prior"]
    everything = ["concentration", "edge_prior", "learning_rate", "target_prior"]
    assert names(solver="gradient") == names(solver="paper") == everything
    assert names(edge_prior=np.zeros((3, 3))) == ["target_prior"]


def test_a_prior_that_forbids_every_edge_is_not_chosen(data, one_regime):
    tuned = TunedDAG(one_regime, n_trials=6, space={"edge_prior": [-1e6, -1.0]}, random_state=1).fit(data.X)
    assert set(tuned.trials_["edge_prior"]) == {-1e6, -1.0}
    assert tuned.best_params_ == {"edge_prior": -1.0}
    assert tuned.best_estimator_.adjacency_.to_numpy().any()
    assert tuned.best_estimator_.get_params()["edge_prior"] == -1.0
    assert len(tuned.best_estimator_.regimes_) == len(data.X)  # fitted to all rows in the end
    np.testing.assert_array_equal(tuned.predict(data.X), 0)
    assert tuned.predict_proba(data.X).shape == (300, 1)
    assert tuned.score(data.X) == tuned.best_estimator_.score(data.X)


def test_the_first_trial_has_the_estimators_own_values(data):
    tuned = TunedDAG(LatentInterventionDAG(max_regimes=1, edge_prior=-3.0), n_trials=1).fit(data.X)
    assert tuned.trials_.loc[0, "edge_prior"] == -3.0
    assert tuned.trials_.loc[0, "target_prior"] == -2.0  # what None stands for


def _trial(number, held_out, edges, blocks):
    attributes = {
        "held_out": held_out,
        "edges": edges,
        "targets": 0,
        "regimes": 1,
        "seconds": 0.0,
        "blocks": blocks,
    }
    return types.SimpleNamespace(number=number, params={"edge_prior": -1.0}, user_attrs=attributes)


def test_the_sparsest_within_one_standard_error_wins():
    best = _trial(0, 1.0, 9, [0.9, 1.1, 1.0, 1.0])
    close = _trial(1, 0.99, 4, [1.0, 1.0, 0.96, 1.0])  # behind by 0.01, with an error of 0.04
    behind = _trial(2, 0.9, 1, [0.8, 1.0, 0.9, 0.9])  # behind by 0.1 in every block
    table = choose([best, close, behind], ["edge_prior"])
    assert table["within_one_error"].tolist() == [True, True, False]
    assert table.loc[table["chosen"], "trial"].tolist() == [1]


def test_held_out_scores(data):
    est = LatentInterventionDAG(max_regimes=5).fit(data.X[:200], regimes=data.regimes[:200])
    rows = data.X[200:]
    np.testing.assert_allclose(held_out_log_likelihood(est, rows), est.score_samples(rows))
    labels = [None, *data.regimes[201:299], "never seen"]
    scores = held_out_log_likelihood(est, rows, labels)
    np.testing.assert_allclose(scores[[0, -1]], est.score_samples(rows)[[0, -1]])
    joint = est.predict_proba(rows)[np.arange(1, 99), data.regimes[201:299]]
    expected = est.score_samples(rows)[1:99] + np.log(np.maximum(joint, 1e-300))
    np.testing.assert_allclose(scores[1:99], expected)


def test_goes_on_from_a_file_to_the_same_result(data, one_regime, tmp_path):
    whole = TunedDAG(one_regime, n_trials=5, space=SPACE).fit(data.X)
    path = tmp_path / "tune.db"
    part = TunedDAG(one_regime, n_trials=2, space=SPACE, storage=path).fit(data.X)
    rest = clone(part).set_params(n_trials=5).fit(data.X)
    columns = ["trial", "edge_prior", "held_out", "edges", "chosen"]
    pd.testing.assert_frame_equal(rest.trials_[columns], whole.trials_[columns])
    seen = []
    rest.fit(data.X, progress=seen.append)  # nothing left to do
    assert seen == []
    url = TunedDAG(one_regime, n_trials=5, space=SPACE, storage=f"sqlite:///{path}").fit(data.X)
    pd.testing.assert_frame_equal(url.trials_, rest.trials_)


def test_an_interrupt_loses_one_trial_only(data, one_regime, tmp_path, monkeypatch):
    tuner = TunedDAG(one_regime, n_trials=3, space=SPACE, storage=tmp_path / "tune.db")
    true_fit, calls = LatentInterventionDAG.fit, []

    def fit(self, *arguments, **keywords):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return true_fit(self, *arguments, **keywords)

    monkeypatch.setattr(LatentInterventionDAG, "fit", fit)
    try:
        tuner.fit(data.X)
    except KeyboardInterrupt:
        pass
    else:
        pytest.fail("the interrupt was swallowed")
    assert len(tuner.fit(data.X).trials_) == 3


def test_failed_trials_are_survived_and_explained(data, one_regime, monkeypatch):
    true_fit = LatentInterventionDAG.fit

    def fit(self, *arguments, **keywords):
        if self.edge_prior == -5.0:
            raise ValueError("did not work out")
        return true_fit(self, *arguments, **keywords)

    monkeypatch.setattr(LatentInterventionDAG, "fit", fit)
    seen = []
    tuned = TunedDAG(one_regime, n_trials=5, space={"edge_prior": [-5.0, -1.0]}).fit(
        data.X, progress=seen.append
    )
    assert tuned.best_params_ == {"edge_prior": -1.0}
    assert any("did not work out" in entry["step"] for entry in seen)
    with pytest.raises(ValueError, match=r"None of the trials .* did not work out"):
        TunedDAG(one_regime, n_trials=2, space={"edge_prior": [-5.0]}).fit(data.X)


def test_trials_of_other_data_or_settings_are_not_mixed(data, one_regime, tmp_path):
    tuner = TunedDAG(one_regime, n_trials=1, space=SPACE, storage=tmp_path / "tune.db").fit(data.X)
    with pytest.raises(ValueError, match="made with another data;"):
        clone(tuner).fit(data.X + 1.0)
    with pytest.raises(ValueError, match="made with another estimator;"):
        clone(tuner).set_params(estimator=LatentInterventionDAG(max_regimes=2)).fit(data.X)
    with pytest.raises(ValueError, match="made with another space;"):
        clone(tuner).set_params(space={"edge_prior": (-2.0, 0.0)}).fit(data.X)
    clone(tuner).set_params(study_name="second").fit(data.X + 1.0)
    clone(tuner).set_params(estimator=LatentInterventionDAG(max_regimes=1, n_jobs=2)).fit(data.X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": 0}, "n_trials=0"),
        ({"space": {}}, "space is empty"),
        ({"space": {"temperature": (0, 1)}}, "'temperature', which is not a parameter"),
        ({"space": {"learning_rate": (0.1, 1.0)}}, "solver='search' does not have"),
        ({"space": {"edge_prior": (0.0, -1.0)}}, r"must be \(low, high\)"),
        ({"space": {"edge_prior": (-1.0, 1.0, "log")}}, "must be positive"),
        ({"storage": "no/such/folder/tune.db"}, "create it first"),
        ({"storage": "."}, "is a folder"),
        ({"storage": "nosuchdatabase://x"}, "cannot be opened"),
        ({"validation_fraction": 1.0}, "fraction="),
        ({"estimator": LatentInterventionDAG(edge_prior=np.zeros((3, 3))), "space": SPACE}, "has a matrix"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(data, one_regime, arguments, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        TunedDAG(**({"estimator": one_regime} | arguments)).fit(data.X)


def test_a_file_that_is_no_study_is_refused(data, one_regime, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look like one " * 100)
    with pytest.raises(ValueError, match=r"notes\.txt.* cannot be opened"):
        TunedDAG(one_regime, storage=path).fit(data.X)


def test_without_optuna_the_remedy_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r'pip install "latentdo\[tune\]"'):
        TunedDAG().fit(data.X)


def test_labels_and_targets_are_passed_on(data):
    names = np.array(["ctrl", "a", "b", "c"], dtype=object)[data.regimes]
    names[::7] = None
    targets = {
        label: list(data.X.columns[row == 1])
        for label, row in zip("abc", data.targets.to_numpy()[1:], strict=True)
    }
    est = LatentInterventionDAG(observational="ctrl", max_regimes=4, n_init=1)
    tuned = TunedDAG(est, n_trials=1).fit(data.X, regimes=names, targets=targets)
    assert tuned.best_estimator_.regime_names_ == ("ctrl", "a", "b", "c")
    np.testing.assert_array_equal(tuned.best_estimator_.targets_, data.targets)


def test_the_rates_of_the_gradient_solver(data, monkeypatch):
    """What is tuned reaches the solver; the fit itself is done by the quicker one here."""
    from latentdo.solvers import gradient
    from latentdo.solvers.search.solve import SearchConfiguration, solve

    seen = []

    def quick(dataset, configuration, progress):
        seen.append((configuration.concentration, configuration.learning_rate))
        return solve(dataset, SearchConfiguration(max_regimes=1), progress)

    monkeypatch.setattr(gradient, "solve", quick)
    est = LatentInterventionDAG(solver="gradient", max_regimes=1)
    tuned = TunedDAG(est, n_trials=2).fit(data.X)
    assert sorted(tuned.best_params_) == ["concentration", "edge_prior", "learning_rate", "target_prior"]
    assert seen[:2] == list(
        tuned.trials_[["concentration", "learning_rate"]].itertuples(index=False, name=None)
    )
    assert seen[0] == (9.0, 5e-3)
    assert seen[-1] == (tuned.best_params_["concentration"], tuned.best_params_["learning_rate"])
    with pytest.raises(ValueError, match="learning_rate is not available with solver='search'"):
        LatentInterventionDAG(learning_rate=0.01).fit(data.X)
    with pytest.raises(ValueError, match="concentration=-1"):
        LatentInterventionDAG(concentration=-1, solver="gradient").fit(data.X)


def test_on_the_command_line(data, tmp_path, capsys):
    table = tmp_path / "data.csv"
    data.X.to_csv(table, index=False)
    arguments = ["tune", str(table), "--out", str(tmp_path / "r"), "--max-regimes", "1"]
    arguments += ["--storage", str(tmp_path / "tune.db")]
    assert main([*arguments, "--n-trials", "2"]) == 0
    out, _ = capsys.readouterr()
    assert "2 trials" in out
    assert "Chosen: edge_prior" in out
    assert main([*arguments, "--n-trials", "3", "--overwrite", "--json"]) == 0
    trials = pd.read_csv(tmp_path / "r" / "trials.csv")
    assert len(trials) == 3
    assert trials["chosen"].sum() == 1
    page = (tmp_path / "r" / "report.html").read_text("utf-8")
    assert "Which settings were tried" in page
    assert main(["report", str(tmp_path / "r")]) == 0
    assert "Which settings were tried" in (tmp_path / "r" / "report.html").read_text("utf-8")
    capsys.readouterr()
    assert main([*arguments, "--n-trials", "3", "--overwrite", "--density", "linear"]) == 1
    assert "Give another --study-name or another storage." in capsys.readouterr().err


def test_scores_that_differ_by_rounding_are_as_good():
    def trial(number, held_out):
        attributes = {"held_out": held_out, "blocks": [held_out] * 3, "edges": 3, "targets": 3, "regimes": 4}
        return types.SimpleNamespace(number=number, params={}, user_attrs=attributes | {"seconds": 1.0})

    table = choose([trial(0, 3.434935191606567), trial(1, 3.434935191605114), trial(2, 3.4)], [])
    assert table["within_one_error"].tolist() == [True, True, False]
