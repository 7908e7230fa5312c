"""Plots and pages of a comparison. Equal ones are made once: later sweeps get copies."""

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from memeval.report.compared import ComparisonData
from memeval.report.plots.model import Plot
from memeval.report.stamp import report_code
from memeval.results import RUN_FILE
from memeval.results.calibration import CALIBRATION_FILE


class SweepPicture(Struct, frozen=True, dict=True):
    """A plot or a page for the folder of a sweep."""

    name: str
    """Name of its files, without an extension."""
    content: Plot | ComparisonData
    """The plot to draw, or the comparison for a page."""
    runs: Sequence[Path] = ()
    """The folders of the runs that a page shows."""

    def draw(self, folder: Path, mark: str) -> None:
        """Draws the files and their `mark`. Called in the publisher's process."""
        if isinstance(self.content, Plot):
            from memeval.report.plots.draw import draw

            draw(self.content, folder / f"{self.name}.png")
        else:
            from memeval.report.page import write_page

            write_page(self.runs, folder / f"{self.name}.html", self.content)

        (folder / mark).touch()

    def copy(self, folder: Path) -> bool:
        """Copies the files of an earlier sweep if needed; returns whether the folder has them."""
        endings = (".png", ".svg") if isinstance(self.content, Plot) else (".html",)
        # Pictures that can't be copied are drawn again.
        with suppress(OSError):
            names = [self.mark, *(self.name + ending for ending in endings)]
            for earlier in (folder, *folder.parent.iterdir()):
                if not all((earlier / name).is_file() for name in names):
                    continue

                if earlier != folder:
                    for name in reversed(names):
                        shutil.copyfile(earlier / name, folder / name)

                return True

        return False

    @cached_property
    def mark(self) -> str:
        """Name of a file next to those of the picture: a digest of its inputs."""
        digest = hashlib.sha256("\0".join([report_code(), repr(self.content)]).encode())
        for run in self.runs:
            for file in (run / RUN_FILE, run / CALIBRATION_FILE):
                # A file that can't be read is named when the page is drawn.
                with suppress(OSError):
                    digest.update(file.read_bytes())

        return f".{self.name}-{digest.hexdigest()[:16]}"
