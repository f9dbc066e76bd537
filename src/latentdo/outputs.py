"""The folder that a fit leaves behind: all files, or none; and never at the price of somebody else's files."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from latentdo.bootstrap import BootstrapDAG
from latentdo.diagnosis import Diagnosis
from latentdo.files import Claim, claimed, is_leftover, naming
from latentdo.interop import to_graphml
from latentdo.names import to_cell
from latentdo.persistence import save_result
from latentdo.report import installed_versions, render_report
from latentdo.result import FitResult

__all__ = [
    "FILES",
    "OPTIONAL_FILES",
    "RESULT_FILES",
    "RESULT_MARKER",
    "check_replaceable",
    "fresh_folder",
    "json_text",
    "rescue",
    "write_csv",
    "write_outputs",
]

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
    "segments.csv",
    "lagged_adjacency.csv",
    "trials.csv",
    "bootstrap_edges.csv",
    "edge_support.csv",
    "target_support.csv",
    "regime_stability.csv",
    "consensus.csv",
    "bootstrap.safetensors",
)
"""What some commands add."""

RESULT_FILES: Final = (*FILES, *OPTIONAL_FILES)
"""What a folder of results may hold."""

RESULT_MARKER: Final = "result.json"
"""The file that proves that a folder holds results of latentdo."""

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
    title: str | None = None,
    story: Sequence[str] = (),
) -> Path:
    """Write everything about a fit into a folder, all or nothing.

    The files are written into a folder beside it (``OUT.unfinished``), which then takes its place; a failure on the way
    leaves what was there untouched.

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
    title, story : str and sequence of str, optional
        Heading of the report, and paragraphs about these data at its top.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FileExistsError
        If the folder exists and may not be replaced, or if another run writes it.
    """
    with fresh_folder(directory, RESULT_FILES, overwrite=overwrite, marker=RESULT_MARKER) as place:
        content = {"program": "latentdo", "format": 1, "versions": installed_versions(), **result.summary()}
        if diagnosis is not None:
            content["diagnosis"] = diagnosis.to_dict()
        with place("result.json") as path:
            path.write_text(json_text(content), encoding="utf-8")
        regimes = result.regime_table()
        tables = {
            "adjacency.csv": result.adjacency.rename_axis("cause"),
            "edge_probabilities.csv": result.edge_table().rename_axis("cause"),
            "targets.csv": result.targets.rename_axis("regime"),
            "regimes.csv": regimes if X is None else regimes.assign(row=X.index),
            **({} if result.segments is None else {"segments.csv": result.segments}),
            **(
                {}
                if (lagged := result.lagged_adjacency) is None
                else {"lagged_adjacency.csv": lagged.reset_index()}
            ),
            **({} if bootstrap is None else _support_tables(bootstrap)),
            **({} if trials is None else {"trials.csv": trials}),
        }
        for name, table in tables.items():
            with place(name) as path:
                write_csv(table, path, index=table.index.name is not None)
        if bootstrap is not None:
            with place("bootstrap.safetensors") as path:
                bootstrap.save(path)
        with place("model.safetensors") as path:
            save_result(result, path)
        with place("graph.graphml") as path:
            path.write_text(to_graphml(result), encoding="utf-8")
        # names may hold half a surrogate pair, which no encoding can write
        report = render_report(
            result, X, bootstrap=bootstrap, diagnosis=diagnosis, trials=trials, title=title, story=story
        )
        with place("report.html") as path:
            path.write_bytes(report.encode("utf-8", errors="replace"))
    return Path(directory)


def rescue(result: FitResult, bootstrap: BootstrapDAG | None = None) -> Path:
    """Keep what took long to compute in the first place that takes it, because its own folder does not.

    Parameters
    ----------
    result : FitResult
        What to keep, as ``model.safetensors``.
    bootstrap : BootstrapDAG, optional
        Kept beside it, as ``bootstrap.safetensors``.

    Returns
    -------
    Path
        A new folder: among temporary files, in the home of the user, or in the current folder.

    Raises
    ------
    OSError
        If none of them can be written.
    """
    reasons = []
    for place in (tempfile.gettempdir(), Path.home(), Path.cwd()):
        try:
            folder = Path(tempfile.mkdtemp(prefix="latentdo-rescued-", dir=place))
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            save_result(result, folder / "model.safetensors")
            if bootstrap is not None:
                bootstrap.save(folder / "bootstrap.safetensors")
        except OSError as error:
            reasons.append(str(error))
            shutil.rmtree(folder, ignore_errors=True)
        else:
            return folder
    raise OSError(f"the result could be kept nowhere: {'; '.join(reasons)}")


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
) -> Iterator[Callable[[str], AbstractContextManager[Path]]]:
    """Fill a new folder that takes the place of ``directory`` if the block succeeds.

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
    callable
        From the name of a file to a context with the path to write it to; errors of the system then name the file.
    """
    with claimed(directory) as claim:
        check = partial(check_replaceable, claim, files, overwrite=overwrite, marker=marker)
        with claim.fresh_results(check) as folder:

            @contextmanager
            def place(name: str) -> Iterator[Path]:
                with naming(claim.named / name):
                    yield folder / name

            yield place


def check_replaceable(claim: Claim, files: tuple[str, ...], *, overwrite: bool, marker: str) -> None:
    """Refuse to replace what is not a folder of results of the same kind, or what the user wants to keep.

    Parameters
    ----------
    claim : Claim
        The output folder.
    files, overwrite, marker
        See :func:`fresh_folder`.

    Raises
    ------
    FileExistsError
        If something is there that may not be replaced.
    """
    final, shown = claim.final, repr(str(claim.named))
    if not final.exists():
        return
    if not overwrite:
        raise FileExistsError(
            f"{shown} already exists; choose another folder, or pass overwrite=True (--overwrite) to replace it."
        )
    inside = {entry.name for entry in final.iterdir()} - _CLUTTER
    if not inside:
        return
    foreign = sorted(
        name
        for name in inside
        if not (name in files or is_leftover(name, files)) or not (final / name).is_file()
    )
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


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = True) -> None:
    """Write a table whose text no spreadsheet takes for a formula."""

    def harmless(values: Any) -> Any:
        """Text that no spreadsheet runs; numbers as they are."""
        return values.map(lambda value: to_cell(value) if isinstance(value, str) else value)

    words = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    safe = table.assign(**{name: harmless(table[name]) for name in words}).rename(columns=to_cell)
    if index:
        safe.index = harmless(safe.index)
    safe.to_csv(path, index=index, encoding="utf-8", errors="backslashreplace", lineterminator="\n")
