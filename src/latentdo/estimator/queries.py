"""Questions to a fitted estimator: what if, why, and what such data can show."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from latentdo.data import Dataset, Missing, encode_groups, encode_weights, read_circumstances, validate_rows
from latentdo.data.kinds import CONTINUOUS, Kind
from latentdo.data.offset import encode_offset
from latentdo.data.refusals import check_finite
from latentdo.estimator.arguments import seed_of
from latentdo.estimator.meta import check_count
from latentdo.model.assignment import SEPARATE, Groups, Units
from latentdo.model.series import Series
from latentdo.result import FitResult, Rows
from latentdo.solvers.dispatch import Progress
from latentdo.solvers.hidden_values import fill_again

if TYPE_CHECKING:
    from latentdo.diagnosis import Diagnosis
    from latentdo.effects import Contrast

Array = NDArray[np.float64]


class Questions:
    """What can be asked of a fitted estimator: worlds that were not observed, reasons, and limits."""

    result_: FitResult
    regimes_: NDArray[np.int64]
    regime_names_: tuple[Hashable, ...]
    n_regimes_: int
    missing: Missing
    _labels: list[Hashable | None] | None
    _dataset: Dataset
    _fitted: Dataset

    def sample(
        self,
        n: int = 1,
        regime: Hashable = 0,
        do: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        *,
        offset: Any = None,
    ) -> pd.DataFrame:
        """Rows drawn from the fitted model, in the user's units.

        Parameters
        ----------
        n : int
            Number of rows.
        regime : hashable
            Name (or index) of the regime to draw from; 0 is the reference.
        do : dict from variable to value, optional
            Variables set to a constant, or a level, on top of the regime.
        random_state : int, RandomState or None
            Source of randomness.
        offset : number, or sequence of n numbers, optional
            What counts are in proportion to, if they were fitted so; a typical one of the fitted rows by default.
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
            at = result.columns.index(name)
            fixed[at] = _set_to(result, at, value)
        rng = np.random.default_rng(seed_of(random_state))
        exposed: Array | float = 0.0
        if offset is not None:
            sizes = encode_offset(offset, np.arange(n), n)
            exposed = np.asarray(result.preprocessor.offset_of(sizes))
        z = result.model.sample(n, self._regime_index(regime), rng, fixed, exposed)
        return result.preprocessor.to_frame(result.preprocessor.inverse(z[:, : len(result.columns)]))

    def effect(
        self,
        cause: str,
        on: str | Sequence[str] | None = None,
        *,
        do: tuple[Any, Any] | None = None,
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
        do : (value, value), optional
            Compare the worlds in which the cause is set to the first and to the second value: numbers, or levels.
        shift : float, optional
            Compare the world as it is with one in which the cause is larger by this much, whatever made it what it is.
            Without ``do`` and ``shift`` it is about one standard deviation of the cause; a binary cause is set to its
            first and to its second level. For a categorical cause say ``do``.
        regime : hashable
            Name (or index) of the regime on top of which this happens.
        level : float
            Coverage of the intervals.
        statistic : {"mean", "median"}
            What is compared of continuous variables; the median is steadier under a logarithmic transform. Of counts
            it is the mean, of binary and categorical variables the probability of a level.
        n : int
            Number of rows drawn.
        random_state : int, RandomState or None
            Source of randomness.

        Returns
        -------
        DataFrame
            One row per variable, or per level of it. ``change`` is ``after - before``, a difference of means or of
            probabilities; where variables are not continuous, ``quantity`` says of what, and ``ratio`` is ``after /
            before`` of mean counts. ``low`` and ``high`` are the interval of the change *given the graph*. Families of
            densities without a formula for it have no such columns, and ``interval`` says "no interval: use
            bootstrap" (:meth:`BootstrapDAG.effect` has intervals for all). ``path_probability`` is the probability
            that there is any effect, summed over graphs. Where the graph has no path, the change is exactly zero.
        """
        from latentdo.effects import total_effects

        contrast = self._contrast(cause, on, do, shift, regime, level, statistic, n, random_state)
        return total_effects(self.result_, contrast)

    def explain(
        self,
        X: Any,
        *,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        offset: Any = None,
        rows: Sequence[Hashable] | None = None,
        against: Hashable | None = None,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Why rows belong to their regimes: what each variable contributes, and what is unusual about it.

        Parameters
        ----------
        X : table, array [n, d], or one row (Series, dict, sequence of d numbers)
            Rows in the user's units.
        groups : sequence of n labels, optional
            Rows that share their regime, see :meth:`fit`. Pass all rows of a group: they decide together.
        time, series, batch : sequence of n values, optional
            When and where the rows were measured, see :meth:`fit`. Pass their neighbours, too: a row is then compared
            with what its past lets expect, and rows before and after help to decide.
        offset : sequence of n numbers, optional
            What the counts of rows are in proportion to, if they were fitted so.
        rows : sequence, optional
            Explain only these of the rows, by their names in the index of ``X``, or by number.
        against : hashable, optional
            Name (or index) of the regime to compare with. By default the reference; for rows that belong to the
            reference, the most probable other regime.
        random_state : int, RandomState or None
            Source of randomness of the medians and tails, which are drawn.

        Returns
        -------
        DataFrame
            For every row one line per variable, those with the largest weight first, one line for the sizes of the
            regimes, and one for the other rows of its group, if there are any.
            ``log_ratio`` is how much more probable the value is (given its causes) in the row's regime than in the
            other one; these sum to the log odds of the two regimes. ``expected`` (median, and the range of 90 %) is
            what the reference mechanism gives for the row's own causes, ``tail`` how rarely it is this far off, and
            ``deviates`` marks tails below 1 %. Of variables with levels, ``expected`` is the likeliest level, without a
            range, and ``tail`` the probability of levels that are no likelier than the row's. ``target`` says whether
            the regime targets the variable, and ``downstream`` whether it only follows a target.
        """
        from latentdo.effects import explain_rows

        check_is_fitted(self, "result_")
        if isinstance(X, pd.Series):
            X = X.to_frame().T.infer_objects()
        elif isinstance(X, Mapping):
            X = pd.DataFrame([X])
        elif not hasattr(X, "columns") and np.ndim(X) == 1:
            X = np.asarray(X)[None]
        # Cells may be missing in rows that nobody asks about.
        read = self._read(
            X, groups=groups, time=time, series=series, batch=batch, offset=offset, missing="model"
        )
        names = list(X.index) if isinstance(X, pd.DataFrame) else list(range(len(read.x)))
        other = None if against is None else self._regime_index(against)
        place = {name: at for at, name in enumerate(names)}
        if rows is not None and (absent := [name for name in rows if name not in place]):
            raise ValueError(f"rows names {absent[0]!r}, which is not among the rows of X")
        asked = (
            np.arange(len(names))
            if rows is None
            else np.array([place[name] for name in rows], dtype=np.int64)
        )
        # Rows that belong to them decide with them.
        needed = asked if read.units is SEPARATE else np.arange(len(names))
        remedy = "explain whole rows only: what a variable contributes follows from its value and those of its causes"
        check_finite(read.x[needed], self.result_.columns, remedy=remedy, row_index=needed)
        if read.units is SEPARATE:  # others, which may lack cells, have no say
            x, z, expected, unit = (part[asked] for part in read[:-1])
            read = Rows(x, z, expected, unit, SEPARATE)
            names, asked = [names[at] for at in asked], np.arange(asked.size)
        seed = seed_of(random_state)
        return explain_rows(self.result_, read, names, asked=asked, against=other, seed=seed)

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
        template = clone(self).set_params(
            verbose=False, checkpoint=None, density=self.result_.density, lags=0, seasonality=None
        )
        if n_jobs not in (None, 1):
            template.set_params(n_jobs=1)
        return diagnose_fit(
            self.result_,
            template,
            labels=self._known_labels(),
            targets_given=bool(self.result_.configuration.get("targets_given", False)),
            n_repeats=check_count("n_repeats", n_repeats),
            max_rows=check_count("max_rows", max_rows),
            seed=seed_of(random_state),
            n_jobs=n_jobs,
            progress=progress,
        )

    def falsify(
        self,
        X: Any = None,
        *,
        refits: bool = True,
        random_state: Any = 0,
        progress: Progress | None = None,
    ) -> pd.DataFrame:
        """What the rows say against this fit: a table of checks, those that failed first.

        A fit always has an answer; whether its assumptions hold is checked here. Cheap checks ran at the end of the
        fit, and what failed is among its warnings. Further ones fit again, some six times, to parts of the data.

        Parameters
        ----------
        X : table or array [n, d], optional
            The rows that were fitted; needed after :meth:`load`, since a saved model does not hold them.
        refits : bool
            Whether to run the checks that fit again: halves of the rows, some of the variables, a regime left out.
        random_state : int, RandomState or None
            Source of randomness of the parts.
        progress : callable, optional
            Called with a dict after every refit.

        Returns
        -------
        DataFrame
            Indexed by check: ``statistic``; ``p_value``, the chance of one as large if the assumption holds (where two
            explanations are compared, the probability of the one that the fit assumes; missing where nothing is
            random); whether it ``failed``; and ``words``, with the remedy.
        """
        from latentdo.checks import check_by_refits, check_fit

        check_is_fitted(self, "result_")
        seed = seed_of(random_state)
        dataset, fitted = self._fitted_rows(X)
        given = seed_of(self.result_.configuration.get("random_state", 0))
        one_regime = self.result_.configuration.get("max_regimes") == 1
        checks = [
            dict(one)
            for one in self.result_.checks
            or [
                one.to_dict()
                for one in check_fit(self.result_, dataset, fitted, given, one_regime=one_regime).checks
            ]
        ]
        if refits:
            template = clone(self).set_params(verbose=False, checkpoint=None, density=self.result_.density)
            checks += [
                one.to_dict()
                for one in check_by_refits(self.result_, dataset, fitted, template, seed, progress)
            ]
        return replace(self.result_, checks=tuple(checks)).check_table()

    def _repr_html_(self) -> str:
        """What a notebook shows: the result, and before there is one, the arguments, as scikit-learn does."""
        if hasattr(self, "result_"):
            return self.result_._repr_html_()
        return str(super()._repr_html_())  # type: ignore[misc]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The same for notebooks that ask for all forms at once."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _fitted_rows(self, X: Any) -> tuple[Dataset, Dataset]:
        """The rows that were fitted, as they were passed and as they were fitted: remembered, or given again."""
        result = self.result_
        if X is None:
            if not hasattr(self, "_dataset"):
                raise ValueError(
                    "a saved model does not hold the rows that were fitted; pass them: falsify(X)"
                )
            return self._dataset, self._fitted
        allowed: Missing = "error" if self.missing == "error" else "model"
        x = validate_rows(X, result.columns, result.kinds, estimator=type(self).__name__, missing=allowed)
        if self.missing == "drop":
            x = x[~np.isnan(x).any(axis=1)]
        labels = self._known_labels()
        names = {name: k for k, name in enumerate(result.regime_names)}
        codes = None if labels is None else np.array([-1 if one is None else names[one] for one in labels])
        if len(x) != len(result.responsibilities):
            raise ValueError(
                f"X has {len(x)} rows, but {len(result.responsibilities)} were fitted; pass the rows that were fitted"
            )
        dataset = Dataset(
            x,
            result.columns,
            result.preprocessor,
            regimes=codes,
            regime_labels=() if labels is None else result.regime_names,
            groups=result.groups,
            group_labels=result.group_names,
            where=result.where,
        )
        return dataset, fill_again(dataset, result, seed_of(result.configuration.get("random_state", 0)))

    def _contrast(
        self,
        cause: str,
        on: str | Sequence[str] | None,
        do: tuple[Any, Any] | None,
        shift: float | None,
        regime: Hashable,
        level: float,
        statistic: str,
        n: int,
        random_state: Any,
    ) -> Contrast:
        """What :meth:`effect` was asked, checked and complete."""
        from latentdo.effects import Contrast, usual_shift

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
        kind = result.kinds[result.columns.index(cause)]
        if do is None and shift is None and kind.kind == "binary":
            do = (kind.levels[0], kind.levels[1])
        if do is None and kind.levels:
            raise ValueError(
                f"{cause!r} has levels, which cannot be shifted; name two of them with do=, "
                f"such as do={kind.levels[:2]!r}; its levels are {', '.join(kind.levels)}"
            )
        values = tuple(_value(kind, cause, value) for value in do or ())
        if shift is not None:
            _value(CONTINUOUS, cause, shift)
            if kind.is_discrete and shift % 1.0:
                raise ValueError(f"shift={shift!r} is not whole, but {cause!r} is a count")
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level!r} must lie between 0 and 1")
        if statistic not in ("mean", "median"):
            raise ValueError(f'statistic={statistic!r} is unknown; use "mean" or "median"')
        if n < 1:
            raise ValueError(f"n={n}: ask for at least one row")
        at = self._regime_index(regime)
        seed = seed_of(random_state)
        if do is None and shift is None:
            shift = usual_shift(result, cause, at, seed)
            shift = max(round(shift), 1) if kind.is_discrete else shift
        start, stop = values or (None, None)
        return Contrast(
            cause,
            tuple(names),
            start,
            stop,
            shift,
            regime=at,
            level=level,
            statistic=statistic,
            n=n,
            seed=seed,
            kind=kind,
        )

    def _read(
        self,
        X: Any,
        *,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        missing: Missing | None = None,
    ) -> Rows:
        """New rows, how they belong together, and how much they count, as the user says; without those that do not."""
        check_is_fitted(self, "result_")
        result = self.result_
        x = validate_rows(
            X, result.columns, result.kinds, estimator=type(self).__name__, missing=missing or self.missing
        )
        if groups is not None and (time is not None or series is not None):
            raise ValueError("groups were given together with time or series; choose one.")
        index = X.index if isinstance(X, pd.DataFrame) else None
        n, weights = len(x), None
        rows = np.arange(n)
        if sample_weight is not None:
            weights = encode_weights(sample_weight, n, index)
            rows = np.flatnonzero(weights > 0.0)
        where = read_circumstances(
            rows, n, index, time=time, series=series, batch=batch, weights=weights, offset=offset
        )
        if where.time is not None:
            units: Units = Series.by_time(where.time, where.series, n, where.weight)
        else:
            members = None if groups is None else encode_groups(groups, rows, n, index)[0]
            units = Groups.of(members, where.weight)
        return result.read(x[rows], where, units)

    def _known_labels(self) -> list[Hashable | None] | None:
        """What ``fit`` was told of the regimes: a label per row, None where unknown; None if nothing."""
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


def _value(kind: Kind, name: str, value: Any) -> float:
    """A value of a variable as a number: that of a level is its code."""
    if kind.is_discrete:
        try:
            return kind.code(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{value!r} is not a value that {name!r} could take: {error}") from None
    if not isinstance(value, (int, float, np.integer, np.floating)) or not np.isfinite(value):
        raise ValueError(f"{value!r} is not a value that {name!r} could take; use a finite number")
    return float(value)


def _set_to(result: FitResult, variable: int, value: Any) -> float:
    """What a variable that is set to a value is inside the model."""
    name, kind = result.columns[variable], result.kinds[variable]
    if kind.is_discrete:
        try:
            return kind.code(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"do sets {name!r} to {value!r}; {error}") from None
    if not isinstance(value, (int, float, np.integer, np.floating)) or not np.isfinite(value):
        raise ValueError(f"do sets {name!r} to {value!r}; use a finite number")
    return float(result.preprocessor.forward_column(name, value)[0])
