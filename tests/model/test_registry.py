"""A family of one's own: known by name, saved and loaded like those of the package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import laplace

from latentdo.model.mechanisms import LinearMechanism, Mechanism
from latentdo.model.mechanisms import registry as module
from latentdo.model.mechanisms.registry import mechanism_class, register
from latentdo.persistence import ResultFileError, load_result, save_result


@dataclass(frozen=True, eq=False)
class LaplaceMechanism(Mechanism):
    """A constant with two-sided exponential noise."""

    place: float
    scale: float

    family: ClassVar[str] = "laplace"

    @property
    def n_parameters(self):
        return 2

    def log_density(self, x, y):
        return laplace(self.place, self.scale).logpdf(y)

    def draw(self, x, rng):
        return rng.laplace(self.place, self.scale, len(x))

    @classmethod
    def pack(cls, mechanisms):
        return {"numbers": np.array([[one.place, one.scale] for one in mechanisms])}

    @classmethod
    def unpack(cls, arrays, parents):
        return [cls(*numbers) for numbers, _ in zip(arrays["numbers"].tolist(), parents, strict=True)]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(module, "_REGISTERED", {})


@pytest.fixture
def result(case):
    """A result in which one intervention has a mechanism of the new family."""
    model = case.result.model
    key = next(iter(model.own))
    return replace(case.result, model=replace(model, own={**model.own, key: LaplaceMechanism(0.5, 2.0)}))


def test_a_registered_family_is_known_by_its_name():
    assert register(LaplaceMechanism) is LaplaceMechanism, "it may be used as a decorator"
    assert mechanism_class("laplace") is LaplaceMechanism
    register(LaplaceMechanism)  # as when its module is loaded again
    assert mechanism_class("linear") is LinearMechanism


@pytest.mark.parametrize("name", sorted(module._BUILT_IN))
def test_every_family_of_the_package_can_be_found(name):
    assert mechanism_class(name).family == name
    assert issubclass(mechanism_class(name), Mechanism)


@pytest.mark.parametrize("name", ["laplace", *sorted(module._BUILT_IN)])
def test_a_name_is_given_once(name):
    register(LaplaceMechanism)
    other = type("Other", (LaplaceMechanism,), {"family": name})
    with pytest.raises(ValueError, match=name):
        register(other)
    assert mechanism_class(name) is not other


def test_an_unknown_name_is_refused_and_the_known_ones_are_told():
    register(LaplaceMechanism)
    with pytest.raises(ValueError, match=r"os:system.*laplace.*linear"):
        mechanism_class("os:system")


def test_results_with_an_own_family_are_saved_and_loaded(result, case, tmp_path):
    register(LaplaceMechanism)
    path, again = tmp_path / "a", tmp_path / "b"
    save_result(result, path)
    loaded = load_result(path)
    z = case.result.preprocessor.forward(case.X)
    np.testing.assert_array_equal(loaded.model.log_joint(z), result.model.log_joint(z))
    assert [type(one) for one in loaded.model.own.values()].count(LaplaceMechanism) == 1
    save_result(loaded, again)
    assert path.read_bytes() == again.read_bytes()


def test_a_file_with_a_family_that_is_not_registered_is_refused(result, tmp_path):
    save_result(result, tmp_path / "m")
    with pytest.raises(ResultFileError, match="laplace"):
        load_result(tmp_path / "m")


@pytest.mark.parametrize("name", ["with.dot", ""])
def test_names_that_files_cannot_hold_are_refused(name):
    with pytest.raises(ValueError, match="name"):
        register(type("Other", (LaplaceMechanism,), {"family": name}))
