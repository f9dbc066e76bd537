"""What the estimator was told: checked, handed to the solvers, and kept with the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from latentdo.choices import DENSITY, INTERVENTION, NOISE, OPTIONS, SOLVER
from latentdo.data import Dataset
from latentdo.data.background import MOST_LAGS
from latentdo.data.circumstances import PERIODS
from latentdo.data.kinds import find_kinds, read_kinds
from latentdo.files import check_seconds
from latentdo.messages import shown
from latentdo.solvers.dispatch import Request

LARGEST_LOG_ODDS: Final = 1e6
"""Of ``edge_prior`` and ``target_prior``. It outweighs what a million rows say at one nat each; sums of more lose the
evidence to rounding and, in the end, to infinity."""

WHOLE_NUMBERS: Final[dict[str, tuple[int, int]]] = {
    "max_regimes": (1, 10_000),  # rows times regimes are kept in memory
    "n_init": (1, 10_000),  # more starts have never found more
    "resamples": (0, 1000),  # each is a small part of a fit
    "n_jobs": (-1024, 1024),  # each is a process
    "max_parents": (0, 10_000),  # beyond the variables that a search takes
}
"""Ranges of the arguments that count something."""

POSITIVE_NUMBERS: Final[dict[str, tuple[float, float]]] = {
    "concentration": (1e-6, 1e6),  # from one regime to one per row; gamma functions stay within float32
    "learning_rate": (
        1e-8,
        1.0,
    ),  # Adam's step in standardised units: below nothing moves, above everything diverges
}
"""Ranges of the arguments of the gradient solvers."""


class HiddenParameter:
    """A constructor argument that is not an attribute, because scikit-learn reads ``transform`` as a method."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        raise AttributeError(f"{self._name} is a constructor argument: see get_params()[{self._name!r}]")

    def __set__(self, instance: object, value: Any) -> None:
        instance.__dict__[self._name] = value


def check_arguments(parameters: Mapping[str, Any]) -> None:
    """Refuse values that no solver could use, by name; what depends on the table is checked later."""
    for name, option in OPTIONS.items():
        option.check(parameters[name])
    solver = SOLVER.resolve(parameters["solver"]).name
    for option in (DENSITY, NOISE, INTERVENTION):
        option.resolve(parameters[option.name], solver)
    for name, (least, most) in WHOLE_NUMBERS.items():
        value, or_none = parameters[name], name in ("n_jobs", "max_parents")
        if (value is None and or_none) or (_is_whole(value) and least <= value <= most):
            continue
        none = ", or None" if or_none else ""
        raise ValueError(f"{name}={shown(value)} must be a whole number from {least} to {most}{none}")
    for name, (low, high) in POSITIVE_NUMBERS.items():
        value = parameters[name]
        if value is not None and not (_is_number(value) and low <= value <= high):
            raise ValueError(
                f"{name}={shown(value)} must be a number from {low:g} to {high:g}, or None for the default"
            )
    value = parameters["target_prior"]
    if value is not None and not (_is_number(value) and abs(value) <= LARGEST_LOG_ODDS):
        raise ValueError(
            f"target_prior={shown(value)} must be a number (log-odds) from {-LARGEST_LOG_ODDS:g} to "
            f"{LARGEST_LOG_ODDS:g}, or None for the default"
        )
    for name in ("device", "checkpoint"):
        value = parameters[name]
        kinds = (str, Path, type(None)) if name == "checkpoint" else str
        if not isinstance(value, kinds) or "\0" in str(value):
            raise ValueError(f"{name}={shown(value)} must be text{', or None' * (name == 'checkpoint')}")
    _check_device(parameters["device"])
    _check_seed(parameters["random_state"])
    _check_time(parameters["lags"], parameters["seasonality"])


def _check_device(name: str) -> None:
    """Refuse a device that nobody knows, for solvers that would not use it too; what is there is checked by those."""
    if name == "cpu":
        return
    import torch

    try:
        torch.device(name)
    except RuntimeError:
        raise ValueError(f"device={shown(name)} is not one that torch knows; use 'cpu' or 'cuda'") from None


def _check_time(lags: Any, seasonality: Any) -> None:
    if lags != "auto" and not (_is_whole(lags) and 0 <= lags <= MOST_LAGS):
        raise ValueError(f'lags={shown(lags)} must be "auto" or a whole number from 0 to {MOST_LAGS}')
    if seasonality is None or (isinstance(seasonality, str) and seasonality == "auto"):
        return
    several = isinstance(seasonality, list | tuple)
    for one in seasonality if several else [seasonality]:
        named = isinstance(one, str) and one in PERIODS
        if not named and not (_is_number(one) and 0.0 < one < np.inf):
            raise ValueError(
                f'seasonality={shown(one)} must be "auto", None, a positive number (the length of a cycle), one of '
                f"{', '.join(PERIODS)}, or a list of these"
            )


def seed_of(random_state: Any) -> int:
    """The seed that ``random_state`` stands for; a generator is asked for its next number."""
    _check_seed(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _check_seed(random_state: Any) -> None:
    whole = _is_whole(random_state)
    if whole and not 0 <= random_state < 2**32:
        raise ValueError(f"random_state={shown(random_state)} must be a whole number from 0 to 2**32 - 1")
    if not whole and not isinstance(random_state, np.random.RandomState | None):
        raise ValueError(
            f"random_state={shown(random_state)} must be a whole number, a numpy.random.RandomState, or None"
        )


def check_number_of_labels(dataset: Dataset, max_regimes: int) -> None:
    """Refuse more labels than regimes are allowed."""
    if max_regimes < dataset.n_regimes:
        raise ValueError(
            f"regimes has {dataset.n_regimes} labels (the reference included), but max_regimes={max_regimes}; "
            "raise max_regimes"
        )


def check_continuous(sample: Dataset, kinds: Any) -> None:
    """Refuse streamed rows with columns of other kinds, found in a sample of the rows or given."""
    found = find_kinds(sample.x.copy(), sample.columns, {}, read_kinds(kinds, sample.columns))
    for name, kind in zip(sample.columns, found, strict=True):
        if kind.is_discrete:
            raise ValueError(
                f"Rows that are streamed are fitted with lines, for continuous columns only, and {name!r} is "
                f"{kind.kind}; leave it out, call it continuous with kinds={{{name!r}: 'continuous'}}, or fit as many "
                "rows as fit into memory"
            )


def make_request(parameters: Mapping[str, Any], n_variables: int) -> Request:
    """What the solvers are asked for."""
    p = parameters
    edge_prior = None
    if p["edge_prior"] is not None:
        try:
            given = np.asarray(p["edge_prior"])
            if given.dtype.kind not in "biufO":
                raise TypeError
            edge_prior = given.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"edge_prior={shown(p['edge_prior'])} must be a number or a matrix of numbers (log-odds) from "
                f"{-LARGEST_LOG_ODDS:g} to {LARGEST_LOG_ODDS:g}, or None"
            ) from None
        if edge_prior.ndim and edge_prior.shape != (n_variables, n_variables):
            raise ValueError(
                f"edge_prior has shape {edge_prior.shape}; use a number or a matrix [{n_variables}, {n_variables}]"
            )
        if np.isnan(edge_prior).any():
            raise ValueError("edge_prior contains NaN; use 0 where you have no opinion")
        if (beyond := edge_prior[np.abs(edge_prior) > LARGEST_LOG_ODDS]).size:
            raise ValueError(
                f"edge_prior={beyond.flat[0]:g} must lie between {-LARGEST_LOG_ODDS:g} and {LARGEST_LOG_ODDS:g} "
                "(log-odds); certain edges belong in required= or forbidden="
            )
    return Request(
        density=p["density"],
        noise=p["noise"],
        intervention=p["intervention"],
        solver=p["solver"],
        max_regimes=int(p["max_regimes"]),
        edge_prior=edge_prior,
        target_prior=p["target_prior"],
        concentration=p["concentration"],
        learning_rate=p["learning_rate"],
        forbidden=p["forbidden"],
        required=p["required"],
        tiers=p["tiers"],
        max_parents=p["max_parents"],
        n_init=int(p["n_init"]),
        random_state=seed_of(p["random_state"]),
        device=p["device"],
        n_jobs=effective_n_jobs(p["n_jobs"]),
        checkpoint=None if p["checkpoint"] is None else Path(p["checkpoint"]),
        checkpoint_seconds=check_seconds(p["checkpoint_seconds"]),
        verbose=bool(p["verbose"]),
        lags=p["lags"],
        seasonality=p["seasonality"],
        resamples=int(p["resamples"]),
    )


def plain_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON can hold them."""
    plain = {}
    for name, value in parameters.items():
        if isinstance(value, np.ndarray):
            plain[name] = value.tolist()
        elif isinstance(value, (np.integer, np.floating)):
            plain[name] = value.item()
        elif value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)):
            plain[name] = value
        else:
            plain[name] = None if name == "random_state" else str(value)
    return plain


def _is_number(value: Any) -> bool:
    is_float = isinstance(value, (float, np.floating))
    return is_float or (_is_integer(value) and abs(int(value)) <= sys.float_info.max)


def _is_whole(value: Any) -> bool:
    """Whether this is an integer that compiled code can take; Python has longer ones."""
    return _is_integer(value) and abs(int(value)) <= np.iinfo(np.int64).max


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
