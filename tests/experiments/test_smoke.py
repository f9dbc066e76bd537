"""Every experiment runs at tiny size, and a second run finds its cells done."""

import runpy
import sys

import pytest

EXPERIMENTS = [
    "pairs",
    "linear_latent",
    "nonlinear_latent",
    "overlap",
    "false_alarms",
    "calibration",
    "bootstrap_support",
    "diagnosis_forecast",
]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_and_resumes(name, tmp_path, monkeypatch, capsys, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath))
    monkeypatch.setattr(sys, "argv", [name, "--smoke", "--n-jobs", "1", "--store", str(tmp_path)])
    runpy.run_module(f"experiments.{name}", run_name="__main__")
    assert " 0 to run" not in capsys.readouterr().out
    stored = (tmp_path / f"{name}.csv").read_text()
    assert stored.count("\n") > 1
    runpy.run_module(f"experiments.{name}", run_name="__main__")
    assert " 0 to run" in capsys.readouterr().out
    assert (tmp_path / f"{name}.csv").read_text() == stored
