"""Tunables live in one file, each with its reason."""

import ast
from pathlib import Path

import pytest

import latentdo
from latentdo.solvers import settings

SOLVERS = Path(settings.__file__).parent
CODES = {"FREE", "REFERENCE", "TARGET"}
"""Names of what is known of a (regime, variable) pair; their numbers mean nothing."""


def _numbers(node):
    """Whether an expression is written in numbers alone: literals, signs, arithmetic, tuples."""
    parts = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.Tuple, ast.List, ast.Load)
    return all(isinstance(part, parts) for part in ast.walk(node)) and all(
        isinstance(part.value, int | float) and not isinstance(part.value, bool)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
    )


def _constants(text):
    """Upper-case names that a module, or a class in it, sets to numbers."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _numbers(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (part for target in targets for part in ast.walk(target)):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id.isupper():
                    yield part.id


def test_constants_are_recognised():
    numbers = "A = 1\n_B: int = -2\nC, D = 3, 4.0\nE = (5, 6)\nF = 7 * 8\n"
    others = "g = 9\nH = 'text'\nI = J = True\nK = f(1)\nx[L] = 0"
    assert list(_constants(numbers + others)) == ["A", "_B", "C", "D", "E", "F"]


@pytest.mark.parametrize(
    "path", [p for p in sorted(SOLVERS.rglob("*.py")) if p.name != "settings.py"], ids=lambda p: p.stem
)
def test_no_solver_has_a_tunable_of_its_own(path):
    assert set(_constants(path.read_text())) <= CODES


def test_every_setting_says_why():
    body = ast.parse(Path(settings.__file__).read_text()).body
    places = [place for place, node in enumerate(body) if isinstance(node, ast.AnnAssign)]
    silent = [
        body[place].target.id
        for place in places
        if place + 1 == len(body)
        or not isinstance(body[place + 1], ast.Expr)
        or not isinstance(body[place + 1].value, ast.Constant)
    ]
    assert places
    assert not silent


def test_every_setting_is_used():
    used = {
        alias.name
        for path in Path(latentdo.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "latentdo.solvers.settings"
        for alias in node.names
    }
    own = {"UNITS"}  # which another setting is made of
    assert {name for name in vars(settings) if name.isupper()} - used <= own
