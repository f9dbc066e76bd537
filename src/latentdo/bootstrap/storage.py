"""A bootstrap in one file: safetensors and JSON, no pickle."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.bootstrap.resample import Resample
from latentdo.estimator import LatentInterventionDAG
from latentdo.graphs import is_dag
from latentdo.model.mechanisms.noise import SUM_TOLERANCE
from latentdo.persistence import ResultFileError, load_arrays, load_result, pack_result, save_arrays
from latentdo.result import FitResult

_ENTRY: Final = "latentdo-bootstrap"


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds.

    Parameters
    ----------
    fit : LatentInterventionDAG
        The fit to all rows.
    resamples : list of Resample
        Those that are done.
    parameters : mapping
        Arguments of the bootstrap, but for the estimator.
    fingerprint : mapping from str to str
        What must be the same for resamples of two runs to belong together.
    failures : list of str
        Messages of resamples that could not be fitted.
    """

    fit: LatentInterventionDAG
    resamples: list[Resample]
    parameters: Mapping[str, Any]
    fingerprint: Mapping[str, str]
    failures: list[str]


def write(path: str | Path, stored: Stored) -> None:
    """Write everything, whole or not at all."""
    d, k = len(stored.fit.result_.columns), stored.fit.n_regimes_
    kept = stored.resamples
    arrays: dict[str, NDArray[Any]] = {
        "fit": _as_bytes(stored.fit.result_),
        "number": np.array([r.number for r in kept], dtype=np.int64),
        "adjacency": np.array([r.adjacency for r in kept], dtype=np.int8).reshape(-1, d, d),
        "targets": np.array([r.targets for r in kept], dtype=np.int8).reshape(-1, k, d),
        "overlap": np.array([r.overlap for r in kept], dtype=np.float64).reshape(-1, k),
        "n_regimes": np.array([r.n_regimes for r in kept], dtype=np.int64),
        "evidence": np.array([r.evidence for r in kept], dtype=np.float64),
        "match": np.array([r.match for r in kept], dtype=np.int64).reshape(-1, k),
        "fit_sizes": np.array([len(r.fit) for r in kept], dtype=np.int64),
        "fits": np.frombuffer(b"".join(r.fit for r in kept), dtype=np.uint8),
    }
    state = {
        "parameters": {name: str(v) if isinstance(v, Path) else v for name, v in stored.parameters.items()},
        "fingerprint": dict(stored.fingerprint),
        "failures": stored.failures,
    }
    save_arrays(path, _ENTRY, arrays, state)


def read(path: str | Path) -> Stored:
    """Read what :func:`write` wrote.

    Raises
    ------
    ResultFileError
        If the file is damaged, or not of this kind.
    """
    state, arrays = load_arrays(path, _ENTRY)
    try:
        fit = _restore(arrays["fit"].tobytes())
        _check(arrays, fit.result_)
        parameters = dict(state["parameters"])
        fingerprint = {str(name): str(v) for name, v in state["fingerprint"].items()}
        failures = [str(message) for message in state["failures"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ResultFileError(f"{str(path)!r} does not hold a consistent bootstrap: {reason}.") from error
    count, ends = len(arrays["number"]), np.cumsum(arrays["fit_sizes"])
    resamples = [
        Resample(
            number=int(arrays["number"][b]),
            adjacency=arrays["adjacency"][b],
            targets=arrays["targets"][b],
            overlap=arrays["overlap"][b],
            n_regimes=int(arrays["n_regimes"][b]),
            evidence=float(arrays["evidence"][b]),
            match=arrays["match"][b],
            fit=arrays["fits"][ends[b] - arrays["fit_sizes"][b] : ends[b]].tobytes(),
        )
        for b in range(count)
    ]
    return Stored(fit, resamples, parameters, fingerprint, failures)


def _restore(content: bytes) -> LatentInterventionDAG:
    """The fit to all rows; a refusal does not name the file that exists only while it is read."""
    with _on_disk(content) as path:
        try:
            return LatentInterventionDAG.load(path)
        except ResultFileError as error:
            raise ResultFileError(str(error).replace(repr(str(path)), "its fit to all rows")) from error


def _check(arrays: Mapping[str, NDArray[Any]], fit: FitResult) -> None:
    """Refuse resamples that no run could have left.

    Raises
    ------
    ValueError
        Naming the array.
    """
    d, k = len(fit.columns), fit.n_regimes
    count = len(np.atleast_1d(arrays["number"]))
    layout: dict[str, tuple[type, tuple[int, ...]]] = {
        "number": (np.int64, ()), "adjacency": (np.int8, (d, d)), "targets": (np.int8, (k, d)),
        "overlap": (np.float64, (k,)), "n_regimes": (np.int64, ()), "evidence": (np.float64, ()),
        "match": (np.int64, (k,)), "fit_sizes": (np.int64, ()),
    }  # fmt: skip
    for name, (kind, shape) in layout.items():
        if arrays[name].shape != (count, *shape) or arrays[name].dtype != kind:
            raise ValueError(f"it has {name} of shape {arrays[name].shape} and type {arrays[name].dtype}")
    sizes = arrays["fit_sizes"]
    total = arrays["fits"].size
    allowed = {
        "number": (arrays["number"] >= 0).all() and np.unique(arrays["number"]).size == count,
        "adjacency": np.isin(arrays["adjacency"], (0, 1)).all() and all(map(is_dag, arrays["adjacency"])),
        "targets": np.isin(arrays["targets"], (0, 1)).all() and not arrays["targets"][:, 0].any(),
        "overlap": (arrays["overlap"] >= 0.0) & (arrays["overlap"] <= 1.0 + SUM_TOLERANCE),
        "n_regimes": arrays["n_regimes"] >= 1,
        "evidence": np.isfinite(arrays["evidence"]),
        "match": (arrays["match"] >= -1) & (arrays["match"] < arrays["n_regimes"][:, None]),
        # each is compared first: a sum of huge sizes would wrap around
        "fit_sizes": ((sizes >= 0) & (sizes <= total)).all() and sizes.sum() == total,
    }
    for name, fine in allowed.items():
        if not np.all(fine):
            raise ValueError(f"it has {name} that no resample gives")


def unpack_result(content: bytes) -> FitResult:
    """The result that :func:`~latentdo.persistence.pack_result` made these bytes of."""
    with _on_disk(content) as path:
        try:
            return load_result(path)
        except ResultFileError as error:
            raise ResultFileError(
                str(error).replace(repr(str(path)), "a resample of the bootstrap")
            ) from error


@contextmanager
def _on_disk(content: bytes) -> Iterator[Path]:
    """A file for as long as it is read: safetensors checks files, not bytes, piece by piece."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        path.write_bytes(content)
        yield path


def _as_bytes(result: FitResult) -> NDArray[np.uint8]:
    """A saved result as an array, so that one file holds everything."""
    return np.frombuffer(pack_result(result), dtype=np.uint8)
