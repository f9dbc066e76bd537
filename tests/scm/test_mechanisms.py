import numpy as np
import pytest

from latentdo.scm import MLP, Function, Linear, NonadditiveFunction, NonadditiveMLP, NormalWeights

DRAW = NormalWeights(2.0)


def relu(values):
    return np.where(values > 0, values, 0.0)


def test_linear_is_a_weighted_sum_in_the_order_of_its_parents():
    mechanism = Linear({"b": 2.0, "a": -1.0}, intercept=0.5)
    assert mechanism.parents == ("b", "a")
    values = mechanism(np.array([[1.0, 10.0], [3.0, 0.0]]), np.array([0.25, 0.0]))
    np.testing.assert_allclose(values, [2.0 - 10.0 + 0.5 + 0.25, 6.0 + 0.5])


def test_linear_copies_its_weights():
    weights = {"a": 1.0}
    mechanism = Linear(weights)
    weights["a"] = 5.0
    assert mechanism(np.ones((1, 1)), np.zeros(1)) == 1.0


@pytest.mark.parametrize(
    ("mechanism", "formula"),
    [
        (Linear(), "e"),
        (Linear({"a": -0.5}), "-0.5 a + e"),
        (Linear({"a": 1.0, "b": -2.5}, intercept=-1.0), "1 a - 2.5 b - 1 + e"),
        (Function(["a"], np.sin), "f(a) + e"),
        (NonadditiveFunction(["a"], lambda a, e: a * e), "f(a, e)"),
        (MLP.random(["a", "b"], np.random.default_rng(0), DRAW), "MLP(a, b) + e"),
        (NonadditiveMLP.random([], np.random.default_rng(0), DRAW), "MLP(e)"),
    ],
)
def test_formulas_read_like_equations(mechanism, formula):
    assert mechanism.formula() == formula


def test_mlp_is_one_hidden_layer_of_relu_units_plus_noise():
    rng = np.random.default_rng(0)
    mechanism = MLP.random(["a", "b"], rng, DRAW)
    assert mechanism.hidden_weights.shape == (2, 5)
    parents, noise = rng.normal(size=(7, 2)), rng.normal(size=7)
    expected = []
    for row, e in zip(parents, noise, strict=True):
        hidden = relu(
            row[0] * mechanism.hidden_weights[0]
            + row[1] * mechanism.hidden_weights[1]
            + mechanism.hidden_bias
        )
        expected.append(sum(hidden * mechanism.output_weights) + mechanism.output_bias + e)
    np.testing.assert_allclose(mechanism(parents, noise), expected)
    np.testing.assert_allclose(mechanism.location(parents) + noise, expected)


def test_nonadditive_mlp_takes_the_noise_as_last_input():
    rng = np.random.default_rng(0)
    mechanism = NonadditiveMLP.random(["a"], rng, DRAW)
    assert mechanism.hidden_weights.shape == (2, 5)
    a, e = 0.7, -0.3
    hidden = relu(a * mechanism.hidden_weights[0] + e * mechanism.hidden_weights[1] + mechanism.hidden_bias)
    expected = hidden @ mechanism.output_weights + mechanism.output_bias
    np.testing.assert_allclose(mechanism(np.array([[a]]), np.array([e])), [expected])


@pytest.mark.parametrize("family", [MLP, NonadditiveMLP])
def test_imperfect_interventions_redraw_only_the_last_layer_of_a_network(family):
    before = family.random(["a", "b"], np.random.default_rng(0), DRAW)
    after = before.redraw_last_layer(np.random.default_rng(1), DRAW)
    assert type(after) is family
    assert (after.output_weights != before.output_weights).all()
    np.testing.assert_array_equal(after.hidden_weights, before.hidden_weights)
    np.testing.assert_array_equal(after.hidden_bias, before.hidden_bias)
    assert after.output_bias == before.output_bias


def test_the_last_layer_of_a_linear_mechanism_is_its_weights():
    before = Linear({"a": 1.0, "b": 2.0}, intercept=3.0)
    after = before.redraw_last_layer(np.random.default_rng(1), DRAW)
    assert after.parents == before.parents
    assert after.intercept == 3.0
    assert all(after.weights[name] != before.weights[name] for name in "ab")


def test_all_biases_are_drawn_like_weights():
    rng = np.random.default_rng(3)
    networks = [MLP.random(["a"], rng, DRAW) for _ in range(800)]
    assert np.var([network.hidden_bias for network in networks]) == pytest.approx(2.0, rel=0.1)
    assert np.var([network.output_bias for network in networks]) == pytest.approx(2.0, rel=0.2)


def test_functions_receive_columns_and_may_be_constant():
    parents = np.array([[1.0, 10.0], [2.0, 20.0]])
    np.testing.assert_array_equal(Function(["a", "b"], lambda a, b: b - a)(parents, np.zeros(2)), [9.0, 18.0])
    np.testing.assert_array_equal(Function(["a", "b"], lambda a, b: 4)(parents, np.ones(2)), [5.0, 5.0])
    product = NonadditiveFunction(["a", "b"], lambda a, b, e: a * e)
    np.testing.assert_array_equal(product(parents, np.array([3.0, 4.0])), [3.0, 8.0])


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: Linear([("a", 1.0)]), TypeError, "weights must map parent names to numbers"),
        (lambda: Linear({"a": np.nan}), ValueError, "weights must be finite"),
        (lambda: Linear({}, intercept=np.inf), ValueError, "intercept must be finite"),
        (lambda: Linear({3: 1.0}), TypeError, "a parent must be the name"),
        (lambda: Function("ab", np.sin), TypeError, r"write \['ab'\]"),
        (lambda: Function(["a", "a"], np.sin), ValueError, "'a' is listed twice"),
        (lambda: Function(["a"], 3.0), TypeError, "must be a function"),
        (
            lambda: MLP(["a"], np.ones((2, 5)), np.ones(5), np.ones(5)),
            ValueError,
            r"hidden_weights must have shape \(1, 5\)",
        ),
        (
            lambda: NonadditiveMLP(["a"], np.ones((1, 5)), np.ones(5), np.ones(5)),
            ValueError,
            r"must have shape \(2, 5\)",
        ),
        (lambda: MLP(["a"], np.ones((1, 0)), np.ones(0), np.ones(0)), ValueError, "hidden_bias"),
    ],
)
def test_bad_mechanisms_are_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


def test_functions_that_do_not_act_on_columns_are_explained():
    with pytest.raises(ValueError, match="act on whole columns"):
        Function(["a"], lambda a: a[:1])(np.zeros((3, 1)), np.zeros(3))
