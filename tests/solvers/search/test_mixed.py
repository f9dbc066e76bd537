"""Tables with columns of several kinds, from a fit to what users ask of it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG
from latentdo.data import Dataset, DataWarning, Kind, validate_rows
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.categorical import CategoricalMechanism
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.inputs import Expanded, Inputs
from latentdo.model.mechanisms.mixed import MixedFamily
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import conclude

N = 1500


def chain(seed: int = 0, n: int = N) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """tissue -> weight -> failed, weight -> clicks; in a third of the rows clicks are cut off and rise."""
    rng = np.random.default_rng(seed)
    regimes = (rng.random(n) < 0.35).astype(np.int64)
    tissue = rng.choice(3, n, p=[0.4, 0.35, 0.25])
    weight = np.array([-1.5, 0.0, 1.5])[tissue] + rng.normal(size=n)
    failed = (rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * weight))).astype(np.int64)
    clicks = rng.poisson(np.where(regimes == 1, 25.0, np.exp(0.8 + 0.6 * weight)))
    names = np.array(["liver", "lung", "skin"])
    table = pd.DataFrame({"tissue": names[tissue], "weight": weight, "failed": failed, "clicks": clicks})
    return table, regimes


TRUE = {("tissue", "weight"), ("weight", "failed"), ("weight", "clicks")}


def edges(estimator: LatentInterventionDAG) -> set[tuple[str, str]]:
    adjacency = estimator.adjacency_
    return {(a, b) for a in adjacency.index for b in adjacency.columns if adjacency.loc[a, b]}


@pytest.fixture(scope="module")
def known() -> LatentInterventionDAG:
    table, regimes = chain()
    return LatentInterventionDAG(density="linear", random_state=0).fit(table, regimes=regimes)


@pytest.fixture(scope="module")
def hidden() -> LatentInterventionDAG:
    return LatentInterventionDAG(density="linear", random_state=0).fit(chain()[0])


def test_labels_give_graph_and_targets(known: LatentInterventionDAG) -> None:
    assert {frozenset(edge) for edge in edges(known)} == {frozenset(edge) for edge in TRUE}
    assert ("weight", "clicks") in edges(known)  # the intervention shows the direction
    assert known.targets_.loc[1].to_dict() == {"tissue": 0, "weight": 0, "failed": 0, "clicks": 1}
    assert "count: 'clicks'" in known.result_.warnings[0]


def test_hidden_regimes_are_found(hidden: LatentInterventionDAG) -> None:
    table, regimes = chain()
    assert hidden.n_regimes_ == 2
    assert hidden.targets_.iloc[1].to_dict() == {"tissue": 0, "weight": 0, "failed": 0, "clicks": 1}
    assert (hidden.predict(table) == regimes).mean() > 0.9


def test_the_evidence_is_that_of_probabilities_and_densities(known: LatentInterventionDAG) -> None:
    table, regimes = chain()
    result = known.result_
    z = result.preprocessor.forward(validate_rows(table, result.columns, result.kinds))
    model = result.model
    density = model.log_density(z)[np.arange(N), regimes]
    by_hand = sum(
        np.where(regimes == k, model.mechanism(j, k).log_density(model.inputs(z, j), z[:, j]), 0.0)
        for j in range(4)
        for k in range(2)
    )
    np.testing.assert_allclose(density, by_hand)
    # A density is one of the user's units; probabilities have none.
    scaled = LatentInterventionDAG(density="linear", random_state=0).fit(
        table.assign(weight=1024.0 * table["weight"]), regimes=regimes
    )
    assert scaled.evidence_ == pytest.approx(known.evidence_, abs=1e-6)
    before, after = known.score(table), scaled.score(table.assign(weight=1024.0 * table["weight"]))
    assert before - after == pytest.approx(np.log(1024.0), abs=1e-6)


def test_samples_have_levels_and_whole_numbers(known: LatentInterventionDAG) -> None:
    drawn = known.sample(200, regime=1, do={"tissue": "skin"})
    assert set(drawn["tissue"]) == {"skin"}
    assert set(drawn["failed"]) == {0.0, 1.0}
    assert (drawn["clicks"] % 1.0 == 0.0).all()
    with pytest.raises(ValueError, match=r"'tissue' to 'bone'.*'liver', 'lung', 'skin'"):
        known.sample(do={"tissue": "bone"})
    with pytest.raises(ValueError, match=r"'clicks' to 2\.5.*whole"):
        known.sample(do={"clicks": 2.5})


def test_a_file_keeps_kinds_and_probabilities(known: LatentInterventionDAG, tmp_path: Path) -> None:
    known.save(tmp_path / "model.safetensors")
    again = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    assert again.result_.kinds == known.result_.kinds
    table, _ = chain(seed=5, n=50)
    np.testing.assert_array_equal(known.score_samples(table), again.score_samples(table))
    with pytest.raises(ValueError, match=r"row 3 .*'tissue' is 'bone'"):
        again.predict(table.assign(tissue=["liver"] * 3 + ["bone"] * 47))


def test_wide_inputs_survive_packing() -> None:
    table, _ = chain(n=300)
    z = np.column_stack([table["tissue"].map({"liver": 0, "lung": 1, "skin": 2}), table["clicks"]]).astype(
        float
    )
    kinds = (Kind("categorical", ("liver", "lung", "skin")), Kind("count"), Kind())
    inputs = Inputs.of(kinds, np.column_stack([z, table["weight"]]))
    assert inputs.widths.tolist() == [2, 1, 1]
    expanded = inputs.take(np.array([0, 1])).expand(z)
    np.testing.assert_array_equal(expanded[:, 0], z[:, 0] == 1)
    assert expanded[:, 2].mean() == pytest.approx(0.0, abs=1e-12)
    family = MixedFamily(kinds, AnyNoise)
    full = np.column_stack([z, table["weight"]])
    fits = family.of(2).given(family.prepare(full), np.array([0, 1]))
    found = fits.fit(z, full[:, 2], np.ones(300))
    (again,) = Expanded.unpack(Expanded.pack([found]), [np.array([0, 1])])
    np.testing.assert_array_equal(found.log_density(z, full[:, 2]), again.log_density(z, full[:, 2]))
    alone = (
        family.of(2)
        .given(family.prepare(full), np.array([], dtype=np.int64))
        .fit(z[:, :0], full[:, 2], np.ones(300))
    )
    assert evidence(found, z, full[:, 2], np.ones(300)) > evidence(alone, z, full[:, 2], np.ones(300)) + 50.0
    broken = Expanded.pack([found])
    broken["inputs"] = -broken["inputs"]
    with pytest.raises(ValueError, match="inputs"):
        Expanded.unpack(broken, [np.array([0, 1])])


def test_models_of_all_kinds_are_arrays(known: LatentInterventionDAG) -> None:
    model = known.result_.model
    again = FittedModel.from_arrays(model.to_arrays())
    z = np.zeros((1, 4))
    np.testing.assert_array_equal(model.log_density(z), again.log_density(z))


@pytest.mark.parametrize(
    "arguments",
    [{"density": "nonlinear"}, {"noise": "gaussian"}],
)
def test_what_knows_densities_only_says_so(arguments: dict[str, str]) -> None:
    table, _ = chain(n=100)
    with pytest.raises(ValueError, match=r"'tissue' is categorical.*kinds=\{'tissue': 'continuous'\}"):
        LatentInterventionDAG(**arguments).fit(table)
    with pytest.raises(ValueError, match="'tissue'"):
        LatentInterventionDAG().fit(table, batch=[0, 1] * 50)
    with pytest.raises(ValueError, match=r"'failed' is binary.*kinds="):
        LatentInterventionDAG().fit_stream([table[["weight", "failed"]]])


def test_awkward_columns_give_a_result() -> None:
    """A level of one regime alone, a parent that decides a binary child, and a regime without counts."""
    rng = np.random.default_rng(1)
    n = 400
    regimes = np.repeat([0, 1], n // 2)
    cause = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "cause": cause,
            "decided": (cause > 0.0).astype(np.int64),
            "level": np.where(regimes == 1, "only here", rng.choice(["a", "b"], n)),
            "counted": np.where(regimes == 1, 0, rng.poisson(3.0, n)),
        }
    )
    found = LatentInterventionDAG(density="linear").fit(table, regimes=regimes)
    assert found.targets_.loc[1, "counted"] == 1
    assert found.targets_.loc[1, "level"] == 1
    assert found.adjacency_.loc["cause", "decided"] or found.adjacency_.loc["decided", "cause"]
    assert np.isfinite(found.score(table))


def test_a_past_that_is_not_taken_away_is_said() -> None:
    table, _ = chain(n=120)
    few = LatentInterventionDAG(max_regimes=1)
    with pytest.warns(DataWarning, match=r"past and cycles .* not continuous.*without them"):
        few.fit(table, time=np.arange(120))
    assert any("past and cycles" in words for words in few.result_.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        few.fit(table.select_dtypes("float"), time=np.arange(120))


def test_ordered_levels_may_have_one_slope() -> None:
    rng = np.random.default_rng(1000)
    cause = rng.normal(size=600)
    grade = (np.outer(cause, np.arange(4.0)) + rng.gumbel(size=(600, 4))).argmax(axis=1)
    names = pd.Categorical.from_codes(
        grade, categories=pd.Index(["low", "fair", "good", "best"]), ordered=True
    )
    found = LatentInterventionDAG(density="linear", max_regimes=1, forbidden=[("grade", "cause")]).fit(
        pd.DataFrame({"cause": cause, "grade": names})
    )
    assert found.result_.kinds[1].ordered
    assert edges(found) == {("cause", "grade")}
    mechanism = found.result_.model.reference[1]
    assert isinstance(mechanism, CategoricalMechanism)
    assert mechanism.is_in_order
    assert mechanism.n_parameters == 4


def test_regimes_that_change_places_keep_their_own_laws() -> None:
    """The conclusion of a fit may number regimes anew: a law of one must not be fitted to rows of another."""
    rng = np.random.default_rng(0)
    regimes = np.repeat([0, 1, 2], [800, 400, 400])
    even, spread = rng.poisson(20.0, 1600), rng.poisson(rng.gamma(0.5, 6.0, 1600))
    count = np.select([regimes == 1, regimes == 2], [even, spread], rng.poisson(4.0, 1600))
    table = pd.DataFrame({"count": count, "other": rng.normal(size=1600)})
    problem = make_problem(Dataset.from_table(table, kinds={"count": "count"}), SearchConfiguration())
    family = MixedFamily(Dataset.from_table(table, kinds={"count": "count"}).kinds, AnyNoise)
    problem = replace(problem, learner=RowLearner.of(family, problem.z))
    graph, targets = np.zeros((2, 2), dtype=np.int8), np.array([[0, 0], [1, 0], [1, 0]], dtype=np.int8)
    state = refine(problem, np.eye(3)[regimes], graph, targets=targets, iterations=1)
    order = [0, 2, 1]
    rows = state.responsibilities[:, order]
    found = conclude(problem, SearchConfiguration(), graph, rows, targets, model=state.model)
    assert found.state.evidence == pytest.approx(state.evidence, abs=1.0)
