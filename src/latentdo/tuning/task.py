"""What every trial does: fit a part of the rows, score the rest."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from latentdo.data import Dataset
from latentdo.estimator import LatentInterventionDAG
from latentdo.estimator.meta import plain, read_rows
from latentdo.notices import as_part, collecting
from latentdo.tuning.space import Space, checked, default_space, own_values

Array = NDArray[np.float64]

_BLOCKS: Final = 20
_FLOOR: Final = 1e-300  # a label that the model rules out costs 690 nats, not infinity
_IRRELEVANT: Final = (
    "n_jobs",
    "verbose",
    "device",
    "checkpoint",
    "checkpoint_seconds",
    "random_state",
)  # do not change what a score means


@dataclass(frozen=True, eq=False)
class Task:
    """What every trial does, and what has to be the same for trials to be comparable."""

    estimator: LatentInterventionDAG
    space: Mapping[str, Sequence[Any]]
    default: Mapping[str, Any]
    train: Dataset
    test: Dataset
    targets: Any
    fingerprint: Mapping[str, str]

    @classmethod
    def build(
        cls,
        base: LatentInterventionDAG,
        X: Any,
        known: Mapping[str, Any],
        *,
        space: Space | None,
        validation_fraction: float,
        random_state: int,
    ) -> Task:
        """Read and split the rows, and check what is to be varied."""
        parameters = base.get_params()
        dataset = read_rows(base, X, **known)
        given = default_space(base, dataset.n_variables) if space is None else space
        varied = {name: checked(name, choice, base, dataset.n_variables) for name, choice in given.items()}
        if not varied:
            raise ValueError("space is empty; name at least one parameter to vary")
        train, test = dataset.split(1.0 - validation_fraction, random_state)
        fixed = {k: v for k, v in parameters.items() if k not in varied and k not in _IRRELEVANT}
        parts = {
            "data": (
                dataset.content_hash(),
                _digest(dataset.regimes),
                _digest(dataset.targets),
                *(() if dataset.blocks is None else (_digest(dataset.blocks),)),
                *(() if dataset.where.batch is None else (_digest(dataset.where.batch),)),
                *(() if dataset.weight is None else (_digest(dataset.weight),)),
                *(() if dataset.where.offset is None else (_digest(dataset.where.offset),)),
            ),
            "estimator": sorted(fixed.items()),
            "space": sorted(varied.items()),
            "validation_fraction": validation_fraction,
            "random_state": random_state,
        }
        fingerprint = {name: _digest(json.dumps(part, default=plain)) for name, part in parts.items()}
        default = own_values(base, list(varied), dataset.n_variables)
        own = clone(base).set_params(checkpoint=None)  # that of the chosen fit
        return cls(own, varied, default, train, test, known.get("targets"), fingerprint)

    def evaluate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Fit the training rows and score the others."""
        began = time.perf_counter()
        kinds = dict(zip(self.train.columns, self.train.kinds, strict=True))  # as all rows have them
        estimator = clone(self.estimator).set_params(**values, kinds=kinds)
        with as_part(), collecting():  # the fit to all rows will say it once
            estimator.fit(
                self.train.to_frame(),
                regimes=self.train.labels(),
                targets=self.targets,
                **self.train.together(),
            )
        if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
            raise KeyboardInterrupt
        together = self.test.together()
        weights = together.pop("sample_weight")
        scores = held_out_log_likelihood(estimator, self.test.to_frame(), self.test.labels(), **together)
        weights = np.ones(len(scores)) if weights is None else weights
        if not np.isfinite(scores.mean()):
            raise ArithmeticError("the held-out log-likelihood is not finite")
        units = np.arange(len(scores))
        if self.test.blocks is not None:  # whole groups or stretches of time, which are independent
            units = np.unique(self.test.blocks, return_inverse=True)[1]
        blocks = max(min(_BLOCKS, int(units.max() + 1) // 5), 1)
        return {
            "held_out": float(np.average(scores, weights=weights)),
            "edges": int(estimator.adjacency_.to_numpy().sum()),
            "targets": int(estimator.targets_.to_numpy().sum()),
            "regimes": int(estimator.n_regimes_),
            "seconds": time.perf_counter() - began,
            "blocks": [
                float(np.average(scores[rows], weights=weights[rows]))
                for rows in (np.flatnonzero(units % blocks == b) for b in range(blocks))
            ],
        }


def held_out_log_likelihood(
    estimator: LatentInterventionDAG, X: Any, regimes: Any = None, *, groups: Any = None, **where: Any
) -> Array:
    """Log-density of rows that a fitted estimator has not seen, in the user's units, ``[n]``.

    Parameters
    ----------
    estimator : LatentInterventionDAG
        A fitted estimator.
    X : table or array [n, d]
        New rows.
    regimes : sequence of n labels, optional
        Their labels; None where unknown. A row with a label that the estimator knows counts ``log p(x, label)``, any
        other ``log p(x)``. With groups they are labels of groups.
    groups : sequence of n labels, optional
        Which rows share their regime; each carries an equal part of what its group counts.
    **where
        ``time``, ``series``, ``batch`` and ``offset`` of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from latentdo import LatentInterventionDAG
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = LatentInterventionDAG(max_regimes=1).fit(rows[:200])
    >>> held_out_log_likelihood(estimator, rows[200:]).shape
    (100,)
    """
    scores = estimator.score_samples(X, groups=groups, **where)
    if regimes is None:
        return scores
    position = {name: k for k, name in enumerate(estimator.regime_names_)}
    index = np.array([-1 if label is None else position.get(label, -1) for label in regimes])
    known = np.flatnonzero(index >= 0)
    probability = estimator.predict_proba(X, groups=groups, **where)[known, index[known]]
    gain = np.log(np.maximum(probability, _FLOOR))
    if groups is not None:  # once per group
        units = estimator._read(X, groups=groups).units
        gain /= units.spread(units.sums(np.ones(len(scores))))[known]
    scores[known] += gain
    return scores


def _digest(value: Any) -> str:
    content = (
        value.encode() if isinstance(value, str) else b"" if value is None else np.asarray(value).tobytes()
    )
    return hashlib.sha256(content).hexdigest()[:16]
