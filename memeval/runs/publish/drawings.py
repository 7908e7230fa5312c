"""Plots of a comparison are drawn once: the same cells, asked for again, get the same pictures."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from memeval.report.stamp import report_code
from memeval.results import RUN_FILE
from memeval.runs.publish.publisher import Publisher

STAMP = ".drawn-{digest}.json"
"""Beside the pictures: their names, under a digest of what they were drawn from."""


Differences = Mapping[str, Any] | None
"""How the cells differ, as JSON; None where they can't be compared."""


def draw_cells(
    publishers: tuple[Publisher, Publisher],
    folders: Sequence[Path],
    plot: Path,
    differences: Differences,
) -> set[str]:
    """Draws the run folders' cells into one plot, and beside it what else there is to see: each of
    the publishers a part. Returns why something was not drawn.
    """
    # Which pictures there are depends on the cells: what is new afterwards belongs to them.
    before = _pictures(plot.parent)
    of_cells, of_differences = publishers
    with ThreadPoolExecutor(2) as threads:
        drawn = [threads.submit(of_cells.draw_cells, folders, plot)]
        if differences:
            drawn.append(threads.submit(of_differences.draw_differences, differences, plot))

    errors = {error for part in drawn if (error := part.result().error) is not None}
    pictures = sorted(_pictures(plot.parent) - before)
    if pictures and not errors:
        with suppress(OSError):
            stamp = plot.with_name(STAMP.format(digest=_digest(folders, plot, differences)))
            stamp.write_text(json.dumps(pictures), encoding="utf-8")

    return errors


def copy_drawn(folders: Sequence[Path], plot: Path, differences: Differences) -> bool:
    """Copies the pictures of an earlier sweep of the very same results; whether there are any."""
    try:
        name = STAMP.format(digest=_digest(folders, plot, differences))
        for stamp in plot.parent.parent.glob(f"*/{name}"):
            pictures = [stamp.with_name(_plain(name)) for name in json.loads(stamp.read_bytes())]
            if all(picture.is_file() for picture in pictures):
                for picture in [*pictures, stamp]:
                    shutil.copyfile(picture, plot.with_name(picture.name))

                return True
    except (OSError, ValueError, TypeError):
        pass  # what can't be copied is drawn again

    return False


def _pictures(folder: Path) -> set[str]:
    return {path.name for pattern in ("*.png", "*.svg") for path in folder.glob(pattern)}


def _plain(name: str) -> str:
    # The stamp may have been edited: its names must not lead out of their folder.
    if Path(name).name != name:
        raise ValueError(f"not the name of a file: {name}")

    return name


def _digest(folders: Sequence[Path], plot: Path, differences: Differences) -> str:
    """Of the results, the code that draws them, and the plot's name."""
    digest = hashlib.sha256(f"{report_code()}\0{plot.name}\0".encode())
    digest.update(json.dumps(differences, sort_keys=True).encode())
    for folder in folders:
        digest.update((folder / RUN_FILE).read_bytes())

    return digest.hexdigest()[:16]
