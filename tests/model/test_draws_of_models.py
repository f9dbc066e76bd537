"""Samples of fitted models, as they are and with variables held."""

from __future__ import annotations

import numpy as np
import pytest


def test_samples_prefer_their_own_mechanism(model):
    """Gibbs' inequality, in the variables that a regime changed."""
    for k, j in np.argwhere(model.topology.targets):
        z = model.sample(500, int(k), np.random.default_rng(1))
        assert np.isfinite(z).all()
        own, other = (model.variable_log_density(z, int(j), regime) for regime in (int(k), 0))
        assert np.mean(own - other) > 0


@pytest.mark.parametrize("name", ["network", "network-mixed"])
@pytest.mark.parametrize("regime", range(4))
def test_samples_leave_the_right_noise(name, regime, named_model):
    """What is left of a sample after its mechanism has the moments of the noise, and nothing to do with the parents."""
    model, n = named_model(name), 40_000
    z = model.sample(n, regime, np.random.default_rng(1))
    for j in range(3):
        mechanism = model.mechanism(j, regime)
        residual = z[:, j] - mechanism.mean(model.inputs(z, j))
        noise = mechanism.noise
        assert abs(residual.mean() - noise.mean) < 5 * np.sqrt(noise.variance / n)
        assert residual.var() == pytest.approx(noise.variance, rel=0.08)
        for i in model.parents[j]:
            assert abs(np.corrcoef(residual, z[:, i])[0, 1]) < 5 / np.sqrt(n)


def test_do_in_every_family(model):
    some = model.sample(10, 0, np.random.default_rng(2), do={0: 1.5})
    assert (some[:, 0] == 1.5).all()
    assert np.ptp(some[:, 1]) > 0.0
    everything = model.sample(5, 1, np.random.default_rng(2), do={0: 1.0, 1: 2.0, 2: 3.0})
    np.testing.assert_array_equal(everything, np.tile([1.0, 2.0, 3.0], (5, 1)))


def test_do_leaves_the_noise_of_effects(model):
    """``c`` under ``do(b)`` is what its mechanism draws for the parents that then hold."""
    z = model.sample(200, 0, np.random.default_rng(3), do={0: 0.5, 1: 0.0})
    drawn = model.draw_variable(np.tile([0.5, 0.0, np.nan], (200, 1)), 2, 0, np.random.default_rng(3))
    np.testing.assert_array_equal(z[:, 2], drawn)
