"""AnnData in and out: cells with partly known perturbations, and results beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from latentdo.data.optional import need
from latentdo.result import FitResult


class Cells(NamedTuple):
    """What :func:`from_anndata` read.

    Attributes
    ----------
    X : DataFrame [cells, genes]
        Numbers, by the names of cells and genes.
    regimes : Series [cells] or None
        Perturbation of each cell, missing where it is unknown; None if the file does not say.
    observational : str or None
        The label of cells without a perturbation; None if no cell has it.
    """

    X: pd.DataFrame
    regimes: pd.Series[Any] | None
    observational: str | None

    @property
    def kinds(self) -> dict[str, str] | None:
        """Every gene a count, if a layer of counts was read: whole numbers from 0 on; None to let kinds be found."""
        values = self.X.to_numpy()
        counted = np.isfinite(values).all() and (values >= 0.0).all() and not (values % 1.0).any()
        return dict.fromkeys(self.X.columns, "count") if counted and (values > 1.0).any() else None


def from_anndata(
    cells: Any,
    *,
    genes: Sequence[str] | None = None,
    layer: str | None = None,
    perturbation: str | None = "perturbation",
    control: str | None = "control",
    unknown: Sequence[str] = ("", "nan", "NaN", "unknown"),
) -> Cells:
    """Take a table and what is known of the cells from AnnData; the defaults are the names that scPerturb uses.

    Parameters
    ----------
    cells : AnnData
        Cells and genes.
    genes : sequence of str, optional
        The variables, in this order; all genes by default. Only these are made dense.
    layer : str, optional
        Layer to use instead of ``X``, for example ``"counts"``.
    perturbation : str, optional
        Column of ``obs`` with the perturbation of each cell; None if nothing is known. Without such a column, the name
        "perturbation" means the same.
    control : str, optional
        The label of cells without a perturbation.
    unknown : sequence of str
        Labels of cells about which nothing is known, besides missing ones.

    Returns
    -------
    Cells
        ``LatentInterventionDAG(observational=cells.observational).fit(cells.X, regimes=cells.regimes)`` fits it. Of a
        layer of counts, ``cells.kinds`` says so: pass it as ``kinds=``, and no transform.

    Raises
    ------
    ValueError
        If a gene, layer or column does not exist; the message lists those that do.
    """
    matrix = cells.X if layer is None else _entry(cells.layers, layer, "layer")
    if matrix is None:
        raise ValueError(f"the data have no X; name one of their layers: {_listed(cells.layers)}")
    names = [str(name) for name in cells.var_names]
    chosen = names if genes is None else [str(name) for name in genes]
    place = {name: j for j, name in enumerate(names)}
    absent = [name for name in chosen if name not in place]
    if absent:
        raise ValueError(f"the data have no gene {_listed(absent)}; they have {_listed(names)}")
    for kind, index in (("cells", cells.obs_names), ("genes", pd.Index(chosen))):
        if not index.is_unique:
            raise ValueError(
                f"names of {kind} repeat: {_listed(index[index.duplicated()])}; make them unique"
            )
    part = matrix[:, [place[name] for name in chosen]]
    dense = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
    X = pd.DataFrame(np.asarray(dense, dtype=np.float64), index=cells.obs_names.astype(str), columns=chosen)
    if perturbation is None or (perturbation == "perturbation" and perturbation not in cells.obs):
        return Cells(X, None, None)
    labels = pd.Series(_entry(cells.obs, perturbation, "column of obs")).astype(object)
    labels = labels.where(~labels.isin(list(unknown)) & labels.notna(), None)
    labels.index = X.index
    observational = control if control is not None and (labels == control).any() else None
    return Cells(X, labels, observational)


def to_anndata(
    source: Any, cells: Any = None, *, X: pd.DataFrame | None = None, key: str = "latentdo"
) -> Any:
    """Put a result beside the cells it was found in.

    Parameters
    ----------
    source : LatentInterventionDAG or FitResult
        What was found.
    cells : AnnData, optional
        The cells; a copy is returned. They may hold more cells and genes than were fitted. Without it, a new object is
        made of ``X``.
    X : DataFrame [n, d], optional
        The table that was fitted. Its index says which cells the rows are, where not all were fitted.
    key : str
        Beginning of the names.

    Returns
    -------
    AnnData
        ``.varp["latentdo_edge_probabilities"]`` and ``["latentdo_adjacency"]`` (sparse, row causes column),
        ``.varm["latentdo_targets"]`` (probability that each regime targets the gene), ``.var["latentdo_kind"]``,
        ``.obsm["latentdo_responsibilities"]`` (NaN for cells that were not fitted), ``.obs["latentdo_regime"]`` and, in
        ``.uns["latentdo"]``, names of regimes, configuration, evidence, hash of the data and versions.

    Raises
    ------
    ValueError
        If cells or genes of the fit are not in ``cells``.
    """
    anndata = need("anndata", "anndata", "bio", "Writing AnnData")
    result = source if isinstance(source, FitResult) else getattr(source, "result_", None)
    if not isinstance(result, FitResult):
        raise TypeError(f"{type(source).__name__} holds no result; pass a fitted estimator or its result_")
    n = len(result.responsibilities)
    if cells is None:
        if X is None:
            raise ValueError("give the cells, or the table X that was fitted")
        values = result.fitted_values(X)  # levels as their codes
        cells = anndata.AnnData(pd.DataFrame(values, index=X.index.astype(str), columns=list(result.columns)))
    else:
        cells = cells.copy()
    rows = cells.obs_names if X is None else X.index.astype(str)
    if len(rows) != n:
        raise ValueError(
            f"the fit saw {n} rows, but there are {len(rows)} {'cells' if X is None else 'rows in X'}; pass the table "
            "that was fitted as X, with the names of its cells as index"
        )
    at_rows = _places(cells.obs_names, rows, "cells")
    at_genes = _places(cells.var_names.astype(str), pd.Index(result.columns), "genes")
    size = (cells.n_vars, cells.n_vars)
    across, down = np.meshgrid(at_genes, at_genes)
    for name, table in (
        ("edge_probabilities", result.edge_probabilities),
        ("adjacency", result.adjacency.to_numpy(np.float64)),
    ):
        entries = (np.asarray(table, dtype=np.float64).ravel(), (down.ravel(), across.ravel()))
        matrix = sparse.csr_matrix(entries, shape=size)
        matrix.eliminate_zeros()
        cells.varp[f"{key}_{name}"] = matrix
    targets = np.zeros((cells.n_vars, result.n_regimes))
    targets[at_genes] = result.target_probabilities.T
    cells.varm[f"{key}_targets"] = targets
    kinds = pd.Series([None] * cells.n_vars, index=cells.var_names, dtype=object)
    kinds.iloc[at_genes] = [kind.kind for kind in result.kinds]
    cells.var[f"{key}_kind"] = pd.Categorical(kinds)
    shares = np.full((cells.n_obs, result.n_regimes), np.nan)
    shares[at_rows] = result.responsibilities
    cells.obsm[f"{key}_responsibilities"] = shares
    regimes = pd.Series([None] * cells.n_obs, index=cells.obs_names, dtype=object)
    regimes.iloc[at_rows] = [str(result.regime_names[k]) for k in result.regimes]
    cells.obs[f"{key}_regime"] = pd.Categorical(regimes)
    cells.uns[key] = {
        "regimes": [str(name) for name in result.regime_names],
        "genes": list(result.columns),
        "evidence": float(result.evidence),
        "status": result.status,
        "data_hash": result.data_hash,
        "version": version("latentdo"),
        "summary": json.dumps(
            result.summary(), default=str
        ),  # h5ad has no notation for nested lists of records
    }
    return cells


def _places(index: pd.Index[Any], wanted: pd.Index[Any], what: str) -> Any:
    found = index.get_indexer(wanted)
    absent = wanted[found < 0]
    if len(absent):
        raise ValueError(f"{what} of the fit are not in the data: {_listed(absent)}")
    return found


def _entry(mapping: Any, name: str, what: str) -> Any:
    if name not in mapping:
        raise ValueError(f"the data have no {what} {name!r}; they have {_listed(mapping)}")
    return mapping[name]


def _listed(names: Any, most: int = 8) -> str:
    shown = [str(name) for name in names]
    return (", ".join(shown[:most]) + (", ..." if len(shown) > most else "")) or "none"
