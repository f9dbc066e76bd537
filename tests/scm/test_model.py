"""SCM: composition, sampling, interventions and exact moments."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from latentdo.graphs import is_dag, random_dag
from latentdo.scm import (
    SCM,
    Atomic,
    Exponential,
    Function,
    Gaussian,
    Imperfect,
    Laplace,
    Linear,
    NonadditiveFunction,
    PointMass,
    Stochastic,
    StudentT,
    Uniform,
    Variable,
)


@pytest.fixture
def chain():
    # Columns are deliberately not in causal order.
    return SCM(
        {
            "wet": (Linear({"sprinkler": 1.5, "rain": 2.0}, intercept=0.5), Laplace(scale=0.3)),
            "rain": Exponential(2.0),
            "sprinkler": (Linear({"rain": -0.8}), Gaussian(1.0, 0.7)),
            "season": Uniform(0.0, 1.0),
        }
    )


def assert_moments_match(scm, values):
    """Sample moments lie within five standard errors (estimated from the sample) of the exact ones."""
    n = len(values)
    mean, covariance = scm.mean().to_numpy(), scm.covariance().to_numpy()
    assert (np.abs(values.mean(axis=0) - mean) <= 5 * values.std(axis=0) / np.sqrt(n) + 1e-12).all()
    products = (values - mean)[:, :, None] * (values - mean)[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - covariance) <= 5 * error + 1e-12).all()


# -- composition -----------------------------------------------------------------------------------


def test_graph_and_order(chain):
    assert chain.names == ("wet", "rain", "sprinkler", "season")
    edges = {(i, j) for i in chain.names for j in chain.names if chain.adjacency.loc[i, j]}
    assert edges == {("rain", "sprinkler"), ("rain", "wet"), ("sprinkler", "wet")}
    assert chain.order.index("rain") < chain.order.index("sprinkler") < chain.order.index("wet")
    assert set(chain.to_networkx().edges) == edges
    assert list(chain.to_networkx().nodes) == list(chain.names)


def test_shorthands_mean_the_same_as_variables():
    short = SCM({"a": Gaussian(2.0), "b": Linear({"a": 1.0}), "c": (Linear({"b": 3.0}), Laplace())})
    full = SCM(
        {
            "a": Variable(Linear(), Gaussian(2.0)),
            "b": Variable(Linear({"a": 1.0}), Gaussian()),
            "c": Variable(Linear({"b": 3.0}), Laplace()),
        }
    )
    assert dict(short.variables) == dict(full.variables)


def test_one_variable_can_be_asked_for(chain):
    assert chain["rain"].noise == Exponential(2.0)
    assert "rain" in chain
    assert "snow" not in chain
    assert len(chain) == 4


def test_printing_shows_equations_and_interventions(chain):
    text = repr(chain.do(rain=3))
    assert "wet       = 1.5 sprinkler + 2 rain + 0.5 + e,  e ~ Laplace(loc=0, scale=0.3)\n" in text
    assert "rain      = e,  e ~ PointMass(value=3)   <- intervened" in text


@pytest.mark.parametrize(
    ("variables", "error", "words"),
    [
        ({}, ValueError, "at least one variable"),
        ({"rain": Gaussian(), "wet": Linear({"rian": 1})}, ValueError, "'wet' .*parent 'rian' .*'rain'"),
        ({"a": Linear({"b": 1}), "b": Linear({"c": 1}), "c": Linear({"a": 1})}, ValueError, "a -> c -> b"),
        ({"a": Linear({"a": 1.0})}, ValueError, "cycle a -> a"),
        ({"a": 3.0}, TypeError, "variable 'a': give a Variable"),
        ({"a": (Gaussian(), Linear())}, TypeError, "variable 'a': the mechanism must be a Mechanism"),
        ({"a": (Linear(), 1.0)}, TypeError, "variable 'a': the noise must be a Noise"),
        ({1: Gaussian()}, TypeError, "name must be a non-empty text"),
        ({"": Gaussian()}, TypeError, "name must be a non-empty text"),
    ],
)  # fmt: skip
def test_wrong_models_are_refused_by_name(variables, error, words):
    with pytest.raises(error, match=words):
        SCM(variables)


# -- sampling --------------------------------------------------------------------------------------


def test_samples_obey_the_structural_equations():
    scm = SCM({"b": (Linear({"a": 2.0}, intercept=1.0), PointMass(0.5)), "a": Gaussian()})
    rows = scm.sample(50, random_state=0)
    assert list(rows.columns) == ["b", "a"]
    np.testing.assert_allclose(rows["b"], 2.0 * rows["a"] + 1.5)


def test_seeds_reproduce_bit_by_bit(chain):
    first = chain.sample(100, random_state=7)
    pd.testing.assert_frame_equal(first, chain.sample(100, random_state=7), check_exact=True)
    pd.testing.assert_frame_equal(
        first, chain.sample(100, random_state=np.random.default_rng(7)), check_exact=True
    )
    assert (chain.sample(100, random_state=8) != first).all(axis=None)


def test_a_generator_moves_on_and_global_state_is_untouched(chain):
    rng = np.random.default_rng(0)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert (chain.sample(20, rng) != chain.sample(20, rng)).all(axis=None)
    assert (chain.sample(20) != chain.sample(20)).all(axis=None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_noise_of_different_variables_is_independent():
    scm = SCM({name: Gaussian() for name in "abcdef"})
    correlation = np.corrcoef(scm.sample(20000, 0).to_numpy().T) - np.eye(6)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(20000)


def test_some_variables_can_be_asked_for_and_only_their_ancestors_are_computed(chain):
    whole = chain.sample(30, random_state=1)
    pd.testing.assert_frame_equal(
        chain.sample(30, 1, variables=["wet", "rain"]), whole[["wet", "rain"]], check_exact=True
    )
    pd.testing.assert_frame_equal(chain.sample(30, 1, variables="rain"), whole[["rain"]], check_exact=True)

    def explode(a):
        raise AssertionError("not an ancestor of what was asked for")

    scm = SCM({"a": Gaussian(), "b": Function(["a"], explode), "c": Linear({"a": 1.0})})
    assert scm.sample(5, 0, variables=["c"]).shape == (5, 1)


def test_no_rows(chain):
    assert chain.sample(0, 0).shape == (0, 4)


@pytest.mark.parametrize("n", [-1, 2.5, True, "10"])
def test_wrong_numbers_of_rows(chain, n):
    with pytest.raises(ValueError, match="number of rows"):
        chain.sample(n)


@pytest.mark.parametrize("seed", [-1, 0.5, "0"])
def test_wrong_seeds(chain, seed):
    with pytest.raises(ValueError, match="random_state"):
        chain.sample(3, seed)


def test_a_model_survives_pickling(chain):
    model = chain.do(rain=2.0)
    copy = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(model.sample(10, 0), copy.sample(10, 0), check_exact=True)
    assert copy.targets == ("rain",)


# -- exact moments ---------------------------------------------------------------------------------


def test_moments_by_hand():
    scm = SCM({"a": Gaussian(1.0, 2.0), "b": (Linear({"a": 3.0}, intercept=-1.0), Uniform(0.0, 6.0))})
    assert scm.mean().to_dict() == {"a": 1.0, "b": 5.0}
    np.testing.assert_allclose(scm.covariance(), [[4.0, 12.0], [12.0, 36.0 + 3.0]])


@pytest.mark.parametrize(
    "interventions",
    [
        {},
        {"rain": 2.0},
        {"sprinkler": Gaussian(-3.0, 0.2)},
        {"wet": Linear({"rain": -1.0})},
        {"rain": Uniform(3.0, 4.0), "wet": Imperfect(Linear({"sprinkler": 0.3}), Gaussian(1.0, 2.0))},
    ],
    ids=["none", "atomic", "stochastic", "imperfect", "several"],
)
def test_samples_have_the_exact_moments_under_interventions(chain, interventions):
    scm = chain.do(interventions)
    assert_moments_match(scm, scm.sample(40000, random_state=3).to_numpy())


@settings(max_examples=40)
@given(d=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_moments_agree_with_the_matrix_inverse(d, seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(d, edge_probability=0.6, rng=rng)
    weights = graph * rng.normal(size=(d, d))
    names = [f"v{j}" for j in range(d)]
    loc, scale, intercept = rng.normal(size=d), rng.uniform(0.2, 2.0, size=d), rng.normal(size=d)
    scm = SCM(
        {
            names[j]: Variable(
                Linear({names[i]: weights[i, j] for i in np.flatnonzero(graph[:, j])}, intercept[j]),
                Laplace(loc[j], scale[j]),
            )
            for j in range(d)
        }
    )
    total = np.linalg.inv(np.eye(d) - weights)
    np.testing.assert_allclose(scm.mean(), (loc + intercept) @ total, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        scm.covariance(), total.T @ np.diag(2 * scale**2) @ total, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(scm.adjacency, graph)
    assert scm.is_linear


def test_moments_that_do_not_exist_name_the_variable(chain):
    curved = SCM({"a": Gaussian(), "b": Function(["a"], np.sin)})
    assert not curved.is_linear
    with pytest.raises(ValueError, match=r"'b' has f\(a\) \+ e"):
        curved.mean()
    heavy = SCM({"a": StudentT(1.5, loc=2.0), "b": Linear({"a": 1.0})})
    assert heavy.mean()["b"] == 2.0
    with pytest.raises(ValueError, match=r"noise of 'a'.*no finite variance"):
        heavy.covariance()
    with pytest.raises(ValueError, match=r"noise of 'a'.*no mean"):
        SCM({"a": StudentT(0.5)}).mean()


# -- interventions ---------------------------------------------------------------------------------


def test_do_returns_a_new_model_and_leaves_the_old_one(chain):
    before = chain.sample(20, 0)
    new = chain.do(sprinkler=1.0)
    assert new is not chain
    assert chain.targets == ()
    assert chain.interventions == {}
    pd.testing.assert_frame_equal(chain.sample(20, 0), before, check_exact=True)
    assert new.targets == ("sprinkler",)
    assert new.reference is chain
    assert new.do(rain=1).reference is chain
    assert chain.reference is chain


def test_shorthands_of_do(chain):
    new = chain.do({"rain": 1, "sprinkler": Gaussian()}, wet=Linear({"rain": 1.0}))
    assert new.interventions == {
        "rain": Atomic(1.0),
        "sprinkler": Stochastic(Gaussian()),
        "wet": Imperfect(mechanism=Linear({"rain": 1.0})),
    }
    assert [new.interventions[name].is_perfect for name in ("rain", "sprinkler", "wet")] == [
        True,
        True,
        False,
    ]
    assert chain.do(wet=Variable(Linear({"rain": 1.0}), Gaussian()))["wet"].noise == Gaussian()


def test_perfect_interventions_cut_the_parents_and_nothing_else(chain):
    for value in (1.0, Gaussian(1.0)):
        cut = chain.do(wet=value).adjacency
        assert cut["wet"].sum() == 0
        np.testing.assert_array_equal(cut.drop(columns="wet"), chain.adjacency.drop(columns="wet"))


def test_imperfect_interventions_keep_what_is_not_replaced(chain):
    noise_only = chain.do(wet=Imperfect(noise=Gaussian(9.0)))
    assert noise_only["wet"] == Variable(chain["wet"].mechanism, Gaussian(9.0))
    mechanism_only = chain.do(wet=Linear({"rain": 1.0}))
    assert mechanism_only["wet"] == Variable(Linear({"rain": 1.0}), chain["wet"].noise)
    assert mechanism_only.adjacency["wet"].to_dict() == {"wet": 0, "rain": 1, "sprinkler": 0, "season": 0}


def test_interventions_stack(chain):
    both = chain.do(rain=1.0).do(sprinkler=Gaussian(2.0))
    assert both.targets == ("rain", "sprinkler")
    pd.testing.assert_frame_equal(
        both.sample(20, 0), chain.do(rain=1.0, sprinkler=Gaussian(2.0)).sample(20, 0), check_exact=True
    )
    assert both.mean()["wet"] == pytest.approx(1.5 * 2.0 + 2.0 * 1.0 + 0.5)
    # On one variable the later one acts on what the earlier one left.
    assert chain.do(rain=1.0).do(rain=5.0).mean()["rain"] == 5.0
    stacked = chain.do(wet=Linear({"rain": 1.0})).do(wet=Imperfect(noise=Gaussian(4.0)))
    assert stacked["wet"] == Variable(Linear({"rain": 1.0}), Gaussian(4.0))
    # A parent that an earlier intervention cut may come back: the reference decides what is allowed.
    assert chain.do(wet=0.0).do(wet=Linear({"rain": 1.0}))["wet"].parents == ("rain",)


def test_one_seed_changes_only_what_is_downstream(chain):
    before, after = chain.sample(50, 0), chain.do(sprinkler=5.0).sample(50, 0)
    pd.testing.assert_frame_equal(before[["rain", "season"]], after[["rain", "season"]], check_exact=True)
    # The noise of the effect is the same too, so the difference is exactly the causal effect.
    np.testing.assert_allclose(after["wet"] - before["wet"], 1.5 * (5.0 - before["sprinkler"]))


def test_intervened_variables_are_independent_of_their_parents(chain):
    n = 20000
    rows = chain.do(wet=Uniform(-1.0, 1.0)).sample(n, 0)
    for parent in ("rain", "sprinkler"):
        assert abs(stats.spearmanr(rows[parent], rows["wet"]).statistic) < 4.5 / np.sqrt(n)
        assert abs(stats.spearmanr(rows[parent], rows["wet"] ** 2).statistic) < 4.5 / np.sqrt(n)
        assert abs(stats.spearmanr(chain.sample(n, 0)[parent], chain.sample(n, 0)["wet"]).statistic) > 0.1


@pytest.mark.parametrize(
    ("interventions", "error", "words"),
    [
        ({"sprinkle": 1.0}, ValueError, "unknown variable 'sprinkle' .did you mean 'sprinkler'"),
        ({"rain": "wet"}, TypeError, "cannot intervene on 'rain' with 'wet'"),
        ({"rain": True}, TypeError, "cannot intervene on 'rain'"),
        ({"rain": np.nan}, ValueError, "value must be a finite number"),
        ({"sprinkler": Linear({"season": 1.0})}, ValueError, "of 'sprinkler' uses 'season'.*rain"),
        ({"rain": Linear({"wet": 1.0})}, ValueError, "uses 'wet'.*it has none"),
    ],
)  # fmt: skip
def test_wrong_interventions_are_refused_by_name(chain, interventions, error, words):
    with pytest.raises(error, match=words):
        chain.do(interventions)


def test_imperfect_needs_something_and_names_are_given_once(chain):
    with pytest.raises(ValueError, match="a new mechanism, a new noise, or both"):
        Imperfect()
    with pytest.raises(ValueError, match="'rain' is given twice"):
        chain.do({"rain": 1.0}, rain=2.0)
    with pytest.raises(ValueError, match="unknown variable 'snow'"):
        chain["snow"]
    with pytest.raises(ValueError, match="unknown variable 'snow'"):
        chain.sample(3, variables=["snow"])


# -- densities -------------------------------------------------------------------------------------


def test_log_density_is_that_of_the_multivariate_normal():
    scm = SCM({"b": (Linear({"a": 2.0}), Gaussian(1.0, 0.5)), "a": Gaussian(0.3, 1.5)})
    rows = scm.sample(30, 0)
    expected = stats.multivariate_normal(scm.mean(), scm.covariance()).logpdf(rows)
    np.testing.assert_allclose(scm.log_density(rows), expected)
    np.testing.assert_allclose(scm.log_density(rows[["a", "b"]]), expected)  # matched by name
    np.testing.assert_allclose(scm.log_density(rows.to_numpy()), expected)  # matched by position


def test_densities_need_additive_noise_and_all_columns():
    scm = SCM({"a": Gaussian(), "b": NonadditiveFunction(["a"], lambda a, e: a * e)})
    rows = scm.sample(5, 0)
    with pytest.raises(NotImplementedError, match=r"variable 'b': the density of f\(a, e\) is not available"):
        scm.log_density(rows)
    assert np.isfinite(scm.do(b=Gaussian()).log_density(rows)).all()
    with pytest.raises(ValueError, match="lack the variable 'b'"):
        scm.log_density(rows[["a"]])
    with pytest.raises(ValueError, match="expected rows with 2 columns"):
        scm.log_density(np.zeros((4, 3)))


# -- drawing ---------------------------------------------------------------------------------------


def test_drawing_shows_every_variable_and_marks_interventions(chain):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import to_hex

    from latentdo.scm.drawing import INTERVENED, PLAIN

    ax = chain.do(sprinkler=1.0).draw()
    assert {text.get_text() for text in ax.texts} == set(chain.names)
    colours = [to_hex(colour) for colour in ax.collections[0].get_facecolor()]
    assert colours == [PLAIN, PLAIN, INTERVENED, PLAIN]
    styles = sorted(patch.get_linestyle() for patch in ax.patches)
    assert styles == ["dotted", "solid", "solid"]  # the cut edge is still visible
    # Causes lie left of effects.
    x = {text.get_text(): text.get_position()[0] for text in ax.texts}
    assert x["rain"] < x["sprinkler"] < x["wet"]
    _, given = plt.subplots()
    assert chain.draw(given) is given
    plt.close("all")


def test_random_graphs_stay_acyclic_under_do():
    rng = np.random.default_rng(0)
    graph = random_dag(6, edge_probability=0.8, rng=rng)
    names = [f"v{j}" for j in range(6)]
    scm = SCM({names[j]: Linear({names[i]: 1.0 for i in np.flatnonzero(graph[:, j])}) for j in range(6)})
    assert is_dag(scm.do(v0=1.0, v3=Gaussian()).adjacency.to_numpy())
