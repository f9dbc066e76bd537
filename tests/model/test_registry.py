"""A family of one's own: known by name, saved and loaded like those of the package."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import laplace
from sklearn.base import clone

from latentdo import LatentInterventionDAG, register_family
from latentdo.choices import DENSITY
from latentdo.estimator.arguments import check_arguments
from latentdo.model.mechanisms import LinearMechanism, Mechanism, MechanismFamily, ParametricFamily
from latentdo.model.mechanisms.registry import families, mechanism_class
from latentdo.persistence import ResultFileError, load_result, save_result


class LaplaceMechanism(ParametricFamily):
    """A constant with two-sided exponential noise."""

    family = "laplace"
    summary = "constants with two-sided exponential noise"

    @classmethod
    def fit(cls, x, y, weights, start=None):
        place = np.average(y, weights=weights)
        return cls(np.array([place, np.average(np.abs(y - place), weights=weights)]), n_inputs=0)

    def log_density(self, x, y):
        return laplace(*self.parameters).logpdf(y)

    def draw(self, x, rng):
        return rng.laplace(*self.parameters, len(x))


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(DENSITY, "choices", DENSITY.choices)


@pytest.fixture
def result(case):
    """A result in which one intervention has a mechanism of the new family."""
    model = case.result.model
    key = next(iter(model.own))
    return replace(
        case.result, model=replace(model, own={**model.own, key: LaplaceMechanism(np.array([0.5, 2.0]), 0)})
    )


def test_a_registered_family_is_known_by_its_name():
    assert register_family(LaplaceMechanism) is LaplaceMechanism, "it may be used as a decorator"
    assert mechanism_class("laplace") is LaplaceMechanism
    register_family(LaplaceMechanism)  # as when its module is loaded again
    assert DENSITY.names().count("laplace") == 1
    assert mechanism_class("linear") is LinearMechanism


@pytest.mark.parametrize("name", sorted(families()))
def test_every_family_of_the_package_can_be_found(name):
    assert mechanism_class(name).family == name
    assert issubclass(mechanism_class(name), Mechanism)


@pytest.mark.parametrize("name", ["laplace", "flow", "auto", *sorted(families())])
def test_a_name_is_given_once(name):
    register_family(LaplaceMechanism)
    other = type("Other", (LaplaceMechanism,), {"family": name})
    with pytest.raises(ValueError, match=name):
        register_family(other)
    assert name not in families() or mechanism_class(name) is not other


def test_an_unknown_name_is_refused_and_the_known_ones_are_told():
    register_family(LaplaceMechanism)
    with pytest.raises(ValueError, match=r"os:system.*laplace.*linear"):
        mechanism_class("os:system")


def test_results_with_an_own_family_are_saved_and_loaded(result, case, tmp_path):
    register_family(LaplaceMechanism)
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
        register_family(type("Other", (LaplaceMechanism,), {"family": name}))


def test_a_definition_that_runs_again_replaces_the_earlier_one():
    register_family(LaplaceMechanism)
    again = type("LaplaceMechanism", (LaplaceMechanism,), {"__module__": __name__})
    register_family(again)
    assert mechanism_class("laplace") is again


def test_a_class_that_cannot_be_fitted_is_refused_by_what_it_lacks():
    unfinished = type("Unfinished", (MechanismFamily,), {"family": "new", "summary": "not finished"})
    with pytest.raises(TypeError, match=r"Unfinished.*fit.*log_density"):
        register_family(unfinished)
    with pytest.raises(TypeError, match=r"LinearMechanism.*MechanismFamily"):
        register_family(LinearMechanism)
    with pytest.raises(ValueError, match="summary"):
        register_family(type("Silent", (LaplaceMechanism,), {"family": "silent", "summary": ""}))


def test_the_estimator_takes_a_registered_family_as_a_density(case):
    register_family(LaplaceMechanism)
    est = clone(LatentInterventionDAG(density="laplace"))
    assert est.get_params()["density"] == "laplace"
    check_arguments(est.get_params())
    with pytest.raises(ValueError, match="gradient"):
        check_arguments(est.set_params(solver="gradient").get_params())
    with pytest.raises(ValueError, match="'laplace'"):
        LatentInterventionDAG(density="laplaze").fit(case.X)


def test_a_file_whose_density_is_not_registered_is_refused(case, tmp_path):
    save_result(replace(case.result, density="laplace"), tmp_path / "m")
    with pytest.raises(ResultFileError, match=r"laplace.*register_family"):
        load_result(tmp_path / "m")
    register_family(LaplaceMechanism)
    assert load_result(tmp_path / "m").density == "laplace"


def test_an_estimator_takes_its_family_along(monkeypatch):
    """As to a worker that has not registered it."""
    register_family(LaplaceMechanism)
    packed = pickle.dumps(LatentInterventionDAG(density="laplace"))
    monkeypatch.setattr(DENSITY, "choices", [one for one in DENSITY.choices if one.name != "laplace"])
    estimator = pickle.loads(packed)
    assert mechanism_class("laplace").__name__ == "LaplaceMechanism"
    assert estimator.get_params() == LatentInterventionDAG(density="laplace").get_params()


@pytest.mark.parametrize(
    ("parameters", "n_inputs", "named"),
    [([0.5, np.nan], 0, "finite"), ([0.5, 2.0], 1, "1"), ([0.5, 2.0], 3, "3")],
)
def test_numbers_that_do_not_fit_are_refused(parameters, n_inputs, named):
    arrays = LaplaceMechanism.pack([LaplaceMechanism(np.array([0.5, 2.0]), n_inputs)])
    arrays["parameters"] = np.array(parameters)
    with pytest.raises(ValueError, match=named):
        LaplaceMechanism.unpack(arrays, [np.array([0, 1])])


@pytest.mark.parametrize("noise", ["gaussian", "any"])
def test_a_family_of_ones_own_has_its_own_noise(noise):
    register_family(LaplaceMechanism)
    est = LatentInterventionDAG("laplace", noise=noise)
    with pytest.raises(ValueError, match=f"noise='{noise}'.*density='laplace'.*noise='auto'"):
        est.fit(np.random.default_rng(0).normal(size=(50, 2)))
