"""The documentation site in a real browser: accessibility, widths, and the first search result.

It builds the site, so it needs the environment that `make docs` creates.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
CHROMIUM = "/usr/bin/chromium"
AXE = files("axe_playwright_python") / "axe.min.js"
WIDTHS = (380, 768, 1280)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no Chromium at {CHROMIUM}"),
    pytest.mark.skipif(not MKDOCS.exists(), reason="make docs was not run here"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [str(MKDOCS), "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def open_page(chromium: Browser, address: str, width: int, scheme: Any = "light") -> Page:
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(60_000)
    page.goto(address)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "guide", "gate", "settings_reference"])
def test_axe_finds_no_serious_violation(
    chromium: Browser, site: str, name: str, scheme: str
) -> None:
    page = open_page(chromium, f"{site}/{name}.html", 1280, scheme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then((result) => result.violations)")
    page.close()
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in serious] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_home_page_fits_and_shows_its_picture(chromium: Browser, site: str, width: int) -> None:
    page = open_page(chromium, f"{site}/index.html", width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture = page.locator("article img")
    assert picture.evaluate("image => image.naturalWidth") == 1280
    assert picture.bounding_box()["width"] <= width  # type: ignore[index]
    assert page.locator("article .highlight").count() == 3
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_search_finds_a_command_by_its_name(chromium: Browser, site: str, width: int) -> None:
    page = open_page(chromium, f"{site}/index.html?q=judge+calibrate", width)
    first = page.locator(".md-search-result__item").first
    first.wait_for(state="attached")
    assert "commands_reference.html" in (first.locator("a").first.get_attribute("href") or "")
    section = first.locator("a").nth(1)
    assert (section.locator("h2").text_content() or "").strip() == "judge calibrate"
    page.close()
