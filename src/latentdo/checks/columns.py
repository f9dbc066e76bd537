"""Columns that are no plain measurements: shared values, skew that a transform mends, copies of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import skew

from latentdo.checks.check import Array, Check, listed, p_value, touching
from latentdo.data.atoms import Atoms, at
from latentdo.data.kinds import Kind
from latentdo.data.remarks import COPY
from latentdo.data.transforms import Preprocessor
from latentdo.solvers.settings import CHECK_LEVEL, MENDED, SKEWED

_SHOWN = 8  # at most so many names in one sentence


def check_atoms(x: Array, atoms: Atoms, names: Sequence[str]) -> Check:
    """Whether many rows share a value: rounded columns, detection limits, zeros."""
    shares = [
        (float(at(x[:, j], mass.value).mean()), name, mass.value)
        for j, name in enumerate(names)
        for mass in atoms.masses[j]
    ]
    rounded = [name for name, is_rounded in zip(names, atoms.rounded, strict=True) if is_rounded]
    if not shares and not rounded:
        return Check(
            "shared values", 0.0, None, False, "Columns are continuous: no limits, zeros or rounding."
        )
    words = []
    if shares:
        shown = [
            f"{name} at {value:.4g} ({share:.0%})" for share, name, value in sorted(shares, reverse=True)
        ]
        words.append(f"many rows share one value: {listed(shown, _SHOWN)}")
    if rounded:
        words.append(f"columns are rounded: {listed(rounded, _SHOWN)}")
    text = "; ".join(words)
    labels = ", pass labels (regimes=) if an intervention set the shared values" if shares else ""
    return Check(
        "shared values",
        max((share for share, _, _ in shares), default=0.0),
        None,
        True,
        f"{text[0].upper()}{text[1:]}; what the fit substitutes for hidden digits and values is a guess: use raw "
        f"values with all their digits{labels}, and read arrows of these columns with caution.",
    )


def check_skew(x: Array, names: Sequence[str], preprocessor: Preprocessor) -> Check:
    """Whether continuous columns are skewed and their logarithms are not; cells of ``x [n, d]`` may be missing."""
    passed = Check("skew", 0.0, None, False, "No column is skewed in a way that a logarithm would remove.")
    if preprocessor.transform != "none" or len(x) < 3:
        return passed
    mended, largest, z = [], 0.0, 0.0
    for j in np.flatnonzero(preprocessor.continuous & (np.fmin.reduce(x) >= 0.0)).tolist():
        column = x[~np.isnan(x[:, j]), j]
        raw = abs(float(skew(column)))
        if raw < SKEWED:
            continue
        after = abs(float(skew(np.log(column) if column.min() > 0.0 else np.log1p(column))))
        if after < MENDED * raw:
            mended.append((raw, names[j]))
            largest, z = max(largest, raw), max(z, raw / float(np.sqrt(6.0 / len(column))))
    p = p_value(z, len(names)) if mended else None
    if not mended or (p is not None and p > CHECK_LEVEL):
        return passed
    name = "log" if np.nanmin(x[:, preprocessor.continuous]) > 0.0 else "log1p"
    few = "" if len(mended) == len(names) else " to these columns beforehand, or"
    words = (
        f"{listed([one for _, one in sorted(mended, reverse=True)])} {'is' if len(mended) == 1 else 'are'} skewed (up "
        f"to {largest:.1f}), but hardly so after a logarithm: apply it{few} with transform={name!r} and fit "
        "again; arrows found without it may be reversed."
    )
    return Check("skew", largest, p, True, words, touching([one for _, one in mended], names))


def check_copies(z: Array, names: Sequence[str]) -> Check:
    """Whether two columns are nearly the same up to scale."""
    centred = z - z.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    correlation = np.triu(
        np.abs(centred.T @ centred) / np.maximum(np.outer(size, size), np.finfo(float).tiny), 1
    )
    found = np.argwhere(correlation > 1.0 - COPY)
    words = "No two columns are nearly copies of each other."
    if found.size:
        shown = [f"{names[i]} and {names[j]}" for i, j in found]
        words = (
            f"{listed(shown, _SHOWN)} are nearly copies of each other: the data cannot show which of the two is "
            "a cause or an effect, so read an arrow at either as an arrow at one of them; drop one of each pair."
        )
    pairs = tuple((names[i], names[j]) for i, j in found)
    return Check("near copies", float(correlation.max(initial=0.0)), None, bool(found.size), words, pairs)


def check_measured(kinds: Sequence[Kind], *, told: bool) -> Check:
    """Whether any column can show a hidden intervention, where it was not ``told`` which rows belong together.

    A mixture of two distributions of a column with few levels is another distribution of the same form.
    """
    passed = Check(
        "levels only", 0.0, None, False, "Some columns can show hidden interventions, or labels do."
    )
    if told or any(kind.kind in ("continuous", "count") for kind in kinds):
        return passed
    words = (
        "All columns are yes/no answers or categories, in which hidden interventions hardly show; regimes and arrows "
        "that are found without labels are wrong about half of the time in simulations: pass labels (regimes=) or "
        "say which rows share an intervention (groups=), or add a measurement or a count."
    )
    return replace(passed, statistic=float(len(kinds)), failed=True, words=words)
