import json
import os
import shutil
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from latentdo import outputs
from latentdo.names import from_cell
from latentdo.outputs import FILES, json_text, write_outputs
from latentdo.persistence import load_result


def only(folder):
    """What stands beside the results: nothing temporary may stay."""
    return sorted(os.listdir(folder))


def test_all_files_are_there_and_say_the_same(case, tmp_path):
    folder = write_outputs(case.result, tmp_path / "deep" / "results")
    assert sorted(os.listdir(folder)) == sorted(FILES)
    assert only(tmp_path / "deep") == ["results"]
    content = json.loads((folder / "result.json").read_text())
    assert content["program"] == "latentdo"
    assert content["versions"]["numpy"] == np.__version__
    assert content["data_hash"] == case.result.data_hash
    adjacency = pd.read_csv(folder / "adjacency.csv", index_col=0)
    np.testing.assert_array_equal(adjacency, case.result.adjacency)
    assert list(adjacency.index) == list(adjacency.columns) == list(case.result.columns)
    assert len(content["edges"]) == adjacency.to_numpy().sum()
    pd.testing.assert_frame_equal(
        pd.read_csv(folder / "edge_probabilities.csv", index_col=0, float_precision="round_trip"),
        case.result.edge_table(),
        check_names=False,
        check_exact=True,
    )
    np.testing.assert_array_equal(pd.read_csv(folder / "targets.csv", index_col=0), case.result.targets)
    regimes = pd.read_csv(folder / "regimes.csv")
    assert list(regimes.columns) == ["row", "regime", "probability"]
    np.testing.assert_array_equal(regimes["regime"], case.result.regimes)
    assert load_result(folder / "model.safetensors").columns == case.result.columns
    graph = nx.read_graphml(folder / "graph.graphml")
    assert set(graph.edges) == set(case.result.to_networkx().edges)
    for i, j, attributes in graph.edges(data=True):
        assert attributes["probability"] == case.result.edge_table().loc[i, j]
    assert (folder / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_an_existing_folder_needs_the_flag(case, tmp_path):
    folder = write_outputs(case.result, tmp_path / "r")
    with pytest.raises(FileExistsError, match=r"overwrite=True \(--overwrite\)"):
        write_outputs(case.result, folder)
    write_outputs(replace(case.result, message="second"), folder, overwrite=True)
    assert json.loads((folder / "result.json").read_text())["message"] == "second"
    assert only(tmp_path) == ["r"]


def test_a_folder_of_someone_else_is_never_replaced(case, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="not a folder that latentdo wrote"):
        write_outputs(case.result, home, overwrite=True)
    (home / "result.json").write_text('{"mine": 1}')
    with pytest.raises(FileExistsError, match="not a folder that latentdo wrote"):
        write_outputs(case.result, home, overwrite=True)
    assert only(home) == ["result.json", "thesis.tex"]


def test_notes_among_the_results_protect_them(case, tmp_path):
    folder = write_outputs(case.result, tmp_path / "r")
    (folder / "notes.txt").write_text("do not lose me")
    with pytest.raises(FileExistsError, match=r"notes\.txt"):
        write_outputs(case.result, folder, overwrite=True)
    assert (folder / "notes.txt").exists()
    (folder / "notes.txt").unlink()
    (folder / ".DS_Store").write_text("")
    write_outputs(case.result, folder, overwrite=True)


def test_a_file_and_an_empty_folder(case, tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.raises(FileExistsError, match="is a file"):
        write_outputs(case.result, tmp_path / "f", overwrite=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileExistsError, match="--overwrite"):
        write_outputs(case.result, tmp_path / "empty")
    write_outputs(case.result, tmp_path / "empty", overwrite=True)
    assert len(only(tmp_path / "empty")) == len(FILES)


@pytest.mark.parametrize("step", ["render_report", "save_result", "to_graphml"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_everything_as_it_was(case, tmp_path, monkeypatch, step, error):
    folder = write_outputs(case.result, tmp_path / "r")
    before = {name: (folder / name).read_bytes() for name in FILES}

    def fail(*_, **__):
        raise error("power cut")

    monkeypatch.setattr(outputs, step, fail)
    with pytest.raises(error):
        write_outputs(case.result, folder, overwrite=True)
    with pytest.raises(error):
        write_outputs(case.result, tmp_path / "other")
    assert {name: (folder / name).read_bytes() for name in FILES} == before
    assert only(tmp_path) == ["r"]


def test_the_old_folder_returns_if_the_last_step_fails(case, tmp_path, monkeypatch):
    folder = write_outputs(case.result, tmp_path / "r")
    rename, calls = os.rename, []

    def second_fails(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("no")
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(OSError, match="no"):
        write_outputs(case.result, folder, overwrite=True)
    assert only(tmp_path) == ["r"]
    assert (folder / "result.json").exists()


def test_a_folder_that_changed_meanwhile_is_left_alone(case, tmp_path, monkeypatch):
    folder = write_outputs(case.result, tmp_path / "r")
    real = outputs.save_result

    def meanwhile(result, path):
        (folder / "new-notes.txt").write_text("x")
        real(result, path)

    monkeypatch.setattr(outputs, "save_result", meanwhile)
    with pytest.raises(FileExistsError, match="new-notes"):
        write_outputs(case.result, folder, overwrite=True)
    assert (folder / "new-notes.txt").exists()


def test_hostile_names(make_result, tmp_path):
    names = ("=cmd()", 'quo"te,comma', "line\nbreak", "nul\x00\x0b", "half \ud800")
    odd = make_result(n_samples=60, columns=names, regime_names=("a,b", "\n", "", ("t", 1), 2.5, "x"))
    folder = write_outputs(odd.result, tmp_path / "r", X=odd.X)
    assert json.loads((folder / "result.json").read_text())["variables"] == list(names)
    read = pd.read_csv(folder / "adjacency.csv", index_col=0)
    assert [from_cell(name) for name in read.columns[:3]] == list(names)[:3]
    assert nx.read_graphml(folder / "graph.graphml").number_of_nodes() == 5
    assert load_result(folder / "model.safetensors").columns == names


def test_a_link_to_a_folder_is_followed(case, tmp_path):
    folder = write_outputs(case.result, tmp_path / "real")
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    write_outputs(replace(case.result, message="through the link"), tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert "through the link" in (folder / "result.json").read_text()
    shutil.rmtree(folder)


def test_json_is_standard():
    text = json_text({"a": np.float64("nan"), 1: (np.int64(2), {3}), "b": [float("inf")], "c": len})
    assert json.loads(text) == {"a": None, "1": [2, [3]], "b": [None], "c": str(len)}
