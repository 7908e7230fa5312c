"""Makes docs/images/first_page.png, the top of the page of README's first command, and board.png,
that of a board of systems that ship, from runs.
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
    """The page of the comparison."""
    import memeval

    memeval.sweep(system="rag,bm25,mem0", tracking="none", plots=False)
    (page,) = home.glob("outputs/sweeps/*/comparison.html")
    return page


def make_board(home: Path) -> Path:
    """The first page of the board."""
    import memeval
    from memeval.packages import pack
    from memeval.packages.board.collect import collect
    from memeval.packages.board.write import write_board

    folder = home / "packages"
    folder.mkdir()
    for names in (CONTROLS, *((system,) for system in SYSTEMS)):
        runs = [
            memeval.run(system=name, tracking="none", plots=False, progress=False) for name in names
        ]
        pack(runs, folder / f"{names[0]}.memeval", who="memeval", licence="CC0 1.0")

    write_board(collect(folder), home / "site")
    return home / "site" / "index.html"


def photograph(page: Path, height: int) -> bytes:
    """What a browser shows of the page without scrolling, as PNG."""
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
