import io

import pytest
from rich.console import Console

from latentdo.cli import panel
from latentdo.cli.panel import Course, progress

SEARCH = {"step": "residual", "evidence": -1234.5, "regimes": 5, "edges": 7}
GRADIENT = {"step": 50, "phase": "relaxed", "evidence": -1.25, "violation": 0.01, "regimes": 4, "left": 30.0}


def facts(course):
    return dict(course.facts())


def test_a_search_tells_stage_score_and_at_most_how_long():
    course = Course(n_stages=4, began=Course().began - 10.0)
    course.add(SEARCH)
    shown = facts(course)
    assert shown["stage"] == "residual"
    assert shown["evidence"] == "-1,234.5"
    assert (shown["regimes"], shown["edges"]) == ("5", "7")
    assert shown["time left"] == "at most 30 s"


def test_a_gradient_fit_tells_restart_and_acyclicity():
    course = Course()
    course.add(GRADIENT)
    assert facts(course)["stage"] == "restart 1, relaxed, step 50"
    assert facts(course)["distance from acyclic (h)"] == "1.0e-02"
    assert facts(course)["regimes"] == "4"
    assert facts(course)["time left"] == "about 30 s"
    course.add(GRADIENT | {"step": 10})
    assert facts(course)["stage"] == "restart 2, relaxed, step 10"


def test_counted_stages_are_extrapolated():
    course = Course(began=Course().began - 10.0)
    course.add({"step": "resample 5 of 20"})
    assert facts(course)["time left"] == "about 30 s"


def test_nobody_guesses_what_cannot_be_known():
    course = Course()
    course.add({"step": "moves"})
    assert facts(course)["time left"] == "unknown"
    later = Course(n_stages=1)
    later.add(SEARCH)
    later.add(SEARCH)  # more than was expected
    assert facts(later)["time left"] == "unknown"


def test_logs_get_a_line_now_and_then(capsys, monkeypatch):
    with progress("Fitting") as step:
        step(SEARCH)
        step(SEARCH)  # less than five seconds later
        monkeypatch.setattr(panel, "SECONDS_BETWEEN_LINES", 0.0)
        step(SEARCH | {"step": "mixture"})
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines[:-1]] == ["Fitting: residual", "Fitting: mixture"]
    assert lines[-1].startswith("Fitting: 0 s")


def test_machines_get_nothing(capsys):
    with progress("Fitting", silent=True) as step:
        assert step is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("entry", [SEARCH, GRADIENT])
def test_terminals_get_a_panel(monkeypatch, entry):
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(panel, "console", lambda stderr: screen)
    with progress("Fitting [bold]x[/]") as step:
        step(entry)
    text = screen.file.getvalue()
    assert "Fitting [bold]x[/]" in text
    assert "evidence" in text


def test_names_cannot_rewrite_the_screen(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(panel, "console", lambda stderr: screen)
    with progress("Fitting") as step:
        step({"step": "merge \x1b[5J", "seconds": 0.1})
        step({"unknown": "keys are no reason to stop"})
    assert "\x1b[5J" not in screen.file.getvalue()
