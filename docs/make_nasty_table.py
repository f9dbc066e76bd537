"""Write what every nasty input gets into ``robustness.md``: ``python docs/make_nasty_table.py``."""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from latentdo import LatentInterventionDAG

PAGE = Path(__file__).with_name("robustness.md")
CASES = Path(__file__).parents[1] / "tests" / "robustness" / "test_nasty_inputs.py"
MARKS = ("<!-- nasty inputs -->", "<!-- end of nasty inputs -->")
LONGEST = 170


def outcome(case: Any, options: dict[str, Any]) -> str:
    """What one case gets, in one cell of a table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            LatentInterventionDAG(**(options | case.model)).fit(case.table(), **case.fit())
        except (ValueError, TypeError) as error:
            return f"error: {_cell(str(error))}"
    if case.warning is None:
        return "a result"
    (said, *_) = (str(w.message) for w in caught if re.search(case.warning, str(w.message)))
    return f"a result, and a warning: {_cell(said)}"


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    flat = flat if len(flat) <= LONGEST else flat[:LONGEST] + " ..."
    # Code spans keep markup in messages from becoming markup of the page.
    return "`" + flat.replace("`", "'").replace("|", "\\|") + "`"


def main() -> None:
    """Run all cases, and put the table into the page."""
    spec = importlib.util.spec_from_file_location("nasty", CASES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nasty"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    lines = ["| input | what it gets |", "| --- | --- |"]
    lines += [f"| {case.name} | {outcome(case, module.SMALL)} |" for case in module.CASES]
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text("\n".join([before + MARKS[0], "", *lines, "", MARKS[1] + after]), "utf-8")


if __name__ == "__main__":
    main()
