"""Run the Python on a page of the documentation, and compare or renew the output that the page shows.

``python docs/run_pages.py docs/tutorials/*.md`` compares; with ``--write`` it renews. Blocks of a page share one
namespace, as in a notebook. A block of ``text`` right after one of ``python`` is what that one prints.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?", re.DOTALL)
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def run_page(path: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Every block of code with what it prints now."""
    names: dict[str, object] = {"__name__": "__page__"}
    for block in _BLOCK.finditer(path.read_text("utf-8")):
        line = path.read_text("utf-8")[: block.start("code")].count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile("\n" * line + block["code"], str(path), "exec"), names)
        yield block, "\n".join(text.rstrip() for text in printed.getvalue().splitlines()) + "\n"


def agree(shown: str, printed: str) -> bool:
    """Whether the words are the same and the numbers nearly so: another processor rounds otherwise."""
    if _NUMBER.sub("#", " ".join(shown.split())) != _NUMBER.sub("#", " ".join(printed.split())):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= 0.02 + 0.05 * abs(float(a)) for a, b in pairs)


def check_page(path: Path) -> list[str]:
    """What the page shows, but its code no longer prints."""
    return [
        f"{path.name}: shown\n{block['output']}\nprinted\n{printed}"
        for block, printed in run_page(path)
        if block["output"] is not None and not agree(block["output"], printed)
    ]


def renew_page(path: Path) -> None:
    """Write what the code prints into the page."""
    text, end, parts = path.read_text("utf-8"), 0, []
    for block, printed in run_page(path):
        if block["output"] is not None:
            parts += [text[end : block.start("output")], printed]
            end = block.end("output")
    path.write_text("".join([*parts, text[end:]]), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for page in arguments.pages:
        if arguments.write:
            renew_page(page)
        elif differences := check_page(page):
            raise SystemExit("\n\n".join(differences))
