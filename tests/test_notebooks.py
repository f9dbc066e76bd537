"""The notebooks of the documentation run from top to bottom, and hold no outputs that could grow stale."""

import ast
import json
import warnings
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb"))


def run(code, names):
    """Run a cell as a notebook does: what its last line is worth is shown."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path):
    names = {}
    cells = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in cells:
            shown = run("".join(cell["source"]), names)
            if hasattr(shown, "_repr_html_"):
                assert "<table" in shown._repr_html_()
    if path.stem == "five-minutes":
        assert names["metrics"].shd(names["data"].adjacency, names["est"].adjacency_) == 0
    if path.stem == "incidents":
        starts = set(names["est"].segments_["start"])
        assert len(starts & set(names["service"].incidents["start"])) >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_whole_and_holds_no_outputs(path):
    content = json.loads(path.read_text("utf-8"))
    assert (content["nbformat"], content["cells"][0]["cell_type"]) == (4, "markdown")
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    for cell in content["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["five-minutes", "incidents", "mixed-screen"]
