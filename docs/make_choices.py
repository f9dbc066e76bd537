"""Write the tables of options and their values into the pages, from the registry of the package.

``python docs/make_choices.py docs/choosing.md`` renews what stands between ``<!-- choices: density -->`` and
``<!-- end -->``; a test compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from latentdo.choices import OPTIONS, SOLVER, Choice, Option

_PLACE = re.compile(r"(?<=<!-- choices: )(?P<option>\w+) -->\n.*?(?=<!-- end -->)", re.DOTALL)


def table(option: Option[Choice]) -> str:
    """All values of an option, one per row."""
    rows = [[f"`{option.name}`", "what it means", "solvers", "other names"], ["---"] * 4]
    for choice in option.choices:
        solvers, others = ", ".join(choice.solvers), "; ".join(_other_names(option, choice))
        rows.append([f'`"{choice.name}"`', choice.summary, solvers, others])
    if option is SOLVER:
        for row in rows:
            del row[2]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _other_names(option: Option[Choice], choice: Choice) -> list[str]:
    """Each alias, with the solvers for which it means this choice unless that is all of them."""
    found = []
    for alias in choice.aliases:
        solvers = [solver for solver in choice.solvers if option.resolve(alias, solver) is choice]
        only = "" if len(solvers) == len(SOLVER.choices) else f" with {', '.join(solvers)}"
        found.append(f'`"{alias}"`{only}')
    return found


def renewed(page: str) -> str:
    """The text of a page with its tables as they should be."""
    return _PLACE.sub(lambda place: f"{place['option']} -->\n\n{table(OPTIONS[place['option']])}\n\n", page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(renewed(path.read_text("utf-8")), encoding="utf-8")
