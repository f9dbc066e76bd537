"""The package installs where nothing of it is, without a compiler, and finds its files."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.slow
def test_a_wheel_installs_and_works_in_an_environment_of_its_own():
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    command = [sys.executable, str(ROOT / "tools/try_install.py"), "--offline"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "installs and works" in done.stdout


def test_the_conda_recipe_says_what_the_package_says():
    recipe = (ROOT / "tools/conda/meta.yaml").read_text("utf-8")
    assert f'version = "{PROJECT["version"]}"' in recipe
    conda = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
    for wanted in PROJECT["dependencies"]:
        name, _, least = wanted.partition(">=")
        assert f"    - {conda.get(name, name)} >={least}\n" in recipe
    assert f"python {PROJECT['requires-python']}" in recipe
