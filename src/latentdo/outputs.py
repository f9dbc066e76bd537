"""The folder that a fit leaves behind: all files, or none; and never at the price of somebody else's files."""

from __future__ import annotations

import glob
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from latentdo.bootstrap import BootstrapDAG
from latentdo.diagnosis import Diagnosis
from latentdo.interop import to_graphml
from latentdo.names import to_cell
from latentdo.persistence import save_result
from latentdo.report import installed_versions, render_report
from latentdo.result import FitResult

__all__ = ["FILES", "OPTIONAL_FILES", "fresh_folder", "json_text", "write_outputs"]

FILES: Final = (
    "result.json",
    "adjacency.csv",
    "edge_probabilities.csv",
    "targets.csv",
    "regimes.csv",
    "model.safetensors",
    "graph.graphml",
    "report.html",
)
"""Everything :func:`write_outputs` writes."""

OPTIONAL_FILES: Final = (
    "trials.csv",
    "bootstrap_edges.csv",
    "edge_support.csv",
    "target_support.csv",
    "regime_stability.csv",
    "consensus.csv",
    "bootstrap.safetensors",
)
"""What some commands add."""

_CLUTTER = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def write_outputs(
    result: FitResult,
    directory: str | Path,
    overwrite: bool = False,
    *,
    X: pd.DataFrame | None = None,
    trials: pd.DataFrame | None = None,
    bootstrap: BootstrapDAG | None = None,
    diagnosis: Diagnosis | None = None,
) -> Path:
    """Write everything about a fit into a folder, all or nothing.

    The files are written into a temporary folder beside it, which then takes its place; a failure on the way leaves
    what was there untouched.

    Parameters
    ----------
    result : FitResult
        What to write.
    directory : str or Path
        The folder. It must not exist, unless ``overwrite``; folders above it are created.
    overwrite : bool
        Replace an existing folder of results once the new one is complete. A folder that holds anything latentdo
        did not write is refused all the same.
    X : DataFrame [n, d], optional
        The rows that were fitted; adds scatter plots to the report, and its index numbers the rows of
        ``regimes.csv`` (rows that were dropped on reading leave gaps there).
    trials : DataFrame, optional
        What a tuning tried (``TunedDAG.trials_``): the report shows it, and ``trials.csv`` holds it.
    bootstrap : BootstrapDAG, optional
        What resampled rows say: the report shows it, tables of support and the resamples themselves lie beside it.
    diagnosis : Diagnosis, optional
        What ``diagnose()`` says; the report shows it, and ``result.json`` holds it.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FileExistsError
        If the folder exists and may not be replaced.
    """
    known = (*FILES, *OPTIONAL_FILES)
    with fresh_folder(directory, known, overwrite=overwrite, marker="result.json") as folder:
        content = {"program": "latentdo", "format": 1, "versions": installed_versions(), **result.summary()}
        if diagnosis is not None:
            content["diagnosis"] = diagnosis.to_dict()
        (folder / "result.json").write_text(json_text(content), encoding="utf-8")
        _csv(result.adjacency.rename_axis("cause"), folder / "adjacency.csv")
        _csv(result.edge_table().rename_axis("cause"), folder / "edge_probabilities.csv")
        _csv(result.targets.rename_axis("regime"), folder / "targets.csv")
        regimes = result.regime_table()
        _csv(regimes if X is None else regimes.assign(row=X.index), folder / "regimes.csv", index=False)
        tables = {} if bootstrap is None else _support_tables(bootstrap)
        if trials is not None:
            tables["trials.csv"] = trials
        for name, table in tables.items():
            _csv(table, folder / name, index=table.index.name is not None)
        if bootstrap is not None:
            bootstrap.save(folder / "bootstrap.safetensors")
        save_result(result, folder / "model.safetensors")
        (folder / "graph.graphml").write_text(to_graphml(result), encoding="utf-8")
        # names may hold half a surrogate pair, which no encoding can write
        report = render_report(result, X, bootstrap=bootstrap, diagnosis=diagnosis, trials=trials)
        (folder / "report.html").write_bytes(report.encode("utf-8", errors="replace"))
    return Path(directory)


def _support_tables(bootstrap: BootstrapDAG) -> dict[str, pd.DataFrame]:
    """What a bootstrap says, by the names of the files."""
    return {
        "bootstrap_edges.csv": bootstrap.edges_,
        "edge_support.csv": bootstrap.edge_support_.rename_axis("cause"),
        "target_support.csv": bootstrap.target_support_.rename_axis("regime"),
        "regime_stability.csv": bootstrap.regime_stability_.rename_axis("regime"),
        "consensus.csv": bootstrap.adjacency_.rename_axis("cause"),
    }


@contextmanager
def fresh_folder(
    directory: str | Path, files: tuple[str, ...], *, overwrite: bool, marker: str
) -> Iterator[Path]:
    """Fill a temporary folder that takes the place of ``directory`` if the block succeeds.

    Parameters
    ----------
    directory : str or Path
        Where the folder shall be.
    files : tuple of str
        Names that a folder of this kind may hold; any other file protects an existing folder.
    overwrite : bool
        Whether an existing folder of this kind may be replaced.
    marker : str
        The file, one of ``files`` and a JSON object with ``"program": "latentdo"``, that proves the kind.

    Yields
    ------
    Path
        The temporary folder, beside ``directory``.
    """
    final = Path(directory).resolve()
    _bring_back(final)
    _check_replaceable(final, Path(directory), files, overwrite=overwrite, marker=marker)
    final.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(6)
    fresh, old = (final.with_name(f".{final.name[:80]}.{kind}-{token}") for kind in ("new", "old"))
    fresh.mkdir()
    try:
        yield fresh
        if final.exists():
            # looked at again: much may happen to a folder while a fit runs
            _check_replaceable(final, Path(directory), files, overwrite=overwrite, marker=marker)
            os.rename(final, old)
        try:
            os.rename(fresh, final)
        except BaseException:
            if old.exists():
                os.rename(old, final)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _bring_back(final: Path) -> None:
    """Undo half a replacement: a process that was killed between its two renames left the old folder aside."""
    aside = sorted(final.parent.glob(f".{glob.escape(final.name[:80])}.old-*"))
    if aside and not final.exists():
        os.rename(aside[-1], final)


def check_folder(directory: str | Path, *, overwrite: bool) -> None:
    """Refuse early, before a long fit, what :func:`write_outputs` would refuse after it."""
    _bring_back(Path(directory).resolve())
    _check_replaceable(
        Path(directory).resolve(),
        Path(directory),
        (*FILES, *OPTIONAL_FILES),
        overwrite=overwrite,
        marker="result.json",
    )


def _check_replaceable(
    final: Path, named: Path, files: tuple[str, ...], *, overwrite: bool, marker: str
) -> None:
    shown = repr(str(named))
    if not final.exists():
        return
    if not final.is_dir():
        raise FileExistsError(f"{shown} is a file, not a folder; choose another name.")
    if not overwrite:
        raise FileExistsError(
            f"{shown} already exists; choose another folder, or pass overwrite=True (--overwrite) to replace it."
        )
    inside = {entry.name for entry in final.iterdir()} - _CLUTTER
    if not inside:
        return
    foreign = sorted(name for name in inside if name not in files or not (final / name).is_file())
    if not _is_ours(final / marker):
        raise FileExistsError(
            f"{shown} is not a folder that latentdo wrote (it has no {marker} of latentdo), so it is not replaced "
            "even with overwrite=True (--overwrite); choose another folder."
        )
    if foreign:
        listed = ", ".join(map(repr, foreign[:5])) + (", ..." if len(foreign) > 5 else "")
        raise FileExistsError(
            f"{shown} also holds what latentdo did not write ({listed}); move that away, or choose another folder."
        )


def _is_ours(marker: Path) -> bool:
    try:
        content = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("program") == "latentdo"


def json_text(content: Mapping[str, Any]) -> str:
    """Indented JSON that every reader accepts: numbers that are not finite become null, other objects text."""
    return json.dumps(_plain(content), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, pd.DataFrame):
        return _plain(value.to_dict("split"))
    return str(value)


def _csv(table: pd.DataFrame, path: Path, *, index: bool = True) -> None:
    def harmless(values: Any) -> Any:
        """Text that no spreadsheet runs; numbers as they are."""
        return values.map(lambda value: to_cell(value) if isinstance(value, str) else value)

    words = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    safe = table.assign(**{name: harmless(table[name]) for name in words}).rename(columns=to_cell)
    if index:
        safe.index = harmless(safe.index)
    safe.to_csv(path, index=index, encoding="utf-8", errors="backslashreplace", lineterminator="\n")
