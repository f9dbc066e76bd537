"""Tables, duels and the page say what the store says, and nothing when it is silent."""

from datetime import UTC, datetime

import pandas as pd
import pytest
from experiments.duels import duels, opponent
from experiments.paper import TABLE_1, Row
from experiments.summaries import number
from experiments.tables import Table

from experiments import blocks, report, runner, store

ROW = Row("stochastic", "linear", 1)


@pytest.fixture
def folder(tmp_path):
    """Two graphs: GIES is level on one and better by two on the other; GES has one answer and one time-out."""
    cell = {**ROW._asdict(), "n_samples": 10_000, "true_edges": 9, "memory_mb": 100.0, "date": "2026-01-01"}
    mine = [
        {
            "key": f"a{seed}{variant}",
            **cell,
            "variant": variant,
            "seed": seed,
            "hamming": value,
            "fit_seconds": 1.0,
        }
        for variant in ("latent", "known", "observational")
        for seed, value in ((0, 3.0), (1, 5.0))
    ]
    pd.DataFrame(mine).assign(versions="abc123 python-3").to_csv(tmp_path / "table1.csv", index=False)
    peer = {**cell, "limit": 180.0, "processor_seconds": 2.0, "versions": "python-3"}
    answers = [
        ("gies", 0, "ok", 3.0),
        ("gies", 1, "ok", 3.0),
        ("ges", 0, "ok", 40.0),
        ("ges", 1, "time-out", None),
    ]
    theirs = [
        {
            "key": f"b{i}",
            **peer,
            "method": m,
            "seed": s,
            "status": status,
            "hamming": h,
            "hamming_favourable": h if h is None else 1.0,
        }
        for i, (m, s, status, h) in enumerate(answers)
    ]
    pd.DataFrame(theirs).assign(message="stopped").to_csv(tmp_path / "comparison.csv", index=False)
    return tmp_path


def test_duels_are_paired_over_graphs(folder):
    gies, ges = duels(folder)
    assert (gies.method, opponent("gies"), gies.lost) == ("gies", "known", True)
    assert gies.difference.tolist() == [0.0, -2.0]
    assert (ges.method, opponent("ges"), ges.lost) == ("ges", "latent", False)
    assert ges.difference.tolist() == [37.0]
    assert duels(folder, favoured=True)[1].difference.tolist() == [-2.0]


def test_the_page_names_losses_and_what_was_not_run(folder):
    text, tables = report.page(folder)
    assert "GIES (told regimes, targets) 3.0 against our known 4.0 on 2 graphs" in text
    assert "Only if undirected edges are turned by the truth: GES, all rows (told nothing) 1.0" in text
    assert "One regime for a mixture" not in text  # 4.0 is below the paper's 10.3
    assert "DCDI-G: installed, not run (many minutes" in text
    assert {"table1", "label-free", "labelled", "duels", "costs"} <= {table.name for table in tables}
    (line,) = (row for row in tables[0].rows if row[0] == str(ROW))
    assert line[1] == "**4.0 ± 1.0 (2)**"


def test_a_longer_limit_replaces_a_time_out(folder):
    stored = pd.read_csv(folder / "comparison.csv")
    again = stored[stored["key"] == "b3"].assign(key="b4", limit=900.0, status="ok", hamming=7.0)
    pd.concat([again, stored]).to_csv(folder / "comparison.csv", index=False)
    cells = store.peers(folder)
    assert cells[(cells["method"] == "ges") & (cells["seed"] == 1)]["hamming"].tolist() == [7.0]


def test_the_committed_store_makes_a_page(tmp_path):
    text, tables = report.page(pictures=["table1"])
    assert text.startswith("# Comparison")
    assert len(tables[0].rows) == len(TABLE_1) == 12
    for table in tables:
        assert all(len(row) == len(table.header) for row in table.rows)
        table.write(tmp_path)
        assert (tmp_path / f"{table.name}.tex").read_text("utf-8").count(r"\\") == len(table.rows) + 1


def test_a_table_in_two_languages():
    table = Table("t", "50 % of d_1", ("a", "b"), [("x_1", "**1 ± 2**")])
    assert table.markdown().splitlines() == ["| a | b |", "| --- | --- |", "| x_1 | **1 ± 2** |"]
    assert r"x\_1 & \textbf{1 $\pm$ 2} \\" in table.latex()
    assert r"50 \% of d\_1" in table.latex()


def test_numbers_carry_error_and_count():
    assert number([1.0, 3.0]) == "2.0 ± 1.0 (2)"
    assert number([1.0]) == "1.0 (1)"
    assert number([float("nan")]) == "-"


def test_a_stored_row_says_where_it_comes_from(tmp_path):
    frame = runner.run("tiny", [{"x": 1}], lambda x: {"y": x + 1}, n_jobs=1, store=tmp_path)
    (row,) = frame.to_dict("records")
    assert (row["x"], row["y"], row["key"]) == (1, 2, runner.cell_key({"x": 1}))
    assert row["memory_mb"] > 10
    assert "numpy-" in row["versions"]
    assert row["date"] >= "2026"


def test_stored_figures_are_called_so_and_run_again_on_request(tmp_path, capsys):
    calls = []

    def cell(x):
        calls.append(x)
        return {"y": len(calls)}

    def run(**options):
        frame = runner.run("tiny", [{"x": 1}, {"x": 2}], cell, n_jobs=1, store=tmp_path, **options)
        return frame["y"].to_list(), capsys.readouterr().out

    assert run()[0] == [1, 2]
    again, said = run()
    assert again == [1, 2]
    assert "--fresh" in said
    assert f"{datetime.now(UTC):%Y-}" in said
    fresh, said = run(fresh=True)
    assert fresh == [3, 4]
    assert "--fresh" not in said


@pytest.mark.parametrize("page", blocks.PAGES)
def test_pages_show_what_is_stored(page):
    """``python -m experiments.report`` after new cells, or this fails."""
    text = (blocks.ROOT / page).read_text("utf-8")
    assert blocks.MARK.search(text), "no table is marked"
    assert blocks.fill(text) == text


def test_a_marked_table_is_replaced_and_the_rest_kept():
    old = "before\n<!-- table headline -->\n| old |\n<!-- end -->\nafter\n"
    new = blocks.fill(old)
    assert new.startswith("before\n<!-- table headline -->\n| interventions |")
    assert new.endswith("\n<!-- end -->\nafter\n")
    assert "| old |" not in new
    assert blocks.fill(new) == new
