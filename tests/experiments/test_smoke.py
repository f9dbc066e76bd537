"""Every experiment runs at tiny size, and a second run finds its cells done."""

import runpy
import sys

import pytest
from experiments.__main__ import NIGHT

EXPERIMENTS = [
    "pairs",
    "table1",
    "comparison",
    "cytometry",
    "semi_supervised",
    "scaling",
    "larger",
    "settings",
    "sensitivity",
    "linear_latent",
    "nonlinear_latent",
    "overlap",
    "false_alarms",
    "calibration",
    "bootstrap_support",
    "diagnosis_forecast",
    "gradient_acyclicity",
    "solvers",
    "gate",
    "field",
    "light_tunnel",
    "real",
    "rivals",
    "together",
    "missing",
    "kinds",
    "trust",
]


SLOW = {
    "bootstrap_support",
    "comparison",
    "cytometry",
    "false_alarms",
    "linear_latent",
    "missing",
    "nonlinear_latent",
    "overlap",
    "settings",
    "solvers",
}
"""Whose tables cannot be made small, or that fit many of them."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in EXPERIMENTS]
)
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


def test_the_night_runs_every_experiment_there_is(request):
    modules = (request.config.rootpath / "experiments").glob("*.py")
    experiments = {path.stem for path in modules if "runner.arguments(" in path.read_text("utf-8")}
    assert {name for name, _ in NIGHT} == experiments - {"gate"}, (
        "the gate is for refactorings, not for results"
    )
    assert experiments - set(EXPERIMENTS) == {"scatter"}, "scatter draws, and stores nothing"


def test_the_scatter_figure_is_drawn(tmp_path, monkeypatch, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath))
    monkeypatch.setattr(sys, "argv", ["scatter", "--smoke", "--store", str(tmp_path)])
    runpy.run_module("experiments.scatter", run_name="__main__")
    assert (tmp_path / "experiments-scatter.png").stat().st_size > 1000
