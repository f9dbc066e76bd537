"""What a user could not foresee: files that somebody edited, and faults of our own."""

import json
import tempfile
from pathlib import Path

import pandas as pd
import pytest

import latentdo.cli.commands.evaluate as evaluate_command
from latentdo.cli.faults import EXIT_FAULT
from latentdo.outputs import write_outputs


@pytest.fixture
def results(tmp_path, make_result):
    return write_outputs(make_result(n_samples=60).result, tmp_path / "r")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[]", ""),
        ("3", ""),
        ("{", ""),
        ("[" * 100_000, ""),
        ('{"versions": ' * 5000 + "1" + "}" * 5000, ""),
        ('{"versions": 3}', "versions"),
        ('{"versions": ["a"]}', "versions"),
        ('{"versions": {"latentdo": {"a": 1}}}', "versions"),
        ('{"diagnosis": [1]}', "diagnosis"),
        ('{"diagnosis": {"sentences": "text"}}', "sentences"),
        ('{"diagnosis": {"sentences": {"a": [1]}}}', "sentences"),
        ('{"diagnosis": {"sentences": {"a": [[[[]]]]}}}', "sentences"),
        ("\ufeff\x00", ""),
    ],
)
def test_a_summary_that_was_edited_is_named_with_its_field(run, results, content, named):
    (results / "result.json").write_text(content, encoding="utf-8")
    before = (results / "report.html").read_bytes()
    code, out, err = run("report", results)
    assert (code, out) == (1, "")
    assert "result.json" in err
    assert named in err
    assert "Traceback" not in err
    assert (results / "report.html").read_bytes() == before


def test_a_summary_without_versions_or_diagnosis_will_do(run, results):
    (results / "result.json").write_text(json.dumps({"versions": None, "anything": [[]]}))
    assert run("report", results)[0] == 0


@pytest.mark.parametrize("column", ["trial", "held_out", "chosen", "edges"])
@pytest.mark.parametrize("value", ["text", "", "inf"])
def test_trials_that_were_edited_are_refused_by_column(run, results, column, value):
    trial = {"trial": 0, "held_out": -1.5, "seconds": 1.0, "within_one_error": True, "chosen": True}
    trial |= {"edges": 1, "targets": 1, "regimes": 2, "max_regimes": 4}
    pd.DataFrame([trial]).to_csv(results / "trials.csv", index=False)
    assert run("report", results)[0] == 0
    pd.DataFrame([trial | {column: value}, trial]).to_csv(results / "trials.csv", index=False)
    code, _, err = run("report", results)
    assert code == 1
    assert repr(column) in err


@pytest.mark.parametrize(
    "error",
    [TypeError("odd"), KeyError("x"), RecursionError("deep"), OverflowError(), AssertionError("a\nb")],
)
def test_an_unforeseen_error_is_one_line_that_takes_the_blame(run, results, tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(evaluate_command, "compare_folders", fail)
    code, out, err = run("evaluate", results, "--truth", results)
    assert (code, out) == (EXIT_FAULT, "")
    assert len(err.splitlines()) == 1
    assert "fault of latentdo" in err
    assert "issue tracker" in err
    (kept,) = tmp_path.glob("latentdo-traceback-*.txt")
    assert str(kept) in err
    assert type(error).__name__ in kept.read_text()
    assert Path(__file__).name in kept.read_text()


@pytest.mark.parametrize("error", [TypeError("odd"), ValueError("wrong")])
def test_tracebacks_are_shown_on_request(run, results, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setenv("LATENTDO_TRACEBACK", "1")
    monkeypatch.setattr(evaluate_command, "compare_folders", fail)
    _, _, err = run("evaluate", results, "--truth", results)
    assert "Traceback" in err
    assert "no option reads" not in err


def test_a_fault_is_told_even_where_nothing_can_be_written(run, results, tmp_path, monkeypatch):
    def fail(*_):
        raise TypeError("odd")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nosuch"))
    monkeypatch.setattr(evaluate_command, "compare_folders", fail)
    code, _, err = run("evaluate", results, "--truth", results)
    assert code == EXIT_FAULT
    assert "LATENTDO_TRACEBACK=1" in err
