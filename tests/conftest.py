"""Results without a fit: the truth of a simulation, dressed as what a fit returns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings

from latentdo.data.transforms import Preprocessor
from latentdo.model import FittedModel, Topology
from latentdo.model.fitted import own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.result import FitResult
from latentdo.scm import simulate

# Property tests draw the same examples in every run, so that a red run can be repeated, and none is red because the
# machine is busy. Examples share the folder of their test: each writes its file anew.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("repeatable")


@dataclass(frozen=True)
class Case:
    result: FitResult
    X: pd.DataFrame


def _regression(z, rows, variable, parents):
    design = np.column_stack([np.ones(rows.sum()), z[rows][:, parents]])
    solution, *_ = np.linalg.lstsq(design, z[rows, variable], rcond=None)
    variance = float(np.var(z[rows, variable] - design @ solution)) + 1e-6
    return LinearMechanism(solution, Noise.gaussian(variance))


def build_result(
    n_variables=5,
    n_samples=600,
    edges_per_node=1.0,
    n_regimes=None,
    transform="none",
    columns=None,
    seed=0,
    **changes,
):
    data = simulate(
        n_variables=n_variables,
        n_samples=n_samples,
        edges_per_node=edges_per_node,
        n_regimes=n_regimes,
        random_state=seed,
    )
    names = tuple(columns) if columns else tuple(data.X.columns)
    x = data.X.to_numpy() if transform == "none" else np.exp(data.X.to_numpy())
    X = pd.DataFrame(x, columns=list(names))
    preprocessor = Preprocessor.fit(x, transform, names)
    z = preprocessor.forward(x)
    adjacency = data.adjacency.to_numpy().astype(np.int8)
    targets = data.targets.to_numpy().astype(np.int8)
    reference = tuple(
        _regression(z, targets[data.regimes, j] == 0, j, np.flatnonzero(adjacency[:, j]))
        for j in range(len(names))
    )
    own = [_regression(z, data.regimes == k, j, []) for k, j in np.argwhere(targets)]
    topology = Topology(adjacency, targets, data.regime_weights)
    model = FittedModel(topology, reference, own_mechanisms(targets, own))
    rng = np.random.default_rng(seed)
    edge = np.where(
        adjacency, rng.uniform(0.7, 1.0, adjacency.shape), rng.uniform(0, 0.2, adjacency.shape) ** 3
    )
    np.fill_diagonal(edge, 0.0)
    settings = {
        "model": model,
        "columns": names,
        "preprocessor": preprocessor,
        "regime_names": tuple(range(len(targets))),
        "responsibilities": model.responsibilities(z),
        "edge_probabilities": edge,
        "ancestor_probabilities": edge,
        "target_probabilities": np.clip(targets + rng.uniform(-0.1, 0.1, targets.shape), 0, 1)
        * (np.arange(len(targets)) > 0)[:, None],
        "evidence": -1234.5,
        "evidence_terms": {"log_likelihood": -1200.0, "penalty": -34.5},
        "solver": "search",
        "density": "linear",
        "intervention": "perfect",
        "history": tuple(
            {"step": f"restart {s}", "evidence": -2000.0 + 700 * (1 - 0.5**s), "seconds": 0.1 * s}
            for s in range(8)
        ),
        "comparison": (
            {"density": "linear", "intervention": "perfect", "evidence": -1234.5, "chosen": True},
            {"density": "linear", "intervention": "one regime", "evidence": -2222.0, "chosen": False},
        ),
        "configuration": {
            "max_regimes": 16,
            "transform": transform,
            "density": "auto",
            "forbidden": [("a", "b")],
        },
        "data_hash": "0" * 64,
        "seconds": 1.5,
        "warnings": ("Columns differ in scale by more than 1e6.",),
    }
    return Case(FitResult(**(settings | changes)), X)


@pytest.fixture(scope="session")
def make_result() -> Callable[..., Case]:
    return build_result


@pytest.fixture(scope="session")
def case() -> Case:
    return build_result()


def linear_equations(model, regime):
    """Slopes ``[d, d]`` (row: effect), constants and variances of a regime whose mechanisms are all equations."""
    d = model.topology.n_variables
    slopes, constants, variances = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for j, parents in enumerate(model.parents):
        coefficients, variances[j] = model.mechanism(j, regime).linear_form
        constants[j] = coefficients[0]
        slopes[j, parents[: coefficients.size - 1]] = coefficients[1:]
    return slopes, constants, variances


@pytest.fixture(scope="session")
def equations():
    return linear_equations


@pytest.fixture(scope="session")
def browser():
    """A real browser; only slow tests ask for it, and they are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
