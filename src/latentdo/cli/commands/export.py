"""``latentdo export``: a result in the format of another program."""

from __future__ import annotations

from pathlib import Path

from latentdo.cli.application import app
from latentdo.cli.console import print_json, say
from latentdo.cli.options import ConfigFile, Flag
from latentdo.cli.tables import check_results, read_labels


@app.command
def export(
    results: Path,
    target: Path,
    /,
    *,
    cells: Path | None = None,
    consensus: Flag = False,
    overwrite: Flag = False,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
) -> None:
    """Write the graph for another program, or the result into a file of cells.

    Parameters
    ----------
    results
        Folder that `latentdo fit` or `latentdo bootstrap` wrote.
    target
        File to write. Its ending says what: .dot and .gv (Graphviz), .graphml (Cytoscape, Gephi), .json (D3, networkx),
        .csv (list of edges), .h5ad (AnnData: probabilities of edges, targets and regimes beside the cells).
    cells
        The .h5ad file that was fitted; needed to write .h5ad.
    consensus
        The consensus graph of a bootstrap instead of the graph of the fit.
    overwrite
        Replace an existing file.
    json
        Print where it is as JSON on standard output.
    """
    import pandas as pd

    from latentdo.bootstrap import BootstrapDAG
    from latentdo.files import check_target, write_atomically
    from latentdo.interop import to_anndata, write_graph
    from latentdo.persistence import load_result
    from latentdo.readers.cells import read_cells

    check_results(results)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{str(target)!r} already exists; choose another name, or pass --overwrite.")
    check_target(target)
    resamples = results / "bootstrap.safetensors"
    if consensus and not resamples.is_file():
        raise FileNotFoundError(f"{str(results)!r} holds no bootstrap; write one with `latentdo bootstrap`.")
    if target.suffix.lower() == ".h5ad":
        if cells is None or consensus:
            raise ValueError(
                "an .h5ad file is made of a fit and its cells: pass --cells, and no --consensus."
            )
        rows = read_labels(results / "regimes.csv").index
        result = load_result(results / "model.safetensors")
        found = to_anndata(result, read_cells(cells), X=pd.DataFrame(index=rows))
        write_atomically(target, found.write_h5ad)
    else:
        source = BootstrapDAG.load(resamples) if consensus else load_result(results / "model.safetensors")
        write_graph(source, target)
    if json:
        print_json({"out": str(target)})
    else:
        say(f"Wrote {target}.")
