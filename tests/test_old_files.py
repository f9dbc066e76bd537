"""Files that version 0.1 wrote still load, and say what they said then (``tests/fixtures/v0_1``)."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from latentdo import BootstrapDAG, LatentInterventionDAG, persistence
from latentdo.persistence import ResultFileError, load_result, save_result

FOLDER = Path(__file__).parent / "fixtures" / "v0_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
RESULTS = [name for name in EXPECTED if name != "bootstrap"]


@pytest.mark.parametrize("name", RESULTS)
def test_a_model_of_version_0_1_means_the_same_today(name):
    result = load_result(FOLDER / f"{name}.safetensors")
    then = EXPECTED[name]
    z = result.preprocessor.forward(np.array(then["rows"]))
    # float32 networks add up in another order on other machines
    tolerance = 1e-4 if name.startswith("gradient") else 1e-9
    np.testing.assert_allclose(result.model.log_joint(z), then["log_joint"], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(result.model.topology.adjacency, then["edges"])
    assert result.evidence == then["evidence"]


@pytest.mark.parametrize("name", RESULTS)
def test_a_model_of_version_0_1_can_be_used_and_saved_again(name, tmp_path):
    model = LatentInterventionDAG.load(FOLDER / f"{name}.safetensors")
    rows = np.array(EXPECTED[name]["rows"])
    again = tmp_path / "again.safetensors"
    model.save(again)
    reloaded = LatentInterventionDAG.load(again)
    np.testing.assert_allclose(reloaded.predict_proba(rows), model.predict_proba(rows), rtol=1e-6, atol=1e-9)
    save_result(load_result(again), tmp_path / "twice.safetensors")
    assert again.read_bytes() == (tmp_path / "twice.safetensors").read_bytes()


@pytest.mark.parametrize(("name", "density"), [("flow", "nonlinear-mixed"), ("gradient-flow", "flow")])
def test_what_version_0_1_called_a_flow_has_its_present_name(name, density):
    assert load_result(FOLDER / f"{name}.safetensors").density == density


def test_resamples_of_version_0_1_still_load():
    boot = BootstrapDAG.load(FOLDER / "bootstrap.safetensors")
    np.testing.assert_allclose(boot.edge_support_.to_numpy(), EXPECTED["bootstrap"]["support"])


def _forge(name, path, tamper):
    """An old file with other arrays and a checksum that fits."""
    content = (FOLDER / f"{name}.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    state = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["latentdo"])
    arrays = {key: np.array(value) for key, value in load(content).items()}
    tamper(arrays)
    del state["checksum"]
    state["checksum"] = persistence._checksum(arrays, state)
    path.write_bytes(save(arrays, metadata={"latentdo": json.dumps(state)}))


def _outside_the_graph(arrays):
    adjacency = arrays["model.adjacency"]
    i, j = np.argwhere((adjacency == 0) & ~np.eye(len(adjacency), dtype=bool))[0]
    arrays["model.coefficients"][j, 1 + i] = 0.5


HOSTILE = {
    "linear: variances below zero": ("linear", lambda a: a["model.variances"].__imul__(-1)),
    "linear: coefficients of another size": (
        "linear",
        lambda a: a.update({"model.coefficients": np.zeros((2, 2))}),
    ),
    "linear: no variances": ("linear", lambda a: a.pop("model.variances")),
    "linear: a slope beyond the parents": ("linear", _outside_the_graph),
    "linear: mechanisms of other targets": ("linear", lambda a: a["model.target_index"].__iadd__(1)),
    "linear: infinite": ("linear", lambda a: a["model.coefficients"].__setitem__((0, 0), np.inf)),
    "network: too short": ("nonlinear", lambda a: a.update({"model.networks": a["model.networks"][:-1]})),
    "network: sizes below zero": ("nonlinear", lambda a: a["model.networks_sizes"].__setitem__(0, -1)),
    "network: own mechanisms missing": ("nonlinear", lambda a: a["model.own_sizes"].__setitem__(0, 0)),
    "network: mechanisms of other targets": ("nonlinear", lambda a: a["model.target_index"].__iadd__(1)),
    "noise: variances below zero": ("flow", lambda a: a["model.noises"].__imul__(-1)),
    "neural: unknown density": (
        "gradient-flow",
        lambda a: a["model.architecture"].__setitem__(0, 7),
    ),
    "neural: weights of another size": (
        "gradient-flow",
        lambda a: a.update({"model.embeddings": a["model.embeddings"][:, :1]}),
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_of_version_0_1_are_refused(case, tmp_path):
    name, tamper = HOSTILE[case]
    _forge(name, tmp_path / "forged", tamper)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ResultFileError):
            load_result(tmp_path / "forged")


@pytest.mark.parametrize("name", RESULTS)
def test_an_untouched_forgery_loads(name, tmp_path):
    """So that the refusals above are for what was tampered with."""
    _forge(name, tmp_path / "forged", lambda arrays: None)
    assert load_result(tmp_path / "forged").evidence == EXPECTED[name]["evidence"]
