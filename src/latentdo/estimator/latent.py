"""The estimator: fit, predict, score, save, load."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from latentdo.data import Dataset, DataWarning, Missing
from latentdo.data.kinds import as_words, describe_kinds
from latentdo.data.missing import missing_by_regime
from latentdo.estimator.arguments import (
    HiddenParameter,
    check_arguments,
    check_continuous,
    check_number_of_labels,
    make_request,
    plain_arguments,
    seed_of,
)
from latentdo.estimator.messages import (
    STREAMED_AS_THEY_ARE,
    at_the_limit,
    contested,
    noting,
    past_is_left,
    print_step,
    warn_of_skew,
)
from latentdo.estimator.queries import Questions
from latentdo.files import CHECKPOINT_SECONDS
from latentdo.graphs.constraints import Constraints
from latentdo.model.assignment import Groups
from latentdo.model.incomplete import assign_seen
from latentdo.model.mechanisms.registry import own_family, register_family
from latentdo.model.series import Series
from latentdo.notebook import WordyTable
from latentdo.notices import is_part, warn
from latentdo.ranks import Ranks
from latentdo.result import FitResult, Rows
from latentdo.solvers.dispatch import Progress, solve, solve_stream

Array = NDArray[np.float64]

_OWN_FAMILY = "own_family"  # in pickles only
_NOTED = ("skew", "shared values", "near copies")  # checks that look at columns alone, and warn before a fit


class LatentInterventionDAG(Questions, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Causal graph, hidden interventions and their targets from one table.

    The rows are a mixture of regimes; every regime is the same structural causal model with the mechanisms of a few
    variables, its *targets*, replaced. Which row belongs to which regime, how many regimes there are and what they
    target need not be known.

    Parameters
    ----------
    density : {"auto", "linear", "additive", "student", "nonlinear", "flow", "nonlinear-mixed"} or a registered family
        Family of the conditional densities: straight lines, sums of smooth curves ("additive"), lines with heavy-tailed
        noise ("student"), small networks with Gaussian noise, or networks with noise of any shape. The latter are
        "nonlinear-mixed" under "search", with mixtures of Gaussians, and "flow" under "gradient" and "paper", with
        normalizing flows; under "search" "flow" stands for "nonlinear-mixed". "auto" fits lines with Gaussian noise. If
        their noise has another shape, curves with noise of any shape are fitted, a line where that is enough; and where
        a screen finds that a network would explain more, networks too. Evidence decides. Under "gradient" and "paper"
        it means linear.
    noise : {"auto", "gaussian", "any"}
        Shape of the noise around lines and networks, in all regimes. "gaussian" is the fastest; "any" is a mixture of a
        few Gaussians. "auto" fits lines with Gaussian noise, and again with noise of any shape if one of their
        mechanisms needs it; the noise of networks follows from their name. With "nonlinear", "any" means
        "nonlinear-mixed", and with the latter, "gaussian" means "nonlinear". Custom families, "gradient" and "paper"
        have noise of their own, and accept "auto" only; streamed rows are fitted with Gaussian noise.
    kinds : dict from column to kind, optional
        Kinds of columns that should not be inferred from the table: "continuous", "binary", "count" or "categorical",
        as in ``{"clicks": "count"}``. Inferred as discrete are booleans, numbers with two values, text and pandas
        categories with few levels, and whole numbers from 0 on that are distributed like counts; ``result_.kinds`` says
        what was inferred. With ``solver="search"``, columns that are not continuous need lines or curves, not networks.
    lags : {"auto", 0, 1, 2}
        With ``time`` or ``series``: on how many previous rows a row may depend, each variable on its own past and on
        that of others where the evidence supports it. "auto" is up to two, unless regimes alone explain why
        neighbouring rows are alike.
    seasonality : "auto", None, a length of a cycle, or several
        With ``time``: cycles, which are not interventions, in the unit of ``time``, or "hour", "day", "week", "year"
        for dates. "auto" is days and weeks, where dates cover at least two of them. Cycles that the evidence does not
        support are left out.
    intervention : {"auto", "perfect", "imperfect"}
        Whether an intervened variable ignores its parents, may still use them, or whether the score decides that
        for every target.
    solver : {"auto", "search", "gradient", "paper"}
        How the model is fitted: structural search, gradients with exact expectations over regimes and targets
        (experimental), or the published algorithm (experimental). "auto" is "search".
    max_regimes : int
        Largest number of regimes, the reference included. The number itself is found. 1 means that all rows are
        observational.
    edge_prior : float or array [d, d], optional
        Prior log-odds of every edge on top of its parameter cost; None for the default.
    target_prior : float, optional
        Prior log-odds of every target on top of its parameter cost; None for the default.
    forbidden, required : sequence of (cause, effect), optional
        Edges that must not, or must, be in the graph.
    tiers : sequence of sequences of names, optional
        Variables from early to late: nothing later causes anything earlier.
    max_parents : int, optional
        Largest number of parents of any variable.
    observational : hashable
        Which label is observational, where regimes are given; None if there is none.
    transform : {"none", "log", "log1p", "rank-gaussian"}
        Applied to every continuous column before standardising. Read it back with ``get_params()["transform"]``.
    concentration : float, optional
        Concentration (alpha) of the Dirichlet process over regimes; None for the default. Gradient solvers only.
    learning_rate : float, optional
        Learning rate of the gradient solvers; None for the default.
    missing : {"error", "drop", "model"}
        What to do about rows with missing values: refuse them, leave them out, or keep them and sum missing cells out.
        "model" assumes that cells are missing at random: given what was measured in a row, whether a cell is missing
        does not depend on its value. New rows (``predict``, ``score``) may then lack cells, too.
    resamples : int
        Number of half-samples over which probabilities of edges and targets are averaged, each started from the end of
        the fit; 0 for the plain posterior. Not used for networks, nor for more than 20 000 rows.
    n_init : int
        Largest number of different starts. Structural search, with lines and with networks, stops earlier if two agree;
        "gradient" uses a quarter of this number for networks, and "paper" has one start.
    random_state : int, RandomState or None
        Source of randomness. An int makes the fit reproducible.
    device : str
        Where the gradient solvers compute; the search uses the CPU.
    n_jobs : int
        Starts, and with networks fits of single variables, that run in parallel; -1 for all processors, or for all
        workers of a cluster within ``joblib.parallel_config``.
    checkpoint : str or Path, optional
        File (the beginning of its name) to which the gradient solvers write their state at intervals and when they are
        interrupted; the same fit to the same rows then continues from there. The search keeps no intermediate states.
    checkpoint_seconds : float
        Longest time between two checkpoints, which are frequent at first; 0 for one after every step.
    verbose : bool
        Print every step.

    Attributes
    ----------
    adjacency_ : DataFrame [d, d]
        0/1, always a DAG; row causes column.
    lagged_adjacency_ : DataFrame [lags d, d] or None
        With ``time`` or ``series``: which variables cause which one or two rows later, 0/1, indexed by lag and cause.
        A variable's own past is among them.
    edge_probabilities_, ancestor_probabilities_ : DataFrame [d, d]
        Probability of every edge, and of every causal path: posteriors averaged over half-samples. Where a check puts
        edges in doubt, see :meth:`falsify`, none is above 0.6.
    adjacency_probabilities_, direction_probabilities_ : DataFrame [d, d]
        Probability that two variables are connected, and of each direction if they are.
    model_edge_probabilities_ : DataFrame [d, d]
        The plain posterior of every edge, given this one fit.
    ambiguous_edges_ : DataFrame
        Pairs whose connection or direction is not settled by the data.
    regimes_ : ndarray [n]
        Index of the most probable regime of every row; 0 is the reference.
    responsibilities_ : ndarray [n, n_regimes_]
        Posterior probability of every regime.
    regime_names_, n_regimes_, regime_weights_, has_observational_
        Names, number and sizes of the regimes (shares of rows, or of groups), and whether the reference has rows.
    duration_ : float or None
        With ``time`` or ``series``: the time after which a regime is drawn anew, in the unit of ``time``. Regime *k*
        lasts ``duration_ / (1 - regime_weights_[k])`` on average.
    segments_ : DataFrame or None
        With ``time`` or ``series``: one row per stretch of time in a regime other than the reference: series,
        start, end, rows, regime, probability, its targets ranked by how much they explain there (in nats), and the
        variables downstream that followed.
    targets_, target_probabilities_ : DataFrame [n_regimes_, d]
        What each regime changed, and with which probability. Row 0 is zero.
    hidden_cause_hints_ : DataFrame
        Pairs of variables that move together within regimes as if a hidden variable moved both, the strongest first.
        Do not read arrows between them as causal; see :meth:`falsify`.
    evidence_ : float
        Penalised log-likelihood by which fits are compared.
    converged_ : bool
    history_ : list of dicts
        What was done, step by step.
    result_ : FitResult
        The whole result, frozen.
    sample_ : DataFrame [n, d]
        After ``fit_stream``: the rows that ``regimes_`` and ``responsibilities_`` are about.

    Examples
    --------
    >>> from latentdo import LatentInterventionDAG, simulate
    >>> data = simulate(n_variables=3, edges_per_node=1, n_samples=1200, random_state=1)
    >>> est = LatentInterventionDAG(random_state=0).fit(data.X)
    >>> bool((est.adjacency_.to_numpy() == data.adjacency.to_numpy()).all())
    True
    """

    transform = HiddenParameter()

    def __init__(
        self,
        density: str = "auto",
        intervention: str = "auto",
        solver: str = "auto",
        max_regimes: int = 16,
        edge_prior: float | ArrayLike | None = None,
        *,
        noise: str = "auto",
        kinds: Mapping[str, str] | None = None,
        lags: int | str = "auto",
        seasonality: str | float | Sequence[str | float] | None = "auto",
        target_prior: float | None = None,
        concentration: float | None = None,
        learning_rate: float | None = None,
        forbidden: Sequence[tuple[str, str]] | None = None,
        required: Sequence[tuple[str, str]] | None = None,
        tiers: Sequence[Sequence[str]] | None = None,
        max_parents: int | None = None,
        observational: Hashable = 0,
        transform: str = "none",
        missing: Missing = "error",
        resamples: int = 4,
        n_init: int = 4,
        random_state: Any = 0,
        device: str = "cpu",
        n_jobs: int = 1,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        verbose: bool = False,
    ) -> None:
        self.density = density
        self.noise = noise
        self.kinds = kinds
        self.lags = lags
        self.seasonality = seasonality
        self.intervention = intervention
        self.solver = solver
        self.max_regimes = max_regimes
        self.edge_prior = edge_prior
        self.target_prior = target_prior
        self.concentration = concentration
        self.learning_rate = learning_rate
        self.forbidden = forbidden
        self.required = required
        self.tiers = tiers
        self.max_parents = max_parents
        self.observational = observational
        self.transform = transform
        self.missing = missing
        self.resamples = resamples
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.verbose = verbose

    def __getstate__(self) -> dict[str, Any]:
        """With the family that the density names, if it is a user's own: a parallel worker has not registered it."""
        return {**super().__getstate__(), _OWN_FAMILY: own_family(self.density)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Register what :meth:`__getstate__` added."""
        family = state.pop(_OWN_FAMILY, None)
        if family is not None:
            register_family(family)
        super().__setstate__(state)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (no nested estimators)
        """Constructor arguments by name."""
        return {name: self.__dict__[name] for name in self._get_param_names()}

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        regimes: Any = None,
        targets: Any = None,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Find graph, regimes and targets.

        Parameters
        ----------
        X : table or array [n, d]
            Rows in the user's units.
        y
            Ignored, with a warning; accepted because scikit-learn's pipelines pass it.
        regimes : sequence of n labels, optional
            What is known of the regimes; -1, None or NaN where unknown. All known: only targets and graph are found.
        targets : dict, table or matrix, optional
            What each regime targets, if that is known too.
        groups : sequence of n labels, optional
            Rows with the same label (a plate, a run, an animal) share one regime, which they are assigned to together:
            shifts too weak to show in single rows then show. ``regime_weights_`` are shares of groups, and a row with a
            label in ``regimes`` gives it to its group. -1, None or NaN: a row on its own. Only with
            ``solver="search"``.
        time : sequence of n numbers, dates or timestamps, optional
            When each row was measured, in any order. Neighbours then tend to share their regime: it stays what it is
            with a chance that falls with the gap, and is otherwise drawn anew. How long it stays is found
            (``duration_``, in the unit of ``time``; seconds for dates). Only with ``solver="search"``, and not together
            with ``groups``.
        series : sequence of n labels, optional
            Rows of different series are no neighbours. Without ``time``, the rows of a series are in order.
        batch : sequence of n labels, optional
            Batches (plates, days, sites, devices) may differ in level and scale of all variables for reasons that are
            neither causes nor interventions. Both are taken away. A regime that only one batch has is said to be one.
        sample_weight : sequence of n numbers, or a number, optional
            How often each row counts, as in scikit-learn: a row of weight 2 counts like two equal rows, and one of
            weight 0 is left out, so that ``regimes_`` and ``responsibilities_`` have no entry for it (``predict`` has).
            The evidence counts rows by their weights; weights that only compare rows should therefore add up to the
            number of rows. Only with ``solver="search"``, and not for networks, which ``density="auto"`` then does not
            try.
        offset : sequence of n numbers, optional
            What the counts of each row are in proportion to, above 0: its library size, hours of observation, persons
            at risk. Its logarithm enters every count with a coefficient of one, in every regime; counts cause by their
            rate. It is no variable. Only for tables with counts, and with ``solver="search"``.
        progress : callable, optional
            Called with a dict after every step.
        """
        parameters = self.get_params()
        check_arguments(parameters)
        if y is not None:
            message = "y is ignored; if it holds the conditions of the rows, pass them as regimes=."
            warn(message, DataWarning, stacklevel=2)
        with noting() as notes:
            dataset = Dataset.from_table(
                X,
                regimes=regimes,
                targets=targets,
                groups=groups,
                time=time,
                series=series,
                batch=batch,
                sample_weight=sample_weight,
                offset=offset,
                observational=self.observational,
                transform=parameters["transform"],
                kinds=self.kinds,
                missing=parameters["missing"],
            )
        check_number_of_labels(dataset, self.max_regimes)
        if dataset.is_mixed:
            notes.append(describe_kinds(dataset.kinds, dataset.columns))
        if left := past_is_left(dataset):
            notes.append(left)
            warn(left, DataWarning, stacklevel=2)
        warn_of_skew(dataset)
        report = progress or (print_step if self.verbose else None)
        request = make_request(parameters, dataset.n_variables)
        if request.chosen_solver == "search" and self.device != "cpu":
            notes.append(f"device={self.device!r} is not used: solver='search' computes on the CPU.")
            warn(notes[-1], UserWarning, stacklevel=2)
        if dataset.weight is not None and request.chosen_density.search == "auto":
            notes.append("Rows with weights are fitted with lines and curves only; networks were not tried.")
        result, fitted = solve(dataset, request, report)
        self._conclude(result, dataset, notes, fitted, request.random_state)
        if isinstance(X, pd.DataFrame) or hasattr(X, "columns"):
            self.feature_names_in_ = np.array(dataset.columns, dtype=object)
        return self

    def fit_stream(
        self,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        regimes: str | None = None,
        targets: Any = None,
        groups: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Find graph, regimes and targets in a table larger than memory; lines with Gaussian noise only.

        The structure is searched on 20 000 rows, then graph, targets and mechanisms are settled in a few passes over
        all rows, ``n_jobs`` parts at a time, each rank its share under ``torchrun``. ``regimes_`` and
        ``responsibilities_`` are those of the 20 000 rows, which ``sample_`` holds; its index counts through all rows.
        ``predict`` gives the regimes of any others. Rows of a group may lie anywhere: with ``groups`` every pass reads
        all rows twice, first to tell the regimes of the groups, which are also those of their rows in ``sample_``.

        Parameters
        ----------
        source : path, Dask table, or sequence of tables
            A Parquet file, or a folder or list of them, is read by row groups.
        columns : sequence of str, optional
            Use only these variables.
        regimes : str, optional
            Name of the column that says what is known of the regimes; -1, None or NaN where unknown.
        targets : dict, table or matrix, optional
            What each regime targets, if that is known too; as for ``fit``.
        groups : str, optional
            Name of the column that says which rows share their regime; -1, None or NaN for rows on their own.
        progress : callable, optional
            Called with a dict after every step.
        """
        from latentdo.streaming import open_stream

        parameters = self.get_params()
        check_arguments(parameters)
        with noting() as notes:
            stream = open_stream(
                source,
                columns=columns,
                regimes=regimes,
                targets=targets,
                groups=groups,
                observational=self.observational,
                transform=parameters["transform"],
                missing=parameters["missing"],
                random_state=seed_of(self.random_state),
                n_jobs=effective_n_jobs(self.n_jobs),
                ranks=Ranks.current(),
            )
        sample = stream.sample
        check_continuous(sample, self.kinds)
        check_number_of_labels(sample, self.max_regimes)
        warn_of_skew(sample)
        report = progress or (print_step if self.verbose else None)
        request = make_request(parameters, sample.n_variables)
        if self.density == "auto":
            notes.append("Streamed rows are fitted with straight lines only; curves were not tried.")
        if any(sample.atoms.rounded) or sample.atoms.has_masses:
            notes.append(STREAMED_AS_THEY_ARE)
            warn(STREAMED_AS_THEY_ARE, DataWarning, stacklevel=2)
        result = solve_stream(sample, stream.parts, request, report, stream.group_regimes)
        result = replace(result, data_hash=stream.content_hash)
        self._conclude(result, sample, notes, sample, request.random_state, streamed_rows=stream.n_rows)
        self.feature_names_in_ = np.array(result.columns, dtype=object)
        self.sample_ = sample.to_frame().set_axis(sample.row_index, axis=0)
        return self

    def _conclude(
        self,
        result: FitResult,
        dataset: Dataset,
        notes: list[str],
        fitted: Dataset,
        seed: int,
        **more: int,
    ) -> None:
        """Keep the result together with what was asked for and what is to be said about it.

        ``fitted`` are the rows as they were fitted, with hidden and missing values drawn.
        """
        try:
            result.check()
        except ValueError as error:
            raise ValueError(
                f"The fit broke down numerically: its {error}. Look for columns of extreme values, or for extreme "
                "edge_prior, target_prior, concentration or learning_rate."
            ) from error
        free = dataset.regimes is None or bool((dataset.regimes < 0).any())
        if free and (capped := at_the_limit(result, self.max_regimes)):
            notes.append(capped)
            warn(capped, UserWarning, stacklevel=3)
        kept = {name: v for name, v in self.get_params().items() if not name.startswith("checkpoint")}
        kept["kinds"] = as_words(self.kinds)
        configuration = {**plain_arguments(kept), **more}
        if dataset.regimes is not None:
            configuration["labelled_rows"] = int((dataset.regimes >= 0).sum())
            configuration["targets_given"] = dataset.targets is not None
        if dataset.groups is not None:
            configuration["groups"] = dataset.n_groups
        if dataset.time is not None:
            series = dataset.where.series
            configuration["series"] = 1 if series is None else int(np.unique(series).size)
        if dataset.where.batch is not None:
            configuration["batches"] = len(dataset.where.batch_names)
        if dataset.weight is not None:
            configuration["weight"] = dataset.total
        if dataset.where.offset is not None:
            configuration["typical_offset"] = dataset.preprocessor.exposure
        if zeros := dataset.atoms.zeros:
            configuration["zeros"] = [dataset.columns[j] for j in zeros]
        if dataset.missing.any():
            configuration["missing_cells"] = int(dataset.missing.sum())
            regimes = (result.responsibilities, result.regime_names)
            if uneven := missing_by_regime(dataset.x, dataset.columns, *regimes, dataset.blocks):
                notes.append(uneven)
                warn(uneven, DataWarning, stacklevel=3)
        self._labels, self._dataset, self._fitted = dataset.labels(), dataset, fitted
        whole = np.where(dataset.missing, fitted.x, dataset.x)
        result = self._with_segments(result, dataset, whole)
        result = self._with_checks(result, dataset, fitted, seed)
        said = (*self._doubts(result), *notes, *result.warnings, *contested(result))
        self._adopt(replace(result, configuration=configuration, warnings=said))
        if result.status != "converged":
            verb = "was" if result.status == "interrupted" else "has"
            warn(f"the fit {verb} {result.status}: {result.message}", ConvergenceWarning, stacklevel=3)

    def _with_checks(self, result: FitResult, dataset: Dataset, fitted: Dataset, seed: int) -> FitResult:
        """The same result with what the rows say against it, and no surer than that allows."""
        from latentdo.checks import check_fit, doubted

        if result.status == "interrupted" or is_part():
            return result
        try:
            found = check_fit(result, dataset, fitted, seed)
        except KeyboardInterrupt:
            return replace(result, status="interrupted", message="the checks did not run")
        known = Constraints.build(
            result.columns, forbidden=self.forbidden, required=self.required, tiers=self.tiers
        )
        edges, ancestors = doubted(result, found.checks, known)
        plain = result.model_edge_probabilities
        if plain is None and not np.array_equal(edges, result.edge_probabilities):
            plain = result.edge_probabilities
        return replace(
            result,
            model_edge_probabilities=plain,
            edge_probabilities=edges,
            ancestor_probabilities=ancestors,
            checks=tuple(one.to_dict() for one in found.checks),
            hints=tuple(one._asdict() for one in found.hints),
        )

    @staticmethod
    def _doubts(result: FitResult) -> list[str]:
        """What checks have against the fit, and warn of it; what was warned of before the fit is not said twice."""
        from latentdo.checks import abstention

        failed = [one for one in result.checks if one["failed"]]
        first = abstention(result) if failed else []
        for words in [*first, *(one["words"] for one in failed if one["check"] not in _NOTED)]:
            warn(words, DataWarning, stacklevel=4)
        return [*first, *(one["words"] for one in failed)]

    @staticmethod
    def _with_segments(result: FitResult, dataset: Dataset, whole: Array) -> FitResult:
        """The same result with what regimes do to variables, and when."""
        from latentdo.segments import find_segments, weigh_targets

        where = dataset.where
        units = Groups.of(None, where.weight)
        if where.time is not None:
            units = Series.by_time(where.time, where.series, dataset.n_rows, where.weight)
        rows = result.read(whole, where, units)
        explained, moved = weigh_targets(result.model, rows, result.responsibilities, result.kinds)
        segments = None if where.time is None else find_segments(result, rows)
        return replace(result, explained=explained, moved=moved, segments=segments)

    def predict(
        self,
        X: Any,
        *,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        offset: Any = None,
    ) -> NDArray[np.int64]:
        """Most probable regime of new rows, ``[n]``; rows of a group, see :meth:`fit`, have one together.

        If counts were fitted with an ``offset``, new rows need theirs.
        """
        found = self.predict_proba(X, groups=groups, time=time, series=series, batch=batch, offset=offset)
        return np.asarray(found.argmax(axis=1), dtype=np.int64)

    def predict_proba(
        self,
        X: Any,
        *,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        offset: Any = None,
    ) -> Array:
        """Posterior probability of every regime for new rows, ``[n, n_regimes_]``; rows of a group carry that of it.

        With ``time`` or ``series``, see :meth:`fit`, given all rows that are passed, earlier and later ones.

        Where zeros of the fitted table hid other values, zeros of new rows do, and say nothing. So do missing cells,
        with ``missing="model"``; a row of nothing else has the weights of the regimes.
        """
        rows = self._read(X, groups=groups, time=time, series=series, batch=batch, offset=offset)
        zeros = np.isin(self.result_.columns, self.result_.configuration.get("zeros", []))
        z = rows.without((rows.x == 0.0) & zeros)
        return assign_seen(self.result_.model, z, units=rows.units).responsibilities

    def score_samples(
        self,
        X: Any,
        *,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        offset: Any = None,
    ) -> Array:
        """Log-density of new rows in the user's units, regimes and missing cells summed out, ``[n]``.

        The rows of a group are not independent given the model, because they share an unknown regime: the
        log-density is that of the group, of which each row gets an equal part. In a series it is that of a row given
        the rows before.
        """
        return self._score_read(
            self._read(X, groups=groups, time=time, series=series, batch=batch, offset=offset)
        )

    def _score_read(self, rows: Rows) -> Array:
        """Log-density of rows in the user's units, as often as they count, ``[n]``."""
        density = assign_seen(self.result_.model, rows.z, units=rows.units).log_likelihood
        units = np.where(np.isnan(rows.x), 0.0, np.log(rows.unit))
        change = self.result_.preprocessor.log_jacobian(rows.x) - units.sum(axis=1)
        return np.asarray(density + rows.units.counted(change))

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> float:
        """Mean log-density a row in the user's units; with groups, that of all groups divided by the rows.

        A row of weight 2, see :meth:`fit`, counts like two.
        """
        rows = self._read(
            X,
            groups=groups,
            time=time,
            series=series,
            batch=batch,
            sample_weight=sample_weight,
            offset=offset,
        )
        found = self._score_read(rows)
        return float(found.sum() / rows.units.counted(np.ones(len(found))).sum())

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (safetensors and JSON, no pickle)."""
        from latentdo.persistence import save_result

        check_is_fitted(self, "result_")
        save_result(self.result_, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Restore an estimator that was written by :meth:`save`; nothing in the file is executed."""
        from latentdo.persistence import load_result

        result = load_result(path)
        known = {
            name: value for name, value in result.configuration.items() if name in cls._get_param_names()
        }
        estimator = cls(**known)
        estimator._adopt(result)
        estimator.feature_names_in_ = np.array(result.columns, dtype=object)
        return estimator

    def _adopt(self, result: FitResult) -> None:
        """Show a result as attributes."""
        self.result_ = result
        self.n_features_in_ = len(result.columns)
        self.adjacency_ = result.adjacency
        self.lagged_adjacency_ = result.lagged_adjacency
        self.edge_probabilities_ = result.edge_table()
        self.adjacency_probabilities_ = result.adjacency_probability_table()
        self.direction_probabilities_ = result.direction_probability_table()
        self.model_edge_probabilities_ = result.model_edge_table()
        self.ancestor_probabilities_ = result.ancestor_table()
        self.ambiguous_edges_ = result.ambiguous_edges()
        self.regimes_ = result.regimes
        self.responsibilities_ = result.responsibilities
        self.regime_names_ = result.regime_names
        self.n_regimes_ = result.n_regimes
        self.regime_weights_ = result.model.topology.weights
        self.duration_ = result.model.topology.duration or None
        self.segments_ = None if result.segments is None else WordyTable(result.segments)
        self.has_observational_ = result.has_observational
        self.targets_ = result.targets
        self.target_probabilities_ = result.target_table()
        self.hidden_cause_hints_ = result.hint_table()
        self.evidence_ = result.evidence
        self.converged_ = result.status == "converged"
        self.history_ = [dict(entry) for entry in result.history]
