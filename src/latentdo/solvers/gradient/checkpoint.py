"""Atomic checkpoints: a fit that was killed goes on where it stood, to the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import torch

from latentdo.files import write_atomically
from latentdo.solvers.gradient.lagrangian import AugmentedLagrangian
from latentdo.solvers.gradient.state import TrainState


def save(path: Path, state: TrainState, fingerprint: str) -> None:
    """Write the state, whole or not at all.

    Parameters
    ----------
    path : Path
        Where the checkpoint belongs; its folder is created.
    state : TrainState
        What to save.
    fingerprint : str
        Identifies data and configuration; :func:`load` refuses another.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {field.name: getattr(state, field.name) for field in fields(state)}
    content["lagrangian"] = asdict(state.lagrangian)
    content["history"] = [dict(entry) for entry in state.history]
    content["fingerprint"] = fingerprint
    write_atomically(path, lambda temporary: torch.save(content, temporary))


def load(
    path: Path, fingerprint: str, restore: Callable[[TrainState], None] | None = None
) -> TrainState | None:
    """Read a checkpoint, or None if there is none.

    ``restore`` puts a state to use; one that does not fit is as damaged as one that cannot be read.

    Raises
    ------
    ValueError
        If it belongs to other data or another configuration, or is damaged.
    """
    if not path.exists():
        return None
    damaged = f"The checkpoint {str(path)!r} is damaged ({{}}); delete it to start anew."
    try:
        content = torch.load(path, weights_only=True)
        found = content.pop("fingerprint")
    except Exception as error:  # whatever torch raises for bytes that are not a checkpoint
        raise ValueError(damaged.format(type(error).__name__)) from error
    if found != fingerprint:
        raise ValueError(
            f"The checkpoint {str(path)!r} belongs to other data or another configuration; "
            "delete it or choose another file."
        )
    try:
        content["lagrangian"] = AugmentedLagrangian(**content["lagrangian"])
        content["history"] = tuple(content["history"])
        content["warnings"] = tuple(content["warnings"])
        state = TrainState(**content)
        if wrong := state.wrong_field():
            raise ValueError(f"its {wrong} is not such as a fit leaves")
        if restore is not None:
            restore(state)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(damaged.format(str(error).splitlines()[0])) from error
    return state
