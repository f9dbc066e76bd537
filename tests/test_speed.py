"""What is said of speed is what was measured, and what is compiled beforehand need not be compiled again."""

import json
import os
import subprocess
import sys

import pytest
from benchmarks import ratios

from latentdo import warm_up


def test_the_page_shows_the_stored_measurements():
    page = ratios.PAGE.read_text("utf-8")
    assert ratios.MARK.search(page)
    assert ratios.fill(page, json.loads(ratios.STORE.read_text("utf-8"))) == page


def test_what_is_measured_is_what_is_stored():
    _, *stored = json.loads(ratios.STORE.read_text("utf-8"))["seconds"]
    assert stored == [*ratios.COMMANDS, *ratios.TABLES]


@pytest.mark.parametrize(
    ("mixture", "fit", "said"), [(2.0, 8.0, []), (4.0, 16.0, []), (1.0, 8.0, ["fit: 8.0"])]
)
def test_ratios_are_compared_and_not_seconds(mixture, fit, said):
    stored = {"seconds": {"mixture": 2.0, "fit": 8.0, "gone": 1.0}}
    found = ratios.slower({"seconds": {"mixture": mixture, "fit": fit, "new": 100.0}}, stored)
    assert [one[: len("fit: 8.0")] for one in found] == said


def test_the_command_says_when_compiled_code_cannot_be_kept(monkeypatch, capsys):
    from latentdo.cli import main

    monkeypatch.setattr(warm_up, "warm_up", lambda: warm_up.Warmth(1.0, None))
    assert main(["warm-up"]) == 1
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_the_command_says_how_long_it_took(monkeypatch, capsys, tmp_path):
    from latentdo.cli import main

    monkeypatch.setattr(warm_up, "warm_up", lambda: warm_up.Warmth(61.0, tmp_path))
    assert main(["warm-up"]) == 0
    assert "61 s" in capsys.readouterr().out


FIRST_FITS = """
from numba.core import event
from latentdo import LatentInterventionDAG, simulate

class Compiled(event.Listener):
    found = []
    def on_start(self, event): pass
    def on_end(self, event): self.found.append(event.data["dispatcher"].py_func.__qualname__)

event.register("numba:compile", Compiled())
for table in ({"preset": "field", "noise": "laplace"}, {"preset": "mixed"}, {"preset": "counts"}, {}):
    LatentInterventionDAG(resamples=2).fit(simulate(n_variables=6, n_samples=600, random_state=1303, **table).X)
print(len(Compiled.found), *Compiled.found)
"""


@pytest.mark.slow
def test_after_a_warm_up_first_fits_compile_nothing(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for command in (["-m", "latentdo", "warm-up"], ["-W", "ignore", "-c", FIRST_FITS]):
        done = subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "0", done.stdout
