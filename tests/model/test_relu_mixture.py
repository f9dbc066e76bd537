"""The nonlinear family of structural search against quadrature, numpy formulas and its own samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.relu_mixture import Noise, OwnMechanism, ReluMixture
from latentdo.persistence import load_result, save_result

MIXED = Noise(np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.4, -0.6]), np.array([0.01, 0.2, 1.0]))


def _make(noise):
    """``a -> b -> c``, ``a -> c``; own mechanisms: a constant, linear in the parents, and the last layer."""
    adjacency = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    targets = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=np.int8)
    networks = (
        np.array([0.2]),
        np.array([0.5, -1.0, 2.0, 0.3, 1.0]),
        np.array([0.0, 0.5, -0.5, 1.5, -0.2, 1.0, 1.0, -1.0, 0.1, 0.5, -2.0]),
    )
    own = {
        (1, 1): OwnMechanism(np.array([2.0]), noise),
        (2, 1): OwnMechanism(np.array([-1.0, 0.5]), Noise.gaussian(0.3)),
        (2, 2): OwnMechanism(np.array([0.5]), Noise.gaussian(0.02)),
        (3, 2): OwnMechanism(np.array([0.1, -0.5, 1.0, 0.7, -0.4]), noise),
    }
    topology = Topology(adjacency, targets, np.array([0.4, 0.3, 0.2, 0.1]))
    return ReluMixture(topology, networks, (Noise.gaussian(1.0), noise, noise), own)


@pytest.fixture(scope="module", params=["gaussian", "mixed"])
def model(request):
    return _make(Noise.gaussian(0.25) if request.param == "gaussian" else MIXED)


@pytest.fixture(scope="module")
def rows(model):
    rng = np.random.default_rng(0)
    return np.concatenate([model.sample(40, k, rng) for k in range(4)])


def test_every_conditional_density_integrates_to_one(model):
    z = np.array([[0.7, -0.4, 1.1]])
    for j in range(3):
        for k in range(4):

            def density(value, j=j, k=k):
                at = z.copy()
                at[0, j] = value
                return float(np.exp(model.variable_log_density(at, j, k)[0]))

            centre = float(model.mean(z, j, k)[0])
            kinks = [centre, centre + 0.4, centre - 0.6]
            total, _ = quad(density, centre - 12.0, centre + 12.0, points=kinks, limit=200)
            assert total == pytest.approx(1.0, abs=1e-7)


def test_mechanisms_are_their_formulas(model, rows):
    a, b, _ = rows.T
    first, second = np.maximum(-0.2 + a + b, 0.0), np.maximum(0.1 + 0.5 * a - 2.0 * b, 0.0)
    expected = {
        (0, 0): np.full(len(a), 0.2),
        (0, 1): 0.5 - a + 2.0 * np.maximum(0.3 + a, 0.0),
        (0, 2): 0.5 * a - 0.5 * b + 1.5 * first - second,
        (1, 1): np.full(len(a), 2.0),
        (2, 1): -1.0 + 0.5 * a,
        (2, 2): np.full(len(a), 0.5),
        (3, 2): 0.1 - 0.5 * a + b + 0.7 * first - 0.4 * second,
    }
    for (k, j), value in expected.items():
        np.testing.assert_allclose(model.mean(rows, j, k), value, atol=1e-12)
        noise = model.noise(j, k)
        residual = rows[:, j, None] - value[:, None]
        density = logsumexp(
            norm(noise.means, np.sqrt(noise.variances)).logpdf(residual), b=noise.weights, axis=1
        )
        np.testing.assert_allclose(model.variable_log_density(rows, j, k), density, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.mean(rows, 2, 1), model.reference_mean(rows, 2))
    np.testing.assert_array_equal(
        model.variable_log_density(rows, 1, 3), model.reference_log_density(rows, 1)
    )
    np.testing.assert_array_equal(
        model.own_log_density(rows, 2, model.own[3, 2]), model.variable_log_density(rows, 2, 3)
    )


def test_rows_have_the_product_of_their_mechanisms(model, rows):
    expected = np.column_stack(
        [sum(model.variable_log_density(rows, j, k) for j in range(3)) for k in range(4)]
    )
    np.testing.assert_allclose(model.log_density(rows), expected, rtol=1e-10, atol=1e-10)
    joint = expected + np.log([0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(model.score_samples(rows), logsumexp(joint, axis=1))
    np.testing.assert_allclose(
        model.responsibilities(rows), np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-12
    )


@pytest.mark.parametrize("regime", range(4))
def test_samples_leave_the_right_noise(model, regime):
    """What is left of a sample after its mechanism has the moments of the noise, and nothing to do with the parents."""
    n = 40_000
    z = model.sample(n, regime, np.random.default_rng(1))
    for j in range(3):
        noise = model.noise(j, regime)
        residual = z[:, j] - model.mean(z, j, regime)
        mean = noise.weights @ noise.means
        variance = noise.weights @ (noise.variances + noise.means**2) - mean**2
        assert abs(residual.mean() - mean) < 5 * np.sqrt(variance / n)
        assert residual.var() == pytest.approx(variance, rel=0.08)
        for i in model.parents[j]:
            assert abs(np.corrcoef(residual, z[:, i])[0, 1]) < 5 / np.sqrt(n)


def test_samples_have_their_own_density(model):
    """The mean log-density of samples is minus the entropy, which for one mechanism is known by quadrature."""
    noise = model.noise(1, 0)

    def entropy(value):
        log = noise.log_density(np.array([value]))[0]
        return -np.exp(log) * log

    expected, _ = quad(entropy, -12.0, 12.0, points=[0.0, 0.4, -0.6], limit=200)
    z = model.sample(40_000, 0, np.random.default_rng(2))
    assert -model.variable_log_density(z, 1, 0).mean() == pytest.approx(expected, abs=0.03)


def test_do_sets_and_propagates(model):
    z = model.sample(20_000, 0, np.random.default_rng(3), do={1: 0.0})
    assert (z[:, 1] == 0.0).all()
    residual = z[:, 2] - model.reference_mean(z, 2)
    noise = model.noises[2]
    assert residual.mean() == pytest.approx(noise.weights @ noise.means, abs=0.03)


def test_parameters_are_counted(model):
    assert Noise.gaussian(1.0).n_parameters == 1
    assert MIXED.n_parameters == 7
    assert model.own[2, 1].n_parameters == 3
    assert model.own[3, 2].n_parameters == 5 + model.noise(2, 3).n_parameters


def test_arrays_round_trip(model, rows):
    arrays = model.to_arrays()
    again = ReluMixture.from_arrays(arrays)
    np.testing.assert_array_equal(again.log_joint(rows), model.log_joint(rows))
    assert again.own.keys() == model.own.keys()
    for name, array in arrays.items():
        restored = again.to_arrays()[name]
        assert restored.dtype == array.dtype
        np.testing.assert_array_equal(restored, array)


def test_arrays_round_trip_without_targets(rows):
    model = _make(Noise.gaussian(0.25))
    plain = replace(
        model, topology=Topology(model.topology.adjacency, np.zeros((1, 3), np.int8), np.ones(1)), own={}
    )
    again = ReluMixture.from_arrays(plain.to_arrays())
    assert again.own == {}
    np.testing.assert_array_equal(again.log_joint(rows), plain.log_joint(rows))


def test_restored_arrays_are_copies(model, rows):
    arrays = {name: array.copy() for name, array in model.to_arrays().items()}
    again = ReluMixture.from_arrays(arrays)
    before = again.log_joint(rows)
    for array in arrays.values():
        array[...] = 1
    np.testing.assert_array_equal(again.log_joint(rows), before)


def test_files_bring_it_back(model, rows, make_result, tmp_path):
    uncertain = np.zeros((3, 3))
    case = make_result(
        n_variables=3,
        n_samples=60,
        model=model,
        regime_names=(0, 1, 2, 3),
        responsibilities=model.responsibilities(rows),
        edge_probabilities=uncertain,
        ancestor_probabilities=uncertain,
        target_probabilities=np.zeros((4, 3)),
        density="nonlinear",
    )
    first, second = tmp_path / "a", tmp_path / "b"
    save_result(case.result, first)
    again = load_result(first)
    assert isinstance(again.model, ReluMixture)
    assert isinstance(again.model, FittedModel)
    np.testing.assert_array_equal(again.model.log_joint(rows), model.log_joint(rows))
    save_result(again, second)
    assert first.read_bytes() == second.read_bytes()
