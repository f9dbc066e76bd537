"""Tables inside hand-written pages, filled from the stored cells.

A page marks the place with ``<!-- table NAME -->`` and ``<!-- end -->``; ``python -m experiments.report`` replaces what
is between them, and a test compares the committed pages with the committed store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments import findings, summaries
from experiments.tables import Table

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/results.md",
    "docs/status.md",
    "docs/real-data.md",
    "docs/kinds.md",
    "docs/uncertainty.md",
)
MARK = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

BLOCKS: Mapping[str, Callable[[Path | None], Table]] = {
    "headline": findings.headline,
    "linear": lambda folder: findings.linear(0, 10, folder),
    "linear-further": lambda folder: findings.linear(100, 130, folder),
    "nonlinear-latent": lambda folder: findings.without_labels("paper", folder),
    "nonlinear-hetero": lambda folder: findings.without_labels("paper-hetero", folder),
    "nonlinear-unknown": findings.with_regimes,
    "pairs": summaries.pairs,
    "overlap": lambda folder: findings.overlap(10, folder),
    "field": findings.field,
    "field-total": findings.field_total,
    "incidents": findings.incidents,
    "kinds": findings.kinds,
    "real": findings.real,
    "real-pairs": findings.real_pairs,
    "false-alarms": findings.false_alarms,
    "calibration": findings.calibration,
    "gradient": lambda folder: summaries.solvers("gradient", folder),
    "paper": lambda folder: summaries.solvers("paper", folder),
    "acyclicity": findings.acyclicity,
    "trust": findings.trust_rows,
    "trust-total": findings.trust_totals,
    "trust-reliability": findings.trust_reliability,
}
"""What a mark may name."""


def fill(text: str, folder: Path | None = None) -> str:
    """The page with every marked table made anew."""
    return MARK.sub(lambda mark: f"{mark[1]}{BLOCKS[mark[2]](folder).markdown()}\n{mark[3]}", text)


def write(root: Path = ROOT, folder: Path | None = None) -> None:
    """Fill all pages in place."""
    for name in PAGES:
        page = root / name
        if page.exists():
            page.write_text(fill(page.read_text("utf-8"), folder), "utf-8")
