"""One resample: its rows, its fit, and what is kept of it. Runs in workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from latentdo.bootstrap.matching import match_regimes
from latentdo.data import Circumstances, Dataset
from latentdo.estimator import LatentInterventionDAG
from latentdo.notices import as_part, collecting
from latentdo.persistence import pack_result
from latentdo.result import FitResult

Array = NDArray[np.float64]

KINDS: Final = ("half", "bootstrap")
"""Half of the rows without replacement, or as many as there are with it."""


@dataclass(frozen=True, eq=False)
class Resample:
    """What is kept of one fit to a resample; regimes are those of the fit to all rows.

    Parameters
    ----------
    number : int
        Which resample; it decides the rows and the seed.
    adjacency : ndarray [d, d] of int8
        The graph.
    targets : ndarray [n_regimes, d] of int8
        Targets of the matched regimes; zero where nothing matched.
    overlap : ndarray [n_regimes]
        Jaccard coefficient of each regime with its match; 0 where nothing matched.
    n_regimes : int
        Regimes that this fit found.
    evidence : float
        Its evidence, which is not comparable between resamples.
    match : ndarray [n_regimes] of int64
        Which of its own regimes each one is; -1 where nothing matched.
    fit : bytes
        The fitted model as :func:`~latentdo.persistence.pack_result` writes it, without what depends on rows: what an
        effect would be according to this resample.
    """

    number: int
    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]
    overlap: Array
    n_regimes: int
    evidence: float
    match: NDArray[np.int64]
    fit: bytes


def fit_resample(
    template: LatentInterventionDAG,
    dataset: Dataset,
    targets: Any,
    reference: FitResult,
    kind: str,
    seed: int,
    number: int,
) -> Resample | str:
    """Fit one resample; a message instead if that was impossible. Runs in a worker."""
    rng = np.random.default_rng([seed, number])
    rows, drawn = _rows(dataset, kind, rng)
    part = dataset.take(rows)
    together = part.together()
    if drawn is not None:  # a group or a stretch of time that is drawn twice is two of them
        together["groups" if dataset.groups is not None else "series"] = drawn
    kinds = dict(
        zip(dataset.columns, dataset.kinds, strict=True)
    )  # a part may look like another kind, or lack a level
    estimator = clone(template).set_params(random_state=int(rng.integers(2**31)), kinds=kinds)
    with as_part(), collecting():  # about repeated rows and the like; the fit to all rows has spoken
        try:
            estimator.fit(part.to_frame(), regimes=part.labels(), targets=targets, **together)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return str(error)
    if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
        raise KeyboardInterrupt
    found: FitResult = estimator.result_
    where = dataset.together()
    del where["sample_weight"]  # of no concern to the regime of a row
    responsibilities = estimator.predict_proba(dataset.to_frame(), **where)
    if dataset.regimes is not None:  # what is known of a row is not to be guessed again
        place = [
            found.regime_names.index(label) for label in dataset.regime_labels if label in found.regime_names
        ]
        known = np.flatnonzero(dataset.regimes >= 0)
        if len(place) == len(dataset.regime_labels):
            responsibilities[known] = np.eye(found.n_regimes)[np.array(place)[dataset.regimes[known]]]
    match, overlap = match_regimes(reference, found, responsibilities, labelled=dataset.regimes is not None)
    own = found.model.topology.targets[np.maximum(match, 0)]
    return Resample(
        number=number,
        adjacency=np.asarray(found.model.topology.adjacency, dtype=np.int8),
        targets=np.where(match[:, None] >= 0, own, 0).astype(np.int8),
        overlap=overlap,
        n_regimes=found.n_regimes,
        evidence=found.evidence,
        match=match,
        fit=pack_result(
            replace(
                found,
                responsibilities=found.responsibilities[:1],
                groups=None,
                group_names=(),
                where=Circumstances(),
                segments=None,
                history=(),
                comparison=(),
                warnings=(),
            )
        ),
    )


def _rows(
    dataset: Dataset, kind: str, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Rows of a resample, and their groups or stretches of time if there are any, drawn within each label.

    Groups and stretches are drawn whole; one that is drawn twice is two. A stretch has the label of its first row.
    """
    if dataset.blocks is None:
        return _drawn(dataset.regimes, dataset.n_rows, kind, rng), None
    names, leaders, members = np.unique(dataset.blocks, return_index=True, return_inverse=True)
    regimes = None if dataset.regimes is None else dataset.regimes[leaders]
    chosen = _drawn(regimes, names.size, kind, rng)
    order, sizes = np.argsort(members, kind="stable"), np.bincount(members)
    begin = np.cumsum(sizes) - sizes
    rows = [order[begin[group] : begin[group] + sizes[group]] for group in chosen]
    return np.concatenate(rows), np.repeat(np.arange(chosen.size), sizes[chosen])


def _drawn(
    regimes: NDArray[np.int64] | None, n: int, kind: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Which of ``n`` rows or groups are drawn, within each label."""
    labels = np.zeros(n, dtype=np.int64) if regimes is None else regimes
    drawn = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if kind == "bootstrap":
            drawn.append(rng.choice(members, len(members), replace=True))
        else:
            drawn.append(rng.choice(members, max(len(members) // 2, 1), replace=False))
    return np.sort(np.concatenate(drawn))
