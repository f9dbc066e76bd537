"""One look at all rows: sums that standardise them, and a sample, from parts that are read one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data.refusals import check_finite
from latentdo.data.transforms import Preprocessor
from latentdo.ranks import Ranks
from latentdo.streaming.chunks import Part, Rows

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

FEW = 50
"""So many rows of every label are in the sample, if there are so many: rare labels would be lost otherwise."""


@dataclass(frozen=True, eq=False)
class Look:
    """What one look at some rows keeps of them: sums, the labels of groups, and the rows that a sample may hold."""

    count: int
    mean: Array
    squares: Array
    low: Array
    high: Array
    keys: Array
    drawn: Rows
    groups: Mapping[Hashable, Hashable | None]
    digests: tuple[str, ...]

    def joined(self, other: Look, n_sample: int) -> Look:
        """Both together; means and sums of squares are merged without cancellation (Chan et al., 1983)."""
        count = self.count + other.count
        share = other.count / max(count, 1)
        step = other.mean - self.mean
        both = np.concatenate([self.keys, other.keys])
        keys, drawn = draw(both, self.drawn.joined(other.drawn), n_sample)
        return Look(
            count,
            self.mean + step * share,
            self.squares + other.squares + step**2 * share * self.count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            keys,
            drawn,
            _agreed([*self.groups.items(), *other.groups.items()]),
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
    random = np.random.default_rng([seed, number]).random(n)
    keys, drawn = draw(np.column_stack([_group_keys(rows, random, seed), random]), rows, n_sample)
    low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
    try:
        groups = _agreed(_labelled(rows))
    except ValueError as error:
        raise ValueError(f"{part.place}: {error}") from error
    return Look(n, mean, squares, low, high, keys, drawn, groups, (digest,))


def draw(keys: Array, rows: Rows, n_sample: int, *, exactly: bool = False) -> tuple[Array, Rows]:
    """A few rows of every label, then those with the smallest keys; not ``exactly``: all that may be among them.

    The keys ``[n, 2]`` are those of a row's group and of the row; they are equal for a row on its own. Rows of a group
    are drawn together, but no more of them than there could be groups, until all groups have had their turn: with few
    groups regimes would be lost, with few rows of each nobody could tell their regime.

    What is drawn from parts, joined and drawn again is what would be drawn from all at once: however many rows join, no
    group has fewer rows ahead of others than before.
    """
    group_keys, own_keys = keys.T
    order = np.argsort(own_keys, kind="stable")
    first = np.zeros(len(keys), dtype=bool)
    for code in np.unique(rows.regimes.codes) if rows.regimes.seen else ():
        first[order[rows.regimes.codes[order] == code][:FEW]] = True
    surplus = _ranks(group_keys, own_keys) >= np.ceil(np.sqrt(n_sample))
    turn = np.where(surplus, own_keys, group_keys)
    limit = n_sample + (0 if exactly else int(first.sum()))
    chosen = np.lexsort((own_keys, turn, surplus, ~first))[:limit]
    chosen = chosen[np.argsort(own_keys[chosen], kind="stable")]
    return keys[chosen], rows.take(chosen)


def _ranks(group_keys: Array, own_keys: Array) -> Codes:
    """Place of every row among those of its group."""
    order = np.lexsort((own_keys, group_keys))
    places = np.arange(order.size)
    begins = np.r_[True, np.diff(group_keys[order]) > 0.0][: order.size]
    found = np.empty_like(places)
    found[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return found


def _group_keys(rows: Rows, random: Array, seed: int) -> Array:
    """A random number for every group, the same in all parts; rows on their own keep theirs."""
    salt = str(seed).encode()
    digests = [hashlib.blake2b(repr(name).encode(), key=salt, digest_size=8) for name in rows.groups.seen]
    drawn = np.array([*(int.from_bytes(digest.digest()) / 2**64 for digest in digests), 0.0])
    return np.where(rows.groups.codes >= 0, drawn[rows.groups.codes], random)


def _labelled(rows: Rows) -> list[tuple[Hashable, Hashable | None]]:
    """Groups of rows, with their labels where they have any."""
    pairs = np.unique(np.column_stack([rows.groups.codes, rows.regimes.codes]), axis=0)
    named = [(g, r) for g, r in pairs.tolist() if g >= 0]
    return [(rows.groups.seen[g], rows.regimes.seen[r] if r >= 0 else None) for g, r in named]


def _agreed(groups: Sequence[tuple[Hashable, Hashable | None]]) -> dict[Hashable, Hashable | None]:
    """Groups with their labels, in the order of their coming; a row with a label labels its whole group."""
    found: dict[Hashable, Hashable | None] = {}
    for group, label in groups:
        known = found.get(group)
        if known is not None and label is not None and known != label:
            raise ValueError(
                f"group {group!r} has different labels in regimes: {known!r} and {label!r}. Rows of a group share one "
                "regime: correct the labels, or split the group."
            )
        found[group] = label if known is None else known
    return found
