"""Small results and tables for tests of files and folders."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG, outputs


def _table(seed: int = 0) -> pd.DataFrame:
    x = np.random.default_rng(seed).normal(size=(80, 2))
    x[:, 1] += x[:, 0]
    return pd.DataFrame(x, columns=["a", "b"])


@pytest.fixture(scope="module")
def results():
    """Two results that can be told apart, by their evidence."""
    return [LatentInterventionDAG(max_regimes=1).fit(_table(seed)).result_ for seed in (0, 1)]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    _table().to_csv(path, index=False)
    return path


@pytest.fixture
def quick_report(monkeypatch):
    """Drawing a report takes most of the time of writing, and is not what these tests are about."""
    monkeypatch.setattr(outputs, "render_report", lambda *_, **__: "report")


@pytest.fixture(scope="session")
def small_table():
    """A function from seeds to tables that are fitted in a moment."""
    return _table
