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
        with _on_disk(arrays["fit"].tobytes()) as inner:
            fit = LatentInterventionDAG.load(inner)
        d, k = len(fit.result_.columns), fit.n_regimes_
        count = len(arrays["number"])
        shapes = {
            "adjacency": (d, d), "targets": (k, d), "overlap": (k,), "n_regimes": (), "evidence": (), "match": (k,),
            "fit_sizes": (),
        }  # fmt: skip
        for name, shape in shapes.items():
            if arrays[name].shape != (count, *shape):
                raise ResultFileError(f"it has {name} of shape {arrays[name].shape}")
        ends = np.cumsum(arrays["fit_sizes"])
        if (arrays["fit_sizes"] < 0).any() or (ends[-1] if count else 0) != arrays["fits"].size:
            raise ResultFileError("its models have other sizes than it says")
        parameters = dict(state["parameters"])
        fingerprint = {str(name): str(v) for name, v in state["fingerprint"].items()}
        failures = [str(message) for message in state["failures"]]
    except (KeyError, TypeError, AttributeError, ResultFileError) as error:
        raise ResultFileError(f"{str(path)!r} does not hold a consistent bootstrap ({error}).") from error
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


def unpack_result(content: bytes) -> FitResult:
    """The result that :func:`~latentdo.persistence.pack_result` made these bytes of."""
    with _on_disk(content) as path:
        return load_result(path)


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
