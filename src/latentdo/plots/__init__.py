"""Figures of a fitted result, with matplotlib.

Every function returns an ``Axes``; all but :func:`calibration` and :func:`paper_scatter`, which need a known truth,
take a :class:`~latentdo.result.FitResult` (or a fitted estimator). Without
``ax`` it draws on a figure of its own that matplotlib's global state does not know: save it with
``ax.figure.savefig(...)``, or let a notebook show ``ax.figure``. Colours are those of Okabe and Ito, which
colour-blind readers can tell apart; beyond seven interventions the markers change too.
"""

from latentdo.plots.causes import graph
from latentdo.plots.changes import effects, regime_quartiles, regimes
from latentdo.plots.course import evidence, history_curve
from latentdo.plots.rows import pair, responsibilities
from latentdo.plots.style import PALETTE, REFERENCE_COLOUR, regime_colour, shorten
from latentdo.plots.timeline import stretches, timeline
from latentdo.plots.truth import calibration, paper_scatter

__all__ = [
    "PALETTE",
    "REFERENCE_COLOUR",
    "calibration",
    "effects",
    "evidence",
    "graph",
    "history_curve",
    "pair",
    "paper_scatter",
    "regime_colour",
    "regime_quartiles",
    "regimes",
    "responsibilities",
    "shorten",
    "stretches",
    "timeline",
]
