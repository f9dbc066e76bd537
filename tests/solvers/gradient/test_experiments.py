"""Experiments and benchmarks run at tiny size, so that they do not rot."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_step_benchmark_smoke(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["gradient_step", "--rows", "64", "--repeats", "1", "--threads", "1", "--size", "64"]
    )
    runpy.run_path(str(ROOT / "benchmarks" / "gradient_step.py"), run_name="__main__")
    assert "nonlinear perfect" in capsys.readouterr().out


@pytest.mark.slow
def test_fit_benchmark_smoke(monkeypatch, capsys):
    size = ["--rows", "200", "--variables", "3", "--densities", "linear", "--interventions", "stochastic"]
    monkeypatch.setattr(sys, "argv", ["gradient_fit", *size, "--n-init", "1"])
    runpy.run_path(str(ROOT / "benchmarks" / "gradient_fit.py"), run_name="__main__")
    assert "linear, stochastic, unknown" in capsys.readouterr().out
