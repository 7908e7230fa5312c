"""Makes docs/images/first_page.png, the top of the page that README's first command writes, and
board.png, the top of a board of built-in systems. The systems are run for both.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH = 1280
COLOURS = 64
SYSTEMS = ("rag", "mem0", "light", "random_k")
CONTROLS = ("bm25", "files", "full_history", "no_memory", "oracle")


def make_page(home: Path) -> Path:
    """Runs a sweep; returns the page of its comparison."""
    import memeval

    memeval.sweep(system="rag,bm25,mem0", tracking="none", plots=False)
    (page,) = home.glob("outputs/sweeps/*/comparison.html")
    return page


def make_board(home: Path) -> Path:
    """Runs and packs systems; returns the first page of their board."""
    import memeval
    from memeval.packages.board.collect import collect
    from memeval.packages.board.write import write_board
    from memeval.packages.write import pack

    folder = home / "packages"
    folder.mkdir()

    def run_and_pack(*systems: str) -> None:
        runs = []
        for system in systems:
            run = memeval.run(system=system, tracking="none", plots=False, progress=False)
            runs.append(run)

        pack(runs, folder / f"{systems[0]}.memeval", who="memeval", licence="CC0 1.0")

    run_and_pack(*CONTROLS)
    for system in SYSTEMS:
        run_and_pack(system)

    write_board(collect(folder), home / "site")
    return home / "site" / "index.html"


def photograph(page: Path, height: int) -> bytes:
    """The part of the page that a browser shows without scrolling, as PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM"))
        window = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
        window.goto(page.as_uri())
        window.locator("h1").first.wait_for()
        picture: bytes = window.screenshot()
        browser.close()

    return picture


def main() -> None:
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["MEMEVAL_HOME"] = folder
        os.environ.pop("MEMEVAL_INVOCATION", None)
        pages = {"first_page.png": (make_page(home), 720), "board.png": (make_board(home), 1390)}
        for name, (page, height) in pages.items():
            picture = Image.open(io.BytesIO(photograph(page, height)))
            picture.convert("RGB").quantize(COLOURS).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
