"""The densities, shapes of noise, interventions and solvers there are: the one place that knows their names.

What the estimator accepts, the command line and the app offer, files may name and the documentation lists is read from
here. A new value is one record; :func:`latentdo.register_family` adds one at run time. Nothing heavy is imported, so
that ``latentdo --help`` need not wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

__all__ = ["DENSITY", "INTERVENTION", "NOISE", "OPTIONS", "SOLVER", "Choice", "Density", "Option", "Solver"]

EVERY_SOLVER: Final = ("search", "gradient", "paper")
EXPERIMENTAL: Final = ("gradient", "paper")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One value of an option.

    Parameters
    ----------
    name : str
        What users write, and results and files say.
    summary : str
        What it means: one phrase that can follow the name and a colon.
    solvers : tuple of str
        Solvers that take it.
    aliases : tuple of str
        Other names for it, with these solvers. An alias may be another choice's name with other solvers.
    """

    name: str
    summary: str
    solvers: tuple[str, ...] = EVERY_SOLVER
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Density(Choice):
    """A density: the shape of mechanisms and of their noise.

    Parameters
    ----------
    search : {"auto", "linear", "network", "rows"}, optional
        How the structural search fits it: by comparing others, from moments, by second-order steps on networks, or by
        the ``fit`` of a family of mechanisms on weighted rows.
    family : type or str, optional
        With ``search="rows"``, the family: a class, or ``"module:Class"`` to import it when it is needed.
    code : int, optional
        Number that stands for it in the files of the gradient solvers; never given to another.
    """

    search: Literal["auto", "linear", "network", "rows"] | None = None
    family: type | str | None = None
    code: int | None = None


@dataclass(frozen=True, kw_only=True)
class Solver(Choice):
    """A solver; ``resumes`` says whether it can go on from a checkpoint."""

    resumes: bool = False


C = TypeVar("C", bound=Choice)


class Option(Generic[C]):
    """An argument of the estimator that has one of several values.

    Parameters
    ----------
    name : str
        Of the argument.
    label : str
        What it is about, in two or three words.
    choices : iterable of Choice
        Its values, the default first.
    """

    def __init__(self, name: str, label: str, choices: Iterable[C]) -> None:
        self.name = name
        self.label = label
        self.choices = tuple(choices)

    def values(self, solver: str | None = None) -> tuple[str, ...]:
        """Everything a user may write, aliases included; with a solver, everything it takes."""
        taken = self._taken(solver)
        return tuple(dict.fromkeys(value for one in taken for value in (*one.aliases, one.name)))

    def _taken(self, solver: str | None) -> list[C]:
        return [one for one in self.choices if solver is None or solver in one.solvers]

    def names(self, solver: str | None = None) -> tuple[str, ...]:
        """The values proper, without aliases; with a solver, those it takes."""
        return tuple(one.name for one in self._taken(solver))

    def check(self, value: Any) -> None:
        """Refuse what is not a value of this option, whatever the solver; the message lists all of them."""
        if not isinstance(value, str) or value not in self.values():
            raise ValueError(f"{self.name}={value!r} is unknown; use one of {_quoted(self.values())}")

    def resolve(self, value: str, solver: str | None = None) -> C:
        """What a value means, to a solver if one is given; one that it does not take is a :class:`ValueError`.

        Examples
        --------
        >>> DENSITY.resolve("flow", "gradient").name, DENSITY.resolve("flow", "search").name
        ('flow', 'nonlinear-mixed')
        """
        self.check(value)
        taken = self._taken(solver)
        named = [one for one in taken if one.name == value] or [one for one in taken if value in one.aliases]
        if not named:
            raise ValueError(
                f"{self.name}={value!r} is not available with solver={solver!r}; use one of "
                f"{_quoted(self.values(solver))}"
            )
        return named[0]

    def add(self, choice: C, *, instead_of: C | None = None) -> None:
        """Accept one more value, or another in the place of one; a name can be taken only once."""
        kept = [one for one in self.choices if one is not instead_of]
        if any(choice.name in (one.name, *one.aliases) for one in kept):
            raise ValueError(f"there is a {self.name} {choice.name!r} already; choose another name")
        self.choices = (*kept, choice)

    @property
    def help(self) -> str:
        """All values with their meanings, for people."""
        names = self.names()
        also = {one.name: [alias for alias in one.aliases if alias not in names] for one in self.choices}
        meanings = "; ".join(
            f"{', '.join([one.name, *also[one.name]])}: {one.summary}" for one in self.choices
        )
        return f"{self.label}. {meanings}. Default: {self.values()[0]}."


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(map(repr, values))


DENSITY: Final = Option(
    "density",
    "Shape of the effects",
    (
        Density(
            name="auto",
            summary="straight lines, curves with noise of any shape, or networks, whichever the data support",
            solvers=("search",),
            search="auto",
        ),
        Density(
            name="linear",
            summary="straight lines, which take seconds and hundreds of rows",
            aliases=("auto",),
            search="linear",
            code=0,
        ),
        Density(
            name="additive",
            summary="sums of smooth curves, one per cause, with noise of any shape",
            solvers=("search",),
            search="rows",
            family="latentdo.model.mechanisms.additive:AdditiveMechanism",
        ),
        Density(
            name="student",
            summary="straight lines with heavy-tailed noise, Student's t, for tables with outliers",
            solvers=("search",),
            search="rows",
            family="latentdo.model.mechanisms.student:StudentMechanism",
        ),
        Density(
            name="nonlinear",
            summary="small networks with Gaussian noise, which take a minute and thousands of rows",
            search="network",
            code=1,
        ),
        Density(
            name="nonlinear-mixed",
            summary="small networks whose noise is a mixture of Gaussians, and so of nearly any shape",
            solvers=("search",),
            aliases=("flow",),
            search="network",
        ),
        Density(
            name="flow",
            summary="normalizing flows, the paper's densities of any shape (with search it means nonlinear-mixed)",
            solvers=EXPERIMENTAL,
            code=2,
        ),
    ),
)

NOISE: Final = Option(
    "noise",
    "Shape of the noise",
    (
        Choice(
            name="auto", summary="Gaussian, or of any shape where some mechanism of a Gaussian fit needs it"
        ),
        Choice(
            name="gaussian",
            summary="Gaussian in every mechanism, which is fastest, but may mistake other shapes for regimes",
            solvers=("search",),
        ),
        Choice(
            name="any",
            summary="a mixture of a few Gaussians in every mechanism, as many as the evidence supports",
            solvers=("search",),
        ),
    ),
)

INTERVENTION: Final = Option(
    "intervention",
    "Kind of interventions",
    (
        Choice(name="auto", summary="the score decides for every target", solvers=("search",)),
        Choice(name="perfect", summary="an intervened variable ignores its causes, as after a knock-out"),
        Choice(
            name="imperfect",
            summary="an intervened variable may still use its causes, as after a knock-down",
            aliases=("auto",),
        ),
    ),
)

SOLVER: Final = Option(
    "solver",
    "How the model is fitted",
    (
        Solver(
            name="search",
            summary="structural search, the fastest and most accurate in all our benchmarks",
            aliases=("auto",),
        ),
        Solver(
            name="gradient",
            summary="the paper's model by gradients, with exact expectations (experimental)",
            resumes=True,
        ),
        Solver(
            name="paper",
            summary="the published algorithm (experimental)",
            resumes=True,
        ),
    ),
)

OPTIONS: Final[dict[str, Option[Any]]] = {one.name: one for one in (DENSITY, NOISE, INTERVENTION, SOLVER)}
"""Every option by the name of its argument."""
