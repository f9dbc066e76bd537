"""``latentdo report``: the page again, from a saved result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from latentdo.cli.application import app
from latentdo.cli.console import print_json, say
from latentdo.cli.options import ConfigFile, Flag
from latentdo.cli.tables import check_results, read_origin, read_trials

if TYPE_CHECKING:
    import pandas as pd

    from latentdo.data import Missing
    from latentdo.result import FitResult


@app.command
def report(
    results: Path,
    /,
    *,
    data: Path | None = None,
    out: Path | None = None,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
) -> None:
    """Write report.html again from a saved result, for example after an upgrade.

    Parameters
    ----------
    results
        Folder that `latentdo fit` wrote, or a model.safetensors file.
    data
        The table that was fitted; adds scatter plots. Rows with missing values are left out, as `--missing drop` does,
        unless the fit had `--missing model`.
    out
        The HTML file; report.html in the folder by default.
    json
        Print where it is as JSON on standard output.
    """
    from latentdo.bootstrap import BootstrapDAG
    from latentdo.files import write_atomically
    from latentdo.persistence import load_result
    from latentdo.readers.table import ReadingOptions, read_labelled
    from latentdo.report import render_report

    check_results(results, file_allowed=True)
    model = results / "model.safetensors" if results.is_dir() else results
    result = load_result(model)
    about = model.with_name("result.json")
    versions, limits = read_origin(about) if about.is_file() else (None, None)
    missing: Missing = "model" if result.configuration.get("missing") == "model" else "drop"
    kinds = {
        name: kind.kind for name, kind in zip(result.columns, result.kinds, strict=True) if kind.is_discrete
    }
    options = ReadingOptions(columns=list(result.columns), missing=missing, kinds=kinds)
    X = None if data is None else read_labelled(data, {}, options)[0]
    if X is not None and not _may_be_fitted(X, result):
        raise ValueError(
            f"{str(data)!r} is not the table that was fitted (its SHA-256 is not that in the result); give that table "
            f"as it was, or fit this one: `latentdo fit {data} --out FOLDER`."
        )
    resamples = model.with_name("bootstrap.safetensors")
    support = BootstrapDAG.load(resamples) if resamples.is_file() else None
    tried = model.with_name("trials.csv")
    trials = read_trials(tried) if tried.is_file() else None
    html = render_report(result, X, versions=versions, diagnosis=limits, bootstrap=support, trials=trials)
    target = out or model.with_name("report.html")
    write_atomically(target, lambda path: path.write_bytes(html.encode("utf-8", errors="replace")))
    if json:
        print_json({"out": str(target)})
    else:
        say(f"Wrote {target}.")


def _may_be_fitted(X: pd.DataFrame, result: FitResult) -> bool:
    """Whether these may be the rows that were fitted; a stream was hashed part by part, which no table tells."""
    import numpy as np

    from latentdo.data import content_hash, validate_rows

    if not result.data_hash or "streamed_rows" in result.configuration:
        return True
    values = validate_rows(X, result.columns, result.kinds, missing="model")
    # Text of single-precision numbers has fewer digits than the numbers that were fitted.
    with np.errstate(over="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    return result.data_hash in {content_hash(found, result.columns) for found in (values, single)}
