"""Rows that never are in memory together: the same findings, in bounded memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.data import Dataset
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.partitions import one_pass
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
    whole = estimator().fit(data.X)
    pd.testing.assert_frame_equal(streamed.adjacency_, whole.adjacency_)
    regimes = streamed.predict(data.X)
    assert metrics.adjusted_rand_index(whole.regimes_, regimes) > 0.99
    assert streamed.evidence_ == pytest.approx(whole.evidence_, rel=1e-4)
    assert streamed.n_regimes_ == whole.n_regimes_
    assert streamed.regime_weights_ == pytest.approx(whole.regime_weights_, abs=1e-3)
    assert len(streamed.responsibilities_) == 20_000
    assert streamed.result_.configuration["streamed_rows"] == len(data.X)


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
    parts = [lambda at=at: z[at : at + 7000] for at in range(0, len(z), 7000)]
    total, loglik = one_pass(parts, model, 1)
    design = np.column_stack([np.ones(len(z)), z])
    np.testing.assert_allclose(
        total.matrices, Moments.of(design, model.responsibilities(z)).matrices, atol=1e-6
    )
    assert loglik == pytest.approx(float(model.score_samples(z).sum()))


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
    ],
)
def test_sources_that_cannot_be_streamed(tmp_path, source, error):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=f"(?s){error}"):
        estimator().fit_stream(source(tmp_path))


def test_other_files_and_solvers_are_refused(tmp_path, parquet):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="Only Parquet files are streamed"):
        estimator().fit_stream(tmp_path / "rows.csv")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        estimator().fit_stream(tmp_path / "rows.parquet")
    for options in ({"density": "nonlinear"}, {"solver": "gradient"}):
        with pytest.raises(ValueError, match="need all rows in memory"):
            estimator(**options).fit_stream(parquet)
    with pytest.raises(ValueError, match="rank-gaussian"):
        estimator(transform="rank-gaussian").fit_stream(parquet)
    with pytest.raises(ValueError, match="no column 'nobody'"):
        estimator().fit_stream(parquet, columns=["nobody"])
