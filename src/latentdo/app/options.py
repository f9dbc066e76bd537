"""Second part of the page: what the estimator is told, with an explanation of everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

import numpy as np
import streamlit as st

from latentdo import read_knowledge
from latentdo.app.messages import plain_text
from latentdo.app.tables import Table, on_disk
from latentdo.choices import OPTIONS
from latentdo.graphs.constraints import Constraints

__all__ = ["Options", "choose_options"]

_NONE = "(none)"
_ARROWS = ("->", "→")

# key, what such arrows do, an example, advice
_KNOWN_ARROWS: Final = (
    ("forbidden", "cannot", "Erk -> Raf", "For example, later events cannot cause earlier ones."),
    (
        "required",
        "must",
        "Raf -> Mek",
        "They are in the graph whatever the data say, so list only what you are certain of.",
    ),
)


# kind, what such columns are called, advice
_KINDS: Final = (
    (
        "continuous",
        "Measurements",
        "Numbers whose size and differences are meaningful, including whole numbers.",
    ),
    ("count", "Counts", "How often something happened, or how many there were: whole numbers from 0."),
    ("binary", "Binary columns", "Two values, such as yes and no."),
    (
        "categorical",
        "Categories",
        "A few levels without an order of size, even if they are written as numbers.",
    ),
)


@dataclass(frozen=True)
class Options:
    """What to do with the table.

    Parameters
    ----------
    arguments : dict
        Of the estimator, as JSON can hold them.
    n_resamples : int
        Resamples of a bootstrap; 0 for none.
    diagnose : bool
        Whether to say what data of this size can show.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    n_resamples: int = 0
    diagnose: bool = False


def choose_options(table: Table | None, *, disabled: bool) -> Options | None:
    """Ask for everything; None if something is wrong, which is said."""
    arguments = _choose_arguments(table, disabled=disabled)
    n_resamples, diagnose = _choose_checks(disabled=disabled)
    kinds = _choose_kinds(table, disabled=disabled)
    knowledge = _choose_knowledge(table, disabled=disabled)
    if knowledge is None or kinds is None:
        return None
    return Options(arguments | kinds | knowledge, n_resamples, diagnose)


def _choose_kinds(table: Table | None, *, disabled: bool) -> dict[str, Any] | None:
    """What columns are, where it should not be found; None if something is said twice, which is said."""
    names = [] if table is None else list(table.X.columns)
    with st.expander("What your columns are"):
        st.caption(
            "Kinds are inferred from the table, and the report names them. Correct them here where they are wrong."
        )
        chosen = {
            kind: column.multiselect(label, names, key=f"kind-{kind}", disabled=disabled, help=advice)
            for column, (kind, label, advice) in zip(cycle(st.columns(2)), _KINDS, strict=False)
        }
    kinds: dict[str, str] = {}
    for kind, columns in chosen.items():
        for name in columns:
            if name in kinds:
                st.error(
                    plain_text(f"What your columns are: {name!r} is called both {kinds[name]} and {kind}.")
                )
                return None
            kinds[name] = kind
    return {"kinds": kinds} if kinds else {}


def _choose_checks(*, disabled: bool) -> tuple[int, bool]:
    """How the result is put to the test."""
    with st.expander("How sure is it: bootstrap and diagnosis"):
        n_resamples = st.number_input(
            "Resamples (bootstrap)",
            0,
            1000,
            0,
            key="n_resamples",
            disabled=disabled,
            help="0 means none. Each resample fits half of the rows again; the report counts which arrows, targets and "
            "regimes are found again. Each takes about as long as the fit; 20 to 50 are usual.",
        )
        diagnose = st.checkbox(
            "Show what data of this size can reveal",
            key="diagnose",
            disabled=disabled,
            help="Draws three tables from the fitted model and fits them: how many arrows are lost, and which regimes "
            "cannot be told apart. Takes about three times as long as the fit.",
        )
    return int(n_resamples), bool(diagnose)


def _choose_knowledge(table: Table | None, *, disabled: bool) -> dict[str, Any] | None:
    """What is known of the graph; None if it cannot be, which is said."""
    with st.expander("What you know about the arrows"):
        typed = {
            key: column.text_area(
                f"Arrows that {words} exist, one per line",
                key=key,
                placeholder=example,
                disabled=disabled,
                help=f"Cause, an arrow (->), effect. {advice}",
            )
            for column, (key, words, example, advice) in zip(st.columns(2), _KNOWN_ARROWS, strict=True)
        }
        file = st.file_uploader(
            "Or a file (TOML or CSV), also with tiers and log-odds",
            type=["toml", "csv"],
            key="knowledge",
            disabled=disabled,
            help="See the documentation, Prior knowledge.",
        )
    if table is None:
        return {}
    names = list(table.X.columns)
    try:
        found = (
            {} if file is None else read_knowledge(on_disk(file.name, file.getvalue(), "knowledge"), names)
        )
        for key, text in typed.items():
            if edges := _edges(text, key):
                found[key] = [*found.get(key, ()), *edges]
        Constraints.build(names, **{key: value for key, value in found.items() if key != "edge_prior"})
    except ValueError as error:
        st.error(plain_text(f"What you know about the arrows: {error}"))
        return None
    if isinstance(found.get("edge_prior"), np.ndarray):
        found["edge_prior"] = found["edge_prior"].tolist()
    return found


def _edges(text: str, what: str) -> list[tuple[str, str]]:
    """Pairs from lines such as "Raf -> Mek"."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        arrow = next((arrow for arrow in _ARROWS if arrow in line), None)
        pair = [] if arrow is None else [part.strip() for part in line.split(arrow)]
        if len(pair) != 2:
            raise ValueError(
                f"line {number} of the {what} arrows is {line.strip()!r}; write: cause -> effect"
            )
        found.append((pair[0], pair[1]))
    return found


def _choose_arguments(table: Table | None, *, disabled: bool) -> dict[str, Any]:
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
            "Most regimes, including the reference",
            1,
            100,
            16,
            key="max_regimes",
            disabled=disabled,
            help="The fit finds the number; this is its limit. 1 means no interventions: all rows follow one model.",
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
        columns = st.columns(2)
        for column, (name, option) in zip(cycle(columns), OPTIONS.items(), strict=False):
            arguments[name] = column.selectbox(
                option.label, option.values(), key=name, disabled=disabled, help=option.help
            )
        more = "More starts find better solutions more often, but take longer."
        starts = columns[0].number_input("Starts", 1, 50, 4, key="n_init", disabled=disabled, help=more)
        same = "The same seed gives the same result."
        seed = columns[1].number_input("Seed", 0, 2**31 - 1, 0, key="seed", disabled=disabled, help=same)
    arguments |= {"n_init": int(starts), "random_state": int(seed)}
    arguments["max_regimes"] = int(arguments["max_regimes"])
    return arguments
