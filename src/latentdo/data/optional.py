"""Packages that not everybody has."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, package: str, extra: str, purpose: str) -> Any:
    """Import an optional package, or name the extra that brings it."""
    try:
        importlib.import_module(module.partition(".")[0])
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{purpose} needs {package}; install it with: pip install "latentdo[{extra}]"'
        ) from error
