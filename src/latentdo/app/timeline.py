"""When regimes were there, where rows were in order of time: a picture to point at, and its segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

SEGMENTS: Final = "segments.csv"


def show_timeline(results: Path) -> None:
    """Draw the segments of a folder of results, or those of some regimes; nothing if rows were in no order."""
    path = results / SEGMENTS
    if not path.is_file():
        return
    table = pd.read_csv(path, dtype={"regime": str, "series": str, "targets": str, "followed": str})
    with st.expander(f"Timeline: {len(table)} segments", expanded=True):
        if table.empty:
            st.caption("No stretch of time differs from the rest.")
            return
        regimes = sorted(table["regime"].unique(), key=lambda name: (len(name), name))
        chosen = st.multiselect(
            "Regimes", regimes, default=regimes, key="timeline", help="Show only when these were there."
        )
        shown = table[table["regime"].isin(chosen)].fillna({"targets": "", "followed": ""})
        st.vega_lite_chart(shown, timeline(shown), width="stretch")
        st.dataframe(shown, hide_index=True)


def timeline(segments: pd.DataFrame) -> dict[str, Any]:
    """A chart with one line per regime, in the grammar of Vega-Lite; the pointer shows causes and what followed."""
    kind = "quantitative" if pd.api.types.is_numeric_dtype(segments["start"]) else "temporal"
    lines = "series" if "series" in segments else None
    return {
        "mark": {"type": "bar", "minWidth": 3},
        "encoding": {
            "x": {"field": "start", "type": kind, "title": "time", "scale": {"zero": False}},
            "x2": {"field": "end"},
            "y": {"field": "regime", "type": "nominal"},
            "color": {"field": "regime", "type": "nominal", "legend": None},
            **({} if lines is None else {"row": {"field": lines, "type": "nominal"}}),
            "tooltip": [
                {"field": name, "type": kind if name in ("start", "end") else "nominal"}
                for name in ("regime", "start", "end", "targets", "followed", "probability")
            ],
        },
    }
