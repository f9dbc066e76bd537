"""AnnData: cells are the rows, genes the variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from latentdo.data.optional import need
from latentdo.data.refusals import check_names
from latentdo.messages import listed
from latentdo.readers.files import check_file


def read_cells(path: Path, *, backed: bool = False) -> Any:
    """An ``.h5ad`` file as AnnData; ``backed`` leaves the matrix on disk.

    Raises
    ------
    ImportError
        If anndata is not installed.
    ValueError
        If the file is damaged; the message names it.
    """
    check_file(path)
    anndata = need("anndata", "anndata", "bio", "Reading .h5ad files")
    try:
        return anndata.read_h5ad(path, backed="r" if backed else None)
    except MemoryError:
        raise
    except Exception as error:  # whatever h5py and anndata raise for a damaged file
        raise ValueError(f"{path.name} cannot be read as h5ad ({type(error).__name__}: {error}).") from error


def read_h5ad(
    path: Path, asked: Sequence[str], layer: str | None, choose: Callable[[list[str]], list[str]]
) -> tuple[pd.DataFrame, list[pd.Series[Any]]]:
    """Cells x genes, and the columns of ``obs`` asked for; only the genes that ``choose`` takes are made dense."""
    cells = read_cells(path)
    if layer is not None and layer not in cells.layers:
        raise ValueError(
            f"{path.name} has no layer {layer!r}; its layers are {listed(cells.layers) or 'none'}."
        )
    matrix = cells.X if layer is None else cells.layers[layer]
    if matrix is None:
        raise ValueError(f"{path.name} has no X; name one of its layers: {listed(cells.layers) or 'none'}.")
    labels = []
    for name in asked:
        if name not in cells.obs:
            raise ValueError(
                f"{path.name} has no obs column {name!r}; they are {listed(cells.obs) or 'none'}."
            )
        labels.append(cells.obs[name].astype(object))
    genes = [str(name) for name in cells.var_names]
    check_names(genes, path.name)
    chosen = choose(genes)
    position = {name: j for j, name in enumerate(genes)}
    part = matrix[:, [position[name] for name in chosen]]
    dense = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
    if not cells.obs_names.is_unique:
        raise ValueError(
            f"{path.name} has duplicate obs names; make them unique with obs_names_make_unique()."
        )
    return pd.DataFrame(dense, index=cells.obs_names, columns=chosen), labels
