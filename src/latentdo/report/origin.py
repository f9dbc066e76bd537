"""Where a report came from: the paper, and the versions that decide about numbers."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Final

CITATION: Final = (
    "Gonçalo R. A. Faria, André F. T. Martins and Mário A. T. Figueiredo. Differentiable Causal Discovery Under "
    "Latent Interventions. First Conference on Causal Learning and Reasoning (CLeaR), 2022. arXiv:2203.02336."
)
_PACKAGES = ("latentdo", "numpy", "scipy", "pandas", "scikit-learn", "torch", "numba")


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide about numbers."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
