import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from latentdo.report import render_report

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "</style></title>&amp;",
    "a" * 300,
)


class Page(HTMLParser):
    """Tags, attributes and text; complains about tags that are not closed."""

    VOID = frozenset({"meta", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def html(case):
    return render_report(case.result, case.X)


def drawing(html, kind):
    return ElementTree.fromstring(re.search(rf'<svg class="{kind}".*?</svg>', html, re.DOTALL).group())


def test_the_page_is_well_formed_and_accessible(html):
    page = Page(html)
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    for _, key, value in page.attributes:
        if key in ("for", "aria-labelledby"):
            assert value in ids
        if key == "href":
            assert value.startswith("#")
            assert value[1:] in ids
    for tag in ("html", "title", "main", "h1"):
        assert page.tags.count(tag) == (1 if tag != "title" else page.tags.count("title"))
    assert ("html", "lang", "en") in page.attributes
    labelled = [
        value for tag, key, value in page.attributes if tag == "svg" and key in ("aria-label", "aria-hidden")
    ]
    assert len(labelled) == page.tags.count("svg")
    assert page.tags.count("th") == sum(
        1 for tag, key, _ in page.attributes if tag == "th" and key == "scope"
    )


def test_nothing_is_loaded_and_the_policy_allows_only_our_style_and_script(html):
    page = Page(html)
    assert {"link", "img", "iframe", "object", "base"}.isdisjoint(page.tags)
    assert page.tags.count("script") == 1
    for _, key, _ in page.attributes:
        assert key not in ("src", "style", "srcset", "action", "xlink:href")
        assert not key.startswith("on")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL).group(1)
    for forbidden in (
        "innerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "fetch(",
        "XMLHttp",
        "import(",
    ):
        assert forbidden not in script
    by_style, by_script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    policy = next(value for _, key, value in page.attributes if key == "content" and "default-src" in value)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{by_style}'; script-src 'sha256-{by_script}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_every_edge_is_drawn_and_wider_when_likelier(case, html):
    svg = drawing(html, "graph")
    edges = [group for group in svg.iter("g") if group.get("class").startswith("edge")]
    adjacency = case.result.model.topology.adjacency
    assert len(edges) == adjacency.sum()
    by_title = {
        group.find("title").text.split(":")[0]: float(group.find("path").get("stroke-width"))
        for group in edges
    }
    pairs = [
        (
            case.result.edge_probabilities[i, j],
            by_title[f"{case.result.columns[i]} → {case.result.columns[j]}"],
        )
        for i, j in np.argwhere(adjacency)
    ]
    assert [width for _, width in sorted(pairs)] == sorted(by_title.values())
    assert len({round(w, 3) for w in by_title.values()}) > 1


def test_choosing_a_regime_lights_up_its_targets(case, html):
    svg = drawing(html, "graph")
    targets = case.result.model.topology.targets
    for k in range(1, len(targets)):
        lit = [node.find("text").text for node in svg.iter("a") if f"t{k}" in node.get("class").split()]
        assert lit == [case.result.columns[j] for j in np.flatnonzero(targets[k])]
        assert f"#show-{k}:checked~.explorer .t{k} rect" in html
        assert f'id="show-{k}"' in html


def test_it_says_what_was_found(case, html):
    words = Page(html).words
    assert f"In {len(case.X)} rows of 5 variables" in words
    assert "5 interventions" in words
    assert "Columns differ in scale by more than 1e6." in words
    assert "Faria" in words
    assert "max_regimes" in words
    assert "numpy" in words
    assert case.result.data_hash in words
    assert "one regime" in words


def test_effects_are_in_the_users_units(make_result):
    logged = make_result(n_samples=3000, transform="log", n_variables=3)
    result = logged.result
    from latentdo.report.content import regimes

    for row in regimes(result)[1:]:
        (effect,) = row.effects
        data = logged.X[effect.name]
        after = np.median(data[result.regimes == row.index])
        before = np.median(data[result.regimes == 0])
        assert float(effect.after) == pytest.approx(after, rel=0.15)
        assert float(effect.before) == pytest.approx(before, rel=0.15)
        assert effect.words.startswith("raised" if after > before else "lowered")


def test_a_clamped_variable_is_called_constant(case):
    from dataclasses import replace

    from latentdo.model.mechanisms import Noise
    from latentdo.report.content import regimes

    model = case.result.model
    clamped = {key: replace(own, noise=Noise.gaussian(1e-9)) for key, own in model.own.items()}
    model = replace(model, own=clamped)
    assert {e.words for row in regimes(replace(case.result, model=model))[1:] for e in row.effects} == {
        "held almost constant"
    }


def test_hostile_names_stay_text(make_result):
    odd = make_result(
        n_samples=80,
        columns=HOSTILE,
        regime_names=("<b>", "'\"", "{% raw %}", "</svg>", "-->", "x"),
        warnings=("<i>careful</i>",),
        configuration={"<u>": "<u>", "f": {"a": "</table>"}},
        history=(),
    )
    html = render_report(odd.result, odd.X, title="<h1>")
    page = Page(html)
    assert {"img", "b", "i", "u"}.isdisjoint(page.tags)
    assert page.tags.count("script") == 1
    for name in (*HOSTILE, "<i>careful</i>"):
        assert name not in re.search(r"<script>(.*?)</script>", html, re.DOTALL).group(1)
    assert "{{ 7 * 7 }}" in page.words
    assert HOSTILE[0] in page.words
    assert page.tags.count("h1") == 1
    drawing(html, "graph")
    drawing(html, "matrix")


def test_nothing_found_is_said_plainly(make_result):
    alone = make_result(n_samples=60, edges_per_node=0.0, n_regimes=1, history=(), comparison=(), warnings=())
    words = Page(render_report(alone.result, alone.X)).words
    assert "no direct effects and no interventions" in words
    assert "No direct effect was found" in words
    assert "No group of rows" in words
    assert "Before you trust this" not in words


def test_a_choice_against_the_evidence_is_explained(make_result):
    def words(linear, networks, chosen, *more):
        families = (("linear", linear), ("nonlinear", networks))
        comparison = tuple(
            {"model": f"{name} mechanisms", "evidence": evidence, "targets": 3, "chosen": name == chosen}
            for name, evidence in families
        )
        return Page(render_report(make_result(n_samples=60, comparison=(*comparison, *more)).result)).words

    rule, apart = (
        "has to win clearly",
        "a separate comparison",
    )
    hidden = {"model": "hidden interventions", "evidence": -90.0, "chosen": True}
    single = {"model": "one regime, flexible noise", "evidence": -99.0, "chosen": False}
    behind = words(-105.0, -100.0, "linear", hidden, single)
    assert rule in behind
    assert apart in behind
    assert "flexible noise on both sides" in behind
    ahead = words(-105.0, -100.0, "nonlinear")
    assert rule not in ahead
    assert apart not in ahead


def test_trouble_is_at_the_top(make_result):
    halted = make_result(n_samples=60, status="interrupted", message="stopped by the user after 3 steps")
    words = Page(render_report(halted.result)).words
    assert words.index("interrupted: stopped by the user") < words.index("What causes what")


@pytest.mark.parametrize(("d", "edges_per_node"), [(1, 0.0), (50, 2.0), (100, 1.0)])
def test_other_sizes(make_result, d, edges_per_node):
    sized = make_result(
        n_variables=d, n_samples=400, edges_per_node=edges_per_node, n_regimes=4 if d > 1 else 2
    )
    html = render_report(sized.result, sized.X)
    Page(html)
    assert len(html) < 1_500_000


def test_no_observational_rows(make_result):
    from dataclasses import replace

    from latentdo.model import Topology

    plain = make_result(n_samples=60).result
    topology = plain.model.topology
    weights = topology.weights.copy()
    weights[1] += weights[0]
    weights[0] = 0.0
    share = plain.responsibilities.copy()
    share[:, 1] += share[:, 0]
    share[:, 0] = 0.0
    model = replace(plain.model, topology=Topology(topology.adjacency, topology.targets, weights))
    words = Page(render_report(replace(plain, model=model, responsibilities=share))).words
    assert "No row counts as free of" in words
    assert "serves as the baseline only" in words


def test_other_rows_are_refused(case):
    with pytest.raises(ValueError, match="rows that were fitted"):
        render_report(case.result, case.X.iloc[:3])


def test_unlikely_edges_of_the_graph_and_likely_ones_outside_are_both_there(make_result):
    base = make_result(n_samples=60)
    adjacency = base.result.model.topology.adjacency
    i, j = (int(v) for v in np.argwhere((adjacency + adjacency.T + np.eye(5)) == 0)[0])
    probabilities = base.result.edge_probabilities.copy()
    probabilities[i, j] = 0.42
    html = render_report(make_result(n_samples=60, edge_probabilities=probabilities).result)
    maybe = [g for g in drawing(html, "graph").iter("g") if "maybe" in g.get("class")]
    assert [(g.get("data-from"), g.get("data-to"), g.get("data-p")) for g in maybe] == [
        (str(i), str(j), "0.4200")
    ]
    assert 'id="maybe"' in html
    assert 'id="maybe"' not in render_report(base.result)


def test_rows_can_be_looked_up_under_their_own_numbers(case):
    import html as escapes
    import json

    kept = case.X.set_axis(np.arange(len(case.X)) * 2 + 7, axis=0)
    html = render_report(case.result, kept)
    data = dict(re.findall(r'data-(rows|labels|names)="(.*?)"', html))
    rows, labels, names = (json.loads(escapes.unescape(data[key])) for key in ("rows", "labels", "names"))
    assert labels == kept.index.tolist()
    assert [row[0] for row in rows] == case.result.regimes.tolist()
    assert names == [str(name) for name in case.result.regime_names]
    shares = case.result.responsibilities.max(axis=1)
    assert all(abs(row[1] / 100 - share) <= 0.0101 for row, share in zip(rows, shares, strict=True))


def test_the_hardest_rows_are_named(case):
    from latentdo.report.rows import doubtful_rows

    found = doubtful_rows(case.result, np.arange(len(case.X)) + 100)
    sure = case.result.responsibilities.max(axis=1)
    assert [int(row["row"]) - 100 for row in found] == [
        int(r) for r in np.argsort(sure, kind="stable")[:12] if sure[r] < 0.95
    ]
    assert all(row["second_probability"] <= row["probability"] for row in found)


def test_bootstrap_and_diagnosis_are_shown_when_there(case):
    from latentdo.report import Support

    plain = Page(render_report(case.result)).words
    assert "resampled rows" not in plain
    assert "can and cannot show" not in plain
    topology = case.result.model.topology
    support = Support(
        n_resamples=40,
        edges=topology.adjacency * 0.75,
        targets=topology.targets * 0.5,
        stability=np.linspace(1.0, 0.5, len(topology.targets)),
    )
    words = Page(
        render_report(
            case.result, bootstrap=support, diagnosis={"regimes": ["Two <b> overlap."], "rows": "Enough."}
        )
    ).words
    assert "repeated 40 times, each on a random half" in words
    assert words.count("75 %") >= topology.adjacency.sum()
    assert "regimes: Two <b> overlap." in words
    assert "rows: Enough." in words


def test_the_trials_of_a_tuning_are_listed_and_the_chosen_one_marked(case):
    assert "Which settings" not in Page(render_report(case.result)).words
    trials = pd.DataFrame(
        {
            "trial": range(100),
            "edge_prior": np.linspace(-2.0, 0.0, 100),
            "mode": ["<b>"] * 100,
            "held_out": -1.0 - np.arange(100) / 100,
            "edges": 3,
            "targets": 2,
            "regimes": 4,
            "seconds": 0.1,
            "within_one_error": np.arange(100) < 2,
            "chosen": np.arange(100) == 80,  # far down: listed all the same
        }
    )
    html = render_report(case.result, trials=trials)
    words = Page(html).words.replace("\N{MINUS SIGN}", "-")
    assert "trial edge_prior mode held-out score edges targets regimes verdict" in words
    assert "0 -2 <b> -1.0000 3 2 4 as good" in words
    assert "80 -0.384 <b> -1.8000 3 2 4 chosen" in words
    assert "39 more with lower scores are in trials.csv" in words
    with pytest.raises(ValueError, match="no column held_out; was it changed"):
        render_report(case.result, trials=trials.drop(columns="held_out"))


def test_the_constraint_is_drawn_where_the_solver_had_one(make_result):
    history = tuple(
        {"step": s, "evidence": -9.0 + s, "violation": 10.0 ** (-s), "seconds": float(s)} for s in range(6)
    )
    html = render_report(make_result(n_samples=60, history=history).result)
    assert len(re.findall('<svg class="chart"', html)) == 2
    assert "Acyclicity constraint over 5 seconds, from 1 to 1e-05." in html


@pytest.mark.parametrize("transform", ["none", "log", "log1p", "rank-gaussian"])
def test_axes_carry_short_numbers(make_result, transform):
    from latentdo.report.charts import _round_numbers

    result = make_result(n_samples=200, transform=transform).result
    for j in range(len(result.columns)):
        marks = _round_numbers(result, j, -2.0, 2.0)
        assert len(marks) >= 2
        assert all(-2.001 <= z <= 2.001 and len(text) <= 8 for z, text in marks)


def test_a_fitted_bootstrap_is_shown():
    from latentdo import BootstrapDAG, LatentInterventionDAG, simulate

    data = simulate(n_variables=3, n_samples=300, random_state=1)
    boot = BootstrapDAG(LatentInterventionDAG(max_regimes=5, n_init=1), n_resamples=2).fit(data.X)
    words = Page(render_report(boot.estimator_.result_, bootstrap=boot)).words
    assert "repeated 2 times" in words
    assert words.count("overlap of its rows") == 1


def test_few_rows_are_a_caution(make_result):
    from latentdo.report.content import cautions

    few, enough = (make_result(n_variables=5, n_samples=n).result for n in (42, 400))
    assert any("can show little" in text for text in cautions(few))
    assert not any("can show little" in text for text in cautions(enough))


def test_what_the_data_do_not_support_is_said_first(case):
    from dataclasses import replace

    from latentdo.checks import Check, abstention

    sure = case.result.model.topology.adjacency.astype(float)
    assert abstention(replace(case.result, edge_probabilities=0.95 * sure)) == []
    doubtful = replace(case.result, edge_probabilities=0.5 * sure)
    (first,) = abstention(doubtful)
    assert "more rows" in first
    failed = Check("measurement error", 30.0, 1e-9, True, "Errors.").to_dict()
    (first,) = abstention(replace(doubtful, checks=(failed,), warnings=("Errors.",)))
    assert "measurement error" in first
    assert "repeated measurements" in first
    page = render_report(replace(doubtful, checks=(failed,), warnings=(first, "Errors.")))
    assert page.count(first) == 1
    assert page.index(first) < page.index("Before you trust this") < page.index("latentdo found")


def test_rows_and_shares_that_disagree_are_explained(case):
    """A weight sums parts of rows, a count takes each where it is likeliest; nothing is said where both agree."""
    from dataclasses import replace

    from latentdo.report.content import how_counted, regimes

    rows = regimes(case.result)
    total = sum(row.rows for row in rows)
    agreeing = [replace(row, groups=None, share=row.rows / total) for row in rows]
    assert how_counted(case.result, agreeing) == ""
    assert "likeliest" in how_counted(case.result, [replace(row, share=row.share / 2) for row in agreeing])


@pytest.mark.parametrize(("ahead", "close"), [(0.0, False), (14.0, True), (20.0, False)])
def test_an_intervention_that_was_nearly_found_is_mentioned(make_result, ahead, close):
    """Hidden interventions have to win by twice the logarithm of 2000 rows, which is 15.2 nats."""
    from latentdo.report.content import headline, regimes

    comparison = (
        {"model": "hidden interventions", "evidence": ahead - 100.0, "chosen": False},
        {"model": "one regime", "evidence": -100.0, "chosen": True},
    )
    result = make_result(
        n_samples=2000, edges_per_node=0.0, n_regimes=1, history=(), comparison=comparison, warnings=()
    ).result
    assert ("1.2 nats" in " ".join(headline(result, regimes(result)))) == close
