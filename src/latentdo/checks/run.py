"""Which checks run when: cheap ones after every fit, refits on request."""

from __future__ import annotations

from typing import Any, NamedTuple

from latentdo.checks.alternatives import check_alternatives
from latentdo.checks.check import Check
from latentdo.checks.columns import check_atoms, check_copies, check_measured, check_skew
from latentdo.checks.dependence import Hint, check_local_markov, hidden_cause_hints
from latentdo.checks.neighbours import check_neighbours, given_neighbours, remedy_for, row_before
from latentdo.checks.refits import Progress, check_halves, check_held_out, check_subsets
from latentdo.checks.regimes import check_breadth, check_invariance
from latentdo.checks.residuals import Residuals, stretches
from latentdo.data import Dataset
from latentdo.result import FitResult
from latentdo.solvers.search.driver import units_of
from latentdo.solvers.settings import CHECKED_BLOCK, RIVAL_FEWEST_ROWS, RIVAL_ROWS, RIVAL_VARIABLES


class Findings(NamedTuple):
    """What the checks of a fit found, and pairs of variables that may have a hidden cause."""

    checks: tuple[Check, ...]
    hints: tuple[Hint, ...]


def check_fit(
    result: FitResult, dataset: Dataset, fitted: Dataset, seed: int = 0, *, one_regime: bool = False
) -> Findings:
    """Run the cheap checks: a second or two for a dozen variables.

    Parameters
    ----------
    result : FitResult
        The fit.
    dataset, fitted : Dataset
        The rows that the user passed, and the same rows as they were fitted, with hidden and missing values drawn.
    seed : int
        Seed of what is drawn where a mechanism has no formula.
    one_regime : bool
        Whether the user said that there is no more than one regime.
    """
    names, where = result.columns, dataset.where
    z, shares = result.read(fitted.x, where).z, result.responsibilities
    if dataset.missing.any():  # a regime that fits what is seen need not fit what was drawn from another
        shares = result.model.assign(z, dataset.regimes, units_of(dataset)).responsibilities
    residuals = Residuals.of(result.model, z, shares, where.weight, row_before(dataset), seed)
    hints, moved = hidden_cause_hints(residuals, names)
    checks = [moved]
    told = where.time is not None or dataset.groups is not None or dataset.regimes is not None
    if not dataset.is_mixed and z.shape[1] <= RIVAL_VARIABLES and len(z) >= RIVAL_FEWEST_ROWS:
        some = stretches(len(z), RIVAL_ROWS, CHECKED_BLOCK)
        more, found = check_alternatives(
            z[some], shares[some], names, result.model, imperfect=result.intervention != "perfect", told=told
        )
        known = {(one.first, one.second) for one in hints}
        hints += [one for one in more if (one.first, one.second) not in known]
        checks += found
    checks += [
        check_local_markov(residuals, names),
        check_neighbours(
            residuals,
            residuals.responsibilities if told else given_neighbours(residuals),
            names,
            remedy_for(dataset),
        ),
        check_skew(dataset.x, names, result.preprocessor),
        check_copies(z[:, : len(names)], names),
        check_atoms(dataset.x, dataset.atoms, names),
        check_breadth(result.model.topology, result.regime_names, result.target_probabilities),
        check_invariance(residuals, names, result.regime_names),
        check_measured(dataset.kinds, told=told or one_regime),
    ]
    return Findings(tuple(checks), tuple(hints))


def check_by_refits(
    result: FitResult,
    dataset: Dataset,
    fitted: Dataset,
    template: Any,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Check, ...]:
    """Run the checks that fit again: some six fits to parts of the data; rows as for :func:`check_fit`."""
    return (
        check_halves(result, dataset, template, seed, progress),
        check_subsets(result, dataset, template, seed, progress),
        check_held_out(result, dataset, fitted, template, seed, progress),
    )
