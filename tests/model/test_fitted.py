"""The mixture of mechanisms: its equation by brute force, exact oracles where they exist, and its files."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from latentdo.model import FittedModel, Topology
from latentdo.model.fitted import own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.neural import Networks, NeuralMechanism
from latentdo.model.variational.mixture import Architecture, LatentMixture
from latentdo.persistence import load_result, save_result

ADJACENCY = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)  # a -> b -> c, a -> c
MIXED = Noise(np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.4, -0.6]), np.array([0.01, 0.2, 1.0]))


def _linear(coefficients, variance):
    return LinearMechanism(np.array(coefficients), Noise.gaussian(variance))


def _linear_model():
    """Regime 1 is perfect on b, regime 2 imperfect on b and perfect (almost an atom) on c; 3 has no rows."""
    targets = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=np.int8)
    reference = (_linear([0.1], 1.0), _linear([0.0, 1.5], 0.2), _linear([-0.2, 0.5, -1.0], 0.05))
    own = [_linear([2.0], 0.3), _linear([-1.0, 0.5], 0.1), _linear([3.0], 1e-8), _linear([9.0], 1.0)]
    topology = Topology(ADJACENCY, targets, np.array([0.5, 0.3, 0.2, 0.0]))
    return FittedModel(topology, reference, own_mechanisms(targets, own))


def _network_model(noise):
    """Own mechanisms: a constant, linear in the parents, again a constant, and another last layer."""
    targets = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=np.int8)
    last = NetworkMechanism(np.array([0.0, 0.5, -0.5, 1.5, -0.2, 1.0, 1.0, -1.0, 0.1, 0.5, -2.0]), noise)
    reference = (
        NetworkMechanism(np.array([0.2]), Noise.gaussian(1.0)),
        NetworkMechanism(np.array([0.5, -1.0, 2.0, 0.3, 1.0]), noise),
        last,
    )
    own = {
        (1, 1): LinearMechanism(np.array([2.0]), noise),
        (2, 1): _linear([-1.0, 0.5], 0.3),
        (2, 2): _linear([0.5], 0.02),
        (3, 2): last.with_last_layer(np.array([0.1, -0.5, 1.0, 0.7, -0.4]), 2, noise),
    }
    return FittedModel(Topology(ADJACENCY, targets, np.array([0.4, 0.3, 0.2, 0.1])), reference, own)


def _neural_model(density, *, perfect):
    """Untrained networks; regime 1 targets b."""
    shape = Architecture(density, perfect, 3, 2, embedding_size=4, width=6, n_blocks=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        mixture = LatentMixture(shape)
    state = {name: value.numpy() for name, value in mixture.density.state_dict().items()}
    networks = Networks(shape, mixture.embeddings.mean.detach().numpy(), state)
    parents = [np.flatnonzero(column) for column in ADJACENCY.T]
    topology = Topology(ADJACENCY, np.array([[0, 0, 0], [0, 1, 0]], dtype=np.int8), np.array([0.25, 0.75]))
    return FittedModel(
        topology,
        tuple(NeuralMechanism(networks, j, parents[j]) for j in range(3)),
        {(1, 1): NeuralMechanism(networks, 1, parents[1], 1, intervened=True)},
    )


def _mixed_model():
    """All families in one model: linear a, network b, neural c; what interventions put there is of others again."""
    networks, neural = _network_model(MIXED), _neural_model("flow", perfect=False)
    targets = np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=np.int8)
    reference = (_linear([0.1], 1.0), networks.reference[1], neural.reference[2])
    own = [networks.reference[0], neural.own[1, 1], _linear([-1.0, 0.5], 0.3), networks.own[3, 2]]
    topology = Topology(ADJACENCY, targets, np.array([0.5, 0.3, 0.2]))
    return FittedModel(topology, reference, own_mechanisms(targets, own))


MODELS = {
    "linear": _linear_model(),
    "network": _network_model(Noise.gaussian(0.25)),
    "network-mixed": _network_model(MIXED),
    **{
        f"neural-{density}-{'perfect' if perfect else 'imperfect'}": _neural_model(density, perfect=perfect)
        for density in ("linear", "nonlinear", "flow")
        for perfect in (True, False)
    },
    "all-families": _mixed_model(),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def rows():
    """Near zero: untrained flows draw rows that are far out."""
    return np.random.default_rng(0).normal(size=(80, 3))


@pytest.fixture(scope="module")
def linear():
    return MODELS["linear"]


@pytest.fixture(scope="module")
def linear_rows(linear):
    rng = np.random.default_rng(0)
    return np.concatenate([linear.sample(40, k, rng) for k in range(4)])


def _brute_force(model, z):
    """The equation of the module, term by term and row by row."""
    topology = model.topology
    density = np.zeros((len(z), topology.n_regimes))
    for i, row in enumerate(z):
        for k in range(topology.n_regimes):
            for j in range(topology.n_variables):
                mechanism = model.own[k, j] if topology.targets[k, j] else model.reference[j]
                parents = np.flatnonzero(topology.adjacency[:, j])
                density[i, k] += mechanism.log_density(row[None, parents], row[[j]])[0]
    return density


def test_the_equation_of_the_model(model, rows):
    # float32 networks add up in another order when rows come alone
    some = rows[::4]
    np.testing.assert_allclose(model.log_density(some), _brute_force(model, some), rtol=1e-5, atol=1e-5)


def test_rows_have_the_product_of_their_mechanisms(model, rows):
    topology = model.topology
    terms = [
        [model.variable_log_density(rows, j, k) for j in range(topology.n_variables)]
        for k in range(topology.n_regimes)
    ]
    np.testing.assert_allclose(model.log_density(rows), np.sum(terms, axis=1).T, rtol=1e-10, atol=1e-6)


def test_mixture_over_regimes(model, rows):
    with np.errstate(divide="ignore"):
        joint = model.log_density(rows) + np.log(model.topology.weights)
    np.testing.assert_array_equal(model.log_joint(rows), joint)
    total = logsumexp(joint, axis=1)
    np.testing.assert_allclose(model.score_samples(rows), total)
    responsibilities = model.responsibilities(rows)
    np.testing.assert_allclose(responsibilities, np.exp(joint - total[:, None]), atol=1e-12)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)
    assert (responsibilities[:, model.topology.weights == 0] == 0.0).all()


def test_labels_are_believed(model, rows):
    labels = np.where(np.arange(len(rows)) % 2 == 0, 1, -1)
    found, free = model.assign(rows, labels), model.assign(rows)
    known = labels >= 0
    np.testing.assert_array_equal(
        found.responsibilities[known], np.eye(model.topology.n_regimes)[labels[known]]
    )
    np.testing.assert_allclose(found.log_likelihood[known], model.log_joint(rows)[known, 1])
    np.testing.assert_array_equal(found.responsibilities[~known], free.responsibilities[~known])
    np.testing.assert_array_equal(found.log_likelihood[~known], free.log_likelihood[~known])


def test_only_targets_differ_between_regimes(model, rows):
    topology = model.topology
    for k in range(1, topology.n_regimes):
        for j in range(topology.n_variables):
            own, reference = (model.variable_log_density(rows, j, regime) for regime in (k, 0))
            assert np.allclose(own, reference) == (topology.targets[k, j] == 0)
            assert (model.mechanism(j, k) is model.reference[j]) == (topology.targets[k, j] == 0)


def test_a_mechanism_can_be_tried_on_a_variable(model, rows):
    for (k, j), own in model.own.items():
        np.testing.assert_array_equal(
            model.log_density_under(rows, j, own), model.variable_log_density(rows, j, k)
        )


def test_samples_prefer_their_own_mechanism(model):
    """Gibbs' inequality, in the variables that a regime changed."""
    for k, j in np.argwhere(model.topology.targets):
        z = model.sample(500, int(k), np.random.default_rng(1))
        assert np.isfinite(z).all()
        own, other = (model.variable_log_density(z, int(j), regime) for regime in (int(k), 0))
        assert np.mean(own - other) > 0


@pytest.mark.parametrize("name", ["network", "network-mixed"])
@pytest.mark.parametrize("regime", range(4))
def test_samples_leave_the_right_noise(name, regime):
    """What is left of a sample after its mechanism has the moments of the noise, and nothing to do with the parents."""
    model, n = MODELS[name], 40_000
    z = model.sample(n, regime, np.random.default_rng(1))
    for j in range(3):
        mechanism = model.mechanism(j, regime)
        residual = z[:, j] - mechanism.mean(model.inputs(z, j))
        noise = mechanism.noise
        assert abs(residual.mean() - noise.mean) < 5 * np.sqrt(noise.variance / n)
        assert residual.var() == pytest.approx(noise.variance, rel=0.08)
        for i in model.parents[j]:
            assert abs(np.corrcoef(residual, z[:, i])[0, 1]) < 5 / np.sqrt(n)


def test_networks_are_their_formulas():
    model = MODELS["network-mixed"]
    z = model.sample(50, 0, np.random.default_rng(0))
    a, b, _ = z.T
    first, second = np.maximum(-0.2 + a + b, 0.0), np.maximum(0.1 + 0.5 * a - 2.0 * b, 0.0)
    expected = {
        (0, 0): np.full(len(a), 0.2),
        (0, 1): 0.5 - a + 2.0 * np.maximum(0.3 + a, 0.0),
        (0, 2): 0.5 * a - 0.5 * b + 1.5 * first - second,
        (1, 1): np.full(len(a), 2.0),
        (1, 2): 0.5 * a - 0.5 * b + 1.5 * first - second,  # as in the reference
        (2, 1): -1.0 + 0.5 * a,
        (2, 2): np.full(len(a), 0.5),
        (3, 2): 0.1 - 0.5 * a + b + 0.7 * first - 0.4 * second,
    }
    for (k, j), value in expected.items():
        mechanism = model.mechanism(j, k)
        np.testing.assert_allclose(mechanism.mean(model.inputs(z, j)), value, atol=1e-12)
        noise = mechanism.noise
        components = norm(noise.means, np.sqrt(noise.variances)).logpdf((z[:, j] - value)[:, None])
        density = logsumexp(components, b=noise.weights, axis=1)
        np.testing.assert_allclose(model.variable_log_density(z, j, k), density, rtol=1e-9, atol=1e-12)
    assert model.own[2, 1].n_parameters == 3
    assert model.own[3, 2].n_parameters == 5 + 7


# ------------------------------------------------------------------------------------------ linear models, exactly


def _gaussian(equations, model, regime):
    """Exact mean and covariance of a regime."""
    slopes, constants, variances = equations(model, regime)
    inverse = np.linalg.inv(np.eye(len(slopes)) - slopes)
    return inverse @ constants, inverse @ np.diag(variances) @ inverse.T


def test_density_of_a_linear_regime_is_its_gaussian(linear, linear_rows, equations):
    for k in (0, 1, 3):  # regime 2 is nearly singular: next test
        mean, covariance = _gaussian(equations, linear, k)
        np.testing.assert_allclose(
            linear.log_density(linear_rows)[:, k],
            multivariate_normal(mean, covariance).logpdf(linear_rows),
            rtol=1e-8,
            atol=1e-8,
        )


def test_density_is_the_product_of_mechanisms_also_where_one_is_almost_atomic(linear, linear_rows):
    a, b, c = linear_rows.T
    expected = norm(0.1, 1.0).logpdf(a)
    expected = expected + norm(-1.0 + 0.5 * a, np.sqrt(0.1)).logpdf(b) + norm(3.0, 1e-4).logpdf(c)
    np.testing.assert_allclose(linear.log_density(linear_rows)[:, 2], expected, rtol=1e-9)


def test_a_regime_without_weight_explains_nothing(linear, linear_rows):
    assert (linear.log_joint(linear_rows)[:, 3] == -np.inf).all()
    assert (linear.responsibilities(linear_rows)[:, 3] == 0.0).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_far_rows_still_belong_somewhere(linear):
    far = np.array([[1e6, -1e6, 1e6], [0.0, 0.0, 1e8], [0.0, 1e200, 0.0], [1e200, 1e200, 1e200]])
    found = linear.assign(far)
    assert np.isfinite(found.responsibilities).all()
    assert np.isfinite(found.log_likelihood).all()
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("regime", [0, 1, 2])
def test_samples_have_the_exact_moments(linear, regime, equations):
    n = 60_000
    rows = linear.sample(n, regime, np.random.default_rng(1))
    mean, covariance = _gaussian(equations, linear, regime)
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(rows.mean(axis=0) - mean) < 5 * spread / np.sqrt(n)).all()
    tolerance = 8 * np.outer(spread, spread) / np.sqrt(n)
    assert (np.abs(np.cov(rows, rowvar=False) - covariance) < tolerance).all()


def test_do_sets_and_propagates(linear):
    rows = linear.sample(20_000, 0, np.random.default_rng(2), do={1: 4.0})
    assert (rows[:, 1] == 4.0).all()
    assert rows[:, 0].mean() == pytest.approx(0.1, abs=0.05)
    assert rows[:, 2].mean() == pytest.approx(-0.2 + 0.5 * 0.1 - 4.0, abs=0.05)


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


# ------------------------------------------------------------------------------------------------- other regimes


def test_other_weights_change_nothing_else(model, rows):
    weights = np.full(model.topology.n_regimes, 1.0 / model.topology.n_regimes)
    other = model.with_weights(weights)
    np.testing.assert_array_equal(other.topology.weights, weights)
    np.testing.assert_array_equal(other.log_density(rows), model.log_density(rows))
    assert model.topology.weights is not weights


def test_regimes_can_be_kept(model, rows):
    last = model.topology.n_regimes - 1
    for kept in ([0], [0, last], [0, 1], list(range(last + 1))):
        fewer = model.keep(np.array(kept))
        assert fewer.topology.n_regimes == len(kept)
        np.testing.assert_array_equal(fewer.topology.targets, model.topology.targets[kept])
        np.testing.assert_allclose(
            fewer.topology.weights, model.topology.weights[kept] / model.topology.weights[kept].sum()
        )
        np.testing.assert_allclose(
            fewer.log_density(rows), model.log_density(rows)[:, kept], rtol=1e-10, atol=1e-10
        )
        again = FittedModel.from_arrays(fewer.to_arrays())
        np.testing.assert_array_equal(again.log_density(rows), fewer.log_density(rows))


def test_kept_regimes_without_rows_share_the_weight(linear):
    np.testing.assert_array_equal(linear.keep(np.array([3])).topology.weights, [1.0])


# --------------------------------------------------------------------------------------------------------- files


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


def test_every_family_has_arrays_of_its_own():
    families = {name.split(".")[0] for name in MODELS["all-families"].to_arrays() if "." in name}
    assert families == {"linear", "network", "neural"}


def test_arrays_round_trip_without_targets(model, rows):
    plain = replace(model, topology=Topology(ADJACENCY, np.zeros((1, 3), np.int8), np.ones(1)), own={})
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
    "damage",
    [_twice, _elsewhere, _fewer_targets, _more_targets, _no_index, _foreign, _extra, _extra_in_a_family],
)
def test_wrong_mechanisms_are_refused(model, damage):
    arrays = model.to_arrays()
    damage(arrays)
    with pytest.raises(ValueError, match=r"\w"):
        FittedModel.from_arrays(arrays)


def test_own_mechanisms_come_in_the_order_of_the_targets():
    targets = np.array([[0, 0], [0, 1], [1, 0]], dtype=np.int8)
    first, second = _linear([0.0], 1.0), _linear([1.0], 1.0)
    assert own_mechanisms(targets, [first, second]) == {(1, 1): first, (2, 0): second}
    with pytest.raises(ValueError, match="shorter"):
        own_mechanisms(targets, [first])


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


def test_topology_counts():
    topology = Topology(
        np.zeros((3, 3), dtype=np.int8), np.zeros((2, 3), dtype=np.int8), np.array([1.0, 0.0])
    )
    assert topology.n_regimes == 2
    assert topology.n_variables == 3
