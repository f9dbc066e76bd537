"""The families of mechanisms there are: found by the name under which files hold them, and added by users."""

from __future__ import annotations

import importlib
from typing import Final, TypeVar

from latentdo.choices import DENSITY, Density
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import MechanismFamily

_OF_THE_SOLVERS: Final[dict[str, str]] = {
    "linear": "latentdo.model.mechanisms.linear:LinearMechanism",
    "network": "latentdo.model.mechanisms.network:NetworkMechanism",
    "neural": "latentdo.model.mechanisms.neural:NeuralMechanism",
    "binary": "latentdo.model.mechanisms.binary:BinaryMechanism",
    "count": "latentdo.model.mechanisms.count:CountMechanism",
    "exposed-count": "latentdo.model.mechanisms.exposed:ExposedCount",
    "categorical": "latentdo.model.mechanisms.categorical:CategoricalMechanism",
    "expanded": "latentdo.model.mechanisms.inputs:Expanded",
}
"""Families that are no densities by themselves: a solver of their own fits them, or they are for columns of a kind."""

F = TypeVar("F", bound=type[MechanismFamily])


def register_family(family: F) -> F:
    """Make a family of one's own a density: ``LatentInterventionDAG(density=family.family)``.

    One class does it all: fitted to rows by the search, saved and loaded, drawn from and reported like the families of
    the package. Register it before loading a file that holds it; parallel workers learn of it from the estimator. May
    be used as a decorator; running the definition again, as in a notebook, replaces it.

    Parameters
    ----------
    family : subclass of MechanismFamily, often of ParametricFamily
        Its ``family`` is the name, its ``summary`` a phrase about it.

    Raises
    ------
    TypeError
        If it is not such a class, or lacks one of its methods.
    ValueError
        If the name is taken, or files cannot hold it.
    """
    if not (isinstance(family, type) and issubclass(family, MechanismFamily)):
        raise TypeError(f"{family!r} must be a class that derives from MechanismFamily")
    if missing := sorted(getattr(family, "__abstractmethods__", ())):
        raise TypeError(f"{family.__name__} lacks {', '.join(missing)}")
    for attribute in ("family", "summary"):
        value = getattr(family, attribute, None)
        if not isinstance(value, str) or not value:
            raise ValueError(f"{family.__name__} needs a text {attribute!r}: its name, or a phrase about it")
    name = family.family
    if "." in name or name in _OF_THE_SOLVERS:
        raise ValueError(f"the name of a family must be a new word without dots, not {name!r}")
    earlier = [one for one in DENSITY.choices if one.name == name and _is_same(one.family, family)]
    choice = Density(name=name, summary=family.summary, solvers=("search",), search="rows", family=family)
    DENSITY.add(choice, instead_of=earlier[0] if earlier else None)
    return family


def _is_same(one: type | str | None, other: type) -> bool:
    """Whether two classes come from the same definition, which may have run twice."""
    return isinstance(one, type) and (one.__module__, one.__qualname__) == (
        other.__module__,
        other.__qualname__,
    )


def families() -> dict[str, type | str]:
    """Every family by the name under which files hold its mechanisms: a class, or where to import it from."""
    own = {one.name: one.family for one in DENSITY.choices if one.family is not None}
    return {**_OF_THE_SOLVERS, **own}


def own_family(density: object) -> type | None:
    """The class that a user registered as a density; none for those of the package, which every process knows."""
    found = [one.family for one in DENSITY.choices if one.name == density]
    return found[0] if found and isinstance(found[0], type) else None


def mechanism_class(name: str) -> type[Mechanism]:
    """The class of a family; an unknown name is a :class:`ValueError`."""
    known = families()
    if name not in known:
        raise ValueError(
            f"there is no family of mechanisms {name!r}, known are {', '.join(sorted(known))}; one of your own must be "
            "registered first, see latentdo.register_family"
        )
    return _imported(known[name])


def family_of(density: Density) -> type[MechanismFamily]:
    """The family that fits a density with ``search="rows"``."""
    if density.family is None:
        raise ValueError(f"density {density.name!r} is not fitted by a family")
    found = _imported(density.family)
    if not issubclass(found, MechanismFamily):
        raise TypeError(f"{found.__name__} cannot fit rows: it must derive from MechanismFamily")
    return found


def _imported(place: type | str) -> type[Mechanism]:
    if isinstance(place, str):
        module, attribute = place.split(":")
        place = getattr(importlib.import_module(module), attribute)
    return place  # type: ignore[return-value]  # of a Mechanism, as registered or as written here
