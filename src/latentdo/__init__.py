"""Causal discovery when the interventions were not recorded.

Names are imported when they are first used, so that ``latentdo --help`` does not wait for numerical libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from latentdo import forks as _forks  # noqa: F401  (must be there before anybody forks)

if TYPE_CHECKING:
    from latentdo import interop, metrics, plots
    from latentdo.bootstrap import BootstrapDAG
    from latentdo.datasets import load_sachs
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.model.mechanisms import ParametricFamily
    from latentdo.model.mechanisms.registry import register_family
    from latentdo.readers import read_table
    from latentdo.readers.knowledge import read_knowledge
    from latentdo.scm import simulate
    from latentdo.tuning import TunedDAG

__all__ = [
    "BootstrapDAG",
    "LatentInterventionDAG",
    "ParametricFamily",
    "TunedDAG",
    "interop",
    "load_sachs",
    "metrics",
    "plots",
    "read_knowledge",
    "read_table",
    "register_family",
    "simulate",
]
__version__ = "0.2.0"

_HOMES = {
    "BootstrapDAG": "latentdo.bootstrap",
    "LatentInterventionDAG": "latentdo.estimator",
    "ParametricFamily": "latentdo.model.mechanisms",
    "TunedDAG": "latentdo.tuning",
    "load_sachs": "latentdo.datasets",
    "read_knowledge": "latentdo.readers.knowledge",
    "read_table": "latentdo.readers",
    "register_family": "latentdo.model.mechanisms.registry",
    "simulate": "latentdo.scm",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in __all__:
        value = import_module(f"latentdo.{name}")
    else:
        raise AttributeError(f"module 'latentdo' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, for completion."""
    return [*globals(), *__all__]
