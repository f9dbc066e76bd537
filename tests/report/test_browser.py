"""The report in a real browser: it answers to mouse and keyboard, stays silent and asks nobody for anything."""

from contextlib import contextmanager

import numpy as np
import pytest

from latentdo.report import render_report

pytestmark = pytest.mark.slow

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><b>",
    "</style></title>&amp;",
    "a" * 300,
)


@contextmanager
def opened(browser, path, **settings):
    """A page that fails the test on any message, error or request but its own."""
    context = browser.new_context(viewport={"width": 1180, "height": 900}, **settings)
    page = context.new_page()
    heard, asked = [], []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert heard == []
    assert asked == [path.as_uri()]
    context.close()


@pytest.fixture
def write(tmp_path):
    def write(case, **extra):
        path = tmp_path / "report.html"
        path.write_text(render_report(case.result, case.X, **extra), encoding="utf-8")
        return path

    return write


def node(page, index):
    return page.locator(f'svg.graph [data-node="{index}"]')


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("d", "regimes"), [(5, None), (11, None), (50, 9), (100, 9)])
def test_it_renders_and_stays_readable(browser, make_result, write, d, regimes, scheme):
    case = make_result(n_variables=d, n_samples=400, n_regimes=regimes, edges_per_node=1.2)
    with opened(browser, write(case), color_scheme=scheme) as page:
        assert len(page.screenshot()) > 20_000
        # the page itself never scrolls sideways; wide drawings do, in their own frames
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        sizes = page.evaluate(
            """[...document.querySelectorAll("svg.graph .node text, svg.matrix text")]
               .map((text) => text.getBoundingClientRect().height)"""
        )
        assert min(sizes) >= 7
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(20, 23, 28)") == (scheme == "dark")
        boxes = page.evaluate(
            """[...document.querySelectorAll("svg.graph .node")].map((node) => {
                 const [box, text] = [...node.querySelectorAll("rect, text")].map((e) => e.getBoundingClientRect());
                 return text.width <= box.width;
               })"""
        )
        assert all(boxes)


def test_the_slider_hides_unlikely_arrows(browser, case, write):
    probabilities = case.result.edge_probabilities[case.result.model.topology.adjacency == 1]
    with opened(browser, write(case)) as page:
        arrows = page.locator("svg.graph .edge:visible")
        assert arrows.count() == len(probabilities)
        page.locator("#threshold").focus()
        page.keyboard.press("End")
        assert page.locator("#threshold-value").inner_text() == "100 %"
        assert arrows.count() == 0
        page.locator("#threshold").fill("85")
        left = int((probabilities >= 0.85).sum())
        assert 0 < left < len(probabilities)
        assert arrows.count() == left
        assert page.locator("#threshold-count").inner_text() == f"{left} of {len(probabilities)} arrows"
        assert page.locator("tr[data-p]:not([hidden])").count() == left


def test_a_node_shows_its_mechanism(browser, case, write):
    adjacency = case.result.model.topology.adjacency
    effect = int(adjacency.sum(axis=0).argmax())
    causes = np.flatnonzero(adjacency[:, effect])
    with opened(browser, write(case)) as page:
        panel = page.locator("#panel")
        assert panel.is_hidden()
        node(page, effect).click()
        assert panel.locator("h3").inner_text() == case.result.columns[effect]
        assert panel.locator(".cause").count() == len(causes)
        near = page.locator("svg.graph .edge.near")
        assert near.count() == adjacency[effect].sum() + len(causes)
        panel.locator(".cause a").first.click()
        assert panel.locator("h3").inner_text() == case.result.columns[causes[0]]
        page.keyboard.press("Escape")
        assert panel.is_hidden()
        assert page.locator("svg.graph.focused").count() == 0


def test_the_keyboard_reaches_every_node(browser, case, write):
    with opened(browser, write(case)) as page:
        assert page.locator('svg.graph .node[tabindex="0"]').count() == 1
        node(page, 0).focus()
        seen = set()
        for key in ["ArrowUp"] * 5 + ["ArrowLeft"] * 3 + ["ArrowDown", "ArrowRight"] * 6 + ["ArrowUp"] * 5:
            page.keyboard.press(key)
            seen.add(page.evaluate("document.activeElement.dataset.node"))
        assert len(seen) == len(case.result.columns)
        for key in ("Enter", " "):
            page.keyboard.press(key)
            chosen = page.evaluate("document.querySelector('svg.graph .selected').dataset.node")
            assert page.locator("#panel h3").inner_text() == case.result.columns[int(chosen)]
            assert page.evaluate("document.activeElement.id") == "panel"
            page.keyboard.press("Escape")
            assert page.evaluate("document.activeElement.dataset.node") == chosen


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_regime_lights_up_its_targets(browser, case, write, script):
    targets = case.result.model.topology.targets
    with opened(browser, write(case), java_script_enabled=script) as page:

        def lit():
            return page.locator("svg.graph .node").evaluate_all(
                "nodes => nodes.map((n) => getComputedStyle(n.querySelector('rect')).strokeWidth === '3px')"
            )

        if script:
            assert not any(lit())
        for k in (1, len(targets) - 1):
            page.locator(f'label[for="show-{k}"]').click()
            if script:  # without one, nobody can ask for computed styles
                assert lit() == targets[k].astype(bool).tolist()
            assert page.locator(f"#show-{k}").is_checked()
        if script:
            page.locator('#regimes-title ~ * a[data-regime="2"]').click()
            assert lit() == targets[2].astype(bool).tolist()


def test_without_a_script_a_node_leads_to_its_mechanism(browser, case, write):
    with opened(browser, write(case), java_script_enabled=False) as page:
        assert page.locator("#threshold").is_hidden()
        node(page, 3).click()
        assert page.url.endswith("#m-3")
        assert page.locator("#m-3 h3").is_visible()  # the browser unfolds what holds it


def test_a_row_can_be_looked_up(browser, case, write):
    with opened(browser, write(case)) as page:
        page.locator("#row-number").fill("17")
        name = str(case.result.regime_names[case.result.regimes[17]])
        assert page.locator("#row-answer").inner_text().startswith(f"{name} (")
        page.locator("#row-number").fill(str(len(case.X)))
        assert page.locator("#row-answer").inner_text() == "There is no such row."


def test_hostile_names_stay_text(browser, make_result, write):
    odd = make_result(
        n_samples=80, columns=HOSTILE, regime_names=("<b>", "'\"", "{% raw %}", "</svg>", "-->", "x")
    )
    with opened(browser, write(odd, title="</title><script>alert(2)</script>")) as page:
        for j, name in enumerate(HOSTILE):
            node(page, j).click()
            assert page.locator("#panel h3").inner_text() == name
        assert page.locator("b, img").count() == 0
        page.locator("#row-number").fill("3")
        assert "(" in page.locator("#row-answer").inner_text()


def test_a_script_of_somebody_else_is_refused(browser, case, tmp_path):
    path = tmp_path / "report.html"
    forged = render_report(case.result).replace("</main>", "<script>document.title = 'taken'</script></main>")
    path.write_text(forged, encoding="utf-8")
    page = browser.new_page()
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.goto(path.as_uri())
    assert page.title() != "taken"
    assert any("Content Security Policy" in text for text in heard)
    page.close()


def test_print_unfolds_everything_and_hides_the_controls(browser, case, write):
    with opened(browser, write(case)) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert page.locator("#threshold").is_hidden()
        assert page.pdf()[:5] == b"%PDF-"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0


def test_a_phone_can_show_it(browser, make_result, write):
    with opened(browser, write(make_result(n_variables=11, n_samples=200))) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        labels = page.evaluate(
            "[...document.querySelectorAll('.choice label')].map((label) => label.getBoundingClientRect().right)"
        )
        assert max(labels) <= 390
        node(page, 4).click()
        assert page.locator("#panel").is_visible()
