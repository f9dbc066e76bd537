"""Figures of a fitted result, with matplotlib.

Every function returns an ``Axes``; all but :func:`calibration` and :func:`paper_scatter`, which need a known truth,
take a :class:`~latentdo.result.FitResult` (or a fitted estimator). Without
``ax`` it draws on a figure of its own that matplotlib's global state does not know: save it with
``ax.figure.savefig(...)``, or let a notebook show ``ax.figure``. Colours are those of Okabe and Ito, which
colour-blind readers can tell apart; beyond seven interventions the markers change too.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.layout import layered_layout
from latentdo.result import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PALETTE",
    "calibration",
    "effects",
    "evidence",
    "graph",
    "pair",
    "paper_scatter",
    "regimes",
    "responsibilities",
]

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5FA8")
"""Colours of the interventions, in turn; the reference regime is grey."""

REFERENCE_COLOUR: Final = "#8A8A8A"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_INK, _BOX = "#222222", "#EEF2F7"


def regime_colour(regime: int) -> str:
    """Colour of a regime by its index; grey for the reference."""
    return REFERENCE_COLOUR if regime == 0 else PALETTE[(regime - 1) % len(PALETTE)]


def shorten(name: object, length: int = 18) -> str:
    """A name that fits into a picture."""
    text = " ".join(str(name).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def graph(
    result: Any, ax: Axes | None = None, *, regime: Hashable | None = None, min_probability: float = 0.0
) -> Axes:
    """Draw the causal graph in layers, causes above effects; likelier edges are wider and darker.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    regime : label, optional
        Fill the targets of this regime with its colour.
    min_probability : float
        Leave out edges with a smaller probability.
    """
    result = _result(result)
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    names = [shorten(name) for name in result.columns]
    widths = np.array([22.0 + 7.5 * len(name) for name in names])
    layout = layered_layout(result.model.topology.adjacency, widths)
    if ax is None:
        ax = _axes(np.clip((layout.width + 60) / 85, 3, 18), np.clip((layout.height + 60) / 85, 2, 14))
    hit = set()
    if regime is not None:
        hit = set(np.flatnonzero(result.model.topology.targets[_regime_index(result, regime)]))
    ax.set_xlim(-15, layout.width + 15)
    ax.set_ylim(layout.height + 35, -35)
    ax.set_axis_off()
    points_per_unit = ax.get_window_extent().height * 72.0 / ax.figure.dpi / (layout.height + 70)
    half_box = 11.0 / points_per_unit  # boxes have the size of their text, whatever the size of the axes
    for j, (name, (x, y)) in enumerate(zip(names, layout.positions, strict=True)):
        colour = regime_colour(_regime_index(result, regime)) if j in hit else _BOX
        ax.text(
            x,
            y,
            _literal(name),
            ha="center",
            va="center",
            fontsize=9,
            zorder=3,
            color="white" if j in hit else _INK,
            bbox={"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": _INK, "linewidth": 0.7},
        )
    for (i, j), route in layout.routes.items():
        probability = float(result.edge_probabilities[i, j])
        if probability < min_probability:
            continue
        vertices, codes = _curve(route, half_box)
        ax.add_patch(
            FancyArrowPatch(
                path=Path(vertices, codes),
                arrowstyle="-|>",
                mutation_scale=11,
                linewidth=0.6 + 2.2 * probability,
                alpha=0.25 + 0.7 * probability,
                color=_INK,
                zorder=2,
            )
        )
    return ax


def regimes(result: Any, ax: Axes | None = None) -> Axes:
    """Show what each regime changed: one row a regime with its share of the rows, darker is more probable.

    A dot marks the targets that were chosen.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    """
    result = _result(result)
    k, d = result.target_probabilities.shape
    ax = ax or _axes(np.clip(2.4 + 0.42 * d, 4, 22), np.clip(1.4 + 0.34 * k, 2, 14))
    image = ax.imshow(result.target_probabilities, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    rows, columns = np.nonzero(result.model.topology.targets)
    ax.plot(columns, rows, "o", color="#D55E00", markersize=4, label="target")
    weights = result.model.topology.weights
    labels = [
        _literal(f"{shorten(name, 24)}  ({weight:.0%})")
        for name, weight in zip(result.regime_names, weights, strict=True)
    ]
    ax.set_yticks(range(k), labels)
    ax.set_xticks(
        range(d), [_literal(shorten(name)) for name in result.columns], rotation=60, ha="right", fontsize=8
    )
    ax.set_ylabel("regime (share of rows)")
    cast("Any", ax.figure).colorbar(image, ax=ax, label="probability of a changed mechanism")
    return ax


def responsibilities(result: Any, ax: Axes | None = None, *, max_rows: int = 2000) -> Axes:
    """Show how sure each row's regime is: rows sorted by regime, and by probability within it.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    max_rows : int
        Of larger tables, evenly spaced rows of the sorted order are shown.
    """
    result = _result(result)
    values, best = result.responsibilities, result.regimes
    order = np.lexsort((-values[np.arange(len(best)), best], best))
    if len(order) > max_rows:
        order = order[np.linspace(0, len(order) - 1, max_rows).round().astype(np.int64)]
    ax = ax or _axes(np.clip(2.5 + 0.4 * values.shape[1], 4, 14), 5)
    image = ax.imshow(values[order], vmin=0, vmax=1, cmap="Blues", aspect="auto", interpolation="nearest")
    names = [_literal(shorten(name)) for name in result.regime_names]
    ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    ax.set_xlabel("regime")
    ax.set_ylabel("rows, sorted by regime")
    ax.set_yticks([])
    cast("Any", ax.figure).colorbar(image, ax=ax, label="posterior probability")
    return ax


def effects(result: Any, ax: Axes | None = None, *, most: int = 40) -> Axes:
    """Show what each regime did to each of its targets: the middle half and the median, against the reference.

    Positions are in standard units, so that all variables share an axis: 0 is the reference's median, and the grey
    band its middle half. Numbers on the right are the medians before and after, in the user's units.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    most : int
        Of more targets than this, the most probable ones are shown.
    """
    result = _result(result)
    quartiles = regime_quartiles(result)
    pairs = np.argwhere(result.model.topology.targets)
    sure = np.argsort([-result.target_probabilities[k, j] for k, j in pairs], kind="stable")[:most]
    pairs = pairs[np.sort(sure)]
    ax = ax or _axes(6.4, np.clip(1.2 + 0.3 * len(pairs), 2, 14))
    labels = []
    for row, (k, j) in enumerate(pairs):
        name = result.columns[j]
        z = result.preprocessor.forward_column(name, quartiles[[0, k], :, j].ravel()).reshape(2, 3)
        unit = max(float(z[0, 2] - z[0, 0]) / 1.349, 1e-12)  # of a normal distribution, this is its deviation
        z = (z - z[0, 1]) / unit
        colour = regime_colour(int(k))
        ax.plot(z[0, [0, 2]], [row, row], color="#C9C9C9", linewidth=9, solid_capstyle="butt", zorder=1)
        ax.plot(z[1, [0, 2]], [row, row], color=colour, linewidth=3, zorder=2)
        ax.plot(z[1, 1], row, "o", color=colour, markersize=6, zorder=3)
        before, after = quartiles[0, 1, j], quartiles[k, 1, j]
        ax.annotate(
            f"{before:.3g} → {after:.3g}",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
        )
        labels.append(_literal(f"{shorten(result.regime_names[k], 20)}: {shorten(name)}"))
    if not len(pairs):
        ax.text(0.5, 0.5, "no regime has a target", ha="center", va="center", transform=ax.transAxes)
    ax.axvline(0.0, color=_INK, linewidth=0.6, zorder=0)
    ax.set_yticks(range(len(pairs)), labels, fontsize=8)
    ax.set_ylim(max(len(pairs), 1) - 0.5, -0.5)
    ax.set_xlabel("shift, in standard deviations of the reference")
    return ax


def pair(
    result: Any,
    X: pd.DataFrame | NDArray[Any],
    x: str,
    y: str,
    ax: Axes | None = None,
    *,
    max_rows: int = 3000,
) -> Axes:
    """Scatter two variables in the user's units, coloured by the regime of each row (the paper's figure 1).

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    X : DataFrame or array [n, d]
        The rows that were fitted.
    x, y : str
        Names of two variables.
    ax : Axes, optional
        Where to draw.
    max_rows : int
        Of larger tables, evenly spaced rows are shown.
    """
    result = _result(result)
    columns = list(result.columns)
    for name in (x, y):
        if name not in columns:
            raise ValueError(f"There is no variable {name!r}; the variables are {', '.join(columns)}.")
    values = np.asarray(X[columns] if isinstance(X, pd.DataFrame) else X, dtype=np.float64)
    if values.shape != (len(result.responsibilities), len(columns)):
        raise ValueError(
            f"X has shape {values.shape}, but the fit saw {(len(result.responsibilities), len(columns))}; "
            "pass the rows that were fitted."
        )
    ax = ax or _axes(5.2, 4.4)
    shown = np.arange(len(values))
    if len(shown) > max_rows:
        shown = np.linspace(0, len(shown) - 1, max_rows).round().astype(np.int64)
    best = result.regimes[shown]
    for k in np.unique(best):
        at = shown[best == k]
        ax.scatter(
            values[at, columns.index(x)],
            values[at, columns.index(y)],
            s=9,
            alpha=0.6,
            linewidths=0,
            color=regime_colour(int(k)),
            marker=_MARKERS[0 if k == 0 else (int(k) - 1) // len(PALETTE) % len(_MARKERS)],
            label=_literal(_describe(result, int(k))),
            zorder=1 if k == 0 else 2,
        )
    if result.preprocessor.transform == "log":
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlabel(_literal(shorten(x, 40)))
    ax.set_ylabel(_literal(shorten(y, 40)))
    ax.legend(fontsize=7, markerscale=1.6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def evidence(result: Any, ax: Axes | None = None) -> Axes:
    """Show how the evidence grew: every step, and the best so far.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    """
    result = _result(result)
    seconds, values = history_curve(result, "evidence")
    ax = ax or _axes(5.2, 3.4)
    if len(values):
        ax.plot(seconds, values, "o", color=PALETTE[0], markersize=3.5, alpha=0.6, label="step")
        ax.step(
            seconds,
            np.maximum.accumulate(values),
            where="post",
            color=PALETTE[1],
            linewidth=1.4,
            label="best so far",
        )
        ax.legend(fontsize=8, frameon=False, loc="lower right")
        ax.ticklabel_format(axis="y", useOffset=False, style="plain")
        if np.ptp(values) < 1.0:  # less than a nat says nothing, and should not look like a climb
            ax.set_ylim(values.max() - 1.0, values.max() + 1.0)
    else:
        ax.text(0.5, 0.5, "no history was recorded", ha="center", va="center", transform=ax.transAxes)
    ax.set_xlabel("seconds")
    ax.set_ylabel("evidence (nats)")
    return ax


def calibration(true: Any, probabilities: Any, ax: Axes | None = None, *, bins: int = 9) -> Axes:
    """Show whether probabilities keep their word: how often what was forecast with 70 % is true.

    Bars are 95 % intervals (Wilson's) of the observed share; the larger a dot, the more forecasts it stands for. Edges
    that are plainly absent or present do not count, see :func:`latentdo.metrics.reliability`.

    Parameters
    ----------
    true : array or DataFrame of 0/1
        The truth, for example the adjacency of a simulation; or outcomes of many tables in one row.
    probabilities : array or DataFrame
        The forecasts, for example ``edge_probabilities_``, in the same shape.
    ax : Axes, optional
        Where to draw.
    bins : int
        Number of bins between 5 % and 95 %.
    """
    from latentdo.metrics import reliability

    table = reliability(true, probabilities, bins=bins)
    ax = ax or _axes(4.4, 4.2)
    ax.plot([0, 1], [0, 1], color=REFERENCE_COLOUR, linewidth=1, linestyle="--", label="perfect")
    frame = table.to_frame()
    frame = frame[frame["count"] > 0]
    if len(frame):
        n, share = frame["count"].to_numpy(), frame["observed"].to_numpy()
        z = 1.96
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        ax.vlines(frame["forecast"], centre - half, centre + half, color=PALETTE[0], linewidth=1.2, alpha=0.7)
        ax.scatter(
            frame["forecast"], share, s=20 + 120 * n / n.max(), color=PALETTE[0], zorder=3, label="observed"
        )
        error = f"{table.expected_calibration_error:.3f}"
        ax.set_title(f"{n.sum()} forecasts, calibration error {error}", fontsize=10)
        ax.legend(fontsize=8, frameon=False, loc="upper left")
    else:
        ax.text(0.5, 0.5, "every forecast is below 5 % or above 95 %", ha="center", va="center", fontsize=9)
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("forecast probability")
    ax.set_ylabel("share that is true")
    return ax


def paper_scatter(
    mechanism: Literal["linear", "nonlinear", "nonadditive"] = "linear",
    intervention: Literal["atomic", "stochastic", "imperfect"] = "stochastic",
    ax: Axes | None = None,
    *,
    n_samples: int = 999,
    random_state: Any = 0,
) -> Axes:
    """One panel of the paper's figure of simulated pairs (its appendix E): cause across, effect up.

    The nine panels are its three mechanisms times three kinds of intervention; colours are vermilion, green and blue,
    as there, in hues that colour-blind readers can tell apart.

    Parameters
    ----------
    mechanism, intervention, n_samples, random_state
        See :func:`latentdo.simulate`.
    ax : Axes, optional
        Where to draw.
    """
    from latentdo.scm import simulate

    data = simulate(
        preset="paper-pairs",
        edge_probability=1.0,
        mechanism=mechanism,
        intervention=intervention,
        n_samples=n_samples,
        random_state=random_state,
    )
    i, j = np.argwhere(data.adjacency.to_numpy())[0]
    cause, effect = data.X.columns[i], data.X.columns[j]
    ax = ax or _axes(4.2, 3.6)
    looks = (
        ("observational", None, PALETTE[1], "o"),
        ("intervention on the effect", effect, PALETTE[2], "s"),
        ("intervention on the cause", cause, PALETTE[0], "^"),
    )
    for label, hit, colour, marker in looks:
        rows = data.regimes == (0 if hit is None else int(np.flatnonzero(data.targets[hit])[0]))
        ax.scatter(
            data.X.loc[rows, cause],
            data.X.loc[rows, effect],
            s=9,
            alpha=0.6,
            linewidths=0,
            color=colour,
            marker=marker,
            label=label,
        )
    ax.set_xlabel(f"cause ({cause})")
    ax.set_ylabel(f"effect ({effect})")
    ax.legend(fontsize=7, frameon=False)
    return ax


def regime_quartiles(result: FitResult, n_draws: int = 4000) -> NDArray[np.float64]:
    """Quartiles of every variable in every regime, drawn from the fitted model, in the user's units.

    Returns
    -------
    ndarray [n_regimes, 3, d]
        Lower quartile, median, upper quartile.
    """
    rng = np.random.default_rng(0)
    drawn = (result.model.sample(n_draws, k, rng) for k in range(result.n_regimes))
    return np.asarray([np.quantile(result.preprocessor.inverse(z), (0.25, 0.5, 0.75), axis=0) for z in drawn])


def history_curve(result: FitResult, quantity: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds and values of the steps in the history that have a finite value of a quantity."""
    steps = [
        (float(entry.get("seconds", index)), float(entry[quantity]))
        for index, entry in enumerate(result.history)
        if isinstance(entry.get(quantity), int | float) and np.isfinite(entry[quantity])
    ]
    table = np.array(steps, dtype=np.float64).reshape(-1, 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return table[:, 0], table[:, 1]


def _result(result: Any) -> FitResult:
    found = getattr(result, "result_", result)
    if not isinstance(found, FitResult):
        raise TypeError(f"Expected a FitResult or a fitted estimator, got {type(result).__name__}.")
    return found


def _axes(width: float, height: float) -> Axes:
    """Axes on a figure of their own; pyplot, and so the user's session, never hears of it."""
    from matplotlib.figure import Figure

    return Figure(figsize=(float(width), float(height)), layout="constrained").add_subplot()


def _regime_index(result: FitResult, regime: Hashable) -> int:
    if regime not in result.regime_names:
        raise ValueError(
            f"There is no regime {regime!r}; the regimes are {', '.join(map(repr, result.regime_names))}."
        )
    return result.regime_names.index(regime)


def _describe(result: FitResult, k: int) -> str:
    """A regime in a few words: its name and its targets."""
    hit = [shorten(result.columns[j], 12) for j in np.flatnonzero(result.model.topology.targets[k])]
    name = shorten(result.regime_names[k], 20)
    if k == 0:
        return f"{name} (reference)" if "reference" not in name else name
    return f"{name}: {', '.join(hit[:3])}{', …' if len(hit) > 3 else ''}" if hit else name


def _literal(text: str) -> str:
    """Dollar signs would be read as mathematics."""
    return text.replace("$", r"\$")


def _curve(
    route: tuple[tuple[float, float], ...], half: float
) -> tuple[list[tuple[float, float]], list[Any]]:
    """A smooth path through the points of a route that leaves and enters the boxes vertically."""
    from matplotlib.path import Path

    points = [
        (route[0][0], route[0][1] + half),
        *route[1:-1],
        (route[-1][0], route[-1][1] - half),
    ]
    vertices, codes = [points[0]], [Path.MOVETO]
    for (ax, ay), (bx, by) in pairwise(points):
        bend = (by - ay) / 2
        vertices += [(ax, ay + bend), (bx, by - bend), (bx, by)]
        codes += [Path.CURVE4] * 3
    return vertices, codes
