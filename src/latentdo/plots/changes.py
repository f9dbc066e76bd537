"""What each regime changed, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from latentdo.data.quantities import Quantity, quantities
from latentdo.plots.style import INK, as_result, literal, new_axes, regime_colour, shorten
from latentdo.result import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def regimes(result: Any, ax: Axes | None = None) -> Axes:
    """Show what each regime changed: one row per regime with its share of the rows, darker is more probable.

    A dot marks the targets that were chosen.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    """
    result = as_result(result)
    k, d = result.target_probabilities.shape
    ax = ax or new_axes(np.clip(2.4 + 0.42 * d, 4, 22), np.clip(1.4 + 0.34 * k, 2, 14))
    image = ax.imshow(result.target_probabilities, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    rows, columns = np.nonzero(result.model.topology.targets)
    ax.plot(columns, rows, "o", color="#D55E00", markersize=4, label="target")
    weights = result.model.topology.weights
    labels = [
        literal(f"{shorten(name, 24)}  ({weight:.0%})")
        for name, weight in zip(result.regime_names, weights, strict=True)
    ]
    ax.set_yticks(range(k), labels)
    ax.set_xticks(
        range(d), [literal(shorten(name)) for name in result.columns], rotation=60, ha="right", fontsize=8
    )
    ax.set_ylabel(f"regime (share of {'rows' if result.groups is None else 'groups'})")
    cast("Any", ax.figure).colorbar(image, ax=ax, label="probability of a changed mechanism")
    return ax


def effects(result: Any, ax: Axes | None = None, *, most: int = 40) -> Axes:
    """Show what each regime did to each of its targets: the middle half and the median, against the reference.

    Positions are in standard units, so that all variables share an axis: 0 is the reference's median, and the grey
    band its middle half. Numbers on the right are the medians before and after, in the user's units. Of a count it is
    the logarithm of the ratio of means, of a binary or categorical variable the change of the probability that changes
    most, in standard deviations.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    most : int
        Of more targets than this, the most probable ones are shown.
    """
    result = as_result(result)
    draws = regime_draws(result)
    quartiles = quartiles_of(draws)
    pairs = np.argwhere(result.model.topology.targets)
    sure = np.argsort([-result.target_probabilities[k, j] for k, j in pairs], kind="stable")[:most]
    pairs = pairs[np.sort(sure)]
    ax = ax or new_axes(6.4, np.clip(1.2 + 0.3 * len(pairs), 2, 14))
    labels = []
    for row, (k, j) in enumerate(pairs):
        name = result.columns[j]
        colour = regime_colour(int(k))
        labels.append(literal(f"{shorten(result.regime_names[k], 20)}: {shorten(name)}"))
        if result.kinds[j].is_discrete:
            one = discrete_change(result, draws, int(k), int(j))
            ax.plot([0.0, one.shift], [row, row], color=colour, linewidth=3, zorder=2)
            ax.plot(one.shift, row, "o", color=colour, markersize=6, zorder=3)
            _note(ax, row, f"{one.quantity.words} {one.before:.2g} → {one.after:.2g}")
            continue
        z = result.preprocessor.forward_column(name, quartiles[[0, k], :, j].ravel()).reshape(2, 3)
        unit = max(float(z[0, 2] - z[0, 0]) / 1.349, 1e-12)  # of a normal distribution, this is its deviation
        z = (z - z[0, 1]) / unit
        ax.plot(z[0, [0, 2]], [row, row], color="#C9C9C9", linewidth=9, solid_capstyle="butt", zorder=1)
        ax.plot(z[1, [0, 2]], [row, row], color=colour, linewidth=3, zorder=2)
        ax.plot(z[1, 1], row, "o", color=colour, markersize=6, zorder=3)
        before, after = quartiles[0, 1, j], quartiles[k, 1, j]
        _note(ax, row, f"{before:.3g} → {after:.3g}")
    if not len(pairs):
        ax.text(0.5, 0.5, "no regime has a target", ha="center", va="center", transform=ax.transAxes)
    ax.axvline(0.0, color=INK, linewidth=0.6, zorder=0)
    ax.set_yticks(range(len(pairs)), labels, fontsize=8)
    ax.set_ylim(max(len(pairs), 1) - 0.5, -0.5)
    ax.set_xlabel("shift, in standard deviations of the reference")
    return ax


def _note(ax: Axes, row: int, text: str) -> None:
    """What is written on the right of a row."""
    ax.annotate(literal(text), (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize=8)


def regime_draws(result: FitResult, n_draws: int = 4000) -> NDArray[np.float64]:
    """Rows of every regime drawn from the fitted model, ``[n_regimes, n_draws, d]``, in the user's units."""
    rng = np.random.default_rng(0)
    drawn = (result.model.sample(n_draws, k, rng) for k in range(result.n_regimes))
    return np.asarray([result.preprocessor.inverse(z[:, : len(result.columns)]) for z in drawn])


def quartiles_of(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lower quartile, median and upper quartile of draws, ``[n_regimes, 3, d]``."""
    return np.asarray(np.quantile(draws, (0.25, 0.5, 0.75), axis=1).transpose(1, 0, 2))


def regime_quartiles(result: FitResult, n_draws: int = 4000) -> NDArray[np.float64]:
    """Quartiles of every variable in every regime, drawn from the fitted model, in the user's units.

    Returns
    -------
    ndarray [n_regimes, 3, d]
        Lower quartile, median, upper quartile.
    """
    return quartiles_of(regime_draws(result, n_draws))


class Discrete(NamedTuple):
    """What a regime does to a binary variable, a count or a category, in the one quantity that changes most."""

    quantity: Quantity
    before: float
    after: float

    @property
    def shift(self) -> float:
        """The difference, in standard deviations of the reference where there are levels, else of logarithms."""
        if self.quantity.is_ratio:
            return float(np.log(max(self.after, _LEAST) / max(self.before, _LEAST)))
        return (self.after - self.before) / float(np.sqrt(max(self.before * (1.0 - self.before), _LEAST)))


def discrete_change(result: FitResult, draws: NDArray[np.float64], regime: int, variable: int) -> Discrete:
    """What a regime changes in a variable that is not continuous, by draws of all regimes."""
    found = [
        Discrete(one, one.of(draws[0]), one.of(draws[regime]))
        for one in quantities(result.columns, result.kinds, [variable])
    ]
    return max(found, key=lambda one: abs(one.after - one.before))


_LEAST = 1e-3  # of a mean or a variance: less is not seen in thousands of draws
