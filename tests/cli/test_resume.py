import json

import pytest

from latentdo.bootstrap import BootstrapDAG
from latentdo.estimator import LatentInterventionDAG

QUICK = ("--density", "linear", "--max-regimes", 4, "--n-init", 1)


def stop_at(monkeypatch, kind, last):
    """Let the user press Ctrl-C at the first step for which ``last`` is true."""
    fit = kind.fit

    def interrupted(self, *arguments, progress=None, **known):
        def step(entry):
            if progress is not None:
                progress(entry)
            if last(entry):
                raise KeyboardInterrupt

        return fit(self, *arguments, progress=step, **known)

    monkeypatch.setattr(kind, "fit", interrupted)


def test_a_bootstrap_goes_on_after_an_interruption(run, small, tmp_path, monkeypatch):
    arguments = ("bootstrap", small, "--out", tmp_path / "r", "--n-resamples", 4, *QUICK)
    with monkeypatch.context() as patch:
        stop_at(patch, BootstrapDAG, lambda entry: entry["step"] == "resample 2 of 4")
        code, _, err = run(*arguments)
    assert code == 130
    assert "--resume" in err
    assert (tmp_path / "r.unfinished").is_dir()
    assert (tmp_path / "r" / "report.html").is_file()  # two resamples are better than none
    code, _, err = run(*arguments)
    assert code == 1
    assert "pass --resume to go on from there, or --overwrite to start anew" in err
    code, out, err = run(*arguments, "--resume", "--json")
    assert code == 0, err
    resumed = json.loads(out)
    assert resumed["bootstrap"]["resamples"] == 4
    assert not (tmp_path / "r.unfinished").exists()
    code, out, _ = run(*arguments, "--overwrite", "--json")
    straight = json.loads(out)
    for part in ("edges", "targets", "regimes"):
        assert straight["bootstrap"][part] == resumed["bootstrap"][part]


def test_a_gradient_fit_goes_on_after_an_interruption(run, small, tmp_path, monkeypatch):
    arguments = (
        "fit",
        small,
        "--out",
        tmp_path / "r",
        "--solver",
        "gradient",
        "--max-regimes",
        1,
        "--n-init",
        1,
    )
    with monkeypatch.context() as patch:
        stop_at(patch, LatentInterventionDAG, lambda entry: entry["step"] >= 300)
        code, *_ = run(*arguments)
    assert code == 130
    assert json.loads((tmp_path / "r" / "result.json").read_text())["status"] == "interrupted"
    assert any((tmp_path / "r.unfinished").iterdir())
    steps = []
    with monkeypatch.context() as patch:
        stop_at(patch, LatentInterventionDAG, lambda entry: steps.append(entry["step"]))
        code, out, err = run(*arguments, "--resume", "--json")
    assert code == 0, err
    assert steps[0] > 300
    resumed = json.loads(out)
    assert resumed["status"] == "converged"
    assert "checkpoint" not in resumed["configuration"]  # it says nothing about the result
    assert not (tmp_path / "r.unfinished").exists()


def test_tuning_goes_on_after_an_interruption(run, small, tmp_path, monkeypatch):
    pytest.importorskip("optuna", reason="the tune extra is not installed")
    from latentdo.tuning import TunedDAG

    arguments = ("tune", small, "--out", tmp_path / "r", "--n-trials", 3, *QUICK)
    with monkeypatch.context() as patch:
        stop_at(patch, TunedDAG, lambda entry: entry["step"] == "trial 2 of 3")
        code, _, err = run(*arguments)
    assert code == 130
    assert "--resume goes on" in err
    assert not (tmp_path / "r").exists()
    done = []
    with monkeypatch.context() as patch:
        stop_at(patch, TunedDAG, lambda entry: done.append(entry["step"]))
        code, out, err = run(*arguments, "--resume", "--json")
    assert code == 0, err
    assert done == ["trial 3 of 3"]
    assert len(json.loads(out)["trials"]) == 3
    assert not (tmp_path / "r.unfinished").exists()


def test_a_search_has_nothing_to_resume_and_says_so(run, small, tmp_path):
    code, _, err = run("fit", small, "--out", tmp_path / "r", *QUICK, "--resume")
    assert code == 0
    assert "--solver gradient" in err, "the remedy"
    code, _, err = run("bootstrap", small, "--out", tmp_path / "b", *QUICK, "--n-resamples", 1, "--resume")
    assert code == 0
    assert "nothing to resume" in err


def test_the_search_refuses_a_checkpoint_that_it_would_not_write(tmp_path):
    from latentdo import simulate

    X = simulate(n_variables=3, n_samples=60, random_state=1).X
    with pytest.raises(ValueError, match="checkpoint is not available with solver='search'"):
        LatentInterventionDAG(checkpoint=tmp_path / "c").fit(X)
