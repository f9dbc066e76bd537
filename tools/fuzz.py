"""Coverage-guided fuzzing of what reads files: ``python tools/fuzz.py model|csv|parquet [libFuzzer options]``.

Needs atheris (``pip install atheris``). Every input must be read, or refused with the promised error; anything else is
a crash, and libFuzzer keeps the bytes. ``tests/robustness/test_fuzz.py`` is the small deterministic version.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import atheris

# numba cannot compile functions that atheris has instrumented
SOURCE = Path(__file__).parents[1] / "src"
COMPILED = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in (SOURCE / "latentdo").rglob("*.py")
    if "numba" in path.read_text("utf-8")
]
with atheris.instrument_imports(include=["latentdo", "safetensors", "csv", "json"], exclude=COMPILED):
    import numpy as np
    import pandas as pd

    from latentdo import LatentInterventionDAG, read_table
    from latentdo.persistence import ResultFileError, load_arrays, save_arrays

FOLDER = Path(tempfile.mkdtemp(prefix="latentdo-fuzz-"))


def example() -> pd.DataFrame:
    """A small table."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    x[:, 1] += x[:, 0]
    return pd.DataFrame(x, columns=["a", "b"])


def csv(content: bytes) -> None:
    """Any bytes as a table of text."""
    _read(FOLDER / "data.csv", content)


def parquet(content: bytes) -> None:
    """Any bytes as a Parquet file."""
    _read(FOLDER / "data.parquet", content)


def _read(path: Path, content: bytes) -> None:
    """A refusal, or finite numbers."""
    path.write_bytes(content)
    try:
        found = read_table(path)
    except ValueError:
        return
    assert np.isfinite(found.to_numpy()).all()


def model(content: bytes) -> None:
    """Any bytes as a saved model, and again with a valid checksum where they get that far."""
    path = FOLDER / "model.safetensors"
    path.write_bytes(content)
    try:
        LatentInterventionDAG.load(path)
    except ResultFileError:
        pass
    else:
        return
    state, arrays = load_arrays(SAVED, "latentdo")
    given = atheris.FuzzedDataProvider(content)
    names = sorted(arrays)
    for _ in range(given.ConsumeIntInRange(1, 3)):
        name = names[given.ConsumeIntInRange(0, len(names) - 1)]
        array = np.array(arrays[name])
        if array.size:
            value = given.ConsumeInt(8) if array.dtype.kind in "iu" else given.ConsumeFloat()
            with np.errstate(all="ignore"):
                array.flat[given.ConsumeIntInRange(0, array.size - 1)] = np.array(value).astype(array.dtype)
        arrays[name] = array
    save_arrays(path, "latentdo", arrays, state)
    try:
        loaded = LatentInterventionDAG.load(path)
    except ResultFileError:
        return
    assert np.isfinite(loaded.predict_proba(example())).all()
    assert np.isfinite(loaded.sample(2).to_numpy()).all()


SAVED = FOLDER / "saved"
TARGETS: dict[str, Callable[[bytes], None]] = {"model": model, "csv": csv, "parquet": parquet}


def main() -> None:
    """Fuzz what the first argument names."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"usage: python tools/fuzz.py {'|'.join(TARGETS)} [libFuzzer options]")
    warnings.simplefilter("ignore")
    name = sys.argv.pop(1)
    LatentInterventionDAG(max_regimes=2, n_init=1).fit(example()).save(SAVED)
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    table = io.BytesIO()
    example().to_parquet(table)
    first = {
        "model": SAVED.read_bytes(),
        "csv": example().to_csv(index=False).encode(),
        "parquet": table.getvalue(),
    }
    (corpus / "first").write_bytes(first[name])
    atheris.Setup([*sys.argv, str(corpus)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
