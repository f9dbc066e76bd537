import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from latentdo import LatentInterventionDAG
from latentdo.choices import DENSITY, OPTIONS

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(str(page.relative_to(ROOT)) for page in DOCS)]


def _script(name):
    """A module of the documentation."""
    specification = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert "X1" in capsys.readouterr().out
    assert (names["est"].adjacency_.to_numpy() == names["data"].adjacency.to_numpy()).all()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if link.startswith("#"):
            headings = [
                re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-")
                for h in re.findall(r"^#+ (.*)", text, re.M)
            ]
            assert link[1:] in headings
        elif not link.startswith("https://"):
            assert ((ROOT / page).parent / link).exists(), link


def test_commands_in_the_readme_exist():
    from latentdo.cli import app

    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "README.md", *DOCS))
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    code = re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    shell = "\n".join(fence or inline for fence, inline in code)
    for command in re.findall(r"^(?:\.venv/bin/)?latentdo ([a-z-]+)", shell, re.M):
        assert command in app
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.M):
        assert target in targets


def test_the_picture_is_small():
    assert (ROOT / "docs/images/overview.png").stat().st_size < 200_000


def test_the_documentation_builds_without_warnings(tmp_path):
    pytest.importorskip("mkdocs", reason="the docs extra is not installed")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = "".join(page.read_text("utf-8") for page in site.rglob("*.html"))
    loaded = re.findall(r"<(?:script|img)[^>]+src=[\"']?(https?:[^\"'> ]+)", text)
    loaded += re.findall(r"<link[^>]+stylesheet[^>]+href=[\"']?(https?:[^\"'> ]+)", text)
    assert loaded == []  # the pages can be read without a network
    interface = (site / "api/index.html").read_text("utf-8")
    for name in ("explain", "effect", "sample", "diagnose", "falsify"):
        assert f'id="latentdo.LatentInterventionDAG.{name}"' in interface
    assert 'id="latentdo.scm.SCM"' in interface


PAGES = [
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
    ROOT / "docs/own-family.md",
    ROOT / "docs/together.md",
]
LONG_PAGES = {"cytometry", "incidents", "own-family", "screen", "together"}
"""Which take the better part of a minute."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page.stem in LONG_PAGES else page for page in PAGES],
    ids=lambda page: page.stem,
)
def test_pages_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DENSITY, "choices", DENSITY.choices)  # what a page registers is forgotten after it
    assert _script("run_pages").check_page(page) == []


def test_pages_list_the_choices_of_the_registry():
    script = _script("make_choices")
    page = (ROOT / "docs/choosing.md").read_text("utf-8")
    assert script.renewed(page) == page, "run: python docs/make_choices.py docs/choosing.md"
    for option in OPTIONS.values():
        assert f"<!-- choices: {option.name} -->" in page
        assert all(f'`"{value}"`' in script.table(option) for value in option.values())


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_the_estimator_documents_the_choices_of_the_registry(option):
    (values,) = re.findall(rf"^ +{option.name} : {{(.*?)}}", LatentInterventionDAG.__doc__, re.M)
    assert values == ", ".join(f'"{value}"' for value in option.values())


def test_every_file_that_the_mathematics_names_exists():
    text = (ROOT / "docs/mathematics.md").read_text("utf-8")
    folder = source = ROOT / "src/latentdo"
    for path in re.findall(r"`([a-z_/]+(?:\.py|/))`", text):
        if "/" in path:
            folder = (source / path).parent  # in "`model/a.py`, `b.py`" the two are neighbours
        assert (source / path).exists() or (folder / path).exists(), path
