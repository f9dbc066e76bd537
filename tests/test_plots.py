import io

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from latentdo import plots

DRAWINGS = {
    "graph": lambda case, ax=None: plots.graph(case.result, ax),
    "regimes": lambda case, ax=None: plots.regimes(case.result, ax),
    "responsibilities": lambda case, ax=None: plots.responsibilities(case.result, ax, max_rows=50),
    "pair": lambda case, ax=None: plots.pair(
        case.result, case.X, case.result.columns[0], case.result.columns[1], ax
    ),
    "evidence": lambda case, ax=None: plots.evidence(case.result, ax),
    "effects": lambda case, ax=None: plots.effects(case.result, ax),
    "calibration": lambda case, ax=None: plots.calibration(
        case.result.adjacency, case.result.edge_probabilities, ax
    ),
    "paper_scatter": lambda case, ax=None: plots.paper_scatter(ax=ax),
}


def rendered(ax):
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


@pytest.mark.parametrize("name", DRAWINGS)
def test_each_returns_axes_and_leaves_the_session_alone(case, name):
    before, open_figures = dict(mpl.rcParams), plt.get_fignums()
    ax = DRAWINGS[name](case)
    assert isinstance(ax, Axes)
    assert rendered(ax)[:4] == b"\x89PNG"
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == open_figures


@pytest.mark.parametrize("name", DRAWINGS)
def test_each_draws_where_it_is_told(case, name):
    given = Figure().add_subplot()
    assert DRAWINGS[name](case, given) is given


@pytest.mark.parametrize("name", DRAWINGS)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names_are_drawn_literally(make_result, name):
    names = ("$\\frac{", "<script>", "a" * 200, "new\nline", "日本")
    odd = make_result(
        n_samples=80, columns=names, regime_names=("$x_", None, ("a", 1), "\\alpha", 3.5, "z" * 99)
    )
    assert rendered(DRAWINGS[name](odd))


def test_the_graph_has_every_edge_and_width_follows_probability(case):
    ax = plots.graph(case.result)
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    adjacency = case.result.model.topology.adjacency
    assert len(arrows) == adjacency.sum()
    widths = sorted(arrow.get_linewidth() for arrow in arrows)
    assert widths == pytest.approx(sorted(0.6 + 2.2 * case.result.edge_probabilities[adjacency == 1]))
    assert {text.get_text() for text in ax.texts} == set(case.result.columns)
    assert not list(plots.graph(case.result, min_probability=1.1).patches)


def test_the_targets_of_a_regime_are_coloured(case):
    ax = plots.graph(case.result, regime=1)
    hit = np.flatnonzero(case.result.model.topology.targets[1])
    coloured = [t.get_text() for t in ax.texts if t.get_color() == "white"]
    assert coloured == [case.result.columns[j] for j in hit]
    with pytest.raises(ValueError, match="There is no regime 'x'"):
        plots.graph(case.result, regime="x")


def test_a_fitted_estimator_will_do(case):
    class Fitted:
        result_ = case.result

    assert isinstance(plots.evidence(Fitted()), Axes)
    with pytest.raises(TypeError, match="FitResult"):
        plots.evidence(3)


def test_pair_shows_every_row_once_and_refuses_other_data(case):
    x, y = case.result.columns[:2]
    ax = plots.pair(case.result, case.X, x, y)
    assert sum(len(group.get_offsets()) for group in ax.collections) == len(case.X)
    shuffled = plots.pair(case.result, case.X[case.X.columns[::-1]], x, y)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([g.get_offsets()[:, 0] for g in shuffled.collections])), np.sort(case.X[x])
    )
    with pytest.raises(ValueError, match="no variable 'nope'"):
        plots.pair(case.result, case.X, "nope", y)
    with pytest.raises(ValueError, match="rows that were fitted"):
        plots.pair(case.result, case.X.iloc[:5], x, y)


def test_responsibilities_are_sorted_by_regime(case):
    image = plots.responsibilities(case.result, max_rows=10**6).images[0].get_array()
    best = np.asarray(image).argmax(axis=1)
    assert (np.diff(best) >= 0).all()


def test_no_history_says_so(make_result):
    ax = plots.evidence(make_result(n_samples=60, history=()).result)
    assert "no history" in ax.texts[0].get_text()


def test_the_paper_scale_under_a_log_transform(make_result):
    logged = make_result(n_samples=80, transform="log")
    assert DRAWINGS["pair"](logged).get_xscale() == "log"


def test_effects_show_every_target_in_the_users_units(case):
    ax = plots.effects(case.result)
    targets = case.result.model.topology.targets
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        f"{k}: {case.result.columns[j]}" for k, j in np.argwhere(targets)
    ]
    quartiles = plots.regime_quartiles(case.result)
    for note, (k, j) in zip(ax.texts, np.argwhere(targets), strict=True):
        before, after = (float(part) for part in note.get_text().split(" → "))
        assert before == pytest.approx(quartiles[0, 1, j], rel=0.01)
        assert after == pytest.approx(quartiles[k, 1, j], rel=0.01)
    assert len(plots.effects(case.result, most=2).get_yticklabels()) == 2


def test_no_targets_says_so(make_result):
    ax = plots.effects(make_result(n_samples=60, n_regimes=1).result)
    assert "no regime has a target" in ax.texts[0].get_text()


def test_calibration_shows_the_bins_of_the_metric():
    from latentdo import metrics

    rng = np.random.default_rng(0)
    forecast = rng.uniform(size=4000)
    truth = (rng.uniform(size=4000) < forecast).astype(int)
    ax = plots.calibration(truth, forecast, bins=5)
    dots = ax.collections[-1].get_offsets()
    table = metrics.reliability(truth, forecast, bins=5)
    np.testing.assert_allclose(dots, np.column_stack([table.forecast, table.observed]))
    low, high = (
        np.array([segment[end, 1] for segment in ax.collections[0].get_segments()]) for end in (0, 1)
    )
    assert (low < dots[:, 0]).all()
    assert (dots[:, 0] < high).all()
    assert "every forecast" in plots.calibration([0, 1], [0.0, 1.0]).texts[0].get_text()


@pytest.mark.parametrize("mechanism", ["linear", "nonlinear", "nonadditive"])
@pytest.mark.parametrize("intervention", ["atomic", "stochastic", "imperfect"])
def test_the_nine_panels_of_the_paper(mechanism, intervention):
    ax = plots.paper_scatter(mechanism, intervention, n_samples=300)
    observational, on_effect, on_cause = (group.get_offsets() for group in ax.collections)
    assert len(observational) + len(on_effect) + len(on_cause) == 300
    if intervention == "atomic":
        assert np.ptp(on_cause[:, 0]) == pytest.approx(0.0, abs=1e-9)
        assert np.ptp(on_effect[:, 1]) == pytest.approx(0.0, abs=1e-9)
