"""Tables larger than memory: where their rows are, and one look at all of them.

A source is a Parquet file or a folder of them, a Dask table, or a sequence of tables; it becomes a list of parts
(:mod:`.parts`), each a small object that reads its rows when called, here or on a worker. One look at all of them
(:mod:`.look`) tells how to standardise, and draws a sample. With several ranks every one reads its share of the parts,
and they exchange what they have seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentdo.data import Dataset, Missing
from latentdo.data.labels import encode_targets, order_labels
from latentdo.data.refusals import check_varying
from latentdo.data.remarks import warn_about_copies, warn_about_shape
from latentdo.data.transforms import Preprocessor
from latentdo.ranks import Ranks
from latentdo.streaming.chunks import Part, Rows, labels_of, parts_of
from latentdo.streaming.scan import draw, look_at_all

__all__ = ["Part", "Stream", "labels_of", "open_stream", "parts_of"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stream:
    """All rows of a source, ready to be read again and again.

    Parameters
    ----------
    sample : Dataset
        Rows drawn from all of them without replacement, with the preprocessor of all; ``row_index`` counts through all.
    parts : tuple of callables
        Each reads some rows, standardised, the index of their regimes, -1 where unknown, and that of their groups, -1
        for rows on their own. With several ranks these are the parts of this one.
    n_rows : int
        Number of rows that are used, on all ranks.
    content_hash : str
        Hexadecimal SHA-256 of names and values, part by part.
    group_regimes : ndarray [n_groups] of int64
        Index of the regime that a group is known to have, -1 where unknown; empty if rows do not belong together.
    """

    sample: Dataset
    parts: tuple[Callable[[], tuple[Array, Codes, Codes]], ...]
    n_rows: int
    content_hash: str
    group_regimes: Codes = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def open_stream(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    regimes: str | None = None,
    targets: Any = None,
    groups: str | None = None,
    observational: Hashable = 0,
    transform: str = "none",
    missing: Missing = "error",
    n_sample: int = 20_000,
    random_state: int = 0,
    n_jobs: int = 1,
    ranks: Ranks | None = None,
) -> Stream:
    """Look at every row once: check them, learn the scaling, and draw a sample.

    Parameters
    ----------
    source, columns, regimes, groups, missing
        See :func:`parts_of`.
    targets, observational
        As for :meth:`latentdo.data.Dataset.from_table`.
    transform : {"none", "log", "log1p"}
        Applied to every column; "rank-gaussian" would need all rows at once.
    n_sample : int
        Size of the sample. Which rows are drawn depends on the seed and on how the rows are parted, not on ``n_jobs``
        or ``ranks``.
    random_state : int
        Seed of the sample.
    n_jobs : int
        Parts that are read at a time.
    ranks : Ranks, optional
        Processes that open the same source; each reads its share of the parts.

    Examples
    --------
    >>> import pandas as pd
    >>> first, second = pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [3.0, 6.0]})
    >>> stream = open_stream([first, second])
    >>> stream.n_rows, stream.sample.preprocessor.mean
    (4, array([3.]))
    """
    if transform == "rank-gaussian":
        raise ValueError(
            'transform="rank-gaussian" needs all rows in memory; stream with transform="log1p", "log" or "none".'
        )
    if missing == "model":
        raise ValueError(
            'missing="model" needs all rows in memory; stream with missing="drop", or fit as many rows as fit there.'
        )
    if targets is not None and regimes is None:
        raise ValueError("targets were given without regimes; pass regimes= too, the name of a column.")
    ranks = Ranks() if ranks is None else ranks
    parts, names = parts_of(source, columns, regimes, groups, missing)
    total = look_at_all(parts, names, transform, n_sample, random_state, n_jobs, ranks)
    if total is None or total.count < 2:
        raise ValueError("There are fewer than two rows.")
    extremes = np.vstack([total.low, total.high])
    check_varying(extremes, names)
    Preprocessor.fit(extremes, transform, names)  # refuses what float64 cannot hold
    mean, scale = total.mean, np.sqrt(total.squares / total.count)
    preprocessor = Preprocessor(transform, names, mean, scale)  # type: ignore[arg-type]
    _, drawn = draw(total.keys, total.drawn, n_sample, exactly=True)
    known: dict[str, Any] = {"row_index": drawn.places, "n_dropped": drawn.n_read - total.count}
    index: dict[Hashable, int] = {}
    if regimes is not None:
        seen, unknown = drawn.regimes.seen, bool((drawn.regimes.codes < 0).any())
        labels = order_labels(seen, targets, observational, has_unknown=unknown)
        index = {label: k for k, label in enumerate(labels)}
        matrix = None if targets is None else encode_targets(targets, labels, seen, names)
        known |= {"regime_labels": labels, "targets": matrix}
    numbers = {group: g for g, group in enumerate(total.groups)}
    group_regimes = np.array(
        [-1 if label is None else index[label] for label in total.groups.values()], dtype=np.int64
    )
    codes, members = _coded(drawn, index, numbers, group_regimes)
    if regimes is not None:
        known["regimes"] = codes
    if groups is not None:
        alone = len(numbers) + np.arange(members.size)
        known |= {"groups": np.where(members < 0, alone, members), "group_labels": tuple(numbers)}
    sample = Dataset(drawn.values, names, preprocessor, **known)
    warn_about_shape(total.count, scale, names)
    spread = sample.z.std(axis=0)  # not one: the scaling is that of all rows
    varying = np.flatnonzero(spread)
    standard = (sample.z - sample.z.mean(axis=0))[:, varying] / spread[varying]
    warn_about_copies(standard, [names[j] for j in varying])
    own = parts[ranks.share(len(parts))]
    digest = hashlib.sha256("".join((repr(names), *total.digests)).encode()).hexdigest()
    read = partial(
        _standardised, preprocessor=preprocessor, index=index, numbers=numbers, group_regimes=group_regimes
    )
    return Stream(sample, tuple(partial(read, part) for part in own), total.count, digest, group_regimes)


def _standardised(
    part: Part,
    preprocessor: Preprocessor,
    index: Mapping[Hashable, int],
    numbers: Mapping[Hashable, int],
    group_regimes: Codes,
) -> tuple[Array, Codes, Codes]:
    rows = part.read()
    return preprocessor.forward(rows.values), *_coded(rows, index, numbers, group_regimes)


def _coded(
    rows: Rows, index: Mapping[Hashable, int], numbers: Mapping[Hashable, int], group_regimes: Codes
) -> tuple[Codes, Codes]:
    """Numbers of regimes and groups; a group's regime is that of all its rows."""
    members = rows.groups.by(numbers)
    regimes = rows.regimes.by(index)
    return np.where(members < 0, regimes, np.append(group_regimes, -1)[members]), members
