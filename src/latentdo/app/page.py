"""The page that ``latentdo app`` serves; Streamlit runs this file from top to bottom after every click."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from latentdo import load_sachs, read_table, simulate
from latentdo.app.job import Job
from latentdo.outputs import FILES

_UPLOAD, _SIMULATED, _CYTOMETRY = "Upload a table", "Example: simulated", "Example: cytometry"
_TYPES = ("csv", "tsv", "tab", "txt", "gz", "bz2", "xz", "parquet", "feather", "h5ad")
_NONE = "(none)"
_HOW = "How the file is written"
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|<>~$:&]")
_ABOUT = {
    "report.html": "everything in one page that loads nothing from the network",
    "result.json": "graph, regimes, evidence, configuration, versions",
    "adjacency.csv": "0/1; row causes column",
    "edge_probabilities.csv": "probability of every arrow",
    "targets.csv": "what each regime changed",
    "regimes.csv": "regime of every row, with its probability",
    "model.safetensors": "the fitted model, for LatentInterventionDAG.load",
    "graph.graphml": "the graph for Cytoscape, Gephi, networkx",
}


@dataclass(frozen=True, eq=False)
class Table:
    """What will be fitted, and how it should be transformed unless the user knows better."""

    X: pd.DataFrame
    regimes: tuple[str | None, ...] | None
    transform: str


def main() -> None:
    """Draw the page."""
    st.set_page_config(page_title="latentdo", layout="wide")
    st.title("Causes and hidden interventions in one table")
    st.markdown(
        "One row a sample, one column a variable. You need not know which rows were intervened upon: that is found, "
        "together with what each intervention changed and what causes what. Everything stays on this computer."
    )
    job: Job | None = st.session_state.get("job")
    running = job is not None and job.state == "running"
    st.header("1. Data")
    table = _choose_table(disabled=running)
    st.header("2. Options")
    arguments = _choose_options(table, disabled=running)
    st.header("3. Result")
    if st.button("Run", type="primary", disabled=running or table is None, key="run"):
        assert table is not None
        st.session_state["job"] = Job(table.X, arguments, table.regimes)
        st.rerun()
    if job is None:
        st.caption(
            "Press Run. Small tables take seconds, wide or long ones minutes; you can stop at any time."
        )
    elif job.state == "running":
        _watch()
    elif job.state == "failed":
        st.error(_text(job.message()))
    else:
        _show(job)


def _choose_table(*, disabled: bool) -> Table | None:
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
    with st.expander(_HOW):
        left, middle, right = st.columns(3)
        separator = left.selectbox(
            "Separator", ("by its ending", ",", ";", "tab", "space", "|"), key="separator", disabled=disabled
        )
        decimal = middle.selectbox("Decimal sign", (".", ","), key="decimal", disabled=disabled)
        encoding = right.selectbox(
            "Encoding", ("utf-8", "latin-1", "utf-16"), key="encoding", disabled=disabled
        )
    given = {"tab": "\t", "space": " ", "by its ending": None}.get(separator, separator)
    path = _on_disk(name, content)
    try:
        columns = _columns(path, given, decimal, encoding)
    except (ValueError, ImportError, OSError) as error:
        st.error(_text(_plain(str(error), path, name)))
        return None
    numeric = [column for column, is_number in columns if is_number]
    every = [column for column, _ in columns]
    labels = st.selectbox(
        "Column with known conditions",
        (_NONE, *every),
        key="labels",
        disabled=disabled,
        help="If you know the condition of some rows, choose its column: empty cells are unknown. It is no variable.",
    )
    chosen = st.multiselect(
        "Variables",
        every,
        default=[column for column in numeric if column != labels],
        key="variables",
        disabled=disabled,
        help="Leave out what is no measurement: row numbers, identifiers, dates.",
    )
    skipped = [column for column in every if column not in numeric and column != labels]
    if skipped:
        named = ", ".join(skipped[:10]) + (" …" if len(skipped) > 10 else "")
        st.caption(_text(f"Not numbers, so not chosen: {named}"))
    drop = st.checkbox("Leave out rows with missing values", key="drop", disabled=disabled)
    if not [column for column in chosen if column != labels]:
        st.warning("Choose at least one variable.")
        return None
    reading: dict[str, Any] = {
        "columns": [column for column in chosen if column != labels],
        "missing": "drop" if drop else "error",
        "separator": given,
        "decimal": decimal,
        "encoding": encoding,
    }
    regimes = None
    try:
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            if labels == _NONE:
                X = read_table(path, **reading)
            else:
                X, known = read_table(path, labels, **reading)
                regimes = tuple(None if pd.isna(value) else str(value) for value in known)
    except (ValueError, ImportError, OSError) as error:
        st.error(_text(_plain(str(error), path, name)))
        return None
    for remark in {str(remark.message): None for remark in remarks}:
        st.warning(_text(_plain(remark, path, name)))
    return _preview(Table(X, regimes, "none"))


def _text(message: str) -> str:
    """Text without Markdown: a column's name must not become a link, a heading or a picture from the network."""
    return _MARKDOWN.sub(r"\\\g<0>", message)


def _plain(message: str, path: Path, name: str) -> str:
    """A message of the library in the words of this page."""
    for code, words in (
        (repr(str(path)), name),
        (str(path), name),
        ('missing="drop"', '"Leave out rows with missing values"'),
        ("missing='drop'", '"Leave out rows with missing values"'),
        ('pass its encoding, for example encoding="latin-1"', f'choose another encoding under "{_HOW}"'),
        ("pass the right separator=", f'choose the right separator under "{_HOW}"'),
    ):
        message = message.replace(code, words)
    return message


def _preview(table: Table) -> Table:
    n, d = table.X.shape
    known = "" if table.regimes is None else f", {len(set(table.regimes) - {None})} known conditions"
    with st.expander(f"{n} rows, {d} variables{known}"):
        st.dataframe(table.X.head(20))
    return table


def _choose_options(table: Table | None, *, disabled: bool) -> dict[str, Any]:
    """Arguments of the estimator; only what matters to most people is in sight."""
    transforms = ("none", "log", "log1p", "rank-gaussian")
    usual = transforms.index(table.transform) if table else 0
    left, right = st.columns(2)
    arguments: dict[str, Any] = {
        "transform": left.selectbox(
            "Transform of all columns",
            transforms,
            index=usual,
            # another kind of table starts with its own default
            key=f"transform-{transforms[usual]}",
            disabled=disabled,
            help="Choose log for concentrations, intensities and counts without zeros, log1p for counts with zeros, "
            "rank-gaussian for odd shapes and outliers. The report stays in your units.",
        ),
        "max_regimes": right.number_input(
            "Most regimes, the reference included",
            1,
            100,
            16,
            key="max_regimes",
            disabled=disabled,
            help="The number itself is found; this is its limit. 1 means: no interventions, all rows follow one model.",
        ),
    }
    if table is not None and table.regimes is not None:
        labels = sorted({label for label in table.regimes if label is not None})
        reference = st.selectbox(
            "Condition without an intervention",
            (_NONE, *labels),
            key="observational",
            disabled=disabled,
            help="The control or baseline. Choose (none) if every condition is an intervention.",
        )
        arguments["observational"] = None if reference == _NONE else reference
    with st.expander("More options"):
        left, middle, right = st.columns(3)
        arguments["density"] = left.selectbox(
            "Shape of the effects",
            ("auto", "linear", "nonlinear", "flow"),
            key="density",
            disabled=disabled,
            help="linear is fast and needs few rows; nonlinear and flow are networks: slower, and they need more rows.",
        )
        arguments["intervention"] = middle.selectbox(
            "Kind of interventions",
            ("auto", "perfect", "imperfect"),
            key="intervention",
            disabled=disabled,
            help="perfect: an intervened variable ignores its causes (a knock-out); imperfect: it may still use them "
            "(a knock-down).",
        )
        arguments["solver"] = right.selectbox(
            "Solver",
            ("auto", "search", "gradient", "paper"),
            key="solver",
            disabled=disabled,
            help="auto chooses by the shape of the effects; paper is the published algorithm.",
        )
        arguments["n_init"] = int(
            left.number_input(
                "Starts",
                1,
                50,
                4,
                key="n_init",
                disabled=disabled,
                help="More starts find better solutions more often, and take longer.",
            )
        )
        arguments["random_state"] = int(
            middle.number_input(
                "Seed",
                0,
                2**31 - 1,
                0,
                key="seed",
                disabled=disabled,
                help="The same seed gives the same result.",
            )
        )
    arguments["max_regimes"] = int(arguments["max_regimes"])
    return arguments


@st.fragment(run_every=1.0)
def _watch() -> None:
    """Progress of the fit, every second; the rest of the page is drawn again when it ends."""
    job: Job = st.session_state["job"]
    if job.state != "running":
        st.rerun()
    entries = job.progress()
    last: dict[str, Any] = entries[-1] if entries else {}
    stopping = st.session_state.get("stopping") is job
    words = (
        "Stopping: writing down the best so far" if stopping else f"Fitting: {last.get('step', 'starting')}"
    )
    if last.get("left"):
        words += f", about {last['left']:.0f} s left"
    st.status(_text(words), state="running")
    cells = st.columns(4)
    for cell, (label, value) in zip(
        cells,
        (
            ("seconds", last.get("seconds")),
            ("evidence", last.get("evidence")),
            ("regimes", last.get("regimes")),
            ("arrows", last.get("edges")),
        ),
        strict=True,
    ):
        cell.metric(label, "-" if value is None else f"{value:,.0f}")
    left, right, _ = st.columns((2, 1, 3))
    if left.button("Stop and keep the best so far", key="stop", disabled=stopping):
        job.stop()
        st.session_state["stopping"] = job
        st.rerun(scope="fragment")
    if right.button("Give up", key="give_up"):
        job.give_up()
        st.rerun()


def _show(job: Job) -> None:
    left, right = st.columns((1, 3))
    left.download_button(
        "Download everything (zip)",
        job.archive(),
        "latentdo-results.zip",
        "application/zip",
        key="everything",
        on_click="ignore",
        type="primary",
    )
    with right.expander("Single files"):
        for name in FILES:
            st.download_button(
                f"{name}: {_ABOUT.get(name, '')}",
                (job.results / name).read_bytes(),
                name,
                key=f"file-{name}",
                on_click="ignore",
            )
    st.iframe(job.results / "report.html", height=1000, alt="Report of the fit")


def _on_disk(name: str, content: bytes) -> Path:
    """The uploaded file under its own ending, which says how to read it; one file a session is kept."""
    digest = hashlib.sha256(content + name.encode()).hexdigest()[:16]
    holder = st.session_state.get("upload")
    if holder is None:
        holder = st.session_state["upload"] = tempfile.TemporaryDirectory(
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
    ending = [suffix for suffix in path.suffixes if suffix not in (".gz", ".bz2", ".xz")][-1:]
    if ending in ([".csv"], [".tsv"], [".tab"], [".txt"]):
        usual = "," if ending == [".csv"] else "\t"
        try:
            head = pd.read_csv(path, sep=separator or usual, decimal=decimal, encoding=encoding, nrows=2000)
        except (ValueError, OSError, EOFError):
            read_table(
                path, separator=separator, decimal=decimal, encoding=encoding
            )  # explains what is wrong
            raise
    elif ending == [".parquet"]:
        head = pd.read_parquet(path)
    elif ending == [".feather"]:
        head = pd.read_feather(path)
    else:
        head = read_table(path, missing="drop")
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


if __name__ == "__main__":
    main()
