"""Tensors where arrays are expected: torch need not be imported to take them."""

from __future__ import annotations

from typing import Any

import numpy as np


def without_gradient(values: Any, who: str = "X") -> Any:
    """A torch tensor as the array of its numbers, wherever it lies and whatever it records; anything else as it is."""
    if not (hasattr(values, "detach") and hasattr(values, "requires_grad")):
        return values
    try:
        return np.asarray(values.detach().cpu().tolist())
    except (RuntimeError, NotImplementedError) as error:
        raise ValueError(
            f"{who} is a tensor whose numbers cannot be read ({str(error).splitlines()[0]}); pass a dense tensor, or "
            "the array of its numbers."
        ) from error
