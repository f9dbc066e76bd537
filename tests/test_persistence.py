import json
import os
import struct
import warnings
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from latentdo import persistence
from latentdo.data import is_unknown
from latentdo.model.fitted import FittedModel
from latentdo.persistence import FORMAT, NewerFormatError, ResultFileError, load_result, save_result

plain = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=8)
labels = st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
nested = st.recursive(
    labels,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


def parts(path):
    """Metadata and arrays of a file, to tamper with."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    return json.loads(header["__metadata__"]["latentdo"]), load_arrays(content)


def forge(path, state, arrays, *, honest_checksum=True):
    """Write a file as an attacker would: any content, with a checksum that fits."""
    state = {key: value for key, value in state.items() if key != "checksum"}
    if honest_checksum:
        state["checksum"] = persistence._checksum(arrays, state)
    path.write_bytes(save_arrays(arrays, metadata={"latentdo": json.dumps(state)}))


def canonical(value):
    """Text that tells types and NaN apart, but not the order of keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{key!r}: {canonical(item)}" for key, item in value.items())) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(canonical, value))})"
    return repr(value)


@pytest.fixture
def saved(case, tmp_path):
    path = tmp_path / "model.safetensors"
    save_result(case.result, path)
    return path


def test_everything_comes_back(case, saved):
    again = load_result(saved)
    for field in fields(case.result):
        before, after = getattr(case.result, field.name), getattr(again, field.name)
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after)
            assert before.dtype == after.dtype
        elif isinstance(before, FittedModel):
            assert type(before) is type(after)
            for name, array in before.to_arrays().items():
                np.testing.assert_array_equal(array, after.to_arrays()[name])
        elif field.name == "where":
            assert vars(before) == vars(after)
        elif field.name == "preprocessor":
            assert before.to_dict() == after.to_dict()
        else:
            assert before == after, field.name
    np.testing.assert_array_equal(
        again.model.score_samples(again.preprocessor.forward(case.X)),
        case.result.model.score_samples(case.result.preprocessor.forward(case.X)),
    )


@settings(max_examples=40)
@given(
    names=st.lists(
        labels.filter(lambda label: not is_unknown(label)),
        min_size=6,
        max_size=6,
        unique_by=(repr, lambda label: label),
    ),
    columns=st.lists(st.text(max_size=12), min_size=5, max_size=5, unique=True),
    configuration=st.dictionaries(st.text(max_size=6), nested, max_size=4),
    evidence=st.floats(allow_nan=False, allow_infinity=False),
)
def test_save_load_save_gives_the_same_bytes(make_result, tmp_path, names, columns, configuration, evidence):
    result = make_result(
        n_samples=60,
        columns=columns,
        regime_names=tuple(names),
        configuration=configuration,
        evidence=evidence,
        history=({key: value for key, value in configuration.items() if isinstance(value, str)},),
    ).result
    first, second, third = (tmp_path / name for name in ("a", "b", "c"))
    save_result(result, first)
    save_result(result, second)
    assert first.read_bytes() == second.read_bytes()
    again = load_result(first)
    save_result(again, third)
    assert third.read_bytes() == first.read_bytes()
    assert repr(again.regime_names) == repr(tuple(names))
    assert canonical(again.configuration) == canonical(configuration)
    assert again.columns == tuple(columns)
    assert again.evidence == evidence


@pytest.mark.parametrize("transform", ["log", "rank-gaussian"])
def test_transforms_survive(make_result, tmp_path, transform):
    case = make_result(n_samples=100, transform=transform)
    save_result(case.result, tmp_path / "m")
    again = load_result(tmp_path / "m")
    np.testing.assert_array_equal(
        again.preprocessor.forward(case.X), case.result.preprocessor.forward(case.X)
    )


def test_arrays_tables_and_objects_in_the_configuration(make_result, tmp_path):
    prior = pd.DataFrame([[0.0, -1.0], [2.0, 0.0]], index=["a", "b"], columns=["a", "b"])
    result = make_result(
        n_samples=60,
        configuration={"edge_prior": prior, "seed": np.int64(3), "w": np.eye(2), "f": len, ("a", 1): {2, 3}},
    ).result
    save_result(result, tmp_path / "m")
    got = load_result(tmp_path / "m").configuration
    pd.testing.assert_frame_equal(got["edge_prior"], prior)
    assert (got["seed"], got["w"], got["f"]) == (3, [[1.0, 0.0], [0.0, 1.0]], repr(len))


def test_views_and_other_byte_orders_are_saved_as_they_read(case, tmp_path):
    flipped = case.result.responsibilities[:, ::-1][::-1]
    odd = replace(case.result, responsibilities=np.asfortranarray(flipped).astype(">f8"))
    save_result(odd, tmp_path / "m")
    np.testing.assert_array_equal(load_result(tmp_path / "m").responsibilities, flipped)


@settings(max_examples=200)
@given(st.data())
def test_any_damage_is_noticed(saved, tmp_path, data):
    content = saved.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "append"]))
    if kind == "flip":
        damaged = bytearray(content)
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        damaged = content[:at] if kind == "cut" else content + b"\0" * (1 + at % 9)
    broken = tmp_path / "broken"
    broken.write_bytes(bytes(damaged))
    with pytest.raises(ResultFileError, match="broken"):
        load_result(broken)


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"not a model", b"\x80\x04cos\nsystem\n", b"\xff" * 64])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "x.pkl"
    path.write_bytes(content)
    with pytest.raises(ResultFileError, match=r"x\.pkl"):
        load_result(path)


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    for metadata in (None, {"format": "pt"}, {"latentdo": "[]"}, {"latentdo": "{}"}):
        (tmp_path / "m").write_bytes(save_arrays({"a": np.zeros(2)}, metadata=metadata))
        with pytest.raises(ResultFileError, match="not a result of latentdo"):
            load_result(tmp_path / "m")


def test_deep_json_is_refused_not_crashed(tmp_path):
    (tmp_path / "m").write_bytes(save_arrays({"a": np.zeros(2)}, metadata={"latentdo": "[" * 10**5}))
    with pytest.raises(ResultFileError):
        load_result(tmp_path / "m")


def test_a_later_format_asks_for_an_upgrade(saved):
    state, arrays = parts(saved)
    forge(saved, state | {"format": FORMAT + 1, "written_by": "9.9"}, arrays | {"unknown": np.zeros(1)})
    with pytest.raises(NewerFormatError, match=r"9\.9.*upgrade"):
        load_result(saved)


@pytest.mark.parametrize(
    "change",
    [
        {"family": "os:system"},
        {"family": "__import__"},
        {"family": ["linear"]},
        {"columns": ["a"]},
        {"columns": [1, 2, 3, 4, 5]},
        {"regime_names": [[0], 1, 2, 3, 4, 5]},
        {"status": "fine"},
        {"evidence": {"$float": "x"}},
        {"evidence": None},
        {"preprocessor": None},
        {"history": [3]},
        {"configuration": []},
        {"warnings": [{}]},
        {"evidence_terms": {"a": "b"}},
    ],
)
def test_hostile_metadata_with_a_valid_checksum(saved, change):
    state, arrays = parts(saved)
    forge(saved, state | change, arrays)
    with pytest.raises(ResultFileError):
        load_result(saved)


def _cycle(a):
    a["model.adjacency"][:] = 0
    a["model.adjacency"][0, 1] = a["model.adjacency"][1, 0] = 1


@pytest.mark.parametrize(
    "tamper",
    [
        _cycle,
        lambda a: a["model.targets"].__setitem__((0, 0), 1),
        lambda a: a["model.weights"].__imul__(2),
        lambda a: a["model.linear.noises"].__imul__(-1),
        lambda a: a.update({"model.linear.parameters": np.zeros((2, 2))}),
        lambda a: a.update({"model.linear.parameters": a["model.linear.parameters"][:-1]}),
        lambda a: a["model.linear.parameters"].__setitem__(0, np.inf),
        lambda a: a["model.linear.parameters_sizes"].__setitem__(0, 2**62),
        lambda a: a["model.linear.parameters_sizes"].__setitem__(0, -1),
        lambda a: a["model.linear.index"].__setitem__((0, 1), 99),
        lambda a: a["model.linear.index"].__setitem__(0, a["model.linear.index"][1]),
        lambda a: a["model.linear.index"].__setitem__(0, -1),
        lambda a: a.update({"model.os.system": np.zeros(1)}),
        lambda a: a.update({"model.linear.extra": np.zeros(1)}),
        lambda a: a.update({"model.extra": np.zeros(1)}),
        lambda a: a.update({"surprise": np.zeros(1)}),
        lambda a: a.pop("model.linear.noises"),
        lambda a: a.pop("model.linear.index"),
        lambda a: a.pop("responsibilities"),
        lambda a: a.update(responsibilities=np.full((3, 6), np.nan)),
        lambda a: a.update(responsibilities=np.zeros((3, 2))),
        lambda a: a.update(edge_probabilities=np.full((5, 5), 7.0)),
        lambda a: a.update(edge_probabilities=np.zeros((5, 5), dtype=np.float16)),
        lambda a: a.update(responsibilities=np.zeros(())),
    ],
)
def test_hostile_arrays_with_a_valid_checksum(saved, tamper):
    state, arrays = parts(saved)
    tamper(arrays)
    forge(saved, state, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ResultFileError):
            load_result(saved)


def test_a_wrong_checksum_is_damage(saved):
    state, arrays = parts(saved)
    arrays["model.linear.noises"] *= 1.0001
    forge(saved, state, arrays, honest_checksum=False)
    with pytest.raises(ResultFileError, match="checksum"):
        load_result(saved)


def test_writing_is_all_or_nothing(case, saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="disk full"):
        save_result(replace(case.result, message="new"), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_bad_places(case, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        save_result(case.result, tmp_path / "no" / "m")
    with pytest.raises(IsADirectoryError, match="name of a file"):
        save_result(case.result, tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load_result(tmp_path / "m")
