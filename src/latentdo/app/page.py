"""The page that ``latentdo app`` serves; Streamlit runs this file from top to bottom after every click."""

from __future__ import annotations

from typing import Any

import streamlit as st

from latentdo.app.job import Job
from latentdo.app.messages import in_page_words, plain_text
from latentdo.app.options import choose_options
from latentdo.app.tables import choose_table
from latentdo.app.timeline import show_timeline

_ABOUT = {
    "report.html": "everything in one page that loads nothing from the network",
    "result.json": "graph, regimes, evidence, configuration, versions",
    "adjacency.csv": "0/1; row causes column",
    "edge_probabilities.csv": "probability of every arrow",
    "targets.csv": "what each regime changed",
    "regimes.csv": "regime of every row, with its probability",
    "segments.csv": "when each regime was active, root causes first",
    "lagged_adjacency.csv": "causes one or two rows earlier, 0/1",
    "model.safetensors": "the fitted model, for LatentInterventionDAG.load",
    "graph.graphml": "the graph for Cytoscape, Gephi, networkx",
    "bootstrap_edges.csv": "every arrow that occurred in a resample, with its support",
    "edge_support.csv": "share of the resamples with each arrow",
    "target_support.csv": "share of the resamples in which a regime has a target",
    "regime_stability.csv": "how well each regime was found again",
    "consensus.csv": "graph of the well supported arrows, 0/1",
    "bootstrap.safetensors": "the resamples, for BootstrapDAG.load",
}


def main() -> None:
    """Draw the page."""
    st.set_page_config(page_title="latentdo", layout="wide")
    st.title("Causes and hidden interventions in one table")
    st.markdown(
        "Use one row per sample and one column per variable. You need not know which rows were intervened upon: the "
        "fit finds them, together with what each intervention changed and what causes what. Everything stays on this "
        "computer."
    )
    job: Job | None = st.session_state.get("job")
    running = job is not None and job.state == "running"
    st.header("1. Data")
    table = choose_table(disabled=running)
    st.header("2. Options")
    options = choose_options(table, disabled=running)
    st.header("3. Result")
    if st.button("Run", type="primary", disabled=running or table is None or options is None, key="run"):
        assert table is not None
        assert options is not None
        st.session_state["job"] = Job(
            table.X,
            {**options.arguments, "missing": table.missing},
            table.regimes,
            table.groups,
            where=table.where,
            n_resamples=options.n_resamples,
            diagnose=options.diagnose,
        )
        st.rerun()
    if job is None:
        st.caption(
            "Press Run. Small tables take seconds, wide or long ones minutes; you can stop at any time."
        )
    elif job.state == "running":
        _watch()
    elif job.state == "failed":
        st.error(plain_text(in_page_words(job.message())))
    else:
        _show(job)


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
        "Stopping: writing the best result so far" if stopping else f"Fitting: {last.get('step', 'starting')}"
    )
    if last.get("left"):
        words += f", about {last['left']:.0f} s left"
    st.status(plain_text(words), state="running")
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
        for name in sorted(path.name for path in job.results.iterdir()):
            st.download_button(
                f"{name}: {_ABOUT.get(name, '')}",
                (job.results / name).read_bytes(),
                name,
                key=f"file-{name}",
                on_click="ignore",
            )
    show_timeline(job.results)
    # As high as the report, which tells its height itself (report.js): its policy refuses the script of Streamlit.
    st.iframe(job.results / "report.html", height="content", alt="Report of the fit")


if __name__ == "__main__":
    main()
