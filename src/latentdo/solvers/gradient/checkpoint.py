"""Atomic checkpoints: a fit that was killed goes on where it stood, to the same result."""

from __future__ import annotations

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


def load(path: Path, fingerprint: str) -> TrainState | None:
    """Read a checkpoint, or None if there is none.

    Raises
    ------
    ValueError
        If it belongs to other data or another configuration, or is damaged.
    """
    if not path.exists():
        return None
    try:
        content = torch.load(path, weights_only=True)
        found = content.pop("fingerprint")
    except Exception as error:  # whatever torch raises for bytes that are not a checkpoint
        raise ValueError(
            f"The checkpoint {path} is damaged ({type(error).__name__}); delete it to start anew."
        ) from error
    if found != fingerprint:
        raise ValueError(
            f"The checkpoint {path} belongs to other data or another configuration; "
            "delete it or choose another file."
        )
    content["lagrangian"] = AugmentedLagrangian(**content["lagrangian"])
    content["history"] = tuple(content["history"])
    content["warnings"] = tuple(content["warnings"])
    return TrainState(**content)
