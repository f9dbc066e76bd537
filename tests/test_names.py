"""Names that would do harm where they are read: formulas in spreadsheets, characters that hide or reorder text."""

import unicodedata
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentdo.interop import to_dot, to_graphml, write_graph
from latentdo.names import from_cell, to_cell, visible
from latentdo.outputs import write_outputs
from latentdo.plots.style import shorten
from latentdo.report import render_report

FORMULAS = ("=1+1", "+cmd", "-x", "@SUM(A1)", "\tx")
HIDDEN = ("a\u202eb", "c\u200bd", "e\x1b[2Jf", "g\u2066h", "i\u00adj")
starts = st.sampled_from(["", "'", "''", "=", "+", "-", "@", "\t", "\r", "'=", "-1", "'-1", "+.5e3", "-1.5x"])


@given(st.builds(lambda start, rest: start + rest, starts, st.text(max_size=6)))
def test_cells_are_harmless_and_reversible(name):
    cell = to_cell(name)
    assert from_cell(cell) == name
    if cell[:1] in "=@\t\r" and cell:
        pytest.fail(f"{cell!r} would be run")
    if cell[:1] in "+-" and cell:
        float(cell)


@given(st.text(max_size=8))
def test_what_is_shown_has_a_shape(text):
    assert not {unicodedata.category(letter) for letter in visible(text)} & {"Cc", "Cf", "Cs"}


def test_files_are_harmless_and_read_back(make_result, tmp_path, capsys):
    from latentdo.cli import main
    from latentdo.cli.tables import read_labels, read_matrix

    case = make_result(n_samples=60, columns=FORMULAS)
    labels = tuple(f"={k}" for k in range(case.result.n_regimes))
    result = replace(case.result, regime_names=labels)
    rows = case.X.set_axis([f"@{i}" for i in range(60)], axis=0)
    folder = write_outputs(result, tmp_path / "r", X=rows)
    write_graph(result, tmp_path / "edges.csv")
    for path in (*folder.glob("*.csv"), tmp_path / "edges.csv"):
        raw = pd.read_csv(path, dtype=str, keep_default_na=False)
        cells = [*raw.columns, *raw.to_numpy().ravel()]
        assert not [cell for cell in cells if cell[:1] in ("=", "@", "\t", "\r")], path
    pd.testing.assert_frame_equal(
        read_matrix(folder / "adjacency.csv"), result.adjacency, check_names=False, check_dtype=False
    )
    assert list(read_matrix(folder / "targets.csv").index) == list(labels)
    assert read_labels(folder / "regimes.csv").to_dict() == {
        f"@{i}": labels[k] for i, k in enumerate(result.regimes)
    }
    assert main(["evaluate", str(folder), "--truth", str(folder), "--json"]) == 0
    assert '"shd": 0' in capsys.readouterr().out.lower()


def test_hidden_characters_are_shown_everywhere(make_result, tmp_path, capsys):
    from latentdo.cli.console import print_result

    case = make_result(n_samples=60, columns=HIDDEN, warnings=("see a\u202eb",))
    labels = tuple(f"{k}\u202e" for k in range(case.result.n_regimes))
    result = replace(case.result, regime_names=labels)
    print_result(result)
    printed = "".join(capsys.readouterr())
    texts = {
        "console": printed,
        "report": render_report(result, case.X),
        "graphml": to_graphml(result),
        "dot": to_dot(result),
        "plot": "".join(map(shorten, HIDDEN)),
    }
    for where, text in texts.items():
        found = {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf", "Cs")}
        assert found <= {"\n", "\t"}, where
        assert "\\u202e" in text, where


def test_names_that_look_alike_once_shown_stay_different_nodes():
    names = ["a\u202e", "a\\u202e"]
    graph = pd.DataFrame([[0, 1], [0, 0]], index=names, columns=names)
    assert to_graphml(graph).count("<node ") == 2
