"""First part of the page: which table, and how to read it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from latentdo import load_sachs, read_table, simulate
from latentdo.app.messages import HOW, MISSING, in_page_words, plain_text
from latentdo.notices import collecting
from latentdo.readers import read_arrow, read_csv
from latentdo.readers.arrow import ARROW
from latentdo.readers.table import SEPARATORS, ReadingOptions, kind_of, read_labelled

_UPLOAD, _SIMULATED, _CYTOMETRY = "Upload a table", "Example: simulated", "Example: cytometry"
_TYPES = ("csv", "tsv", "tab", "txt", "gz", "bz2", "xz", "parquet", "feather", "h5ad")
_NONE = "(none)"
_WHERE = (
    (
        "time",
        "Column with times",
        "Numbers or dates. Rows may then depend on previous rows, and neighbouring rows tend to share a condition.",
    ),
    ("series", "Column with series", "Several machines, patients or sessions, each in order of time."),
    (
        "batch",
        "Column with batches",
        "Plates, days, sites or devices that may differ in level and scale of every variable.",
    ),
    ("sample_weight", "Column with weights", "How often each row counts: 2 like two rows, 0 not at all."),
    (
        "offset",
        "Column with sizes",
        "The size to which the counts of a row are proportional: library size, hours of observation, persons at risk.",
    ),
)
_HEAD = 2000  # rows that tell which columns are numbers


@dataclass(frozen=True, eq=False)
class Table:
    """What will be fitted, and how it should be transformed unless the user knows better."""

    X: pd.DataFrame
    regimes: tuple[str | None, ...] | None
    transform: str
    groups: tuple[str | None, ...] | None = None
    where: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    missing: str = "error"


def choose_table(*, disabled: bool) -> Table | None:
    """Ask for a table; None as long as there is none, or if something is wrong with it, which is said."""
    source = st.radio(
        "Where from", (_UPLOAD, _SIMULATED, _CYTOMETRY), horizontal=True, key="source", disabled=disabled
    )
    if source == _SIMULATED:
        st.caption(
            "996 rows of 5 variables and 5 hidden interventions, drawn from a known model. Fits in seconds."
        )
        return _preview(Table(_simulated(), None, "none"))
    if source == _CYTOMETRY:
        st.caption(
            "7466 cells, 11 proteins and lipids, nine experimental conditions (Sachs et al. 2005). The fit does not "
            "see the conditions. Takes a few minutes."
        )
        return _preview(Table(_cytometry(), None, "log"))
    uploaded = st.file_uploader(
        "CSV, TSV (also compressed), Parquet, Feather or h5ad, with names in the first line",
        type=list(_TYPES),
        key="file",
        disabled=disabled,
    )
    if uploaded is None:
        return None
    return _uploaded(uploaded.name, uploaded.getvalue(), disabled=disabled)


def _uploaded(name: str, content: bytes, *, disabled: bool) -> Table | None:
    """Ask how to read the file, and read it; what is wrong with it is said here, not after the fit."""
    with st.expander(HOW):
        left, middle, right = st.columns(3)
        separator = left.selectbox(
            "Separator", ("by its ending", ",", ";", "tab", "space", "|"), key="separator", disabled=disabled
        )
        decimal = middle.selectbox("Decimal sign", (".", ","), key="decimal", disabled=disabled)
        encoding = right.selectbox(
            "Encoding", ("utf-8", "latin-1", "utf-16"), key="encoding", disabled=disabled
        )
    given = {"tab": "\t", "space": " ", "by its ending": None}.get(separator, separator)
    path = on_disk(name, content)
    try:
        columns = _columns(path, given, decimal, encoding)
    except (ValueError, ImportError, OSError) as error:
        st.error(plain_text(_plain(str(error), path, name)))
        return None
    numeric = [column for column, is_number in columns if is_number]
    every = [column for column, _ in columns]
    labels = st.selectbox(
        "Column with known conditions",
        (_NONE, *every),
        key="labels",
        disabled=disabled,
        help="If you know the condition of some rows, choose its column: empty cells are unknown. The column is not "
        "used as a variable.",
    )
    together = st.selectbox(
        "Column with groups of rows",
        (_NONE, *every),
        key="groups",
        disabled=disabled,
        help="If rows belong together and share their condition, known or not (a plate, a run, an animal), choose the "
        "column that says which: groups reveal weak effects. It is not used as a variable.",
    )
    with st.expander("When and where rows were measured, and how much they count"):
        where = {
            what: column.selectbox(words, (_NONE, *every), key=what, disabled=disabled, help=reason)
            for column, (what, words, reason) in zip(st.columns(len(_WHERE)), _WHERE, strict=True)
        }
    special = {labels, together, *where.values()}
    chosen = st.multiselect(
        "Variables",
        every,
        default=[column for column in numeric if column not in special],
        key="variables",
        disabled=disabled,
        help="Leave out row numbers, identifiers and dates. Categories may be text.",
    )
    skipped = [column for column in every if column not in numeric and column not in special]
    if skipped:
        named = ", ".join(skipped[:10]) + (" …" if len(skipped) > 10 else "")
        st.caption(plain_text(f"Not numbers, so not chosen; add those that are categories: {named}"))
    missing = MISSING[
        st.selectbox(
            "Rows with missing values",
            tuple(MISSING),
            key="missing",
            disabled=disabled,
            help="Leaving them out wastes what was measured in these rows, and distorts the rest if they are not like "
            "the others. Keeping them assumes that cells are missing at random: given what was measured in a row, "
            "whether a cell is missing does not depend on its value.",
        )
    ]
    if not [column for column in chosen if column not in special]:
        st.warning("Choose at least one variable.")
        return None
    reading: dict[str, Any] = {
        "columns": [column for column in chosen if column not in special],
        "missing": missing,
        "separator": given,
        "decimal": decimal,
        "encoding": encoding,
    }
    about = {
        "regimes": None if labels == _NONE else labels,
        "groups": None if together == _NONE else together,
        **{what: None if column == _NONE else column for what, column in where.items()},
    }
    try:
        with collecting() as remarks:
            X, found = read_labelled(path, about, ReadingOptions(**reading))
    except (ValueError, ImportError, OSError) as error:
        st.error(plain_text(_plain(str(error), path, name)))
        return None
    for remark in dict.fromkeys(remark.message for remark in remarks):
        st.warning(plain_text(_plain(remark, path, name)))
    texts = {
        what: tuple(None if pd.isna(value) else str(value) for value in column)
        for what, column in found.items()
    }
    measured = {what: texts[what] for what in where if what in texts}
    for what in {"time", "sample_weight", "offset"} & set(measured):  # numbers stay numbers
        measured[what] = tuple(found[what].tolist())
    return _preview(Table(X, texts.get("regimes"), "none", texts.get("groups"), measured, missing))


def _plain(message: str, path: Path, name: str) -> str:
    """A message of the library in the words of this page; the file has the name that the user gave it."""
    return in_page_words(message.replace(repr(str(path)), name).replace(str(path), name))


def _preview(table: Table) -> Table:
    n, d = table.X.shape
    known = "" if table.regimes is None else f", {len(set(table.regimes) - {None})} known conditions"
    if table.groups is not None:
        known += f", {len(set(table.groups) - {None})} groups"
    with st.expander(f"{n} rows, {d} variables{known}"):
        st.dataframe(table.X.head(20))
    return table


def on_disk(name: str, content: bytes, place: str = "table") -> Path:
    """An uploaded file under its own ending, which says how to read it; one file a place and session is kept."""
    digest = hashlib.sha256(content + name.encode()).hexdigest()[:16]
    holder = st.session_state.get(f"upload-{place}")
    if holder is None:
        holder = st.session_state[f"upload-{place}"] = tempfile.TemporaryDirectory(
            prefix="latentdo-upload-", ignore_cleanup_errors=True
        )
    path = Path(holder.name) / digest / Path(name).name[-120:]  # messages call the file by its name
    if not path.exists():
        for old in Path(holder.name).iterdir():
            shutil.rmtree(old)
        path.parent.mkdir()
        path.write_bytes(content)
    return path


def _columns(path: Path, separator: str | None, decimal: str, encoding: str) -> Sequence[tuple[str, bool]]:
    """Names of all columns and whether they hold numbers, from the first rows."""
    kind = kind_of(path)
    if kind in SEPARATORS:
        given = separator or SEPARATORS[kind]
        head = read_csv(path, separator=given, decimal=decimal, encoding=encoding, n_rows=_HEAD)
    else:
        head = read_arrow(path) if kind in ARROW else read_table(path, missing="drop")
    head.columns = head.columns.map(str)
    return [
        (name, bool(pd.api.types.is_numeric_dtype(head[name]) and not pd.api.types.is_bool_dtype(head[name])))
        for name in head.columns
    ]


@st.cache_data
def _simulated() -> pd.DataFrame:
    data = simulate(n_variables=5, edges_per_node=1.0, n_samples=1000, random_state=1)
    return data.X


@st.cache_data
def _cytometry() -> pd.DataFrame:
    return load_sachs(subset="full").X
