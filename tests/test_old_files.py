"""Files that version 0.1 wrote still load, and say what they said then (``tests/fixtures/v0_1``)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG
from latentdo.persistence import load_result, save_result

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
    drawn = result.model.sample(3, 0, np.random.default_rng(0))
    np.testing.assert_allclose(drawn, then["draws"], rtol=tolerance, atol=tolerance)
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


def test_resamples_of_version_0_1_still_load():
    boot = BootstrapDAG.load(FOLDER / "bootstrap.safetensors")
    np.testing.assert_allclose(boot.edge_support_.to_numpy(), EXPECTED["bootstrap"]["support"])
