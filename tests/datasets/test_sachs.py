"""The embedded cytometry data: exactly the published table, its conditions and reference graphs."""

from __future__ import annotations

import gzip
import hashlib
import socket
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import latentdo
from latentdo.data import Dataset
from latentdo.datasets import load_sachs, reference_graph
from latentdo.datasets import sachs as module

NAMES = ["Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk"]
SIZES = {
    "cd3cd28": 853,
    "cd3cd28+icam2": 902,
    "cd3cd28+aktinhib": 911,
    "cd3cd28+g0076": 723,
    "cd3cd28+psitect": 810,
    "cd3cd28+u0126": 799,
    "cd3cd28+ly": 848,
    "pma": 913,
    "b2camp": 707,
}
# written out edge by edge, independently of the module
EDGES = {
    "20": """erk>akt mek>erk pip2>pkc pip3>akt pip3>pip2 pip3>plcg pka>akt pka>erk pka>jnk pka>mek pka>p38 pka>raf
             pkc>jnk pkc>mek pkc>p38 pkc>pka pkc>raf plcg>pip2 plcg>pkc raf>mek""",
    "18": """mek>erk pip2>pkc pip3>akt pip3>pip2 pip3>plcg pka>akt pka>erk pka>jnk pka>mek pka>p38 pka>raf
             pkc>jnk pkc>mek pkc>p38 pkc>raf plcg>pip2 plcg>pkc raf>mek""",
    "17": """erk>akt mek>erk pip3>pip2 pka>akt pka>erk pka>jnk pka>mek pka>p38 pka>raf
             pkc>jnk pkc>mek pkc>p38 pkc>pka pkc>raf plcg>pip2 plcg>pip3 raf>mek""",
}


def test_embedded_bytes_are_those_of_the_source() -> None:
    packed = resources.files("latentdo.datasets").joinpath("sachs.csv.gz").read_bytes()
    content = gzip.decompress(packed)
    digest = hashlib.sha256(content).hexdigest()
    assert digest == "fc331dcd0bc1d8765986b88cd1d23dd5a3f52e4ffc299fdf96de9d522ddf01aa"
    assert content.splitlines()[0] == b"praf,pmek,plcg,PIP2,PIP3,p44/42,pakts473,PKA,PKC,P38,pjnk"
    note = resources.files("latentdo.datasets").joinpath("SACHS.md").read_text(encoding="utf-8")
    assert digest in note
    assert "Copyright (c) 2018 Diviyan Kalainathan" in note


def test_full_table() -> None:
    data = load_sachs()
    assert data.X.shape == (7466, 11)
    assert data.X.columns.to_list() == NAMES
    assert data.X.iloc[0].to_list() == [26.4, 13.2, 8.82, 18.3, 58.8, 6.61, 17.0, 414.0, 17.0, 44.9, 40.0]
    assert data.X.iloc[-1].to_list() == [30.5, 1.01, 7.3, 173.0, 22.9, 6.61, 13.7, 890.0, 1.0, 1.0, 1.65]
    assert (data.X >= 1.0).to_numpy().all()
    assert not data.log


def test_conditions_are_consecutive_blocks_of_the_published_sizes() -> None:
    data = load_sachs()
    blocks = data.conditions.ne(data.conditions.shift()).cumsum()
    found = data.conditions.groupby(blocks).agg(["first", "size"])
    assert dict(zip(found["first"], found["size"], strict=True)) == SIZES
    assert found["first"].to_list() == list(SIZES)
    assert data.regimes.to_list() == data.conditions.to_list()


def test_conditions_fit_the_chemistry() -> None:
    """Under U0126 measured Mek rises, from the first to the last row of its block: a shifted block would not."""
    data = load_sachs(log=True)
    median = data.X.groupby(data.conditions).median()
    assert median.loc["cd3cd28+u0126", "Mek"] > median.loc["cd3cd28", "Mek"] + 0.5
    first, last = (
        data.X["Mek"][data.conditions == "cd3cd28+u0126"].iloc[at].median()
        for at in (slice(60), slice(-60, None))
    )
    outside = data.X["Mek"].iloc[[*range(4199 - 60, 4199), *range(4998, 5058)]].median()
    assert min(first, last) > outside + 0.5


def test_dcdi_subset() -> None:
    data, full = load_sachs("dcdi"), load_sachs("full")
    assert data.X.shape == (5846, 11)
    assert data.log
    np.testing.assert_array_equal(data.X.to_numpy(), np.log(full.X.to_numpy()[:5846]))
    counts = data.regimes.value_counts().to_dict()
    assert counts == {"observational": 1755, "Akt": 911, "PKC": 723, "PIP2": 810, "Mek": 799, "PIP3": 848}
    assert data.targets.index.to_list() == ["observational", "Akt", "PKC", "PIP2", "Mek", "PIP3"]
    for label, row in data.targets.iterrows():
        assert row[row == 1].index.to_list() == ([] if label == "observational" else [label])
    np.testing.assert_array_equal(load_sachs("dcdi", log=False).X.to_numpy(), full.X.to_numpy()[:5846])


def test_targets_of_the_full_table() -> None:
    targets = load_sachs().targets
    hit = {label: row[row == 1].index.to_list() for label, row in targets.iterrows()}
    assert hit["cd3cd28"] == hit["cd3cd28+icam2"] == []
    assert (hit["pma"], hit["b2camp"], hit["cd3cd28+u0126"]) == (["PKC"], ["PKA"], ["Mek"])
    assert targets.index.to_list() == list(SIZES)
    assert targets.columns.to_list() == NAMES


@pytest.mark.parametrize("subset", ["full", "dcdi"])
def test_parts_make_a_data_set(subset: Any) -> None:
    data = load_sachs(subset)
    made = Dataset.from_table(
        data.X, regimes=data.regimes, targets=data.targets, observational=data.observational
    )
    assert made.regime_labels[0] == data.observational
    assert made.targets is not None
    assert made.targets.sum() == data.targets.to_numpy().sum()


@pytest.mark.parametrize("graph", ["17", "18", "20"])
def test_reference_graphs(graph: Any) -> None:
    adjacency = reference_graph(graph)
    readable = {name.lower(): name for name in NAMES}
    expected = {tuple(readable[part] for part in edge.split(">")) for edge in EDGES[graph].split()}
    found = {(i, j) for i in adjacency.index for j in adjacency.columns if adjacency.loc[i, j] == 1}
    assert found == expected
    assert len(found) == int(graph) == adjacency.to_numpy().sum()
    assert adjacency.index.to_list() == adjacency.columns.to_list() == NAMES
    assert nx.is_directed_acyclic_graph(nx.from_pandas_adjacency(adjacency, create_using=nx.DiGraph))
    pd.testing.assert_frame_equal(load_sachs(graph=graph).adjacency, adjacency)


def test_unknown_choices_are_refused_and_copies_are_independent() -> None:
    with pytest.raises(ValueError, match=r'use "full" or "dcdi"'):
        load_sachs("small")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="use one of '17', '18', '20'"):
        load_sachs(graph="19")  # type: ignore[arg-type]
    mine = load_sachs()
    for table in (mine.X, mine.adjacency):
        table.iloc[0, 0] = 9
    assert load_sachs().X.iloc[0, 0] == 26.4
    assert load_sachs().adjacency.iloc[0, 0] == 0


def test_loading_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    module._raw.cache_clear()
    assert len(load_sachs().X) == 7466


def test_data_are_part_of_the_wheel(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="building the wheel offline needs hatchling")
    root = Path(latentdo.__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("needs a source checkout")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "latentdo/datasets/sachs.csv.gz" in names
    assert "latentdo/datasets/SACHS.md" in names
