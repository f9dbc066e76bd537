"""The structural causal model: compose, sample, intervene, evaluate."""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from latentdo import graphs
from latentdo.scm._random import RandomState, as_generator
from latentdo.scm.discrete import COUNT
from latentdo.scm.interventions import Intervention, InterventionLike, as_intervention
from latentdo.scm.mechanisms import Mechanism
from latentdo.scm.moments import linear_moments
from latentdo.scm.noise import FloatArray, Noise
from latentdo.scm.tables import to_array, to_frame
from latentdo.scm.variable import Variable, as_variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VariableLike = Variable | Noise | Mechanism | tuple[Mechanism, Noise]


class SCM:
    """A structural causal model over named variables. It never changes: `do` returns a new model.

    Parameters
    ----------
    variables
        Name to structural equation, in the column order of the samples (any order, not necessarily causal): a
        `Variable`; or just its `Noise` (a variable without parents); or just its `Mechanism` (standard normal
        noise); or the pair ``(mechanism, noise)``.

    Raises
    ------
    ValueError
        If a parent is unknown or the equations form a cycle; the message names them.

    Examples
    --------
    >>> from latentdo.scm import SCM, Gaussian, Linear
    >>> scm = SCM({
    ...     "rain": Gaussian(1.0, 0.5),
    ...     "wet": (Linear({"rain": 2.0}), Gaussian(scale=0.1)),
    ... })
    >>> print(scm.mean()["wet"], scm.do(rain=3).mean()["wet"])
    2.0 6.0
    >>> scm.sample(5, random_state=0).shape
    (5, 2)
    """

    def __init__(self, variables: Mapping[str, VariableLike]) -> None:
        if not variables:
            raise ValueError("an SCM needs at least one variable")
        checked = {_check_name(name): as_variable(name, value) for name, value in variables.items()}
        self._build(checked, reference=None, interventions={})

    def _build(
        self, variables: dict[str, Variable], reference: "SCM | None", interventions: dict[str, Intervention]
    ) -> None:
        self._variables = variables
        self._reference = reference
        self._interventions = interventions
        index = {name: position for position, name in enumerate(variables)}
        adjacency = np.zeros((len(index), len(index)), dtype=np.int64)
        self._parents: list[list[int]] = []
        for child, variable in variables.items():
            for parent in variable.parents:
                if parent not in index:
                    raise ValueError(
                        f"variable {child!r} has the unknown parent {parent!r}{_did_you_mean(parent, index)};"
                        f" add it to the model or remove it from the mechanism of {child!r}"
                    )
            positions = [index[parent] for parent in variable.parents]
            self._parents.append(positions)
            adjacency[positions, index[child]] = 1
        cycle = graphs.find_cycle(adjacency)
        if cycle:
            names = list(index)
            path = " -> ".join(names[position] for position in (*cycle, cycle[0]))
            raise ValueError(
                f"the structural equations form the cycle {path}; remove one of these dependences"
            )
        self._index = index
        self._counts = [variable.kind == COUNT for variable in variables.values()]
        self._adjacency = adjacency
        self._order = graphs.topological_order(adjacency)

    # -- what the model is ---------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in column order."""
        return tuple(self._variables)

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Name to structural equation, interventions included."""
        return MappingProxyType(self._variables)

    def __getitem__(self, name: str) -> Variable:
        """Structural equation of one variable."""
        return self._variables[self._known(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def __len__(self) -> int:
        return len(self._variables)

    @property
    def adjacency(self) -> pd.DataFrame:
        """0/1 matrix of the model as it is now, without the edges that interventions removed."""
        return pd.DataFrame(self._adjacency.copy(), index=self.names, columns=self.names)

    @property
    def order(self) -> tuple[str, ...]:
        """A topological order: causes before effects."""
        names = self.names
        return tuple(names[position] for position in self._order)

    @property
    def reference(self) -> "SCM":
        """The model before any intervention; the model itself if there was none."""
        return self if self._reference is None else self._reference

    @property
    def interventions(self) -> Mapping[str, Intervention]:
        """The last intervention on every intervened variable; empty for a model without interventions."""
        return MappingProxyType(self._interventions)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the intervened variables, in column order."""
        return tuple(name for name in self._variables if name in self._interventions)

    @property
    def is_linear(self) -> bool:
        """Whether every mechanism is linear, so that `mean` and `covariance` are available."""
        return all(variable.is_linear for variable in self._variables.values())

    @property
    def kinds(self) -> dict[str, str]:
        """Name to ``"continuous"``, ``"binary"``, ``"count"`` or ``"categorical"``."""
        return {name: variable.kind for name, variable in self._variables.items()}

    def to_networkx(self) -> Any:
        """Graph of the model as a ``networkx.DiGraph`` over the names."""
        return graphs.to_networkx(self._adjacency, list(self.names))

    def draw(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the graph with matplotlib, causes left of effects, intervened variables marked.

        Parameters
        ----------
        ax
            Axes to draw into; a new figure if not given.
        """
        from latentdo.scm.drawing import draw_scm

        return draw_scm(self, ax)

    def __repr__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = [
            f"  {name:<{width}} = {variable.formula()}"
            + ("   <- intervened" if name in self._interventions else "")
            for name, variable in self._variables.items()
        ]
        return "\n".join([f"SCM({len(self)} variables)", *lines])

    # -- what can be done with it --------------------------------------------------------------------------

    def do(
        self, interventions: Mapping[str, InterventionLike] | None = None, /, **by_name: InterventionLike
    ) -> "SCM":
        """Intervene; the model itself stays as it is.

        Interventions stack: ``scm.do(a=1).do(b=2)`` has both, and a later one on the same variable acts on
        what the earlier one left, so ``scm.do(a=1).do(a=2)`` is ``scm.do(a=2)``.

        Parameters
        ----------
        interventions, **by_name
            Variable name to what happens to it: a number holds it there (atomic), a `Noise` draws it
            (stochastic), a `Mechanism` or `Variable` changes how it depends on its parents (imperfect), or an
            `Intervention`.

        Returns
        -------
        SCM
            The intervened model, with the same variables in the same order.
        """
        given = {**(interventions or {}), **by_name}
        both = set(interventions or {}) & set(by_name)
        if both:
            raise ValueError(f"do: {sorted(both)[0]!r} is given twice")
        variables, record = dict(self._variables), dict(self._interventions)
        for name, value in given.items():
            self._known(name)
            intervention = as_intervention(value, name)
            try:
                variables[name] = intervention.apply(variables[name])
            except (TypeError, ValueError) as error:
                raise type(error)(f"do: cannot intervene on {name!r} with {value!r}: {error}") from None
            record[name] = intervention
            before, after = self.reference[name], variables[name]
            if (before.kind, before.levels) != (after.kind, after.levels):
                raise ValueError(
                    f"do: {name!r} is {before.kind}, and {after.noise} is {after.kind}; an intervention keeps the "
                    "kind and the levels of a variable"
                )
            allowed = before.parents
            for parent in variables[name].parents:
                if parent not in allowed:
                    raise ValueError(
                        f"do: the new mechanism of {name!r} uses {parent!r}, which is not among its parents "
                        f"({', '.join(allowed) or 'it has none'}); an intervention may drop parents but not"
                        " add them: put the edge into the SCM itself, with weight zero if need be"
                    )
        result = SCM.__new__(SCM)
        result._build(variables, reference=self.reference, interventions=record)
        return result

    def sample(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        variables: Iterable[str] | str | None = None,
        exposure: npt.ArrayLike | None = None,
    ) -> pd.DataFrame:
        """Draw ``n`` rows by ancestral sampling.

        Every variable has a random stream of its own. With one seed, therefore, a model and its intervened
        versions share the noise of all variables whose noise was not replaced: the rows can be compared
        pairwise, and variables that are not downstream of an intervention are identical bit by bit.

        Parameters
        ----------
        n
            Number of rows.
        random_state
            Seed or generator.
        variables
            Which columns to return, in this order; all by default. Only they and their ancestors are
            computed, and the values are those that the whole sample would have.
        exposure
            Positive number for each row, such as the library size of a cell over the usual one: all counts of the
            row are expected to be larger by this factor. The effects of a count are those of ``count / exposure``. By
            default one.

        Returns
        -------
        DataFrame
            Floats, integers for counts and 0/1, and pandas categories.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
            raise ValueError(f"n must be a number of rows (an integer, at least 0), got {n!r}")
        exposed = check_exposure(exposure, int(n))
        if variables is None:
            return to_frame(self.sample_array(int(n), random_state, exposure=exposed), self._variables)
        wanted = [self._known(name) for name in ([variables] if isinstance(variables, str) else variables)]
        values = self.sample_array(
            int(n), random_state, needed=self._with_ancestors(wanted), exposure=exposed
        )
        places = [self._index[name] for name in wanted]
        return to_frame(values[:, places], {name: self._variables[name] for name in wanted})

    def sample_array(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        needed: frozenset[int] | None = None,
        exposure: FloatArray | None = None,
    ) -> FloatArray:
        """`sample` without pandas: ``[n, d]``; columns that are not ``needed`` stay zero, levels are their places."""
        offset = None if exposure is None else np.log(exposure)
        streams = as_generator(random_state).spawn(len(self))
        # One contiguous row a variable: parents are gathered as rows, which is several times faster.
        values = np.zeros((len(self), n))
        causes = values if exposure is None else values.copy()  # counts as rates
        equations = list(self._variables.values())
        for position in self._order:
            if needed is None or position in needed:
                parents, counts = causes[self._parents[position]].T, self._counts[position]
                values[position] = equations[position].sample(
                    parents, streams[position], offset if counts else None
                )
                if exposure is not None:
                    causes[position] = values[position] / exposure if counts else values[position]
        return values.T.copy()

    def mean(self) -> pd.Series:
        """Exact mean of every variable; linear models only, under any interventions.

        Raises
        ------
        ValueError
            If a mechanism is not linear or a noise has no mean; the message names the variable.
        """
        mean, _ = linear_moments(self._variables, self._order, need_variance=False)
        return pd.Series(mean, index=list(self.names))

    def covariance(self) -> pd.DataFrame:
        """Exact covariance matrix; linear models only, under any interventions.

        Raises
        ------
        ValueError
            If a mechanism is not linear or a noise has no finite variance; the message names the variable.
        """
        _, covariance = linear_moments(self._variables, self._order, need_variance=True)
        return pd.DataFrame(covariance, index=list(self.names), columns=list(self.names))

    def log_density(
        self, X: pd.DataFrame | npt.ArrayLike, exposure: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Exact log-density of every row, shape ``[n]``; additive mechanisms only.

        Discrete variables contribute probabilities. ``exposure`` is as for `sample`.
        """
        return np.asarray(self.log_density_terms(X, exposure=exposure).sum(axis=1))

    def log_density_terms(
        self,
        X: pd.DataFrame | npt.ArrayLike,
        variables: Iterable[str] | None = None,
        exposure: npt.ArrayLike | None = None,
    ) -> FloatArray:
        r"""Terms :math:`\log p(x_j \mid x_{\mathrm{pa}(j)})`, one column per variable.

        Parameters
        ----------
        X
            Rows ``[n, d]``; a DataFrame is matched by column name, an array by column order.
        variables
            Which terms; all by default.
        exposure
            As for `sample`.
        """
        columns = self.columns_of(X).T
        exposed = check_exposure(exposure, columns.shape[1])
        offset, causes = None, columns
        if exposed is not None:
            offset, causes = np.log(exposed), columns.copy()
            causes[self._counts] /= exposed
        names = self.names if variables is None else tuple(self._known(name) for name in variables)
        terms = np.empty((columns.shape[1], len(names)))
        for place, name in enumerate(names):
            position = self._index[name]
            try:
                terms[:, place] = self._variables[name].log_density(
                    columns[position],
                    causes[self._parents[position]].T,
                    offset if self._counts[position] else None,
                )
            except NotImplementedError as error:
                raise NotImplementedError(f"variable {name!r}: {error}") from None
        return terms

    def columns_of(self, X: pd.DataFrame | npt.ArrayLike) -> FloatArray:
        """Rows as an array ``[n, d]`` in this model's column order; levels become their places."""
        return to_array(X, self._variables)

    def _known(self, name: str) -> str:
        if name not in self._variables:
            raise ValueError(f"unknown variable {name!r}{_did_you_mean(name, self._variables)}")
        return name

    def _with_ancestors(self, names: Iterable[str]) -> frozenset[int]:
        needed: set[int] = set()
        todo = [self._index[name] for name in names]
        while todo:
            position = todo.pop()
            if position not in needed:
                needed.add(position)
                todo.extend(self._parents[position])
        return frozenset(needed)


def check_exposure(exposure: npt.ArrayLike | None, n: int) -> FloatArray | None:
    """One positive number for each of ``n`` rows, or None."""
    if exposure is None:
        return None
    values = np.asarray(exposure, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"exposure must have one number for each of the {n} rows, got shape {values.shape}")
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(bad):
        raise ValueError(
            f"exposure must be positive, but row {bad[0]} (counted from 0) has {values[bad[0]]:g}"
        )
    return values


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a variable's name must be a non-empty text, got {name!r}")
    return name


def _did_you_mean(name: object, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''})"
