"""Rows that never are in memory together: the same findings, in bounded memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.cli import main
from latentdo.data import Dataset
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.out_of_core import one_pass
from latentdo.streaming import open_stream


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=4, n_samples=24_000, n_regimes=4, separation=6.0, random_state=2)


@pytest.fixture(scope="module")
def parquet(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    data.X.to_parquet(path, row_group_size=5000)
    return path


def estimator(**options):
    return LatentInterventionDAG(max_regimes=5, n_init=1, **options)


@pytest.fixture(scope="module")
def streamed(parquet):
    return estimator().fit_stream(parquet)


def test_a_stream_finds_what_a_fit_finds(data, streamed):
    whole = estimator(density="linear").fit(data.X)
    pd.testing.assert_frame_equal(streamed.adjacency_, whole.adjacency_)
    regimes = streamed.predict(data.X)
    assert metrics.adjusted_rand_index(whole.regimes_, regimes) > 0.99
    assert streamed.evidence_ == pytest.approx(whole.evidence_, rel=1e-4)
    assert streamed.n_regimes_ == whole.n_regimes_
    assert streamed.regime_weights_ == pytest.approx(whole.regime_weights_, abs=1e-3)
    assert len(streamed.responsibilities_) == 20_000
    assert streamed.result_.configuration["streamed_rows"] == len(data.X)
    pd.testing.assert_frame_equal(streamed.sample_, data.X.loc[streamed.sample_.index])


def test_the_evidence_is_that_of_all_rows(data, streamed, tmp_path):
    z = streamed.result_.preprocessor.forward(data.X.to_numpy())
    loglik = float(streamed.result_.model.score_samples(z).sum())
    assert streamed.result_.evidence_terms["log_likelihood"] == pytest.approx(loglik, abs=1e-5)
    streamed.save(tmp_path / "model.safetensors")
    again = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    assert again.score(data.X) == streamed.score(data.X)


def test_every_kind_of_source_gives_the_same(data, streamed, tmp_path):
    parts = [data.X.iloc[first : first + 5000] for first in range(0, len(data.X), 5000)]
    for number, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{number}.parquet")
    for source in (parts, tmp_path, sorted(tmp_path.iterdir())):
        stream = open_stream(source)
        assert stream.content_hash == streamed.result_.data_hash
        np.testing.assert_allclose(stream.sample.preprocessor.mean, data.X.mean(), atol=1e-12)
        np.testing.assert_allclose(stream.sample.preprocessor.scale, data.X.std(ddof=0), rtol=1e-12)


def test_a_dask_table_is_read_by_partitions(data, streamed):
    dask = pytest.importorskip("dask", reason="dask is not installed")

    class Table:
        """What is used of dask.dataframe, which needs further packages."""

        columns = data.X.columns

        def to_delayed(self):
            return [dask.delayed(data.X.iloc[first : first + 5000]) for first in range(0, len(data.X), 5000)]

    stream = open_stream(Table())
    assert stream.n_rows == len(data.X)
    np.testing.assert_allclose(stream.sample.preprocessor.mean, data.X.mean(), atol=1e-12)


def test_moments_of_parts_add_up_to_those_of_the_whole(data, streamed):
    model = streamed.result_.model
    z = Dataset.from_table(data.X).z
    nothing = np.full(6000, -1)
    parts = [lambda at=at: (z[at : at + 6000], nothing, nothing) for at in range(0, len(z), 6000)]
    found = one_pass(parts, model, 1)
    design = np.column_stack([np.ones(len(z)), z])
    np.testing.assert_allclose(
        found.moments.matrices, Moments.of(design, model.responsibilities(z)).matrices, atol=1e-6
    )
    np.testing.assert_allclose(found.units, found.moments.counts)
    assert found.log_likelihood == pytest.approx(float(model.score_samples(z).sum()))


def test_the_sample_does_not_depend_on_the_number_of_processes(data, parquet):
    one, two = (open_stream(parquet, n_sample=100, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.sample.x, two.sample.x)
    assert one.content_hash == two.content_hash


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (lambda folder: folder / "nothing.parquet", "There is no file"),
        (lambda folder: folder, "holds no .parquet files"),
        (lambda folder: np.zeros((3, 2)), "Cannot stream from ndarray"),
        (lambda folder: [], "Cannot stream from list"),
        (lambda folder: [pd.DataFrame({"a": [1.0, np.nan]})], "Part 0.*row 1.*'a'"),
        (lambda folder: [pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"b": [1.0]})], "missing 'a'"),
        (lambda folder: [pd.DataFrame({"a": ["x", "y"]})], "Non-numeric columns: 'a'"),
        (lambda folder: [pd.DataFrame({"a": [1.0]})] * 3, "Constant columns: 'a'"),
        (lambda folder: [pd.DataFrame({"a": [1.0]})], "fewer than two rows"),
        (lambda folder: [pd.DataFrame({"a": [1.0, 1e200]})], "another unit"),
        (lambda folder: [pd.DataFrame({"a": ["x", "y"] * 9})], "says under which .* pass regimes='a'"),
    ],
)
def test_sources_that_cannot_be_streamed(tmp_path, source, error):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=f"(?s){error}"):
        estimator().fit_stream(source(tmp_path))


@pytest.fixture(scope="module")
def labelled(data, tmp_path_factory):
    """Every third row has its label, as text; the first regime is called control."""
    names = np.array(["control", "one", "two", "three"], dtype=object)
    known = np.where(np.arange(len(data.X)) % 3 == 0, names[data.regimes], None)
    path = tmp_path_factory.mktemp("labelled") / "rows.parquet"
    data.X.assign(condition=known).to_parquet(path, row_group_size=5000)
    return path


def test_labels_and_targets_in_a_stream(data, labelled):
    known = pd.read_parquet(labelled)["condition"]
    targets = {
        name: list(data.X.columns[data.targets.to_numpy()[k] == 1])
        for k, name in enumerate(["control", "one", "two", "three"])
    }
    for given in (None, targets):
        est = estimator(observational="control", density="linear")
        whole = clone(est).fit(data.X, regimes=known, targets=given)
        parts = clone(est).fit_stream(labelled, regimes="condition", targets=given)
        pd.testing.assert_frame_equal(parts.adjacency_, whole.adjacency_)
        pd.testing.assert_frame_equal(parts.targets_, whole.targets_)
        assert parts.regime_names_[:4] == ("control", "one", "three", "two")
        assert parts.evidence_ == pytest.approx(whole.evidence_, rel=1e-4)
        assert parts.result_.configuration["targets_given"] == (given is not None)
        of_sample = known.loc[parts.sample_.index].to_numpy()
        assert {parts.regime_names_[k] for k in parts.regimes_[of_sample == "two"]} == {"two"}


def test_rare_labels_are_in_the_sample(data):
    labels = np.zeros(len(data.X), dtype=int)
    labels[[7, 12_000, 23_999]] = 1
    labels[5000:5020] = -1
    table = data.X.assign(z=labels)
    stream = open_stream([table.iloc[:9000], table.iloc[9000:]], regimes="z", n_sample=1000)
    assert len(stream.sample.x) == 1000
    assert set(stream.sample.row_index[stream.sample.regimes == 1]) == {7, 12_000, 23_999}
    assert (stream.sample.regimes == -1).sum() == 20
    np.testing.assert_array_equal(np.concatenate([part()[1] for part in stream.parts]), labels)


def test_rows_with_missing_values_are_left_out_on_request(data):
    table = data.X.iloc[:2000].copy()
    table.iloc[3, 0] = np.nan
    table.iloc[1000:1500, 1] = np.nan
    parts = [table.iloc[at : at + 500] for at in range(0, 2000, 500)]
    stream = open_stream(parts, missing="drop")
    kept = table.dropna()
    assert (stream.n_rows, stream.sample.n_dropped) == (1499, 501)
    np.testing.assert_array_equal(np.sort(stream.sample.row_index), kept.index)
    np.testing.assert_allclose(stream.sample.preprocessor.mean, kept.mean(), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"regimes": "nobody"}, "no column 'nobody'; the columns are"),
        ({"regimes": np.zeros(3)}, "regimes must be the name of a column of the stream"),
        ({"targets": {"one": "X1"}}, "targets were given without regimes"),
        ({"regimes": "condition", "columns": ["X1", "condition"]}, "'condition' holds the labels"),
        ({}, r"rows.parquet, row group 0 .*Non-numeric columns: 'condition' \(row 0"),
        ({"regimes": "condition", "targets": {"one": "X1"}}, "targets does not mention"),
        ({"regimes": "condition", "observational": "no"}, "observational='no' does not occur"),
        ({"regimes": "condition", "max_regimes": 2}, "raise max_regimes"),
    ],
)
def test_labels_that_cannot_be_used(labelled, options, error):
    own = {name: options.pop(name) for name in ("observational", "max_regimes") if name in options}
    est = LatentInterventionDAG(**{"observational": "control", "max_regimes": 5, **own})
    with pytest.raises((ValueError, TypeError), match=f"(?s){error}"):
        est.fit_stream(labelled, **dict(options))


def test_the_command_line_streams(data, labelled, tmp_path, capsys):
    command = ["fit", "--stream", str(labelled), "--out", str(tmp_path / "out"), "--density", "linear"]
    known = ["--regime-column", "condition", "--max-regimes", "5", "--n-init", "1"]
    assert main([*command, *known, "--json"]) == 0
    regimes = pd.read_csv(tmp_path / "out" / "regimes.csv").set_index("row")["regime"]
    assert len(regimes) == 20_000
    true = pd.Series(["control", "one", "two", "three"]).to_numpy()[data.regimes][regimes.index]
    assert metrics.adjusted_rand_index(true, regimes.to_numpy()) > 0.9
    capsys.readouterr()
    for more, error in (
        ([], "pass --regime-column condition"),
        (["--separator", "tab"], "--separator is not for --stream"),
        (["--drop", "nobody"], "--drop names nobody"),
        (["--observational", "control"], "need --regime-column"),
        (["--regime-column", "condition", "--observational", "no"], "--observational 'no' does not occur"),
    ):
        assert main([*command[:-4], "--out", str(tmp_path / "no"), *more]) == 1
        assert error in capsys.readouterr().err.replace("\n", " ")
        assert not (tmp_path / "no").exists()


def test_other_files_and_solvers_are_refused(tmp_path, parquet):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="Only Parquet files are streamed"):
        estimator().fit_stream(tmp_path / "rows.csv")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        estimator().fit_stream(tmp_path / "rows.parquet")
    for options in ({"density": "nonlinear"}, {"solver": "gradient"}, {"noise": "any"}):
        with pytest.raises(ValueError, match="all rows in memory"):
            estimator(**options).fit_stream(parquet)
    with pytest.raises(ValueError, match="rank-gaussian"):
        estimator(transform="rank-gaussian").fit_stream(parquet)
    with pytest.raises(ValueError, match="no column 'nobody'"):
        estimator().fit_stream(parquet, columns=["nobody"])
