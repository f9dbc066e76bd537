"""What the estimator was told: checked, handed to the solvers, and kept with the result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from latentdo.data import Dataset
from latentdo.files import check_seconds
from latentdo.solvers.select import CHOICES, Request


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
    for name, choices in CHOICES.items():
        value = parameters[name]
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}")
    for name in ("max_regimes", "n_init"):
        value = parameters[name]
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name}={value!r} must be a whole number of at least 1")

    for name in ("n_jobs", "max_parents"):
        value = parameters[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
            raise ValueError(f"{name}={value!r} must be a whole number, or None")
    for name in ("concentration", "learning_rate"):
        value = parameters[name]
        if value is not None and not (_is_number(value) and 0.0 < value < np.inf):
            raise ValueError(f"{name}={value!r} must be a positive number, or None for the default")
    value = parameters["target_prior"]
    if value is not None and not (_is_number(value) and np.isfinite(value)):
        raise ValueError(
            f"target_prior={value!r} must be a finite number (log-odds), or None for the default"
        )


def check_number_of_labels(dataset: Dataset, max_regimes: int) -> None:
    """Refuse more labels than regimes are allowed."""
    if max_regimes < dataset.n_regimes:
        raise ValueError(
            f"regimes has {dataset.n_regimes} labels (the reference included), but max_regimes={max_regimes}; "
            "raise max_regimes"
        )


def make_request(parameters: Mapping[str, Any], n_variables: int) -> Request:
    """What the solvers are asked for."""
    p = parameters
    edge_prior = None
    if p["edge_prior"] is not None:
        try:
            edge_prior = np.asarray(p["edge_prior"], dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"edge_prior={p['edge_prior']!r} must be a number or a matrix of numbers (log-odds), or None"
            ) from None
        if edge_prior.ndim and edge_prior.shape != (n_variables, n_variables):
            raise ValueError(
                f"edge_prior has shape {edge_prior.shape}; use a number or a matrix [{n_variables}, {n_variables}]"
            )
        if np.isnan(edge_prior).any():
            raise ValueError("edge_prior contains NaN; use 0 where you have no opinion")
        if np.isinf(edge_prior).any():
            raise ValueError("edge_prior must be finite; certain edges belong in required= or forbidden=")
    return Request(
        density=p["density"],
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
        random_state=int(check_random_state(p["random_state"]).randint(2**31)),
        device=p["device"],
        n_jobs=effective_n_jobs(p["n_jobs"]),
        checkpoint=None if p["checkpoint"] is None else Path(p["checkpoint"]),
        checkpoint_seconds=check_seconds(p["checkpoint_seconds"]),
        verbose=bool(p["verbose"]),
    )


def plain_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON can hold them."""
    plain = {}
    for name, value in parameters.items():
        if isinstance(value, np.ndarray):
            plain[name] = value.tolist()
        elif isinstance(value, (np.integer, np.floating)):
            plain[name] = value.item()
        elif value is None or isinstance(value, (bool, int, float, str, list, tuple)):
            plain[name] = value
        else:
            plain[name] = None if name == "random_state" else str(value)
    return plain


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
