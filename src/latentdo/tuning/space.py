"""What is varied: ranges and lists of values, checked against what the estimator's solver has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from latentdo.estimator import LatentInterventionDAG
from latentdo.estimator.arguments import make_request
from latentdo.model.penalties import Penalties

if TYPE_CHECKING:
    import optuna as optuna_types

Space = Mapping[str, Sequence[Any]]
_RATES: Final = ("concentration", "learning_rate")
_SPACES: Final[Mapping[str, Space]] = {
    "search": {"edge_prior": (-10.0, 1.0), "target_prior": (-20.0, 0.0)},
    "gradient": {
        "edge_prior": (-10.0, 1.0),
        "target_prior": (-20.0, 0.0),
        "concentration": (0.5, 50.0, "log"),
        "learning_rate": (1e-3, 3e-2, "log"),
    },
    # the paper counts the priors once per row: its grid is xi in -0.1 .. 0.1 and gamma in -0.1 .. -0.01
    "paper": {
        "edge_prior": (-0.1, 0.1),
        "target_prior": (-0.1, -0.01),
        "concentration": (0.5, 50.0, "log"),
        "learning_rate": (1e-3, 3e-2, "log"),
    },
}


def default_space(estimator: LatentInterventionDAG, n_variables: int) -> Space:
    """What is varied unless the user says otherwise: what the estimator's solver has of the four.

    A matrix of prior log-odds is the user's knowledge and stays.
    """
    solver = _solver(estimator, n_variables)
    space = dict(_SPACES.get(solver, _SPACES["search"]))
    if np.ndim(estimator.edge_prior if estimator.edge_prior is not None else 0.0):
        del space["edge_prior"]
    return space


def own_values(estimator: LatentInterventionDAG, names: list[str], n_variables: int) -> dict[str, Any]:
    """The estimator's values of some parameters, with numbers where None stands for a default."""
    parameters = estimator.get_params()
    values = {name: parameters[name] for name in names}
    if _solver(estimator, n_variables) == "search":
        penalties = Penalties.build(n_variables, None, None)
        defaults = {"edge_prior": float(penalties.edge_prior.flat[0]), "target_prior": penalties.target_prior}
    else:
        from latentdo.solvers.gradient import GradientConfiguration

        paper = estimator.solver == "paper"
        configuration = GradientConfiguration.paper() if paper else GradientConfiguration()
        defaults = {
            "edge_prior": float(np.asarray(configuration.edge_log_odds).flat[0]),
            "target_prior": configuration.target_log_odds,
            "concentration": configuration.concentration,
            "learning_rate": configuration.learning_rate,
        }
    return {name: defaults.get(name) if value is None else value for name, value in values.items()}


def checked(
    name: str, choice: Sequence[Any], estimator: LatentInterventionDAG, n_variables: int
) -> Sequence[Any]:
    """A choice of the search space, or what is wrong with it."""
    parameters = estimator.get_params()
    if name not in parameters:
        raise ValueError(f"space names {name!r}, which is not a parameter of {type(estimator).__name__}")
    if name in _RATES and _solver(estimator, n_variables) == "search":
        raise ValueError(f"space names {name!r}, which solver='search' does not have; use solver='gradient'")
    if name == "edge_prior" and np.ndim(parameters[name] if parameters[name] is not None else 0.0):
        raise ValueError(
            "space varies edge_prior, but the estimator has a matrix of them; leave it out of space"
        )
    if isinstance(choice, list) and choice:
        return choice
    numeric = isinstance(choice, tuple) and len(choice) in (2, 3)
    if numeric and (len(choice) == 2 or choice[2] == "log"):
        low, high = choice[:2]
        if all(isinstance(end, int | float) and np.isfinite(end) for end in (low, high)) and low < high:
            if len(choice) == 3 and low <= 0:
                raise ValueError(f"space: {name} is on a log scale, so its lower end {low} must be positive")
            return choice
    raise ValueError(
        f'space: {name}={choice!r} must be (low, high) or (low, high, "log") with low < high, or a list of values'
    )


def suggest(trial: optuna_types.Trial, name: str, choice: Sequence[Any]) -> Any:
    """A value of the trial's own choosing."""
    if isinstance(choice, list):
        return trial.suggest_categorical(name, choice)
    low, high, log = choice[0], choice[1], len(choice) == 3
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=log)
    return trial.suggest_float(name, float(low), float(high), log=log)


def within(value: Any, choice: Sequence[Any]) -> bool:
    """Whether a value could have been chosen."""
    if isinstance(choice, list):
        return value in choice
    return isinstance(value, int | float) and bool(choice[0] <= value <= choice[1])


def _solver(estimator: LatentInterventionDAG, n_variables: int) -> str:
    return make_request(estimator.get_params(), n_variables).chosen_solver
