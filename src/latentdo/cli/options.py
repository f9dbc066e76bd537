"""Options that several sub-commands share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from cyclopts import Parameter

__all__ = ["EstimatorOptions", "Flag", "ReadOptions"]

Flag = Annotated[bool, Parameter(negative="")]
Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
Pairs = Annotated[list[tuple[str, str]] | None, Parameter(negative="")]


@Parameter(name="*", group="Model and search (names and defaults of LatentInterventionDAG)")
@dataclass(frozen=True)
class EstimatorOptions:
    """What is passed on to the estimator; options that are not given keep its defaults.

    Parameters
    ----------
    density
        Family of conditional densities: "linear", "nonlinear", "flow" or "auto".
    intervention
        "perfect" (an intervened variable ignores its causes), "imperfect", or "auto".
    solver
        "auto", "search", "gradient" or "paper".
    max_regimes
        Most regimes to look for, the reference included; 1 means that no intervention is looked for.
    edge_prior
        Log-odds of an edge before seeing data.
    target_prior
        Log-odds of a target before seeing data.
    concentration
        Concentration of the Dirichlet process over regimes; gradient solvers only.
    learning_rate
        Learning rate of the gradient solvers.
    transform
        Applied to every column: "none", "log", "log1p" or "rank-gaussian".
    n_init
        Number of restarts.
    random_state
        Seed; the same seed gives the same result.
    n_jobs
        Processes for restarts.
    device
        "cpu" or "cuda".
    max_parents
        Most direct causes a variable may have.
    forbidden
        A pair CAUSE EFFECT that must not be an edge; may be repeated.
    required
        A pair CAUSE EFFECT that must be an edge; may be repeated.
    """

    density: str | None = None
    intervention: str | None = None
    solver: str | None = None
    max_regimes: int | None = None
    edge_prior: float | None = None
    target_prior: float | None = None
    concentration: float | None = None
    learning_rate: float | None = None
    transform: str | None = None
    n_init: int | None = None
    random_state: int | None = None
    n_jobs: int | None = None
    device: str | None = None
    max_parents: int | None = None
    forbidden: Pairs = None
    required: Pairs = None

    def given(self) -> dict[str, Any]:
        """Only what the user gave."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}


@Parameter(name="*", group="Reading the table")
@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    Parameters
    ----------
    columns
        Use only these variables.
    drop
        Use all variables but these.
    missing
        What to do about rows with missing values: "error" or "drop".
    separator
        Field separator of a text file, where the ending of its name does not tell.
    decimal
        Decimal sign of a text file.
    layer
        Layer of an .h5ad file to use instead of its X.
    encoding
        Encoding of a text file, for example latin-1.
    header
        Whether the first row of a text file holds names; without, the variables are X1, X2, ...
    """

    columns: Names = None
    drop: Names = None
    missing: Literal["error", "drop"] = "error"
    separator: str | None = None
    decimal: str = "."
    layer: str | None = None
    encoding: str = "utf-8"
    header: bool = True

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``read_table``."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        if given["separator"] in ("\\t", "tab"):  # a shell makes it hard to type the character itself
            given["separator"] = "\t"
        return given
