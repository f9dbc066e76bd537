"""What comes from outside stays data: names in reports, bytes in files, and packages that nobody pinned."""

from __future__ import annotations

import pickle
from dataclasses import replace
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from latentdo import LatentInterventionDAG, read_table
from latentdo.app import server_arguments
from latentdo.outputs import write_outputs
from latentdo.persistence import ResultFileError
from latentdo.solvers.gradient import checkpoint
from latentdo.solvers.gradient.lagrangian import AugmentedLagrangian
from latentdo.solvers.gradient.state import TrainState

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% include 'etc' %}",
    "\"'><svg/onload=alert(2)>",
    "]]><!-- --><style>*{display:none}</style>",
)


class Elements(HTMLParser):
    """Tags and attributes of a page as a browser sees them."""

    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def elements(html: str) -> Elements:
    parsed = Elements()
    parsed.feed(html)
    return parsed


def test_markup_in_names_stays_text(make_result, tmp_path):
    plain = make_result()
    hostile = make_result(columns=HOSTILE, warnings=HOSTILE, message=HOSTILE[0])
    labels = tuple(f"{k}{name}" for k, name in enumerate((*HOSTILE, "last")))[: plain.result.n_regimes]
    result = replace(hostile.result, regime_names=labels)
    pages = {}
    for name, case in (("plain", plain), ("hostile", replace(hostile, result=result))):
        write_outputs(case.result, tmp_path / name, X=case.X)
        pages[name] = elements((tmp_path / name / "report.html").read_text("utf-8"))
    for tag in ("script", "style", "img", "iframe", "object", "embed", "link", "base", "form"):
        assert pages["hostile"].tags.count(tag) == pages["plain"].tags.count(tag), tag
    handlers = [pair for pair in pages["hostile"].attributes if pair[0].startswith("on")]
    assert handlers == [pair for pair in pages["plain"].attributes if pair[0].startswith("on")]
    assert not [
        value for _, value in pages["hostile"].attributes if value.strip().lower().startswith("javascript:")
    ]
    assert "{{ 7 * 7 }}" in (tmp_path / "hostile" / "report.html").read_text("utf-8")
    nodes = ElementTree.parse(tmp_path / "hostile" / "graph.graphml").getroot()
    assert {node.get("id") for node in nodes.iter() if node.tag.endswith("}node")} == set(HOSTILE)


class Payload:
    """What a pickle would run; if it does, a file appears."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_loaders_run_nothing(tmp_path):
    mark = tmp_path / "ran"
    bomb = pickle.dumps(Payload(mark))
    pickle.loads(bomb)
    assert mark.exists()  # the payload works
    mark.unlink()
    for name in ("model.safetensors", "data.parquet", "data.csv", "data.feather", "data.h5ad"):
        (tmp_path / name).write_bytes(bomb)
    with pytest.raises(ResultFileError):
        LatentInterventionDAG.load(tmp_path / "model.safetensors")
    for name in ("data.parquet", "data.csv", "data.feather", "data.h5ad"):
        with pytest.raises(ValueError):  # noqa: PT011  (each format has its own words)
            read_table(tmp_path / name)
    torch.save({"fingerprint": "f", "state": Payload(mark)}, tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.load(tmp_path / "checkpoint", "f")
    assert not mark.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "asleep"},
        {"step": -1},
        {"step": "many"},
        {"evidence": float("nan")},
        {"rate_scale": 0.0},
        {"model": {"w": torch.tensor([float("nan")])}},
        {"model": 3},
        {"rng": 3},
        {"history": [3]},
        {"lagrangian": {"unknown": 1.0}},
        {"surprise": 1},
    ],
)
def test_forged_checkpoints_are_refused_by_file(tmp_path, change):
    path = tmp_path / "checkpoint"
    state = TrainState({"w": torch.ones(2)}, {}, torch.get_rng_state(), AugmentedLagrangian())
    checkpoint.save(path, state, "f")
    assert checkpoint.load(path, "f").phase == "relaxed"
    content = torch.load(path, weights_only=True)
    torch.save(content | change, path)
    with pytest.raises(ValueError, match=r"checkpoint.*delete it"):
        checkpoint.load(path, "f")


def test_text_in_a_table_is_never_evaluated(tmp_path):
    mark = tmp_path / "ran"
    cell = f"__import__('pathlib').Path('{mark}').touch()"
    (tmp_path / "data.csv").write_text(f'a,b\n1,"{cell}"\n2,3\n')
    with pytest.raises(ValueError, match="Non-numeric"):
        read_table(tmp_path / "data.csv")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=[cell, "b"])
    est = LatentInterventionDAG(max_regimes=2, n_init=1).fit(X)
    est.save(tmp_path / "model.safetensors")
    LatentInterventionDAG.load(tmp_path / "model.safetensors").effect(cell, "b")
    assert not mark.exists()


def test_the_app_serves_this_computer_only_and_limits_uploads():
    command = server_arguments()
    assert "--server.address=localhost" in command
    (limit,) = (int(word.split("=")[1]) for word in command if word.startswith("--server.maxUploadSize="))
    assert 0 < limit <= 2000
    assert "--browser.gatherUsageStats=false" in command


def needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """Packages that a package with some extras brings along, by what is installed here."""
    if (name, extras) in seen:
        return set()
    seen.add((name, extras))
    found = {name}
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        chosen = extras or {""}
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in chosen
        ):
            found |= needed(canonicalize_name(requirement.name), frozenset(requirement.extras), seen)
    return found


def test_every_package_is_pinned_to_what_is_tested():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    wanted = needed("latentdo", frozenset({"dev"}), set()) - {"latentdo"}
    unpinned = {name for name in wanted if name not in pinned}
    assert unpinned <= {"setuptools", "pip"}
    installed = {name: metadata.version(name).partition("+")[0] for name in wanted - unpinned}
    assert {name: version for name, version in installed.items() if version != pinned[name]} == {}
