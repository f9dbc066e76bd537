"""Which families of mechanisms there are: the one place that knows them all."""

from __future__ import annotations

import importlib
from typing import Final

from latentdo.model.mechanisms.base import Mechanism

_BUILT_IN: Final[dict[str, str]] = {
    "linear": "latentdo.model.mechanisms.linear:LinearMechanism",
    "network": "latentdo.model.mechanisms.network:NetworkMechanism",
    "neural": "latentdo.model.mechanisms.neural:NeuralMechanism",
}
"""Where the class of each family lives; imported only when it is needed."""

_REGISTERED: dict[str, type[Mechanism]] = {}


def register(mechanism: type[Mechanism]) -> type[Mechanism]:
    """Make a family of one's own known under ``mechanism.family``; may be used as a decorator.

    Raises
    ------
    ValueError
        If the name is taken by another class, or files cannot hold it.
    """
    name = mechanism.family
    if not name or "." in name:
        raise ValueError(f"the name of a family must be a word without dots, not {name!r}")
    taken = name in _BUILT_IN or _REGISTERED.get(name, mechanism) is not mechanism
    if taken:
        raise ValueError(f"there is a family {name!r} already; choose another name")
    _REGISTERED[name] = mechanism
    return mechanism


def mechanism_class(name: str) -> type[Mechanism]:
    """The class of a family; an unknown name is a :class:`ValueError`."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _BUILT_IN:
        known = ", ".join(sorted({*_BUILT_IN, *_REGISTERED}))
        raise ValueError(f"there is no family of mechanisms {name!r}; known are {known}")
    module, attribute = _BUILT_IN[name].split(":")
    found: type[Mechanism] = getattr(importlib.import_module(module), attribute)
    return found
