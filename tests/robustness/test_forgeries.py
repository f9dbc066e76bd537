"""Every field of a saved result replaced, and the file signed anew: refused with file and field, or harmless."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as to_safetensors

from latentdo import BootstrapDAG, LatentInterventionDAG, persistence
from latentdo.outputs import write_outputs
from latentdo.persistence import ResultFileError, load_arrays, load_result

VALUES: tuple[Any, ...] = (
    None, True, -1, 10**300, "", [], [1], {}, {"a": 1}, {"$float": "nan"}, {"$float": "x"}, {"$tuple": 1},
    {"$items": [[[], 1]]}, [[[[[[]]]]]],
)  # fmt: skip
NUMBERS = {"i": (-1, 2, 127), "u": (0, 255), "f": (-1.0, 0.0, 7.0, 1e300, math.nan, math.inf)}
FREE = ("configuration", "written_by")  # what the file says of its making; nothing is computed from it


def sign(path, entry, state, arrays):
    state = {key: value for key, value in state.items() if key != "checksum"}
    state["checksum"] = persistence._checksum(arrays, state)
    own = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    path.write_bytes(to_safetensors(own, metadata={entry: json.dumps(state)}))


def replaced(state, place, value):
    changed = copy.deepcopy(state)
    at = changed
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return changed


def places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def arrays_like(array):
    """Arrays that no fit leaves in the place of this one."""
    yield "no rows", array[:0]
    yield "another axis", array[None]
    yield "other numbers", array.astype(np.float32 if array.dtype != np.float32 else np.float64)
    for value in NUMBERS[array.dtype.kind]:
        changed = array.copy()
        if array.size:
            changed.flat[0] = value
            yield f"first {value}", changed
            yield f"all {value}", np.full_like(array, value)


def forgeries(state, arrays):
    for place in places(state):
        if place[0] not in FREE:
            for value in VALUES:
                yield f"{place} {str(value)[:20]}", replaced(state, place, value), arrays
    for name, array in arrays.items():
        yield f"{name} absent", state, {key: a for key, a in arrays.items() if key != name}
        for words, changed in arrays_like(array):
            yield f"{name} {words}", state, {**arrays, name: changed}


def outcome(load, path):
    """What a file holds, or None and why it was refused; any other error is a failure of the test."""
    try:
        return load(path), ""
    except ResultFileError as error:
        return None, str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_result):
    case = make_result(n_variables=3, n_samples=40, seed=2)
    where = write_outputs(case.result, tmp_path_factory.mktemp("forged") / "r", X=case.X)
    case.X.to_csv(where.parent / "data.csv", index=False)
    return where


def test_every_field_of_a_model_is_refused_by_name_or_harmless(folder, capsys):
    from latentdo.cli import main

    path = folder / "model.safetensors"
    original = path.read_bytes()
    state, arrays = load_arrays(path, "latentdo")
    counts = {"refused": 0, "used": 0}
    names = [str(name) for name in load_result(path).columns]
    try:
        for words, forged, numbers in forgeries(state, arrays):
            sign(path, "latentdo", forged, numbers)
            result, refusal = outcome(load_result, path)
            if result is None:
                counts["refused"] += 1
                assert str(path) in refusal, words
                continue
            counts["used"] += 1
            assert math.isfinite(result.evidence), words
            assert np.isfinite(result.model.score_samples(np.ones((1, 3)))).all(), words
            if counts["used"] % 8 == 0:  # a page takes a while
                data = str(folder.parent / "data.csv")
                for command in (
                    ["report", str(folder)],
                    ["effect", str(folder), names[0]],
                    ["explain", str(folder), "--data", data, "--rows", "0"],
                ):
                    assert main(command) in (0, 1), (words, capsys.readouterr().err)
    finally:
        path.write_bytes(original)
    assert counts["refused"] > 400
    assert counts["refused"] > 4 * counts["used"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evidence", {"$float": "nan"}),
        ("evidence", {"$float": "inf"}),
        ("seconds", -1),
        ("columns", ["a", "a", "b"]),
        ("columns", ["a", "b", 3]),
        ("regime_names", [0, 0, 0, 0]),
        ("status", "fine"),
        ("comparison", [{"model": [], "evidence": 1.0}]),
        ("history", [{"evidence": "high"}]),
    ],
)
def test_impossible_words_are_refused_by_field(folder, tmp_path, field, value):
    state, arrays = load_arrays(folder / "model.safetensors", "latentdo")
    path = tmp_path / "model.safetensors"
    sign(path, "latentdo", state | {field: value}, arrays)
    with pytest.raises(ResultFileError, match=field):
        load_result(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("responsibilities", np.zeros_like),
        ("responsibilities", lambda a: a[:0]),
        ("responsibilities", lambda a: a * 0.5),
        ("edge_probabilities", np.ones_like),
        ("target_probabilities", np.ones_like),
        ("model.weights", np.zeros_like),
        ("model.weights", lambda a: a * np.nan),
        ("model.targets", np.ones_like),
        ("model.adjacency", np.ones_like),
        ("model.adjacency", lambda a: a * 2 - 1),
        ("model.linear.noises", np.negative),
        ("model.linear.index", lambda a: a + 100),
    ],
)
def test_impossible_numbers_are_refused_by_array(folder, tmp_path, name, change):
    state, arrays = load_arrays(folder / "model.safetensors", "latentdo")
    path = tmp_path / "model.safetensors"
    sign(path, "latentdo", state, {**arrays, name: change(arrays[name])})
    with pytest.raises(ResultFileError, match=name.removeprefix("model.").split(".")[-1].removesuffix("s")):
        load_result(path)


def test_absurd_architectures_are_refused_before_they_fill_the_memory():
    from latentdo.model.mechanisms.neural import NeuralMechanism
    from latentdo.model.variational.mixture import Architecture

    shape = Architecture("nonlinear", True, 2, 2, embedding_size=3, width=4, n_blocks=1)
    state = {name: value.numpy() for name, value in shape.build_density().state_dict().items()}
    arrays = {
        "architecture": np.array([1, 1, 3, 4, 1, 2, 12, 2]),
        "embeddings": np.zeros((2, 3), dtype=np.float32),
        "uses": np.array([[0, 0, 0], [1, 0, 0]]),
        **{f"state.{name}": value for name, value in state.items()},
    }
    parents = [np.array([], dtype=np.int64), np.array([0])]
    assert len(NeuralMechanism.unpack(arrays, parents)) == 2
    for place in range(8):
        for value in (
            (-1, 10**6, 2**62) if place in (5, 6) else (-1, 400, 10**6, 2**62)
        ):  # no flow, no size of one
            forged = arrays["architecture"].copy()
            forged[place] = value
            with pytest.raises(ValueError, match=r"architecture|embeddings"):
                NeuralMechanism.unpack({**arrays, "architecture": forged}, parents)


def test_every_field_of_a_bootstrap_is_refused_or_harmless(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    x[:, 1] += 2.0 * x[:, 0]
    path = tmp_path / "bootstrap.safetensors"
    BootstrapDAG(LatentInterventionDAG(max_regimes=2, n_init=1, density="linear"), n_resamples=2).fit(x).save(
        path
    )
    state, arrays = load_arrays(path, "latentdo-bootstrap")
    for name, array in arrays.items():
        for words, changed in arrays_like(array):
            sign(path, "latentdo-bootstrap", state, {**arrays, name: changed})
            boot, refusal = outcome(BootstrapDAG.load, path)
            if boot is None:
                assert str(path) in refusal, (name, words)
            else:
                assert np.isfinite(boot.edge_support_.to_numpy()).all(), (name, words)
                assert ((boot.edge_support_ >= 0.0) & (boot.edge_support_ <= 1.0)).all(axis=None), (
                    name,
                    words,
                )
