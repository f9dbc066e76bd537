import io

import pytest
from rich.console import Console

from latentdo.cli import panel
from latentdo.cli.console import print_table
from latentdo.cli.panel import Course, progress

SEARCH = {"step": "residual", "evidence": -1234.5, "regimes": 5, "edges": 7}
GRADIENT = {"step": 50, "phase": "relaxed", "evidence": -1.25, "violation": 0.01, "regimes": 4, "left": 30.0}


def facts(course):
    return dict(course.facts())


def test_a_search_tells_stage_score_and_at_most_how_long():
    course = Course(n_stages=4, began=0.0, clock=lambda: 10.0)
    course.add(SEARCH)
    shown = facts(course)
    assert shown["stage"] == "residual"
    assert shown["evidence"] == "-1,234.5"
    assert (shown["regimes"], shown["edges"]) == ("5", "7")
    assert shown["time left"].startswith("at most 30 s")
    course.add(SEARCH | {"step": "final"})
    assert facts(course)["time left"] == "unknown", "half-samples and checks are still to come"


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
    now = [100.0]
    course = Course(began=0.0, clock=lambda: now[0])
    course.add({"step": "all rows"})
    now[0] += 10.0
    course.add({"step": "resample 5 of 20"})  # after earlier ones: four were there before
    assert facts(course)["time left"] == "about 2 min 30 s", "the fit to all rows is no resample"
    now[0] += 4.0
    assert facts(course)["time left"] == "about 2 min 26 s", "the clock runs on"
    course.add({"step": "resample 6 of 20"})
    assert facts(course)["time left"] == "about 1 min 38 s"


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


def test_arrows_are_not_broken_on_narrow_screens(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    name = "a name that takes more than one line"
    print_table([{"cause": name, "": "->", "effect": name, "probability": "> 99 %", "direction": ""}])
    assert "->" in capsys.readouterr().out
