"""The app as a user meets it: a server, a browser, a good file and a bad one."""

import re
import socket
import subprocess
import time
import urllib.request
import zipfile

import pytest

from latentdo.app import serve
from latentdo.scm import simulate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    server = serve(port, browser=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 600
    while True:
        try:
            urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=60)
            break
        except OSError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.2)
    yield f"http://localhost:{port}"
    server.terminate()
    server.wait(timeout=600)


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(600_000)
    asked = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(address)
    opened.get_by_role("heading", name="1. Data").wait_for()
    yield opened
    foreign = [url for url in asked if not url.startswith((address, "data:", "blob:", "about:"))]
    assert foreign == []  # nothing leaves the machine
    context.close()


def test_example_report_and_download(page, tmp_path):
    page.get_by_text("Example: simulated").click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Give up").wait_for()
    report = page.frame_locator("iframe[title='Report of the fit']")
    report.get_by_role("heading", name="What causes what").wait_for(timeout=600_000)
    high = "document.querySelector('iframe').clientHeight"
    assert page.evaluate(high) > 1500, "the report is shown whole, without a scroll of its own"
    report.locator("svg.graph .node").first.click()
    assert report.locator("#panel").is_visible()
    report.locator("#threshold").fill("100")
    assert report.locator("#threshold-value").inner_text() == "100 %"
    report.locator("nav a").last.click()  # stays inside its frame
    assert report.get_by_role("heading", name="Where this came from").is_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download everything").click()
    download.value.save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert "latentdo-results/report.html" in archive.namelist()
    page.screenshot(path=tmp_path / "app.png")


def test_a_bad_file_and_then_a_good_one(page):
    field = page.locator("input[type=file]").first
    field.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n3,4,5\n"})
    message = page.get_by_test_id("stAlert")
    message.wait_for()
    assert re.search("bad.csv, line 3: 3 fields", message.inner_text())
    assert page.get_by_role("button", name="Run", exact=True).is_disabled()
    data = simulate(n_variables=3, n_samples=300, random_state=1).X.to_csv(index=False).encode()
    field.set_input_files({"name": "good.csv", "mimeType": "text/csv", "buffer": data})
    message.wait_for(state="detached")
    page.get_by_text("300 rows, 3 variables").wait_for()
    assert page.get_by_role("button", name="Run", exact=True).is_enabled()


def test_stop_and_give_up(page):
    page.get_by_text("Example: cytometry").click()
    page.get_by_text("7466 rows, 11 variables").wait_for()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Give up").click()
    page.get_by_text("The fit was given up").wait_for()
    assert page.get_by_role("button", name="Run", exact=True).is_enabled()
