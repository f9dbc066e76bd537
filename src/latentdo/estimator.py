"""LatentInterventionDAG: one table in; graph, regimes, targets and how sure out."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from latentdo.data import Dataset, DataWarning, validate_rows
from latentdo.result import FitResult
from latentdo.solvers.select import CHOICES, Progress, Request, solve, solve_stream

if TYPE_CHECKING:
    from latentdo.diagnosis import Diagnosis

Array = NDArray[np.float64]

_FAR = 1e15
"""Rows further out than this many standard deviations count as being there: squares of more overflow in float32."""


class _HiddenParameter:
    """A constructor argument that is not an attribute, because scikit-learn reads ``transform`` as a method."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        raise AttributeError(f"{self._name} is a constructor argument: see get_params()[{self._name!r}]")

    def __set__(self, instance: object, value: Any) -> None:
        instance.__dict__[self._name] = value


class LatentInterventionDAG(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Causal graph, hidden interventions and their targets from one table.

    The rows are a mixture of regimes; every regime is the same structural causal model with the mechanisms of a few
    variables, its *targets*, replaced. Which row belongs to which regime, how many regimes there are and what they
    target need not be known.

    Parameters
    ----------
    density : {"auto", "linear", "nonlinear", "flow"}
        Family of the conditional densities: linear, small networks with Gaussian noise, or networks with noise of
        any shape (mixtures of Gaussians under "search", normalizing flows under "gradient" and "paper"). "auto" is
        linear in this version.
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
        Applied to every column before standardising. Read it back with ``get_params()["transform"]``.
    concentration : float, optional
        Concentration (alpha) of the Dirichlet process over regimes; None for the default. Gradient solvers only.
    learning_rate : float, optional
        Learning rate of the gradient solvers; None for the default.
    missing : {"error", "drop"}
        What to do about rows with missing values.
    n_init : int
        Largest number of different starts; the search stops earlier if two agree, and networks take one for four.
    random_state : int, RandomState or None
        Source of randomness. An int makes the fit reproducible.
    device : str
        Where the gradient solvers compute; the search uses the CPU.
    n_jobs : int
        Starts that run in parallel; -1 for all processors, or for all workers of a cluster within
        ``joblib.parallel_config``.
    checkpoint : str or Path, optional
        File (the beginning of its name) to which the gradient solvers write their state every minute and when they are
        interrupted; the same fit to the same rows then goes on from there. The search keeps no states in between.
    verbose : bool
        Print every step.

    Attributes
    ----------
    adjacency_ : DataFrame [d, d]
        0/1, always a DAG; row causes column.
    edge_probabilities_, ancestor_probabilities_ : DataFrame [d, d]
        Posterior probability of every edge, and of every causal path.
    ambiguous_edges_ : DataFrame
        Pairs whose connection or direction the data leave open.
    regimes_ : ndarray [n]
        Index of the most probable regime of every row; 0 is the reference.
    responsibilities_ : ndarray [n, n_regimes_]
        Posterior probability of every regime.
    regime_names_, n_regimes_, regime_weights_, has_observational_
        Names, number and sizes of the regimes, and whether the reference has rows.
    targets_, target_probabilities_ : DataFrame [n_regimes_, d]
        What each regime changed, and how sure that is. Row 0 is zero.
    evidence_ : float
        Penalised log-likelihood by which fits are compared.
    converged_ : bool
    history_ : list of dicts
        What was done, step by step.
    result_ : FitResult
        All of it, frozen.

    Examples
    --------
    >>> from latentdo import LatentInterventionDAG, simulate
    >>> data = simulate(n_variables=3, edges_per_node=1, n_samples=1200, random_state=1)
    >>> est = LatentInterventionDAG(random_state=0).fit(data.X)
    >>> bool((est.adjacency_.to_numpy() == data.adjacency.to_numpy()).all())
    True
    """

    transform = _HiddenParameter()

    def __init__(
        self,
        density: str = "auto",
        intervention: str = "auto",
        solver: str = "auto",
        max_regimes: int = 16,
        edge_prior: float | ArrayLike | None = None,
        *,
        target_prior: float | None = None,
        concentration: float | None = None,
        learning_rate: float | None = None,
        forbidden: Sequence[tuple[str, str]] | None = None,
        required: Sequence[tuple[str, str]] | None = None,
        tiers: Sequence[Sequence[str]] | None = None,
        max_parents: int | None = None,
        observational: Hashable = 0,
        transform: str = "none",
        missing: str = "error",
        n_init: int = 4,
        random_state: Any = 0,
        device: str = "cpu",
        n_jobs: int = 1,
        checkpoint: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.density = density
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
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.verbose = verbose

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
        progress : callable, optional
            Called with a dict after every step.
        """
        self._check_arguments()
        parameters = self.get_params()
        if y is not None:
            message = "y is ignored; if it holds the conditions of the rows, pass them as regimes=."
            warnings.warn(message, DataWarning, stacklevel=2)
        with _noting() as notes:
            dataset = Dataset.from_table(
                X,
                regimes=regimes,
                targets=targets,
                observational=self.observational,
                transform=parameters["transform"],
                missing=parameters["missing"],
            )
        if self.max_regimes < dataset.n_regimes:
            raise ValueError(
                f"regimes has {dataset.n_regimes} labels (the reference included), but max_regimes={self.max_regimes}; "
                "raise max_regimes"
            )
        report = progress or (_print_step if self.verbose else None)
        request = self._request(dataset.n_variables)
        if request.chosen_solver == "search" and self.device != "cpu":
            notes.append(f"device={self.device!r} is not used: solver='search' computes on the CPU.")
            warnings.warn(notes[-1], UserWarning, stacklevel=2)
        result = solve(dataset, request, report)
        free = dataset.regimes is None or bool((dataset.regimes < 0).any())
        if free and (capped := _at_the_limit(result, self.max_regimes)):
            notes.append(capped)
            warnings.warn(capped, UserWarning, stacklevel=2)
        said = (*notes, *result.warnings, *_contested(result))
        configuration = _plain({name: value for name, value in parameters.items() if name != "checkpoint"})
        self._labels = dataset.labels()
        if dataset.regimes is not None:
            configuration["labelled_rows"] = int((dataset.regimes >= 0).sum())
            configuration["targets_given"] = dataset.targets is not None
        self._adopt(replace(result, configuration=configuration, warnings=said))
        if isinstance(X, pd.DataFrame) or hasattr(X, "columns"):
            self.feature_names_in_ = np.array(dataset.columns, dtype=object)
        if result.status != "converged":
            warnings.warn(f"the fit has {result.status}: {result.message}", ConvergenceWarning, stacklevel=2)
        return self

    def fit_stream(
        self, source: Any, *, columns: Sequence[str] | None = None, progress: Progress | None = None
    ) -> Self:
        """Find graph, regimes and targets in a table larger than memory; linear densities without labels.

        The structure is searched on 20 000 rows, then graph, targets and mechanisms are settled in a few passes over
        all rows, ``n_jobs`` parts at a time. ``regimes_`` and ``responsibilities_`` are those of the 20 000 rows;
        ``predict`` gives the regimes of any others.

        Parameters
        ----------
        source : path, Dask table, or sequence of tables
            A Parquet file, or a folder or list of them, is read by row groups.
        columns : sequence of str, optional
            Use only these variables.
        progress : callable, optional
            Called with a dict after every step.
        """
        from latentdo.streaming import open_stream

        self._check_arguments()
        parameters = self.get_params()
        stream = open_stream(
            source,
            columns=columns,
            transform=parameters["transform"],
            random_state=int(check_random_state(self.random_state).randint(2**31)),
            n_jobs=effective_n_jobs(self.n_jobs),
        )
        report = progress or (_print_step if self.verbose else None)
        result = solve_stream(stream.sample, stream.parts, self._request(stream.sample.n_variables), report)
        configuration = _plain({name: value for name, value in parameters.items() if name != "checkpoint"})
        configuration["streamed_rows"] = stream.n_rows
        said = (*result.warnings, *_contested(result))
        self._labels = None
        self._adopt(
            replace(result, configuration=configuration, warnings=said, data_hash=stream.content_hash)
        )
        self.feature_names_in_ = np.array(result.columns, dtype=object)
        if result.status != "converged":
            warnings.warn(f"the fit has {result.status}: {result.message}", ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Most probable regime of new rows, ``[n]``."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int64)

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of every regime for new rows, ``[n, n_regimes_]``."""
        _, z = self._standardise(X)
        return self.result_.model.responsibilities(z)

    def score_samples(self, X: Any) -> Array:
        """Log-density of new rows in the user's units, regimes summed out, ``[n]``."""
        x, z = self._standardise(X)
        return np.asarray(self.result_.model.score_samples(z) + self.result_.preprocessor.log_jacobian(x))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log-density a row in the user's units."""
        return float(self.score_samples(X).mean())

    def sample(
        self,
        n: int = 1,
        regime: Hashable = 0,
        do: Mapping[str, float] | None = None,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Rows drawn from the fitted model, in the user's units.

        Parameters
        ----------
        n : int
            Number of rows.
        regime : hashable
            Name (or index) of the regime to draw from; 0 is the reference.
        do : dict from variable to value, optional
            Variables set to a constant, on top of the regime.
        random_state : int, RandomState or None
            Source of randomness.
        """
        check_is_fitted(self, "result_")
        if n < 1:
            raise ValueError(f"n={n}: ask for at least one row")
        result = self.result_
        fixed = {}
        for name, value in (do or {}).items():
            if name not in result.columns:
                raise ValueError(
                    f"do names {name!r}, which is not a variable; they are {', '.join(result.columns)}"
                )
            if not isinstance(value, (int, float, np.integer, np.floating)) or not np.isfinite(value):
                raise ValueError(f"do sets {name!r} to {value!r}; use a finite number")
            fixed[result.columns.index(name)] = float(result.preprocessor.forward_column(name, value)[0])
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = result.model.sample(n, self._regime_index(regime), rng, fixed)
        return pd.DataFrame(result.preprocessor.inverse(z), columns=list(result.columns))

    def effect(
        self,
        cause: str,
        on: str | Sequence[str] | None = None,
        *,
        do: tuple[float, float] | None = None,
        shift: float | None = None,
        regime: Hashable = 0,
        level: float = 0.9,
        statistic: str = "mean",
        n: int = 10_000,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Total effect of changing one variable on others, in the user's units.

        Parameters
        ----------
        cause : str
            The variable that is changed.
        on : str or sequence of str, optional
            Where to look for the effect; every other variable by default.
        do : (float, float), optional
            Compare the worlds in which the cause is set to the first and to the second value.
        shift : float, optional
            Compare the world as it is with one in which the cause is larger by this much, whatever made it what it is.
            Without ``do`` and ``shift`` it is about one standard deviation of the cause.
        regime : hashable
            Name (or index) of the regime on top of which this happens.
        level : float
            Coverage of the intervals.
        statistic : {"mean", "median"}
            What is compared; the median is steadier under a logarithmic transform.
        n : int
            Number of rows drawn.
        random_state : int, RandomState or None
            Source of randomness.

        Returns
        -------
        DataFrame
            One row a variable. ``change`` is ``after - before``; ``low`` and ``high`` are its interval *given the
            graph*, NaN for families of densities without a formula; ``path_probability`` is the probability that there
            is any effect, summed over graphs. Where the graph has no path, the change is exactly zero.
        """
        from latentdo.effects import total_effects, usual_shift

        check_is_fitted(self, "result_")
        result = self.result_
        names = (
            [c for c in result.columns if c != cause]
            if on is None
            else [on]
            if isinstance(on, str)
            else list(on)
        )
        for name in (cause, *names):
            if name not in result.columns:
                raise ValueError(f"{name!r} is not a variable; they are {', '.join(result.columns)}")
        if do is not None and shift is not None:
            raise ValueError("do and shift were both given; choose one")
        if do is not None and (isinstance(do, str) or not hasattr(do, "__len__") or len(do) != 2):
            raise ValueError(f"do={do!r} must be two values of {cause!r}: from, to")
        for value in (*(do or ()), 0.0 if shift is None else shift):
            if not isinstance(value, (int, float, np.integer, np.floating)) or not np.isfinite(value):
                raise ValueError(f"{value!r} is not a value that {cause!r} could take; use a finite number")
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level!r} must lie between 0 and 1")
        if statistic not in ("mean", "median"):
            raise ValueError(f'statistic={statistic!r} is unknown; use "mean" or "median"')
        if n < 1:
            raise ValueError(f"n={n}: ask for at least one row")
        at = self._regime_index(regime)
        seed = int(check_random_state(random_state).randint(2**31))
        if do is None and shift is None:
            shift = usual_shift(result, cause, at, seed)
        start, stop = (None, None) if do is None else (float(do[0]), float(do[1]))
        table = total_effects(
            result,
            cause,
            names,
            start=start,
            stop=stop,
            shift=shift,
            regime=at,
            level=level,
            statistic=statistic,
            n=n,
            seed=seed,
        )
        words = f"{cause} {shift:+.4g}" if shift is not None else f"{cause} from {start:.4g} to {stop:.4g}"
        table.insert(0, "intervention", words)
        return table

    def explain(self, X: Any, *, against: Hashable | None = None, random_state: Any = 0) -> pd.DataFrame:
        """Why rows belong to their regimes: what each variable contributes, and what is unusual about it.

        Parameters
        ----------
        X : table, array [n, d], or one row (Series, dict, sequence of d numbers)
            Rows in the user's units.
        against : hashable, optional
            Name (or index) of the regime to compare with. By default the reference; for rows that belong to the
            reference, the most probable other regime.
        random_state : int, RandomState or None
            Source of randomness of the medians and tails, which are drawn.

        Returns
        -------
        DataFrame
            For every row one line a variable, the weightiest first, and one for the sizes of the regimes.
            ``log_ratio`` is how much more probable the value is (given its causes) in the row's regime than in the
            other one; these sum to the log odds of the two regimes. ``expected`` (median, and the range of 90 %) is
            what the reference mechanism gives for the row's own causes, ``tail`` how rarely it is this far off, and
            ``deviates`` marks tails below 1 %. ``target`` says whether the regime targets the variable.
        """
        from latentdo.effects import explain_rows

        check_is_fitted(self, "result_")
        if isinstance(X, pd.Series):
            X = X.to_frame().T.astype(np.float64)
        elif isinstance(X, Mapping):
            X = pd.DataFrame([X])
        elif not hasattr(X, "columns") and np.ndim(X) == 1:
            X = np.asarray(X)[None]
        x, z = self._standardise(X)
        rows = list(X.index) if isinstance(X, pd.DataFrame) else list(range(len(x)))
        other = None if against is None else self._regime_index(against)
        seed = int(check_random_state(random_state).randint(2**31))
        return explain_rows(self.result_, x, z, rows, against=other, seed=seed)

    def diagnose(
        self,
        n_repeats: int = 3,
        *,
        max_rows: int = 20_000,
        random_state: Any = 0,
        n_jobs: int | None = 1,
        progress: Progress | None = None,
    ) -> Diagnosis:
        """What data of this size can show: simulate from the fitted model, fit again, compare.

        It costs ``n_repeats`` further fits. Where the fit was given labels (and targets), so are the refits.

        Parameters
        ----------
        n_repeats : int
            Number of simulated tables.
        max_rows : int
            Largest size of a simulated table; up to that it has as many rows as were fitted.
        random_state : int, RandomState or None
            Source of randomness.
        n_jobs : int
            Refits that run in parallel.
        progress : callable, optional
            Called with a dict after every refit.

        Returns
        -------
        Diagnosis
            The expected edge error, the assignment ceiling, the regimes too close to separate and the edges that data
            of this size cannot show. A best case, because it takes the fitted model for the truth.
        """
        from latentdo.diagnosis import diagnose_fit

        check_is_fitted(self, "result_")
        for name, value in (("n_repeats", n_repeats), ("max_rows", max_rows)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number of at least 1")
        template = clone(self).set_params(verbose=False, checkpoint=None)
        if n_jobs not in (None, 1):
            template.set_params(n_jobs=1)
        return diagnose_fit(
            self.result_,
            template,
            labels=self._known_labels(),
            targets_given=bool(self.result_.configuration.get("targets_given", False)),
            n_repeats=int(n_repeats),
            max_rows=int(max_rows),
            seed=int(check_random_state(random_state).randint(2**31)),
            n_jobs=n_jobs,
            progress=progress,
        )

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
        self.edge_probabilities_ = result.edge_table()
        self.ancestor_probabilities_ = result.ancestor_table()
        self.ambiguous_edges_ = result.ambiguous_edges()
        self.regimes_ = result.regimes
        self.responsibilities_ = result.responsibilities
        self.regime_names_ = result.regime_names
        self.n_regimes_ = result.n_regimes
        self.regime_weights_ = result.model.topology.weights
        self.has_observational_ = result.has_observational
        self.targets_ = result.targets
        self.target_probabilities_ = result.target_table()
        self.evidence_ = result.evidence
        self.converged_ = result.status == "converged"
        self.history_ = [dict(entry) for entry in result.history]

    def _standardise(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "result_")
        x = validate_rows(X, self.result_.columns, estimator=type(self).__name__)
        with np.errstate(over="ignore"):
            z = self.result_.preprocessor.forward(x)
        return x, np.clip(z, -_FAR, _FAR)

    def _known_labels(self) -> list[Hashable | None] | None:
        """What ``fit`` was told of the regimes: a label a row, None where unknown; None if nothing."""
        if hasattr(self, "_labels"):
            return self._labels
        count = self.result_.configuration.get("labelled_rows", 0)
        if count == 0:
            return None
        if count == len(self.regimes_):
            return [self.regime_names_[k] for k in self.regimes_]
        raise ValueError(
            f"{count} of {len(self.regimes_)} rows had labels, and a saved model does not keep which; fit again"
        )

    def _regime_index(self, regime: Hashable) -> int:
        if regime in self.result_.regime_names:
            return self.result_.regime_names.index(regime)
        if isinstance(regime, (int, np.integer)) and 0 <= regime < self.n_regimes_:
            return int(regime)
        raise ValueError(
            f"regime {regime!r} does not exist; they are {', '.join(map(str, self.regime_names_))}"
        )

    def _check_arguments(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}")
        for name in ("max_regimes", "n_init"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number of at least 1")

        for name in ("n_jobs", "max_parents"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
                raise ValueError(f"{name}={value!r} must be a whole number, or None")
        for name in ("concentration", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0.0 < value < np.inf):
                raise ValueError(f"{name}={value!r} must be a positive number, or None for the default")
        value = self.target_prior
        if value is not None and not (_is_number(value) and np.isfinite(value)):
            raise ValueError(
                f"target_prior={value!r} must be a finite number (log-odds), or None for the default"
            )

    def _request(self, n_variables: int) -> Request:
        edge_prior = None
        if self.edge_prior is not None:
            try:
                edge_prior = np.asarray(self.edge_prior, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"edge_prior={self.edge_prior!r} must be a number or a matrix of numbers (log-odds), or None"
                ) from None
            if edge_prior.ndim and edge_prior.shape != (n_variables, n_variables):
                raise ValueError(
                    f"edge_prior has shape {edge_prior.shape}; use a number or a matrix [{n_variables}, {n_variables}]"
                )
            if np.isnan(edge_prior).any():
                raise ValueError("edge_prior contains NaN; use 0 where you have no opinion")
            if np.isinf(edge_prior).any():
                raise ValueError("edge_prior must be finite; certain edges belong in required= or forbidden=")
        return Request(
            density=self.density,
            intervention=self.intervention,
            solver=self.solver,
            max_regimes=int(self.max_regimes),
            edge_prior=edge_prior,
            target_prior=self.target_prior,
            concentration=self.concentration,
            learning_rate=self.learning_rate,
            forbidden=self.forbidden,
            required=self.required,
            tiers=self.tiers,
            max_parents=self.max_parents,
            n_init=int(self.n_init),
            random_state=int(check_random_state(self.random_state).randint(2**31)),
            device=self.device,
            n_jobs=effective_n_jobs(self.n_jobs),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            verbose=bool(self.verbose),
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@contextmanager
def _noting() -> Iterator[list[str]]:
    """Collect what is warned of, so that the result can repeat it, and warn the user all the same."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    for warning in caught:
        notes.append(str(warning.message))
        warnings.warn(warning.message, warning.category, stacklevel=4)  # the line that called fit


def _at_the_limit(result: FitResult, max_regimes: int) -> str:
    """What to say if ``max_regimes`` may have decided the number of regimes; empty if it has not."""
    if result.n_regimes >= max_regimes > 1:
        return (
            f"All of max_regimes={max_regimes} regimes are in use: there may be more. Fit again with a larger "
            "max_regimes to see whether the number grows."
        )
    most = max((int(entry.get("regimes", 1)) for entry in result.history), default=1)
    if result.n_regimes == 1 and most >= max_regimes > 1:
        return (
            f"The search filled all of max_regimes={max_regimes} regimes and then preferred a single one, because so "
            "few do not explain the rows well. Fit again with a larger max_regimes."
        )
    return ""


def _contested(result: FitResult) -> list[str]:
    """A sentence on edges of the graph that are less probable than their reverse or their absence."""
    edges = result.contested_edges()
    if edges.empty:
        return []
    shown = "; ".join(
        f"{cause} -> {effect} {forward:.0%}, reversed {backward:.0%}, absent {absent:.0%}"
        for cause, effect, forward, backward, absent in edges.head(5).itertuples(index=False, name=None)
    )
    more = f"; and {len(edges) - 5} more" if len(edges) > 5 else ""
    message = (
        "The graph shown is the single best one; averaged over all graphs, some of its edges are not the likeliest "
        f"state of their pair ({shown}{more}). Read these as open."
    )
    return [message]


def _print_step(entry: Mapping[str, Any]) -> None:
    """One line a step; the solvers' entries share "step", "evidence" and "seconds"."""
    rest = "   ".join(f"{name} {value}" for name, value in entry.items() if isinstance(value, int))
    print(
        f"[{entry.get('seconds', 0.0):7.1f} s] {entry['step']!s:<12} evidence {entry['evidence']:14.1f}   {rest}",
        flush=True,
    )


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON can hold them."""
    plain = {}
    for name, value in parameters.items():
        if isinstance(value, np.ndarray):
            plain[name] = value.tolist()
        elif isinstance(value, (np.integer, np.floating)):
            plain[name] = value.item()
        elif value is None or isinstance(value, (bool, int, float, str, list, tuple)):
            plain[name] = value
        else:
            plain[name] = None if name == "random_state" else str(value)
    return plain
