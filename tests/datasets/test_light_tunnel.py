"""The loader of the light tunnel, on small tables of its form: the measurements themselves are not ours."""

import json
import sys
import types

import numpy as np
import pandas as pd
import pytest

from latentdo.datasets import load_light_tunnel
from latentdo.datasets.light_tunnel import _EXPERIMENTS, _VARIABLES


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(6, 3)), columns=["red", "current", "ir_1"])
    rows.insert(0, "experiment", ["reference"] * 4 + ["red_strong"] * 2)
    rows.to_csv(tmp_path / "rows.csv.gz", index=False)
    (tmp_path / "targets.json").write_text(json.dumps({"red_strong": ["red"], "reference": []}))
    graph = pd.DataFrame(0, index=["red", "ir_1", "current"], columns=["red", "ir_1", "current"])
    graph.loc["red", ["ir_1", "current"]] = 1
    graph.to_csv(tmp_path / "graph.csv")
    return tmp_path


@pytest.fixture
def chamber(monkeypatch):
    """A package that pretends to download, with the names of the real one."""
    names = [*_VARIABLES, "osr_c"]
    made = types.SimpleNamespace(error=None, root=None)

    class Dataset:
        def __init__(self, name, root, download):
            made.root = root
            if made.error is not None:
                raise made.error

        def get_experiment(self, name):
            assert name.removeprefix("uniform_") in _EXPERIMENTS
            values = np.full((2, len(names)), float(len(name)))
            return types.SimpleNamespace(as_pandas_dataframe=lambda: pd.DataFrame(values, columns=names))

    def graph(chamber, configuration):
        edges = pd.DataFrame(0, index=names, columns=names)
        edges.loc["red", "ir_1"] = 1
        return edges

    for name, content in {"datasets": {"Dataset": Dataset}, "ground_truth": {"graph": graph}}.items():
        module = types.ModuleType(f"causalchamber.{name}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, f"causalchamber.{name}", module)
    monkeypatch.setitem(sys.modules, "causalchamber", types.ModuleType("causalchamber"))
    return made


def test_files_of_a_folder_are_aligned_by_name(folder):
    data = load_light_tunnel(folder)
    assert list(data.X.columns) == list(data.adjacency.columns) == ["red", "current", "ir_1"]
    assert data.adjacency.loc["red"].tolist() == [0, 1, 1]
    assert data.targets.index.tolist() == ["reference", "red_strong"]
    assert data.targets.to_numpy().tolist() == [[0, 0, 0], [1, 0, 0]]
    assert data.experiments.value_counts()["reference"] == 4


def test_files_that_do_not_fit_are_refused(folder):
    (folder / "targets.json").write_text('{"reference": []}')
    with pytest.raises(ValueError, match="red_strong"):
        load_light_tunnel(folder)
    (folder / "graph.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"graph\.csv"):
        load_light_tunnel(str(folder))


def test_without_files_another_package_downloads_them(chamber, tmp_path):
    data = load_light_tunnel(tmp_path / "cache")
    assert chamber.root == str(tmp_path / "cache")
    assert data.X.shape == (2 * len(_EXPERIMENTS), 20)
    assert len(_EXPERIMENTS) == 15
    assert (data.targets.sum(axis=1) == [0] + [1] * 14).all()
    assert data.adjacency.to_numpy().sum() == 1
    chamber.error = ConnectionError("no route to host")
    with pytest.raises(OSError, match=r"no route to host.*rows\.csv\.gz"):
        load_light_tunnel(tmp_path / "cache")


def test_offline_without_that_package_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "causalchamber", None)
    with pytest.raises(ImportError, match=r"pip install causalchamber.*rows\.csv\.gz"):
        load_light_tunnel(tmp_path)
