"""What every family of mechanisms must do, asked of all of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import cumulative_trapezoid
from scipy.stats import kstest

from latentdo.choices import DENSITY
from latentdo.model.mechanisms import AdditiveNoise, LinearMechanism, Mechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.neural import Networks, NeuralMechanism
from latentdo.model.mechanisms.registry import families, mechanism_class
from latentdo.model.mechanisms.splines import FUNCTIONS
from latentdo.model.mechanisms.student import StudentMechanism
from latentdo.model.variational.mixture import Architecture, LatentMixture

MIXED = Noise(np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.4, -0.9]), np.array([0.01, 0.2, 1.0]))
NONE, TWO = np.array([], dtype=np.int64), np.array([0, 2])  # of four variables


@dataclass(frozen=True)
class Example:
    """A mechanism, the variable it belongs to, and its parents."""

    mechanism: Mechanism
    variable: int
    parents: Any


def _network(noise: Noise) -> NetworkMechanism:
    """Two units over two parents."""
    parameters = np.array([0.3, 0.5, -0.5, 1.5, -0.2, 1.0, 1.0, -1.0, 0.1, 0.5, -2.0])
    return NetworkMechanism(parameters, noise)


def _neural(density: str, *, perfect: bool) -> list[Example]:
    """Untrained networks: a root, a reference mechanism with parents, and an intervened one."""
    shape = Architecture(density, perfect, 4, 3, embedding_size=4, width=6, n_blocks=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        mixture = LatentMixture(shape)
    state = {name: value.numpy() for name, value in mixture.density.state_dict().items()}
    networks = Networks(shape, mixture.embeddings.mean.detach().numpy(), state)
    return [
        Example(NeuralMechanism(networks, 0, NONE), 0, NONE),
        Example(NeuralMechanism(networks, 3, TWO), 3, TWO),
        Example(NeuralMechanism(networks, 3, TWO, 2, intervened=True), 3, TWO),
    ]


def _curve(level: int, noise: Noise) -> AdditiveMechanism:
    """Splines over two parents."""
    knots = np.linspace(-2.0, 2.0, FUNCTIONS + 1)
    coefficients = np.linspace(-0.5, 0.7, 1 + 2 * FUNCTIONS)
    parameters = np.concatenate([[level, 1], knots, 0.5 * knots, coefficients])
    return AdditiveMechanism(parameters, noise, 2 + level + noise.n_parameters)


def _additive(*mechanisms: AdditiveNoise) -> list[Example]:
    """Those with one parameter are roots; all others have two parents."""
    return [Example(one, 0, NONE) if one.parameters.size == 1 else Example(one, 3, TWO) for one in mechanisms]


GAUSSIAN = Noise.gaussian(0.25)
SLOPES = np.array([-0.2, 0.5, -1.0])
LAST_LAYER = np.array([0.1, -0.5, 1.0, 0.7, -0.4])
CASES: dict[str, list[Example]] = {
    "linear-gaussian": [
        *_additive(LinearMechanism(np.array([0.7]), GAUSSIAN), LinearMechanism(SLOPES, Noise.gaussian(1e-4))),
        Example(LinearMechanism(np.array([2.0]), GAUSSIAN), 3, TWO),  # ignores its parents
    ],
    "linear-mixed": _additive(LinearMechanism(np.array([0.7]), MIXED), LinearMechanism(SLOPES, GAUSSIAN)),
    "network-gaussian": _additive(NetworkMechanism(np.array([0.7]), GAUSSIAN), _network(GAUSSIAN)),
    "network-mixed": _additive(NetworkMechanism(np.array([0.7]), MIXED), _network(MIXED)),
    "network-last-layer": _additive(
        _network(GAUSSIAN).with_last_layer(LAST_LAYER, 2, MIXED), _network(GAUSSIAN)
    ),
    "additive": _additive(
        _curve(3, GAUSSIAN),
        _curve(5, MIXED),
        replace(_curve(3, MIXED), n_free=2),  # an intervened one moves the noise
        replace(_curve(3, GAUSSIAN), growth=np.array([[-1.0, 0.0, 1.0], [0.0, 0.2, 0.3]])),
    ),
    "student": [
        Example(StudentMechanism(np.array([0.7, 0.3, 8.0]), 0), 0, NONE),
        Example(StudentMechanism(np.array([*SLOPES, 0.3, 6.0]), 2), 3, TWO),
        Example(StudentMechanism(np.array([2.0, 0.1, 200.0]), 0), 3, TWO),  # ignores its parents
    ],
    **{
        f"neural-{density}-{'perfect' if perfect else 'imperfect'}": _neural(density, perfect=perfect)
        for density in DENSITY.names("gradient")
        for perfect in (True, False)
    },
}


@pytest.fixture(params=CASES)
def examples(request) -> Sequence[Example]:
    return CASES[request.param]


@pytest.fixture
def z():
    """Rows of four variables."""
    return np.random.default_rng(0).normal(size=(60, 4))


def _density_on_a_grid(example: Example, row: np.ndarray, draws: np.ndarray) -> tuple[Any, Any]:
    """Density around one row's conditional draws: fine where they are, wide enough to miss nothing."""
    centre, spread = np.median(draws), np.ptp(draws)
    inner = np.linspace(draws.min() - 0.2 * spread, draws.max() + 0.2 * spread, 40_001)
    outer = spread * np.geomspace(0.2, 100.0, 2_000)
    at = np.unique(np.concatenate([inner, centre - 0.5 * spread - outer, centre + 0.5 * spread + outer]))
    x = np.repeat(row[None, example.parents], len(at), axis=0)
    return at, np.exp(example.mechanism.log_density(x, at))


def _same_row_many_times(example: Example, row: np.ndarray, n: int) -> np.ndarray:
    return np.repeat(row[None, example.parents], n, axis=0)


def test_every_registered_family_is_asked():
    asked = {example.mechanism.family for examples in CASES.values() for example in examples}
    discrete = {
        "binary",
        "count",
        "exposed-count",
        "categorical",
        "expanded",
    }  # which have no density, but tests of their own
    assert asked == set(families()) - discrete
    assert all(
        mechanism_class(example.mechanism.family) is type(example.mechanism)
        for examples in CASES.values()
        for example in examples
    )


def test_the_density_integrates_to_one(examples, z):
    for example in examples:
        for row in z[:3]:
            draws = example.mechanism.draw(_same_row_many_times(example, row, 2000), np.random.default_rng(1))
            at, density = _density_on_a_grid(example, row, draws)
            # float32 networks carry seven digits
            assert np.trapezoid(density, at) == pytest.approx(1.0, abs=2e-4)


def test_draws_follow_the_density(examples, z):
    """Their probability integral transform is uniform; a right family fails one seed in ten thousand."""
    for example in examples:
        draws = example.mechanism.draw(_same_row_many_times(example, z[0], 4000), np.random.default_rng(2))
        assert draws.shape == (4000,)
        at, density = _density_on_a_grid(example, z[0], draws)
        distribution = cumulative_trapezoid(density, at, initial=0.0)
        assert kstest(np.interp(draws, at, distribution), "uniform").pvalue > 1e-4


def test_the_same_generator_gives_the_same_draws(examples, z):
    for example in examples:
        x = np.ascontiguousarray(z[:, example.parents])
        first, again, other = (example.mechanism.draw(x, np.random.default_rng(seed)) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert (first != other).all()


def test_rows_do_not_know_of_each_other(examples, z):
    for example in examples:
        x, y = np.ascontiguousarray(z[:, example.parents]), z[:, example.variable]
        together = example.mechanism.log_density(x, y)
        assert together.shape == (len(z),)
        assert together.dtype == np.float64
        alone = [example.mechanism.log_density(x[[i]], y[[i]])[0] for i in range(len(z))]
        np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)


def test_several_at_once_are_one_at_a_time(examples, z):
    kind = type(examples[0].mechanism)
    found = kind.log_densities(
        [example.mechanism for example in examples],
        z,
        [example.variable for example in examples],
        [example.parents for example in examples],
    )
    expected = [
        example.mechanism.log_density(np.ascontiguousarray(z[:, example.parents]), z[:, example.variable])
        for example in examples
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_parameters_are_counted(examples):
    for example in examples:
        assert isinstance(example.mechanism.n_parameters, int)
        assert example.mechanism.n_parameters > 0


def _packed(examples):
    kind = type(examples[0].mechanism)
    arrays = kind.pack([example.mechanism for example in examples])
    return kind, arrays, [example.parents for example in examples]


def test_arrays_bring_everything_back(examples, z):
    kind, arrays, parents = _packed(examples)
    restored = kind.unpack(arrays, parents)
    for example, again in zip(examples, restored, strict=True):
        assert type(again) is kind
        assert again.n_parameters == example.mechanism.n_parameters
        x, y = np.ascontiguousarray(z[:, example.parents]), z[:, example.variable]
        np.testing.assert_array_equal(again.log_density(x, y), example.mechanism.log_density(x, y))
        first, second = (one.draw(x, np.random.default_rng(0)) for one in (example.mechanism, again))
        np.testing.assert_array_equal(first, second)
    twice = kind.pack(restored)
    assert twice.keys() == arrays.keys()
    for name, array in arrays.items():
        assert twice[name].dtype == array.dtype
        np.testing.assert_array_equal(twice[name], array)


def test_restored_mechanisms_own_their_numbers(examples, z):
    kind, arrays, parents = _packed(examples)
    arrays = {name: array.copy() for name, array in arrays.items()}
    restored = kind.unpack(arrays, parents)
    rows = [(np.ascontiguousarray(z[:, example.parents]), z[:, example.variable]) for example in examples]
    before = [one.log_density(x, y) for one, (x, y) in zip(restored, rows, strict=True)]
    for array in arrays.values():
        array[...] = 1
    after = [one.log_density(x, y) for one, (x, y) in zip(restored, rows, strict=True)]
    np.testing.assert_array_equal(after, before)


def test_damaged_arrays_are_refused(examples):
    """Any array cut short, or fewer parents than mechanisms."""
    kind, arrays, parents = _packed(examples)
    for name, array in arrays.items():
        if array.size and array.ndim:
            with pytest.raises(ValueError, match=r"lengths|shorter|longer|architecture|networks"):
                kind.unpack(arrays | {name: array[:-1]}, parents)
    with pytest.raises(ValueError, match="shorter"):
        kind.unpack(arrays, parents[:-1])


@pytest.mark.parametrize(
    ("case", "name", "place", "value", "named"),
    [
        ("linear-gaussian", "parameters", 0, np.nan, "coefficient"),
        ("linear-gaussian", "parameters", 0, 1e60, "coefficient"),
        ("linear-gaussian", "parameters_sizes", 0, 2, "lengths of parameters"),
        ("linear-gaussian", "parameters_sizes", 0, -1, "lengths of parameters"),
        ("linear-mixed", "noises", 0, -0.5, "noise"),
        ("linear-mixed", "noises_sizes", 0, 8, "lengths of noises"),
        ("network-mixed", "noises", 0, np.nan, "noise"),
        ("network-mixed", "parameters_sizes", 1, 10, "lengths of parameters"),
        ("student", "parameters", 0, np.nan, "parameter"),
        ("student", "parameters", 1, 0.0, "scale"),
        ("student", "parameters", 2, -1.0, "degrees"),
        ("student", "n_inputs", 0, 2, "parents"),
        ("student", "n_inputs", 1, 0, "inputs"),
        ("neural-flow-perfect", "architecture", 0, 3, "architecture"),
        ("neural-flow-perfect", "architecture", 0, -1, "architecture"),
        ("neural-flow-perfect", "architecture", 3, 7, "architecture"),
        ("neural-flow-perfect", "uses", (1, 0), 4, "variable"),
        ("neural-flow-perfect", "uses", (1, 0), 2, "parents"),  # its own parent
        ("neural-flow-perfect", "uses", (1, 1), 3, "regime"),
        ("neural-flow-perfect", "uses", (1, 1), -1, "regime"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(case, name, place, value, named):
    kind, arrays, parents = _packed(CASES[case])
    arrays[name] = arrays[name].copy()
    arrays[name][place] = value
    with pytest.raises(ValueError, match=named):
        kind.unpack(arrays, parents)


@pytest.mark.parametrize("case", ["linear-mixed", "network-gaussian", "student"])
def test_mechanisms_of_more_parents_are_refused(case):
    kind, arrays, parents = _packed(CASES[case])
    parents[1] = np.array([0, 1, 2])
    with pytest.raises(ValueError, match=r"3 (parents|inputs)"):
        kind.unpack(arrays, parents)


def test_an_equation_has_the_moments_of_the_density(examples, z):
    """``linear_form`` against the mean and variance of the density itself, by quadrature."""
    for example in examples:
        form = example.mechanism.linear_form
        if form is None:
            continue
        used = example.parents[: form.coefficients.size - 1]
        for row in z[:3]:
            draws = example.mechanism.draw(_same_row_many_times(example, row, 2000), np.random.default_rng(1))
            at, density = _density_on_a_grid(example, row, draws)
            mean = np.trapezoid(at * density, at)
            assert form.coefficients[0] + row[used] @ form.coefficients[1:] == pytest.approx(mean, abs=1e-4)
            assert form.variance == pytest.approx(np.trapezoid((at - mean) ** 2 * density, at), rel=1e-3)


def test_a_function_plus_noise_is_what_it_says(examples, z):
    for example in examples:
        if not isinstance(example.mechanism, AdditiveNoise):
            continue
        x, y = np.ascontiguousarray(z[:, example.parents]), z[:, example.variable]
        mean = example.mechanism.mean(x)
        log_scale = example.mechanism.scaled(mean)
        np.testing.assert_allclose(
            example.mechanism.log_density(x, y),
            example.mechanism.noise.log_density((y - mean) * np.exp(-log_scale)) - log_scale,
        )


def test_only_linear_mechanisms_are_equations(examples):
    for example in examples:
        is_linear = isinstance(example.mechanism, LinearMechanism | StudentMechanism)
        assert (example.mechanism.linear_form is not None) == is_linear
