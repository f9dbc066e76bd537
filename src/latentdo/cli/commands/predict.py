"""``latentdo predict``: the regimes of rows that were not fitted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_table, say
from latentdo.cli.inputs import gather_rows
from latentdo.cli.options import ConfigFile, Flag, ReadOptions, RowOptions
from latentdo.cli.tables import check_results


@app.command
def predict(
    *tables: Path,
    model: Path | None = None,
    out: Path,
    overwrite: Flag = False,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    read: ReadOptions = ReadOptions(),  # noqa: B008
    belong: RowOptions = RowOptions(),  # noqa: B008
) -> None:
    """Say which hidden intervention each row of another table underwent, by a model that was fitted before.

    For example `latentdo predict new.csv --model results --out regimes.csv`, or `latentdo predict results new.csv
    --out regimes.csv`, which is the same. The file has one line per row: its likeliest
    regime, how probable that is, the probability of every regime, and the log-likelihood of the row, which is low for
    rows unlike any that were fitted.

    Parameters
    ----------
    tables
        A table with the same variables; other columns are left out. Without `--model`, the folder of results comes
        first.
    model
        Folder that `latentdo fit` wrote, or a `model.safetensors` file.
    out
        The CSV file to write.
    overwrite
        Replace an existing file.
    json
        Print what was found as JSON on standard output.
    """
    import pandas as pd

    from latentdo.estimator import LatentInterventionDAG
    from latentdo.files import check_target, write_atomically
    from latentdo.outputs import write_csv
    from latentdo.report.messages import percent

    results, data = _model_and_data(tables, model)
    check_results(results, file_allowed=True)
    if out.exists() and not overwrite:
        raise FileExistsError(f"{str(out)!r} already exists; choose another name, or pass --overwrite.")
    check_target(out)
    estimator = LatentInterventionDAG.load(
        results if results.is_file() else results / "model.safetensors"
    ).set_params(missing=read.missing)
    X, known = gather_rows(data, estimator.result_.columns, read, belong)
    shares = estimator.predict_proba(X, **known)
    best, names = shares.argmax(axis=1), estimator.regime_names_
    table = pd.DataFrame(
        {
            "row": X.index,
            **{what: list(column) for what, column in known.items()},
            "regime": [names[k] for k in best],
            "probability": shares.max(axis=1),
            **{f"probability of {name}": shares[:, k] for k, name in enumerate(names)},
            "log_likelihood": estimator.score_samples(X, **known),
        }
    )
    write_atomically(out, partial(write_csv, table, index=False))
    counts: list[dict[str, Any]] = [
        {
            "regime": name,
            "rows": int((best == k).sum()),
            "share": float((best == k).mean()),
            "share when fitted": float(estimator.regime_weights_[k]),
            "targets": ", ".join(estimator.targets_.columns[estimator.targets_.iloc[k] == 1]),
        }
        for k, name in enumerate(names)
    ]
    if json:
        print_json({"out": str(out), "rows": len(table), "regimes": counts})
        return
    shown = [
        {**line, **{key: percent(line[key]) for key in ("share", "share when fitted")}} for line in counts
    ]
    print_table(shown)
    say(f"Wrote the regimes of {len(table)} rows to {out}.")


def _model_and_data(tables: Sequence[Path], model: Path | None) -> tuple[Path, Path]:
    """The model and the new table, however they were named."""
    given = [model, *tables] if model is not None else list(tables)
    if len(given) != 2:
        raise ValueError(
            f"predict needs one model and one table, and was given {len(given)} of the two: latentdo predict new.csv "
            "--model results --out regimes.csv"
        )
    return given[0], given[1]
