"""The registry of choices: what a value means to a solver, and what is said of one that means nothing."""

import pytest

from latentdo.choices import DENSITY, INTERVENTION, NOISE, OPTIONS, SOLVER, Density, Option


@pytest.mark.parametrize(
    ("option", "value", "solver", "meaning"),
    [
        (DENSITY, "auto", "search", "auto"),
        (DENSITY, "auto", "gradient", "linear"),
        (DENSITY, "flow", "search", "nonlinear-mixed"),
        (DENSITY, "flow", "paper", "flow"),
        (NOISE, "any", "search", "any"),
        (NOISE, "auto", "paper", "auto"),
        (INTERVENTION, "auto", "search", "auto"),
        (INTERVENTION, "auto", "paper", "imperfect"),
        (INTERVENTION, "perfect", "gradient", "perfect"),
        (SOLVER, "auto", None, "search"),
    ],
)
def test_a_value_means_what_its_solver_fits(option, value, solver, meaning):
    assert option.resolve(value, solver).name == meaning


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_every_choice_is_taken_by_its_solvers_and_explained(option):
    for choice in option.choices:
        assert set(choice.solvers) <= set(SOLVER.names())
        assert all(option.resolve(choice.name, solver) is choice for solver in choice.solvers)
        assert choice.summary in option.help


@pytest.mark.parametrize("value", ["cubic", None, 3, ["linear"]])
def test_an_unknown_value_is_refused_with_all_that_are_known(value):
    with pytest.raises(ValueError, match="density=") as caught:
        DENSITY.check(value)
    assert all(repr(known) in str(caught.value) for known in DENSITY.values())


def test_a_value_of_another_solver_is_refused_with_those_it_takes():
    with pytest.raises(ValueError, match="solver='gradient'") as caught:
        DENSITY.resolve("nonlinear-mixed", "gradient")
    assert all(repr(known) in str(caught.value) for known in DENSITY.values("gradient"))


def test_the_search_knows_how_to_fit_every_density_it_takes():
    assert all(choice.search for choice in DENSITY.choices if "search" in choice.solvers)
    assert all((choice.family is not None) == (choice.search == "rows") for choice in DENSITY.choices)


def test_a_name_or_alias_can_be_taken_only_once():
    option = Option("density", "Shape", DENSITY.choices)
    for name in option.values():
        with pytest.raises(ValueError, match=name):
            option.add(Density(name=name, summary="another", search="rows"))
    option.add(Density(name="new", summary="new", search="rows"))
    assert option.values()[-1] == "new"
    assert "new" not in DENSITY.values()
