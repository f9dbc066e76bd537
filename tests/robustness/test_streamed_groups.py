"""Groups whose rows lie anywhere in a table larger than memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.cli import main
from latentdo.data import Dataset
from latentdo.model.assignment import Groups
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.out_of_core import one_pass
from latentdo.streaming import open_stream

SIZE = 10
"""Rows of a group."""


@pytest.fixture(scope="module")
def data():
    """Shifts that single rows hardly show; rows of a group are scattered, and one in ten rows is on its own."""
    drawn = simulate(n_variables=4, n_samples=6000, n_regimes=3, separation=1.5, random_state=5)
    by_regime = np.argsort(drawn.regimes, kind="stable")
    groups = np.empty(6000, dtype=object)
    number = 0
    for regime in range(drawn.n_regimes):
        rows = by_regime[drawn.regimes[by_regime] == regime]
        for first in range(0, rows.size, SIZE):
            groups[rows[first : first + SIZE]] = f"plate {number}"
            number += 1
    groups[::10] = None
    return drawn, groups


@pytest.fixture(scope="module")
def table(data):
    return data[0].X.assign(plate=data[1])


def estimator(**options):
    return LatentInterventionDAG(density="linear", noise="gaussian", max_regimes=4, n_init=2, **options)


@pytest.fixture(scope="module")
def parquet(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table.to_parquet(path, row_group_size=1700)
    return path


@pytest.fixture(scope="module")
def streamed(parquet):
    return estimator().fit_stream(parquet, groups="plate")


def test_a_stream_finds_what_a_fit_finds(data, streamed):
    drawn, groups = data
    whole = estimator().fit(drawn.X, groups=groups)
    pd.testing.assert_frame_equal(streamed.adjacency_, whole.adjacency_)
    pd.testing.assert_frame_equal(streamed.targets_, whole.targets_)
    assert streamed.evidence_ == pytest.approx(whole.evidence_, abs=3.0)  # fewer passes are made
    assert streamed.regime_weights_ == pytest.approx(whole.regime_weights_, abs=2e-3)
    places = streamed.sample_.index.to_numpy()  # all rows, in the order in which they were drawn
    np.testing.assert_allclose(streamed.responsibilities_, whole.responsibilities_[places], atol=0.02)
    assert metrics.adjusted_rand_index(drawn.regimes[places], streamed.regimes_) > 0.8


def test_one_pass_is_the_e_step_of_groups(data, streamed):
    drawn, groups = data
    dataset = Dataset.from_table(drawn.X, groups=groups)
    model, z = streamed.result_.model, dataset.z
    members = np.where(pd.isna(groups), -1, dataset.groups)
    parts = [
        lambda at=at: (z[at : at + 900], np.full(len(z[at : at + 900]), -1), members[at : at + 900])
        for at in range(0, len(z), 900)
    ]
    found = one_pass(parts, model, 1, group_regimes=np.full(members.max() + 1, -1))
    units = Groups.of(dataset.groups)
    known = model.assign(z, units=units)
    design = np.column_stack([np.ones(len(z)), z])
    matrices = Moments.of(design, known.responsibilities).matrices
    np.testing.assert_allclose(found.moments.matrices, matrices, atol=1e-8)
    np.testing.assert_allclose(found.units, units.total(known.responsibilities), atol=1e-8)
    assert found.log_likelihood == pytest.approx(float(known.log_likelihood.sum()))


def test_a_row_with_a_label_labels_its_group_in_other_parts_too(data, table):
    drawn, groups = data
    names = np.array(["control", "one", "two"], dtype=object)
    known = np.full(len(table), None, dtype=object)
    labelled = pd.unique(groups[~pd.isna(groups)])[:60]
    for group in labelled:
        (first, *_) = np.flatnonzero(groups == group)
        known[first] = names[drawn.regimes[first]]
    parts = [table.assign(z=known).iloc[at : at + 1500] for at in range(0, len(table), 1500)]
    stream = open_stream(parts, regimes="z", groups="plate", observational="control")
    whole = Dataset.from_table(drawn.X, regimes=known, groups=groups, observational="control")
    found = np.concatenate([part()[1] for part in stream.parts])
    np.testing.assert_array_equal(found, whole.regimes)
    np.testing.assert_array_equal(stream.sample.regimes, whole.regimes[stream.sample.row_index])


@pytest.mark.parametrize("n_sample", [50, 1000])
def test_few_rows_of_many_groups_are_drawn_wherever_the_parts_are_cut(table, n_sample):
    streams = [
        open_stream(parts, groups="plate", n_sample=n_sample)
        for parts in ([table], [table.iloc[:2000], table.iloc[2000:]])
    ]
    for stream in streams:
        assert stream.n_rows == len(table)
        sizes = np.bincount(stream.sample.groups)
        assert sizes.max() <= np.ceil(np.sqrt(n_sample))
        assert len(stream.sample.x) == n_sample
    one, two = (set(stream.sample.groups[stream.sample.groups < 600]) for stream in streams)
    assert len(one & two) > 0.5 * len(one)  # random numbers of groups are the same in all parts


def test_groups_larger_than_the_sample_are_cut(data):
    huge = data[0].X.assign(plate=np.arange(6000) % 3)
    stream = open_stream([huge.iloc[:2500], huge.iloc[2500:]], groups="plate", n_sample=900)
    assert len(stream.sample.x) == 900
    assert (np.bincount(stream.sample.groups) > 200).all()


def test_bad_groups_are_refused(table):
    whole = table.assign(z=np.where(np.arange(len(table)) % 2, "a", "b"))
    cases = [
        (
            {"regimes": "z", "groups": "plate"},
            r"Part 0.*group 'plate \d+' has different labels .*'[ab]' and '[ab]'",
        ),
        ({"regimes": "z", "groups": "z"}, "name two columns"),
        ({"groups": ["a"]}, "groups must be the name of a column"),
        ({"groups": "nobody"}, "no column 'nobody'"),
        ({"groups": "plate", "columns": ["X1", "plate"]}, "'plate' holds the groups"),
    ]
    for options, error in cases:
        with pytest.raises((ValueError, TypeError), match=f"(?s){error}"):
            open_stream([whole], observational="a", **options)
    apart = [table.iloc[:3000].assign(z="a"), table.iloc[3000:].assign(z="b")]
    with pytest.raises(ValueError, match="has different labels"):
        open_stream(apart, regimes="z", groups="plate", observational="a")


def test_the_command_line_streams_groups(streamed, parquet, tmp_path):
    command = ["fit", "--stream", str(parquet), "--out", str(tmp_path / "out"), "--group-column", "plate"]
    options = [
        "--density",
        "linear",
        "--noise",
        "gaussian",
        "--max-regimes",
        "4",
        "--n-init",
        "2",
        "--json",
    ]
    assert main([*command, *options]) == 0
    written = pd.read_csv(tmp_path / "out" / "regimes.csv").set_index("row")["regime"]
    np.testing.assert_array_equal(written, streamed.regimes_)
