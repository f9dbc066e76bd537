"""Options shared by several sub-commands."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from latentdo.choices import DENSITY, INTERVENTION, NOISE, SOLVER
from latentdo.cli.values import kinds_in_lines, names_in_line

__all__ = [
    "CheckpointSeconds",
    "ConfigFile",
    "DaskAddress",
    "EstimatorOptions",
    "Flag",
    "KnownOptions",
    "ReadOptions",
]

ConfigFile = Annotated[
    Path | None,
    Parameter(
        help="TOML file with options; its keys are their names with underscores, as in max_regimes = 8."
    ),
]
CheckpointSeconds = Annotated[
    float,
    Parameter(
        help="Longest time between two checkpoints, which are frequent at first; 0 for one after every step."
    ),
]
DaskAddress = Annotated[
    str | None,
    Parameter(
        help="Address of a Dask scheduler, as in tcp://10.0.0.1:8786; everything parallel then runs there."
    ),
]
Flag = Annotated[bool, Parameter(negative="")]
Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="", json_list=False)]
Lines = Annotated[list[str] | None, Parameter(negative="", json_list=False)]
if TYPE_CHECKING:
    DensityName: TypeAlias = str | None
    NoiseName: TypeAlias = str | None
    InterventionName: TypeAlias = str | None
    SolverName: TypeAlias = str | None
else:
    DensityName, NoiseName, InterventionName, SolverName = (
        Annotated[Literal[option.values()] | None, Parameter(help=option.help)]
        for option in (DENSITY, NOISE, INTERVENTION, SOLVER)
    )
Pairs = Annotated[list[tuple[str, str]] | None, Parameter(negative="", json_list=False)]


@Parameter(name="*", group="Model and search (names and defaults of LatentInterventionDAG)")
@dataclass(frozen=True)
class EstimatorOptions:
    """Options passed to the estimator; those not given keep its defaults.

    Parameters
    ----------
    density, noise, intervention, solver
        See :mod:`latentdo.choices`, which also writes their help.
    lags
        With times or series: on how many previous rows a row may depend, 0 to 2. Default: auto, which is up to 2,
        unless regimes alone explain why neighbouring rows are alike.
    seasonality
        With times: cycles, which are not interventions: lengths in the unit of time, or hour, day, week, year for
        dates; none for no cycles. Default: auto, which is days and weeks, where dates cover at least two of them.
    max_regimes
        Largest number of regimes, including the reference; 1 means no interventions. Default: 16.
    edge_prior
        Log-odds of an edge before seeing data. Default: chosen by the solver; search takes minus half the logarithm of
        the number of variables.
    target_prior
        Log-odds of a target before seeing data. Default: chosen by the solver.
    concentration
        Concentration of the Dirichlet process over regimes; gradient solvers only.
    learning_rate
        Learning rate of the gradient solvers.
    transform
        Applied to every column before anything else. Default: none.
    resamples
        Number of half-samples over which probabilities are averaged; 0 for the plain posterior. Default: 4.
    n_init
        Largest number of starts of the linear search, which stops earlier if two agree. Default: 4.
    random_state
        Seed; the same seed gives the same result. Default: 0.
    n_jobs
        Number of parallel processes. Default: 1.
    device
        Where the gradient solvers compute, for example cuda. Default: cpu.
    max_parents
        Largest number of direct causes of any variable. Default: no limit.
    forbidden
        A pair CAUSE EFFECT that must not be an edge; may be repeated.
    required
        A pair CAUSE EFFECT that must be an edge; may be repeated.
    kinds
        Kinds of columns that should not be inferred: name=kind, separated by commas, as in
        clicks=count,failed=binary; kinds are continuous, binary, count, categorical. May be repeated.
    tiers
        Names of variables, separated by commas; may be repeated, from early to late: nothing later causes anything
        earlier.
    """

    density: DensityName = None
    noise: NoiseName = None
    intervention: InterventionName = None
    solver: SolverName = None
    lags: Literal["auto", "0", "1", "2"] | None = None
    seasonality: Names = None
    max_regimes: int | None = None
    edge_prior: float | None = None
    target_prior: float | None = None
    concentration: float | None = None
    learning_rate: float | None = None
    transform: Literal["none", "log", "log1p", "rank-gaussian"] | None = None
    resamples: int | None = None
    n_init: int | None = None
    random_state: int | None = None
    n_jobs: int | None = None
    device: str | None = None
    max_parents: int | None = None
    forbidden: Pairs = None
    required: Pairs = None
    tiers: Lines = None
    kinds: Lines = None

    @property
    def keeps_states(self) -> bool:
        """Whether the solver can go on from a checkpoint."""
        return self.solver is not None and SOLVER.resolve(self.solver).resumes

    def given(self) -> dict[str, Any]:
        """Only what the user gave."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        if self.tiers is not None:
            found["tiers"] = [names_in_line(line) for line in self.tiers]
        if self.kinds is not None:
            found["kinds"] = kinds_in_lines(self.kinds)
        if self.lags not in (None, "auto"):
            found["lags"] = int(self.lags)
        if self.seasonality is not None:
            found["seasonality"] = _cycles(self.seasonality)
        return found


@Parameter(name="*", group="What is known")
@dataclass(frozen=True)
class KnownOptions:
    """What the user knows beforehand, about rows and about the graph.

    Parameters
    ----------
    regime_column
        Column with the condition of each row, where it is known; empty cells are unknown.
    observational
        The condition without an intervention.
    targets
        CSV of 0/1 with one row per condition and one column per variable, if the targets of conditions are known.
    group_column
        Column that says which rows share one regime, such as those of a plate, a run or an animal; rows with an empty
        cell belong to no group. It is not used as a variable.
    time_column
        Column with the time of each row: numbers, dates or timestamps, in any order. Neighbouring rows then
        tend to share a regime. It is not used as a variable.
    series_column
        Column that says which series a row belongs to, where there are several. It is not used as a variable.
    batch_column
        Column with the batch (plate, day, site, device) in which a row was measured. Batches may differ in level and
        scale of every variable, which then counts neither as a cause nor as an intervention. It is not used as a
        variable.
    weight_column
        Column with the weight of each row, from 0: a row of weight 2 counts like two rows, and one of weight 0 is left
        out. It is not used as a variable.
    offset_column
        Column with the size to which the counts of each row are proportional, such as library size or hours of
        observation. Its logarithm enters every count with a coefficient of one. It is not used as a variable.
    id_column
        Column with a unique name for each row, used in all tables that are written. It is not used as a variable.
    knowledge
        TOML or CSV file about the graph: forbidden and required edges, tiers, prior log-odds of edges.
    """

    regime_column: str | None = None
    observational: str | None = None
    targets: Path | None = None
    group_column: str | None = None
    time_column: str | None = None
    series_column: str | None = None
    batch_column: str | None = None
    weight_column: str | None = None
    offset_column: str | None = None
    id_column: str | None = None
    knowledge: Path | None = None


@Parameter(name="*", group="How rows belong together")
@dataclass(frozen=True)
class RowOptions:
    """How the rows of another table belong together; as when the model was fitted.

    Parameters
    ----------
    group_column
        Column that says which rows share a regime: the rows of a group are then assigned jointly.
    time_column, series_column, batch_column
        Columns with time, series and batch of each row, as for `latentdo fit`: neighbouring rows then inform the
        assignment, and each row is compared with the values expected from its past, its hour and its batch.
    offset_column
        Column with the size to which the counts of each row are proportional, if the model was fitted with one.
    id_column
        Column with names of rows, used in the output.
    """

    group_column: str | None = None
    time_column: str | None = None
    series_column: str | None = None
    batch_column: str | None = None
    offset_column: str | None = None
    id_column: str | None = None

    def columns(self) -> dict[str, str | None]:
        """The columns by what they say of rows."""
        return {
            "groups": self.group_column,
            "time": self.time_column,
            "series": self.series_column,
            "batch": self.batch_column,
            "offset": self.offset_column,
            "ids": self.id_column,
        }


@Parameter(name="*", group="Reading the table")
@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    Parameters
    ----------
    columns
        Use only these variables.
    drop
        Use all variables except these; names are separated by spaces or commas.
    missing
        What to do with rows that have missing values: "error" to refuse them, "drop" to leave them out, or "model" to
        keep them and sum missing cells out, which assumes that cells are missing at random.
    separator
        Field separator of a text file, if it does not follow from the file extension.
    decimal
        Decimal sign of a text file.
    layer
        Layer of an .h5ad file to use instead of its X.
    encoding
        Encoding of a text file, for example latin-1.
    header
        Whether the first row of a text file holds names; if not, the variables are X1, X2, ...
    na_values
        Words of a text file that mean that a value is missing, as in --na-values=-; empty cells, NA, NaN and null
        always do.
    """

    columns: Names = None
    drop: Names = None
    missing: Literal["error", "drop", "model"] = "error"
    separator: str | None = None
    decimal: str = "."
    layer: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    na_values: Names = None

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``read_table``."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given["na_values"] = self.na_values or ()
        if given["separator"] in ("\\t", "tab"):  # a shell makes it hard to type the character itself
            given["separator"] = "\t"
        return given


def _cycles(words: list[str]) -> Any:
    """What ``seasonality`` of the estimator is, in words: names and numbers of cycles, "auto" or "none"."""
    if words in (["auto"], ["none"]):
        return None if words == ["none"] else "auto"
    return [_number(word) for word in words]


def _number(word: str) -> str | float:
    try:
        return float(word)
    except ValueError:
        return word
