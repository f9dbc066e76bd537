"""What notebooks show: results in words, whole sentences, and names as text."""

from html import escape

import pandas as pd

from latentdo import LatentInterventionDAG
from latentdo.notebook import WordyTable


def test_a_result_shows_arrows_regimes_and_what_speaks_against_it(make_result):
    case = make_result(columns=("<b>bold</b>", "b", "c", "d", "e"))
    html = case.result._repr_html_()
    assert "&lt;b&gt;bold" in html
    assert "<b>bold" not in html
    for i, j in zip(*case.result.model.topology.adjacency.nonzero(), strict=True):
        assert escape(case.result.columns[j]) in html, i
    assert all(str(name) in html for name in case.result.regime_names)


def test_an_estimator_shows_its_result_and_before_that_its_arguments(case):
    estimator = LatentInterventionDAG(max_regimes=7)
    assert "max_regimes" in estimator._repr_html_()
    estimator.result_ = case.result
    assert estimator._repr_html_() == case.result._repr_html_()
    assert estimator._repr_mimebundle_()["text/html"] == case.result._repr_html_()
    assert "text/plain" in estimator._repr_mimebundle_(include=None, exclude=None)


def test_sentences_are_shown_whole_and_tables_stay_tables():
    words = "a sentence that is much longer than the fifty characters after which pandas cuts it off"
    table = WordyTable(pd.DataFrame({"check": ["x"], "words": [words]}).set_index("check"))
    assert words in table._repr_html_()
    assert "check" in table._repr_html_()
    assert repr(table.iloc[:0]) == repr(WordyTable(table.iloc[:0]))
    assert type(table[table["words"] == ""]) is pd.DataFrame
    assert "None" in WordyTable(table.iloc[:0])._repr_html_()
    long = WordyTable(pd.DataFrame({"a": range(100)}))._repr_html_()
    assert "and 70 more" in long
