"""Plots and pages of a comparison. Equal ones are made once: later sweeps get copies."""

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from memeval.report.stamp import report_code
from memeval.results import RUN_FILE
from memeval.results.calibration import CALIBRATION_FILE
from memeval.runs.publish import work
from memeval.runs.publish.publisher import Publisher


class SweepPicture(Struct, frozen=True, dict=True):
    """A plot or a page in the folder of a sweep."""

    folder: Path
    name: str
    """Name of its files, without an extension."""
    content: object
    """The plot to draw, or the comparison for a page."""
    runs: Sequence[Path] = ()
    """The folders of the runs that a page shows; empty for a plot."""

    @property
    def endings(self) -> Sequence[str]:
        return (".html",) if self.runs else (".png", ".svg")

    def make(self, drawer: Publisher) -> str | None:
        """Draws the files into the folder; returns the reason for a failure, or None."""
        target = self.folder, self.name
        try:
            if self.runs:
                drawing = drawer.submit(work.draw_page, *target, self.runs, self.content)
            else:
                drawing = drawer.submit(work.draw_plot, *target, self.content)

            drawing.result()
            self._mark.touch()
        except work.PublishError as error:
            return str(error)
        except OSError as error:
            return f"{self.folder} can't be written: {error.strerror or error}"

        return None

    def copy(self) -> bool:
        """Copies the files of an earlier sweep if needed; returns whether the folder has them."""
        mark = self._mark
        # Pictures that can't be copied are drawn again.
        with suppress(OSError):
            for candidate in (mark, *self.folder.parent.glob(f"*/{mark.name}")):
                files = [candidate.with_name(self.name + ending) for ending in self.endings]
                if not all(map(Path.is_file, [candidate, *files])):
                    continue

                if candidate != mark:
                    for file in [*files, candidate]:
                        shutil.copyfile(file, self.folder / file.name)

                return True

        return False

    @cached_property
    def _mark(self) -> Path:
        """A file next to those of the picture, named by a digest of its inputs."""
        digest = hashlib.sha256("\0".join([report_code(), repr(self.content)]).encode())
        for run in self.runs:
            for file in (run / RUN_FILE, run / CALIBRATION_FILE):
                digest.update(file.read_bytes() if file.exists() else b"")

        return self.folder / f".{self.name}-{digest.hexdigest()[:16]}"
