import base64
import hashlib
import re
import shutil
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
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
        if not self.open or self.open[-1] != "style":
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


def test_nothing_is_loaded_and_the_policy_allows_only_our_style(html):
    page = Page(html)
    assert {"script", "link", "img", "iframe", "object", "base"}.isdisjoint(page.tags)
    for _, key, _ in page.attributes:
        assert key not in ("src", "href", "style", "srcset", "action")
        assert not key.startswith("on")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(value for _, key, value in page.attributes if key == "content" and "default-src" in value)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
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
        lit = [group.find("text").text for group in svg.iter("g") if f"t{k}" in group.get("class").split()]
        assert lit == [case.result.columns[j] for j in np.flatnonzero(targets[k])]
        assert f"#show-{k}:checked~.canvas .t{k} rect" in html
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

    from latentdo.report.content import regimes

    model = replace(case.result.model, target_variances=np.full(5, 1e-9))
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
    assert {"script", "img", "b", "i", "u"}.isdisjoint(page.tags)
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
    assert "all follow one mechanism" in words
    assert "Before you trust this" not in words


def test_trouble_is_at_the_top(make_result):
    halted = make_result(n_samples=60, status="interrupted", message="stopped by the user after 3 steps")
    words = Page(render_report(halted.result)).words
    assert words.index("interrupted: stopped by the user") < words.index("What causes what")


def test_regimes_that_change_nearly_everything_are_doubted(case):
    from dataclasses import replace

    from latentdo.model import Topology
    from latentdo.report.content import cautions

    assert not [text for text in cautions(case.result) if "more than half" in text]
    topology = case.result.model.topology
    targets = topology.targets.copy()
    targets[2:4] = 1
    model = replace(case.result.model, topology=Topology(topology.adjacency, targets, topology.weights))
    assert any(
        "2 regimes change more than half" in text for text in cautions(replace(case.result, model=model))
    )


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
    assert "No row counts as free of intervention" in words
    assert "serves as the baseline only" in words


def test_other_rows_are_refused(case):
    with pytest.raises(ValueError, match="rows that were fitted"):
        render_report(case.result, case.X.iloc[:3])


@pytest.mark.slow
def test_in_a_browser(make_result, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    odd = make_result(n_samples=80, columns=HOSTILE)
    page = tmp_path / "report.html"
    page.write_text(render_report(odd.result, odd.X), encoding="utf-8")
    picture = tmp_path / "shot.png"
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    flags += ["--enable-logging=stderr"]
    done = subprocess.run(
        [chromium, *flags, f"--user-data-dir={tmp_path}/p", f"--screenshot={picture}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr  # a violated policy would be logged there
    assert picture.stat().st_size > 20_000
