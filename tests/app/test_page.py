"""The page without a browser: Streamlit's own test harness runs it, the fits are real."""

import gzip
import io
import time
import zipfile

import pandas as pd
import pytest

from latentdo.app import PAGE
from latentdo.outputs import FILES
from latentdo.scm import simulate

pytest.importorskip("streamlit", reason="the app extra is not installed")

from streamlit.testing.v1 import AppTest


@pytest.fixture
def page():
    opened = AppTest.from_file(str(PAGE), default_timeout=600).run()
    yield opened
    if "job" in opened.session_state:
        opened.session_state["job"].give_up()


@pytest.fixture(scope="module")
def table():
    return simulate(n_variables=4, n_samples=400, random_state=1)


def upload(page, name, content):
    page.file_uploader(key="file").set_value((name, content, "text/csv"))
    return page.run()


def finished(page, seconds=600):
    end = time.monotonic() + seconds
    while page.session_state["job"].state == "running":
        assert time.monotonic() < end, "the fit did not end in time"
        time.sleep(0.2)
    return page.run()


def said(page):
    """Error messages as a reader sees them, without the escapes of Markdown."""
    return " ".join(error.value.replace("\\", "") for error in page.error)


def test_it_opens_without_data_and_waits(page):
    assert not page.exception
    assert page.button(key="run").disabled
    assert [header.value for header in page.header] == ["1. Data", "2. Options", "3. Result"]
    helped = [widget for widget in (*page.selectbox, *page.number_input) if widget.help]
    assert len(helped) == len([*page.selectbox, *page.number_input])


def test_from_the_example_to_the_report(page):
    page.radio(key="source").set_value("Example: simulated").run()
    assert not page.exception
    page.button(key="run").click().run()
    assert page.button(key="run").disabled
    finished(page)
    assert not page.exception
    assert not page.error
    job = page.session_state["job"]
    html = (job.results / "report.html").read_text("utf-8")
    assert "In 996 rows of 5 variables" in html
    assert [entry["step"] for entry in job.progress()]
    with zipfile.ZipFile(io.BytesIO(job.archive())) as archive:
        assert sorted(archive.namelist()) == sorted(f"latentdo-results/{name}" for name in FILES)
    assert {button.proto.label.split(":")[0] for button in page.get("download_button")} >= set(FILES)


def test_columns_conditions_and_options_reach_the_fit(page, table):
    X = table.X.assign(id=[f"s{i}" for i in range(len(table.X))], group=[f"c{z}" for z in table.regimes])
    X.loc[::3, "group"] = ""
    upload(page, "cells.csv.gz", gzip.compress(X.to_csv(index=False).encode(), mtime=0))
    assert page.multiselect(key="variables").value == list(table.X.columns)
    assert "id" in page.caption[0].value
    page.multiselect(key="variables").set_value(["X1", "X2", "X3"])
    page.selectbox(key="labels").set_value("group").run()
    page.selectbox(key="observational").set_value("c0")
    page.number_input(key="max_regimes").set_value(7)
    page.number_input(key="n_init").set_value(1)
    page.selectbox(key="intervention").set_value("perfect")
    page.selectbox(key="noise").set_value("gaussian")
    page.button(key="run").click().run()
    finished(page)
    assert not page.error
    report = (page.session_state["job"].results / "report.html").read_text("utf-8")
    assert "of 3 variables" in report
    assert '<th scope="row">max_regimes</th><td class="mono">7</td>' in report
    assert '<th scope="row">noise</th><td class="mono">gaussian</td>' in report
    assert '<th scope="row">observational</th><td class="mono">c0</td>' in report


def test_kinds_can_be_said_and_not_twice(page):
    drawn = simulate(preset="mixed", n_variables=5, n_samples=200, n_regimes=1, random_state=1000)
    upload(page, "mixed.csv", drawn.X.to_csv(index=False).encode())
    assert page.multiselect(key="variables").value == ["X1", "X2", "X3", "X4"]
    assert "X5" in page.caption[0].value
    page.multiselect(key="variables").set_value(list(drawn.X.columns)).run()
    assert not page.error
    page.multiselect(key="kind-count").set_value(["X3"]).run()
    page.multiselect(key="kind-continuous").set_value(["X3"]).run()
    assert "'X3'" in said(page)
    page.multiselect(key="kind-continuous").set_value([]).run()
    assert not page.error
    assert not page.exception


def test_times_and_weights_reach_the_fit_and_segments_are_shown(page):
    drawn = simulate(n_variables=3, n_samples=600, random_state=1000, mean_duration=60, separation=6.0)
    n = len(drawn.X)
    X = drawn.X.assign(minute=range(n), counts=[0.0, 1.5] * (n // 2) + [1.0] * (n % 2))
    upload(page, "service.csv", X.to_csv(index=False).encode())
    page.selectbox(key="time").set_value("minute").run()
    page.selectbox(key="sample_weight").set_value("counts").run()
    page.number_input(key="n_init").set_value(1)
    page.selectbox(key="noise").set_value("gaussian")
    page.button(key="run").click().run()
    finished(page)
    assert not page.error
    assert not page.exception
    results = page.session_state["job"].results
    assert pd.read_csv(results / "regimes.csv")["weight"].isin([1.0, 1.5]).all()
    segments = pd.read_csv(results / "segments.csv", dtype={"regime": str})
    assert len(page.dataframe[-1].value) == len(segments) > 0
    one = segments["regime"].iloc[0]
    page.multiselect(key="timeline").set_value([one]).run()
    assert not page.exception
    assert set(page.dataframe[-1].value["regime"]) == {one}


def test_a_column_of_groups_reaches_the_fit(page):
    drawn = simulate(n_variables=3, n_samples=200, random_state=1, group_size=10)
    X = drawn.X.assign(plate=drawn.groups)
    upload(page, "plates.csv", X.to_csv(index=False).encode())
    page.selectbox(key="groups").set_value("plate").run()
    page.multiselect(key="variables").set_value(["X1", "X2", "X3"]).run()
    page.number_input(key="n_init").set_value(1)
    page.button(key="run").click().run()
    finished(page)
    assert not page.error
    results = page.session_state["job"].results
    assert f"in {len(set(drawn.groups))} groups" in (results / "report.html").read_text("utf-8")
    assert pd.read_csv(results / "regimes.csv")["group"].tolist() == drawn.groups.tolist()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", "empty"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe", "picture.csv"),
        ("ragged.csv", b"a,b\n1,2\n3,4,5\n", "ragged.csv"),
        ("gap.csv", b"a,b\n1,2\n3,\n4,1\n", "Rows with missing values: leave them out"),
        ("same.csv", b"a,b\n1,2\n1,3\n1,5\n", "take 'a' out of \"Variables\""),
        ("broken.parquet", b"PAR1 or so", "parquet"),
    ],
    ids=["empty", "binary", "ragged", "missing", "constant", "parquet"],
)
def test_a_bad_file_is_explained_and_the_page_stays(page, name, content, words):
    upload(page, name, content)
    assert not page.exception
    assert words.lower() in said(page).lower()
    assert "/tmp" not in said(page)
    assert page.button(key="run").disabled
    upload(page, "good.csv", b"a,b\n1,2\n2,3\n3,5\n5,1\n")
    assert not page.error
    assert not page.button(key="run").disabled


def test_a_hint_of_a_message_is_followed(page):
    upload(page, "gap.csv", b"a,b\n1,2\n3,\n4,1\n")
    assert page.error
    for way in ("leave them out", "keep them, and sum missing cells out"):
        page.selectbox(key="missing").set_value(way).run()
        assert not page.error
    page.selectbox(key="missing").set_value("refuse them").run()
    assert page.error


def test_names_are_not_markdown(page):
    upload(page, "odd.csv", b"![x](http://x.invalid/a.png),b\ntext,2\nmore,3\n")
    assert "http://x" not in page.caption[0].value
    page.multiselect(key="variables").set_value(["![x](http://x.invalid/a.png)", "b"]).run()
    assert "![x](http://x.invalid/a.png)" in said(page)
    assert "![x]" not in page.error[0].value


def test_a_table_that_no_model_fits_is_explained_after_the_run(page):
    page.radio(key="source").set_value("Example: simulated").run()
    page.selectbox(key="transform-none").set_value("log")
    page.button(key="run").click().run()
    finished(page)
    assert "Transform of all columns: log1p" in said(page)
    assert "transform=" not in said(page)
    assert not page.exception
    assert not page.button(key="run").disabled


def test_known_arrows_bootstrap_and_diagnosis_reach_the_report(page, table):
    upload(page, "t.csv", table.X.to_csv(index=False).encode())
    page.text_area(key="forbidden").set_value("X1 -> X2\n\nX2 -> X1")
    page.text_area(key="required").set_value("X3 → X4")
    page.number_input(key="n_resamples").set_value(2)
    page.checkbox(key="diagnose").check()
    page.number_input(key="n_init").set_value(1)
    page.run()
    page.button(key="run").click().run()
    finished(page)
    assert not page.error
    job = page.session_state["job"]
    html = (job.results / "report.html").read_text("utf-8")
    assert "resampled rows" in html
    assert "can and cannot show" in html
    adjacency = pd.read_csv(job.results / "adjacency.csv", index_col=0)
    assert adjacency.loc["X1", "X2"] == adjacency.loc["X2", "X1"] == 0
    assert adjacency.loc["X3", "X4"] == 1
    names = {button.proto.label.split(":")[0] for button in page.get("download_button")}
    assert {"bootstrap_edges.csv", "consensus.csv", "report.html"} <= names


@pytest.mark.parametrize(
    ("required", "message"),
    [
        ("X1 -> X2\nX2 -> X1", "the required edges form a cycle: X1 -> X2 -> X1"),
        ("X1 -> Y", "names 'Y', which is not a variable"),
        ("X1, X2", "line 1 of the required arrows is 'X1, X2'; write: cause -> effect"),
    ],
)
def test_arrows_that_cannot_be_are_explained_before_the_run(page, table, required, message):
    upload(page, "t.csv", table.X.to_csv(index=False).encode())
    page.text_area(key="required").set_value(required).run()
    assert message in said(page)
    assert page.button(key="run").disabled


def test_a_file_of_knowledge(page, table):
    upload(page, "t.csv", table.X.to_csv(index=False).encode())
    page.file_uploader(key="knowledge").set_value(
        ("k.csv", b"cause,effect,knowledge\nX1,Y,required\n", "text/csv")
    )
    page.run()
    assert "line 2 names 'Y'" in said(page)
