"""Everything that shows a variable knows its kind: effects, explanations, reports, plots, files, AnnData."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from latentdo import LatentInterventionDAG, interop, plots
from latentdo.app.job import _as_numbers, _with_levels
from latentdo.cli import main
from latentdo.data.kinds import Kind
from latentdo.data.quantities import quantities
from latentdo.data.transforms import Preprocessor
from latentdo.model import FittedModel, Topology
from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.binary import BinaryMechanism
from latentdo.model.mechanisms.categorical import CategoricalMechanism
from latentdo.model.mechanisms.count import CountMechanism
from latentdo.model.mechanisms.inputs import Expanded, Inputs
from latentdo.outputs import write_outputs
from latentdo.plots.bars import bars
from latentdo.plots.changes import discrete_change, regime_draws
from latentdo.report import content, render_report
from latentdo.report.mechanisms import mechanisms
from latentdo.result import FitResult
from latentdo.segments import weigh_targets

COLUMNS = ("dose", "failed", "clicks", "organ")
KINDS = (
    Kind(),
    Kind("binary", ("no", "yes")),
    Kind("count"),
    Kind("categorical", ("liver", "lung", "skin")),
)
DOSE, FAILED, CLICKS, ORGAN = range(4)
SLOPE, MORE, LUNG, SKIN = 1.3, 0.8, 0.5, -0.7
BASE = np.array([0.0, 0.4, -0.3])


@pytest.fixture(scope="module")
def fitted():
    """dose -> failed -> clicks <- organ; regime 1 hits failed and organ, regime 2 clicks; all numbers are known."""
    adjacency = np.zeros((4, 4), dtype=np.int8)
    adjacency[DOSE, FAILED] = adjacency[FAILED, CLICKS] = adjacency[ORGAN, CLICKS] = 1
    targets = np.zeros((3, 4), dtype=np.int8)
    targets[1, [FAILED, ORGAN]] = targets[2, CLICKS] = 1
    levels = Inputs(np.array([[0.0, 0.0, 0.0], [2.0, 3.0, 0.0]]))
    shape = np.array([0.2, 0.0])
    reference = (
        LinearMechanism(np.zeros(1), Noise.gaussian(1.0)),
        BinaryMechanism(np.array([[-0.5, SLOPE]])),
        Expanded(levels, CountMechanism(np.array([[1.0, MORE, LUNG, SKIN]]), shape)),
        CategoricalMechanism(BASE[1:, None]),
    )
    own = {
        (1, FAILED): BinaryMechanism(np.array([[2.0]])),
        (1, ORGAN): CategoricalMechanism(np.array([[0.0], [3.0]])),
        (2, CLICKS): Expanded(levels, CountMechanism(np.array([[3.5]]), shape)),
    }
    model = FittedModel(Topology(adjacency, targets, np.array([0.5, 0.3, 0.2])), reference, own)
    rng = np.random.default_rng(0)
    z = np.concatenate([model.sample(size, k, rng) for k, size in enumerate((250, 150, 100))])
    user = z * [10.0, 1, 1, 1] + [50.0, 0, 0, 0]
    preprocessor = Preprocessor(
        "none", COLUMNS, np.array([50.0, 0, 0, 0]), np.array([10.0, 1, 1, 1]), (), KINDS
    )
    edges = 0.95 * adjacency.astype(float)
    result = FitResult(
        model=model,
        columns=COLUMNS,
        preprocessor=preprocessor,
        regime_names=(0, 1, 2),
        responsibilities=model.responsibilities(z),
        edge_probabilities=edges,
        ancestor_probabilities=edges,
        target_probabilities=0.9 * targets,
        evidence=-1000.0,
        evidence_terms={"log_likelihood": -1000.0},
        solver="search",
        density="linear",
        intervention="perfect",
    )
    result.check()
    estimator = LatentInterventionDAG()
    estimator.result_ = result
    estimator.regime_names_ = result.regime_names
    estimator.n_regimes_ = result.n_regimes
    estimator.regimes_ = result.regimes
    return estimator, preprocessor.to_frame(user)


def test_tables_and_draws_carry_names_of_levels_and_whole_numbers(fitted):
    estimator, X = fitted
    drawn = estimator.sample(400, do={"organ": "skin", "failed": "yes"})
    assert (drawn["organ"] == "skin").all()
    assert (drawn["failed"] == "yes").all()
    assert drawn["clicks"].dtype == np.int64
    assert list(drawn["organ"].cat.categories) == ["liver", "lung", "skin"]
    assert drawn["clicks"].mean() == pytest.approx(np.exp(1 + MORE + SKIN), rel=0.15)
    codes = estimator.result_.fitted_values(X)
    np.testing.assert_array_equal(codes[:, ORGAN], X["organ"].cat.codes)


def test_effects_on_probabilities_and_rates_are_exact(fitted):
    estimator, _ = fitted
    n = 40_000
    table = estimator.effect("failed", n=n)  # by default from the first level to the second
    assert table.loc["clicks", "intervention"] == "failed from no to yes"
    assert table.loc["clicks", "quantity"] == "mean count"
    assert table.loc["clicks", "ratio"] == pytest.approx(np.exp(MORE), rel=0.03)
    organ = softmax(BASE) @ np.exp([0.0, LUNG, SKIN])
    assert table.loc["clicks", "before"] == pytest.approx(np.exp(1.0) * organ, rel=0.03)
    assert table.loc["organ = lung", "change"] == 0.0
    assert np.isnan(table.loc["dose", "ratio"])

    table = estimator.effect("dose", do=(40.0, 65.0), n=n)
    low, high = expit(-0.5 + SLOPE * np.array([-1.0, 1.5]))
    assert table.loc["failed", "quantity"] == "probability of yes"
    assert table.loc["failed", "change"] == pytest.approx(high - low, abs=0.01)
    rise = [1 + p * (np.exp(MORE) - 1) for p in (low, high)]
    assert table.loc["clicks", "ratio"] == pytest.approx(rise[1] / rise[0], rel=0.03)

    table = estimator.effect("organ", "clicks", do=("liver", "lung"), n=n)
    assert table.loc["clicks", "intervention"] == "organ from liver to lung"
    assert table.loc["clicks", "ratio"] == pytest.approx(np.exp(LUNG), rel=0.03)
    table = estimator.effect("dose", "organ", n=100)
    assert list(table.index) == ["organ = liver", "organ = lung", "organ = skin"]
    assert (table["change"] == 0.0).all()


def test_counts_are_shifted_by_whole_numbers_and_not_below_zero(fitted):
    estimator, _ = fitted
    table = estimator.effect("clicks", "clicks", shift=-1000)
    assert table.loc["clicks", "after"] == 0.0
    assert estimator.effect("clicks", "clicks")["change"].item() >= 1.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"cause": "organ"}, r"'organ' has levels.*do=.*liver, lung, skin"),
        ({"cause": "failed", "shift": 1.0}, "'failed' has levels.*do="),
        ({"cause": "organ", "do": ("liver", "brain")}, "'brain' is not a value that 'organ'.*liver"),
        ({"cause": "clicks", "do": (1, 2.5)}, r"2\.5 is not a value that 'clicks'"),
        ({"cause": "clicks", "shift": 0.5}, "not whole.*'clicks' is a count"),
        ({"cause": "dose", "do": ("low", "high")}, "'low' is not a value that 'dose'.*finite number"),
    ],
)
def test_effects_that_cannot_be_asked_for_are_named(fitted, arguments, match):
    with pytest.raises(ValueError, match=match):
        fitted[0].effect(**arguments)


def test_explanations_name_levels_and_their_tails(fitted):
    estimator, _ = fitted
    row = pd.DataFrame({"dose": [50.0], "failed": ["yes"], "clicks": [3], "organ": ["skin"]})
    table = estimator.explain(row, against=0).set_index("variable")
    assert table.loc["organ", "value"] == "skin"
    assert table.loc["organ", "expected"] == "lung"  # the likeliest level
    shares = softmax(BASE)
    assert table.loc["organ", "tail"] == pytest.approx(shares[2], abs=0.04)
    assert table.loc["failed", "tail"] == pytest.approx(expit(-0.5), abs=0.05)
    assert table.loc["clicks", "value"] == 3.0
    own = table["regime"].iloc[0]
    read = estimator.result_.read(np.array([[50.0, 1.0, 3.0, 2.0]]), estimator.result_.where)
    chances = estimator.result_.model.responsibilities(read.z)[0]
    assert table["log_ratio"].sum() == pytest.approx(np.log(chances[own] / chances[0]))
    as_series = estimator.explain(row.iloc[0], against=0).set_index("variable")
    assert as_series.loc["organ", "value"] == "skin"


def test_the_regimes_table_speaks_of_rates_and_shares(fitted):
    estimator, _ = fitted
    rows = content.regimes(estimator.result_)
    one = {effect.name: effect for effect in rows[1].effects}
    assert one["failed"].words == "yes more often"
    assert one["failed"].after.startswith("yes: 8")  # expit(2) is 88 %
    assert one["organ"].words == "skin more often"
    (two,) = rows[2].effects
    assert two.words.startswith("mean raised")
    assert two.short.startswith("\N{MULTIPLICATION SIGN}")
    change = discrete_change(estimator.result_, regime_draws(estimator.result_), 2, CLICKS)
    assert change.after == pytest.approx(np.exp(3.5), rel=0.05)
    assert change.shift == pytest.approx(np.log(change.after / change.before))


def test_mechanisms_are_described_by_probabilities(fitted):
    estimator, _ = fitted
    found = {one.name: one for one in mechanisms(estimator.result_, content.regimes(estimator.result_))}
    assert "liver" in found["organ"].usual
    assert "%" in found["organ"].usual
    assert found["clicks"].usual.startswith("A count")
    (dose,) = found["failed"].causes
    assert dose.before.startswith("yes")
    np.testing.assert_allclose(dose.curve[:, 2], expit(-0.5 + SLOPE * dose.curve[:, 0]), atol=0.04)
    failed, organ = found["clicks"].causes
    assert organ.has_levels
    assert (organ.low, organ.high) == ("skin", "lung")
    assert (failed.low, failed.high) == ("no", "yes")


def test_the_report_has_bars_instead_of_dots(fitted):
    estimator, X = fitted
    page = render_report(estimator.result_, X)
    assert 'class="bars"' in page
    assert 'class="scatter"' not in page  # no edge joins two continuous variables
    assert "share of failed = yes" in page
    with pytest.raises(ValueError, match="the fit saw"):
        render_report(estimator.result_, X.iloc[:5])


def test_bars_are_means_and_shares(fitted):
    estimator, X = fitted
    result = estimator.result_
    values = result.fitted_values(X)
    found = bars(result, values, ORGAN, CLICKS)
    assert found.groups == ("liver", "lung", "skin")
    rows = (X["organ"] == "lung") & (result.regimes == 0)
    assert found.heights[1, 0] == pytest.approx(X.loc[rows, "clicks"].mean())
    shares = bars(result, values, DOSE, FAILED)
    assert len(shares.groups) == 4
    seen = shares.heights[np.isfinite(shares.heights)]
    assert ((seen >= 0) & (seen <= 1)).all()
    assert shares.words == "share of failed = yes"


def test_missing_cells_are_left_out_of_bars(fitted):
    estimator, X = fitted
    result = estimator.result_
    holed = X.copy()
    holed.loc[::7, "organ"] = np.nan
    holed["clicks"] = holed["clicks"].where(np.arange(500) % 5 > 0)
    found = bars(result, result.fitted_values(holed), ORGAN, CLICKS)
    rows = (holed["organ"] == "lung") & (result.regimes == 0)
    assert found.heights[1, 0] == pytest.approx(holed.loc[rows, "clicks"].mean())
    assert 'class="bars"' in render_report(result, holed)


@pytest.mark.parametrize(("x", "y"), [("organ", "clicks"), ("dose", "failed"), ("clicks", "dose")])
def test_pairs_are_drawn_as_bars(fitted, x, y):
    estimator, X = fitted
    ax = plots.pair(estimator, X, x, y)
    assert len(ax.patches) > 0
    assert len(ax.collections) == 0


def test_plots_of_effects_say_what_is_compared(fitted):
    ax = plots.effects(fitted[0])
    texts = " ".join(text.get_text() for text in ax.texts)
    assert "probability of yes" in texts
    assert "mean count" in texts


def test_files_keep_kinds(fitted, tmp_path):
    estimator, X = fitted
    write_outputs(estimator.result_, tmp_path / "out", X=X)
    summary = json.loads((tmp_path / "out" / "result.json").read_text())
    assert summary["kinds"]["organ"] == "categorical"
    again = LatentInterventionDAG.load(tmp_path / "out" / "model.safetensors")
    assert again.result_.kinds == KINDS
    pd.testing.assert_frame_equal(again.effect("failed", n=500), estimator.effect("failed", n=500))


def test_the_command_line_takes_levels(fitted, tmp_path, capsys):
    estimator, X = fitted
    write_outputs(estimator.result_, tmp_path / "out", X=X)
    assert main(["effect", str(tmp_path / "out"), "organ", "--do", "liver", "lung", "--on", "clicks"]) in (
        0,
        None,
    )
    out = capsys.readouterr().out
    assert "mean count" in out
    assert main(["effect", str(tmp_path / "out"), "clicks", "--do", "1", "2", "--json"]) in (0, None)
    assert json.loads(capsys.readouterr().out)["effects"][0]["intervention"] == "clicks from 1 to 2"


def test_the_app_hands_categories_to_its_process(fitted):
    X = fitted[1].assign(text=np.where(np.arange(500) % 2, "odd", "even"))
    X.loc[3, "organ"] = np.nan
    values, levels = _as_numbers(X)
    task = {"columns": list(X.columns), "levels": json.loads(json.dumps(levels))}
    back = _with_levels(values, np.asarray(X.index), task)
    assert (back["text"].astype(str) == X["text"]).all()
    assert back["organ"].isna().sum() == 1
    assert list(back["organ"].cat.categories) == ["liver", "lung", "skin"]
    np.testing.assert_array_equal(back["dose"], X["dose"])


def test_cells_say_that_they_were_counted(fitted):
    anndata = pytest.importorskip("anndata", reason="the bio extra is not installed")
    rng = np.random.default_rng(0)
    names = pd.Index(["A", "B"])
    cells = anndata.AnnData(
        pd.DataFrame(rng.normal(size=(30, 2)), index=[f"c{i}" for i in range(30)], columns=names),
        layers={"counts": rng.poisson(2.0, size=(30, 2))},
    )
    assert interop.from_anndata(cells, layer="counts").kinds == {"A": "count", "B": "count"}
    assert interop.from_anndata(cells).kinds is None
    estimator, X = fitted
    written = interop.to_anndata(estimator.result_, X=X)
    assert list(written.var["latentdo_kind"]) == ["continuous", "binary", "count", "categorical"]


def test_a_category_moves_by_the_level_that_moves_most(fitted):
    estimator, X = fitted
    result = estimator.result_
    rows = result.read(result.fitted_values(X), result.where)
    shares = np.eye(3)[result.regimes]
    moved = weigh_targets(result.model, rows, shares, result.kinds).moved
    skin = (X["organ"] == "skin").to_numpy(dtype=float)
    by_hand = (skin[result.regimes == 1].mean() - skin[result.regimes == 0].mean()) / skin.std()
    assert abs(moved[1, ORGAN]) >= abs(by_hand) - 1e-12
    assert moved[1, ORGAN] == pytest.approx(by_hand)
    plain = weigh_targets(result.model, rows, shares).moved
    np.testing.assert_allclose(np.delete(moved, ORGAN, axis=1), np.delete(plain, ORGAN, axis=1))


def test_quantities_of_rows():
    x = np.array([[0.0, 1.0, 4.0, 2.0], [2.0, 0.0, 0.0, 2.0], [7.0, 1.0, 2.0, 0.0]])
    found = {one.name: one.of(x) for one in quantities(COLUMNS, KINDS, range(4), "median")}
    assert found == {
        "dose": 2.0,
        "failed": pytest.approx(2 / 3),
        "clicks": 2.0,
        "organ = liver": pytest.approx(1 / 3),
        "organ = lung": 0.0,
        "organ = skin": pytest.approx(2 / 3),
    }
