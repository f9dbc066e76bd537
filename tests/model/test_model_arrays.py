"""Fitted models as arrays and as files: the same again, and nothing that does not fit together."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from latentdo.model import FittedModel, Topology
from latentdo.persistence import load_result, save_result


def test_arrays_round_trip(model, rows):
    arrays = model.to_arrays()
    assert all(isinstance(value, np.ndarray) for value in arrays.values())
    for again in (FittedModel.from_arrays(arrays), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.log_joint(rows), model.log_joint(rows))
        np.testing.assert_array_equal(again.topology.adjacency, model.topology.adjacency)
        assert again.own.keys() == model.own.keys()
        for one, other in zip(again.reference, model.reference, strict=True):
            assert type(one) is type(other)
        for key, own in model.own.items():
            assert type(again.own[key]) is type(own)
        restored = again.to_arrays()
        assert restored.keys() == arrays.keys()
        for name, array in arrays.items():
            assert restored[name].dtype == array.dtype
            np.testing.assert_array_equal(restored[name], array)


def test_every_family_has_arrays_of_its_own(named_model):
    families = {name.split(".")[0] for name in named_model("all-families").to_arrays() if "." in name}
    assert families == {"linear", "network", "neural"}


def test_arrays_round_trip_without_targets(model, rows):
    single = Topology(model.topology.adjacency, np.zeros((1, 3), np.int8), np.ones(1))
    plain = replace(model, topology=single, own={})
    again = FittedModel.from_arrays(plain.to_arrays())
    assert again.own == {}
    np.testing.assert_array_equal(again.log_joint(rows), plain.log_joint(rows))


def test_restored_arrays_are_copies(model, rows):
    arrays = {name: array.copy() for name, array in model.to_arrays().items()}
    again = FittedModel.from_arrays(arrays)
    before = again.log_joint(rows)
    for array in arrays.values():
        array[...] = 1
    np.testing.assert_array_equal(again.log_joint(rows), before)


def _first_family(arrays):
    return next(name.split(".")[0] for name in arrays if "." in name)


def _twice(arrays):
    """The same place listed twice."""
    name = f"{_first_family(arrays)}.index"
    arrays[name] = arrays[name].copy()
    arrays[name][0] = arrays[name][-1]


def _elsewhere(arrays):
    name = f"{_first_family(arrays)}.index"
    arrays[name] = arrays[name] + 7


def _fewer_targets(arrays):
    arrays["targets"] = np.zeros_like(arrays["targets"])


def _more_targets(arrays):
    arrays["targets"] = arrays["targets"].copy()
    arrays["targets"][-1] = 1


def _no_index(arrays):
    del arrays[f"{_first_family(arrays)}.index"]


def _foreign(arrays):
    arrays["unheard-of.index"] = np.zeros((0, 2), dtype=np.int64)


def _extra(arrays):
    arrays["extra"] = np.zeros(1)


def _extra_in_a_family(arrays):
    arrays[f"{_first_family(arrays)}.extra"] = np.zeros(1)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (_twice, "targets|parents"),
        (_elsewhere, "(linear|neural) mechanisms"),
        (_fewer_targets, "targets"),
        (_more_targets, "targets"),
        (_no_index, "(linear|neural) mechanisms.*index"),
        (_foreign, "unheard-of.*linear.*network.*neural"),
        (_extra, "extra"),
        (_extra_in_a_family, r"(linear|neural)\.extra"),
    ],
)
def test_wrong_mechanisms_are_refused_by_name(model, damage, named):
    arrays = model.to_arrays()
    damage(arrays)
    with pytest.raises(ValueError, match=named):
        FittedModel.from_arrays(arrays)


def test_files_bring_it_back(model, rows, make_result, tmp_path):
    uncertain, k = np.zeros((3, 3)), model.topology.n_regimes
    case = make_result(
        n_variables=3,
        n_samples=60,
        model=model,
        regime_names=tuple(range(k)),
        responsibilities=model.responsibilities(rows),
        edge_probabilities=uncertain,
        ancestor_probabilities=uncertain,
        target_probabilities=np.zeros((k, 3)),
    )
    first, second = tmp_path / "a", tmp_path / "b"
    save_result(case.result, first)
    again = load_result(first)
    np.testing.assert_array_equal(again.model.log_joint(rows), model.log_joint(rows))
    save_result(again, second)
    assert first.read_bytes() == second.read_bytes()
