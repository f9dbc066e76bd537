import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/index.md",
    "docs/report.md",
    "docs/app.md",
    "docs/plots.md",
]


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

    text = (ROOT / "README.md").read_text("utf-8") + (ROOT / "docs/index.md").read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    for command in re.findall(r"(?:^|[`/])latentdo ([a-z]+)", text, re.M):
        assert command in app
    for target in re.findall(r"make ([a-z-]+)", text):
        assert target in targets or target == "and"


def test_the_picture_is_small():
    assert (ROOT / "docs/images/overview.png").stat().st_size < 200_000
