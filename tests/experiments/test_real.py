"""Real tables: what is drawn from them, what chance would do, and what the page says; on tables made here."""

import numpy as np
import pandas as pd
import pytest
from experiments.light_tunnel import simulated

from experiments import real

CHAIN = pd.DataFrame(np.eye(5, k=1, dtype=int), list("abcde"), list("abcde"))


def test_random_graphs_have_as_many_edges_and_are_right_by_chance():
    chance = real.by_chance(CHAIN, 4, 0)
    assert chance.shape == (real.RANDOM_GRAPHS, 2)
    # Each of 4 edges is one of 20 ordered pairs, 4 of which are right.
    assert chance[:, 1].mean() == pytest.approx(4 * 4 / 20, abs=0.1)
    assert chance[:, 0].min() >= 0
    np.testing.assert_array_equal(real.by_chance(CHAIN, 0, 0)[:, 0], 4)
    full = real.by_chance(CHAIN, 10, 0)
    assert (full[:, 0] >= 6).all(), "six of ten pairs are not connected in the chain"


@pytest.mark.parametrize(("share", "least", "most"), [(0.2, 0.1, 0.3), (1.0, 1.0, 1.0)])
def test_some_rows_have_labels_and_the_others_none(share, least, most):
    truth = simulated()
    found = real.labels(truth, share, 0)
    known = np.array([label is not None for label in found])
    assert least <= known.mean() <= most
    assert (found[known] == truth.experiments.to_numpy()[known]).all()
    assert real.labels(truth, 0.0, 0) is None


@pytest.mark.parametrize(("table", "conditions"), [("cytometry-6", 6), ("cytometry-9", 9)])
def test_cytometry_is_drawn_with_its_conditions_and_one_reference(table, conditions):
    truth = real.load(table, 500, 0)
    assert truth.X.shape == (500, 11)
    assert truth.experiments.nunique() == conditions
    assert truth.targets.index[0] == real.REFERENCE
    assert set(truth.experiments) <= set(truth.targets.index)
    assert list(truth.adjacency.columns) == list(truth.X.columns)
    assert np.log(1.0) <= truth.X.to_numpy().min(), "logarithms of values of at least one"


def test_a_pair_is_read_with_its_direction(tmp_path):
    (tmp_path / "Tuebingen_pairs.csv").write_text("SampleID,A,B\npair1,1 2 3.5,4 5 6\npair2,1 1,0 2\n")
    (tmp_path / "Tuebingen_targets.csv").write_text("SampleID,Target\npair1,1.0\npair2,-1.0\n")
    table, forward = real.read_pair("pair1", tmp_path)
    assert forward
    assert table.to_dict("list") == {"A": [1.0, 2.0, 3.5], "B": [4.0, 5.0, 6.0]}
    assert not real.read_pair("pair2", tmp_path)[1]


def test_what_cannot_be_had_is_left_out_with_a_word(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(real, "ROOT", tmp_path)
    assert (
        real.cells_of(["pairs", "light-tunnel"], ["auto"], ["nothing"], [0], str(tmp_path / "nowhere")) == []
    )
    said = capsys.readouterr().out
    assert "make baselines" in said
    assert "--data" in said


def test_pairs_are_counted():
    frame = pd.DataFrame(
        {
            "table": ["pair1", "pair2", "pair3", "pair4"],
            "edges": [1, 1, 0, np.nan],
            "edges_right": [1, 0, 0, np.nan],
            "plain_sure": [1, 1, 0, np.nan],
            "plain_right": [1, 0, 0, np.nan],
            "shown_sure": [1, 0, 0, np.nan],
            "shown_right": [1, 0, 0, np.nan],
            "regimes": [1, 3, 1, np.nan],
            "failed": ["none", "skew", "none", "refused: constant"],
            "processor_seconds": [1.0, 2.0, 3.0, np.nan],
        }
    )
    counts = dict(real.pairs_summary(frame).rows)
    assert counts["fitted, of all"] == "3 of 4"
    assert counts["drawn the right way"] == "1 of 2"
    assert counts["above 0.9 by the model alone, right"] == "1 of 2"
    assert counts["above 0.9 as shown, right"] == "1 of 1"
    assert counts["some check fails"] == "1"
