"""What the user knows of the graph, odd sizes, refusals, and interrupts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from latentdo import LatentInterventionDAG
from latentdo.data import DataWarning
from latentdo.graphs import is_dag

NAMES = ["Raf", "Mek", "Erk", "Akt"]


def test_prior_knowledge_is_respected(table, data):
    cause, effect = (NAMES[int(i)] for i in np.argwhere(data.adjacency.to_numpy())[0])
    options = {"density": "linear", "n_init": 1}
    reversed_ = LatentInterventionDAG(forbidden=[(cause, effect)], required=[(effect, cause)], **options).fit(
        table
    )
    assert reversed_.adjacency_.loc[cause, effect] == 0
    assert reversed_.adjacency_.loc[effect, cause] == 1
    assert reversed_.edge_probabilities_.loc[cause, effect] == 0.0
    assert reversed_.edge_probabilities_.loc[effect, cause] == pytest.approx(1.0)
    assert is_dag(reversed_.adjacency_)
    empty = LatentInterventionDAG(max_parents=0, **options).fit(table)
    assert not empty.adjacency_.to_numpy().any()
    tiers = LatentInterventionDAG(tiers=[[effect], [cause]], **options).fit(table)
    assert tiers.adjacency_.loc[cause, effect] == 0


def test_edge_prior_moves_edges(table):
    none = LatentInterventionDAG(max_regimes=1, edge_prior=-1e5).fit(table)
    assert not none.adjacency_.to_numpy().any()
    assert none.edge_probabilities_.to_numpy().max() < 1e-6
    every = LatentInterventionDAG(max_regimes=1, edge_prior=1e5).fit(table)
    assert every.adjacency_.to_numpy().sum() == 6
    prior = np.zeros((4, 4))
    prior[2, 0] = 1e5
    one = LatentInterventionDAG(max_regimes=1, edge_prior=prior).fit(table)
    assert one.adjacency_.iloc[2, 0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"density": "spline"}, "density='spline'.*'linear'"),
        ({"noise": "laplace"}, "noise='laplace'.*'gaussian'.*'any'"),
        ({"noise": "any", "solver": "gradient"}, "noise='any'.*solver='gradient'.*'auto'"),
        ({"noise": "gaussian", "solver": "paper"}, "noise='gaussian'.*solver='paper'.*'auto'"),
        ({"intervention": "soft"}, "intervention='soft'.*'imperfect'"),
        ({"solver": "magic"}, "solver='magic'"),
        ({"max_regimes": 0}, "max_regimes=0"),
        ({"max_regimes": 2.5}, "max_regimes=2.5"),
        ({"max_regimes": True}, "max_regimes=True"),
        ({"n_init": 0}, "n_init=0"),
        ({"n_init": "4"}, "n_init='4'"),
        ({"transform": "cube"}, "cube"),
        ({"missing": "ignore"}, "missing='ignore'"),
        ({"edge_prior": np.zeros((2, 3))}, r"edge_prior has shape \(2, 3\).*\[4, 4\]"),
        ({"edge_prior": np.nan}, "edge_prior contains NaN"),
        ({"forbidden": [("Raf", "PKA")]}, "forbidden names 'PKA'"),
        ({"required": [("Raf", "Mek"), ("Mek", "Raf")]}, "cycle"),
        ({"required": [("Raf", "Mek")], "forbidden": [("Raf", "Mek")]}, "Raf -> Mek is ruled out"),
        ({"tiers": [["Raf"], ["PKA"]]}, "'PKA'"),
        ({"max_parents": -1}, "max_parents=-1"),
        ({"random_state": "lucky"}, "lucky"),
    ],
)
def test_bad_arguments_are_named(table, arguments, message):
    with pytest.raises(ValueError, match=message):
        LatentInterventionDAG(**arguments).fit(table)


def test_bad_data_are_named(data, table):
    holes = table.copy()
    holes.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="Mek"):
        LatentInterventionDAG().fit(holes)
    dropped = LatentInterventionDAG(max_regimes=1, missing="drop").fit(holes)
    assert len(dropped.regimes_) == 999
    with pytest.raises(ValueError, match="Akt"):
        LatentInterventionDAG().fit(table.assign(Akt=1.0))
    with pytest.raises(ValueError, match="1000 rows"):
        LatentInterventionDAG().fit(table, regimes=[0, 1])
    with pytest.raises(ValueError, match="targets were given without regimes"):
        LatentInterventionDAG().fit(table, targets={1: ["Raf"]})
    with pytest.raises(ValueError, match=r"5 labels.*max_regimes=3"):
        LatentInterventionDAG(max_regimes=3).fit(table, regimes=data.regimes)
    with pytest.raises(ValueError, match="control"):
        LatentInterventionDAG(observational="control").fit(table, regimes=data.regimes)


def test_one_variable(data, assert_sound):
    """Nothing to find but the regimes."""
    est = LatentInterventionDAG(n_init=1).fit(np.random.default_rng(0).normal(size=(200, 1)))
    assert_sound(est, 200, 1)


def test_few_and_repeated_rows(assert_sound):
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert_sound(LatentInterventionDAG(n_init=1).fit(rng.normal(size=(4, 3))), 4, 3)
        assert_sound(
            LatentInterventionDAG(n_init=1).fit(np.repeat(rng.normal(size=(5, 2)), 40, axis=0)), 200, 2
        )
        x = rng.normal(size=(200, 1))
        assert_sound(
            LatentInterventionDAG(n_init=1).fit(np.column_stack([x, 2 * x, rng.normal(size=200)])), 200, 3
        )


def test_interrupt_keeps_the_best_state_so_far(table):
    steps = []

    def stop_at_the_second_step(entry):
        steps.append(entry)
        if len(steps) == 2:
            raise KeyboardInterrupt

    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            est = LatentInterventionDAG().fit(table, progress=stop_at_the_second_step)
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("the interrupt was not caught although a state had been reported")
    assert not est.converged_
    assert est.result_.status == "interrupted"
    assert est.evidence_ >= steps[0]["evidence"] - 1e-3  # one more step of EM, whose costs move a little
    assert is_dag(est.adjacency_)


@pytest.mark.parametrize(
    "name",
    [
        "max_regimes",
        "n_init",
        "n_jobs",
        "max_parents",
        "edge_prior",
        "target_prior",
        "concentration",
        "learning_rate",
    ],
)
@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_of_many_digits_are_refused_by_name(name, digits):
    est = LatentInterventionDAG(**{name: 10**digits})
    with pytest.raises(ValueError, match=f"{name}=an integer of about {digits} digits"):
        est.fit([[1.0, 2.0], [2.0, 1.5], [3.0, 5.0]])
