"""What the report says of each variable's mechanism."""

import re
from dataclasses import replace

import numpy as np
import pytest

from latentdo.model.mechanisms import LinearMechanism, Mechanism, Noise
from latentdo.report.content import regimes
from latentdo.report.mechanisms import mechanisms


def test_mechanisms_are_linear_equations_in_the_users_units(make_result):
    shown = make_result(n_samples=2000, n_variables=4, edges_per_node=1.5)
    result, adjacency = shown.result, shown.result.model.topology.adjacency
    for m in mechanisms(result, regimes(result)):
        assert [cause.index for cause in m.causes] == np.flatnonzero(adjacency[:, m.index]).tolist()
        assert [index for index, _ in m.effects] == np.flatnonzero(adjacency[m.index]).tolist()
        plain = m.equation.replace("\N{MINUS SIGN}", "-").replace("- ", "-").replace("+ ", "+")
        untouched = result.model.topology.targets[result.regimes, m.index] == 0
        causes = [cause.name for cause in m.causes]
        design = np.column_stack([np.ones(untouched.sum()), shown.X.loc[untouched, causes]])
        fitted = np.linalg.lstsq(design, shown.X.loc[untouched, m.name], rcond=None)[0]
        for cause, slope in zip(causes, fitted[1:], strict=True):
            said = float(re.search(rf"([-+]?[\d.e-]+) · {cause}\b", plain).group(1))
            assert said == pytest.approx(slope, rel=0.02)
            verb = next(c.verb for c in m.causes if c.name == cause)
            assert verb == ("raises it" if slope > 0 else "lowers it")
        assert {row.index for row, _ in m.changes} == set(
            np.flatnonzero(result.model.topology.targets[:, m.index])
        )


@pytest.mark.parametrize(
    ("transform", "start"), [("log", "log("), ("log1p", "log1p("), ("rank-gaussian", None)]
)
def test_mechanisms_name_the_transform(make_result, transform, start):
    result = make_result(n_samples=200, transform=transform).result
    for m in mechanisms(result, []):
        assert (m.equation is None) if start is None else m.equation.startswith(start)


def test_a_bent_mechanism_is_described_without_an_equation(case):
    class Bent(Mechanism):
        family = "bent"
        n_parameters = 1

        def log_density(self, x, y):
            raise NotImplementedError

        def draw(self, x, rng):
            return (x**2).sum(axis=1) + rng.standard_normal(len(x))

        @classmethod
        def pack(cls, mechanisms):
            raise NotImplementedError

        @classmethod
        def unpack(cls, arrays, parents):
            raise NotImplementedError

    model = replace(case.result.model, reference=tuple(Bent() for _ in case.result.model.reference))
    topology = case.result.model.topology
    found = mechanisms(replace(case.result, model=model), [])
    roots = set(np.flatnonzero(topology.adjacency.sum(axis=0) == 0))
    assert all(m.equation is None and m.noise is None for m in found)
    verbs = {c.verb for m in found for c in m.causes if c.index in roots}
    assert verbs == {"bends it"}


def test_the_shape_of_the_noise_is_said(case):
    shapes = {
        "Gaussian": Noise.gaussian(0.25),
        "a mixture of 2 Gaussians": Noise(np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.ones(2)),
    }
    for words, noise in shapes.items():
        reference = tuple(LinearMechanism(np.array([0.5]), noise) for _ in case.result.columns)
        model = replace(case.result.model, reference=reference)
        found = mechanisms(replace(case.result, model=model), [])
        assert all(m.noise == words for m in found)


def test_a_mechanism_that_ignores_its_parents_is_a_constant(case):
    """Such as a regression without enough rows in a file of version 0.1."""
    model = case.result.model
    flat = tuple(LinearMechanism(np.array([0.5]), Noise.gaussian(0.25)) for _ in model.reference)
    for m in mechanisms(replace(case.result, model=replace(model, reference=flat)), []):
        assert "·" not in m.equation
        assert m.equation.startswith(m.name)
