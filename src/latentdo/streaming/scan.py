"""One look at all rows: sums that standardise them, and a sample, from parts that are read one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data.table import check_finite
from latentdo.data.transforms import Preprocessor
from latentdo.ranks import Ranks
from latentdo.streaming.chunks import Part, Rows

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

FEW = 50
"""So many rows of every label are in the sample, if there are so many: rare labels would be lost otherwise."""


@dataclass(frozen=True, eq=False)
class Look:
    """What one look at some rows keeps of them: sums, and the rows that a sample of all may hold."""

    count: int
    mean: Array
    squares: Array
    low: Array
    high: Array
    keys: Array
    drawn: Rows
    digests: tuple[str, ...]

    def joined(self, other: Look, n_sample: int) -> Look:
        """Both together; means and sums of squares are merged without cancellation (Chan et al., 1983)."""
        count = self.count + other.count
        share = other.count / max(count, 1)
        step = other.mean - self.mean
        one, two = self.drawn, other.drawn
        labels = {label: code for code, label in enumerate(dict.fromkeys([*one.seen, *two.seen]))}
        rows = Rows(
            np.vstack([one.values, two.values]),
            np.concatenate([one.places, two.places + one.n_read]),
            np.concatenate([one.codes, two.coded(labels)]),
            list(labels),
            one.n_read + two.n_read,
        )
        keys, drawn = draw(np.concatenate([self.keys, other.keys]), rows, n_sample)
        return Look(
            count,
            self.mean + step * share,
            self.squares + other.squares + step**2 * share * self.count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            keys,
            drawn,
            self.digests + other.digests,
        )


def look_at_all(
    parts: Sequence[Part],
    names: tuple[str, ...],
    transform: str,
    n_sample: int,
    seed: int,
    n_jobs: int,
    ranks: Ranks,
) -> Look | None:
    """The looks of all parts and ranks together."""
    raw = Preprocessor(transform, names, np.zeros(len(names)), np.ones(len(names)))  # type: ignore[arg-type]  # checked in fit
    own = range(len(parts))[ranks.share(len(parts))]
    jobs = (delayed(_look)(parts[number], raw, number, n_sample, seed) for number in own)
    total: Look | None = None
    for look in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        total = look if total is None else total.joined(look, n_sample)
    seen = [look for look in ranks.gather(total) if look is not None]
    total = seen[0] if seen else None
    for look in seen[1:]:
        assert total is not None
        total = total.joined(look, n_sample)
    return total


def _look(part: Part, raw: Preprocessor, number: int, n_sample: int, seed: int) -> Look:
    """One part: its sums, and the rows with the smallest random keys."""
    rows = part.read()
    try:
        transformed = raw.forward(rows.values)
        check_finite(transformed, raw.columns)
    except ValueError as error:
        raise ValueError(f"{part.place}: {error}") from error
    n, values = len(rows.values), rows.values
    mean = transformed.sum(axis=0) / max(n, 1)  # a part may be empty
    with np.errstate(over="ignore"):  # what is too large is refused by name once all rows are seen
        squares = ((transformed - mean) ** 2).sum(axis=0)
    digest = hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()
    keys, drawn = draw(np.random.default_rng([seed, number]).random(n), rows, n_sample)
    low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
    return Look(n, mean, squares, low, high, keys, drawn, (digest,))


def draw(keys: Array, rows: Rows, n_sample: int, *, exactly: bool = False) -> tuple[Array, Rows]:
    """A few rows of every label, then those with the smallest keys; not ``exactly``: all that may be among them.

    What is drawn from parts, joined and drawn again is what would be drawn from all at once.
    """
    order = np.argsort(keys, kind="stable")
    first = np.zeros(len(keys), dtype=bool)
    for code in np.unique(rows.codes):
        first[order[rows.codes[order] == code][:FEW]] = True
    chosen = np.lexsort((keys, ~first))[: n_sample + (0 if exactly else int(first.sum()))]
    chosen = chosen[np.argsort(keys[chosen], kind="stable")]
    return keys[chosen], Rows(
        rows.values[chosen], rows.places[chosen], rows.codes[chosen], rows.seen, rows.n_read
    )
