"""Plots and pages of a comparison are made once: equal results get copies of the same files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.report.stamp import report_code
from memeval.results import RUN_FILE
from memeval.results.calibration import CALIBRATION_FILE
from memeval.runs.publish import work
from memeval.runs.publish.publisher import Publisher, start_drawers

if TYPE_CHECKING:
    from memeval.report.compared import ComparisonData
    from memeval.report.plots.model import Plot

STAMP = ".drawn-{digest}.json"
"""Beside the files: their names, under a digest of what they were made from."""


@dataclass(frozen=True)
class Drawing:
    """A part of a comparison's plots and pages."""

    folder: Path
    """The sweep's."""
    function: Callable[..., work.PublishResult]
    runs: Sequence[Path]
    content: ComparisonData | Mapping[str, Plot] | None
    """Content besides the runs."""
    suffix: str
    """Of the names of the files, if the sweep has several data sets."""

    def copy(self) -> bool:
        """Copies the files that an earlier sweep has of this; returns whether they are there."""
        return copy_files(self._stamp())

    def draw(self, drawer: Publisher | None = None) -> str | None:
        """Leaves the files in the folder, unless they are there; returns why it could not."""
        if self.copy():
            return None

        drawer = drawer or start_drawers()[0]
        result = drawer.ask(self.function, self.folder, self.runs, self.content, self.suffix)
        if result.files:
            self._stamp().write_text(json.dumps(result.files), encoding="utf-8")

        return result.error

    def _stamp(self) -> Path:
        return self.folder / STAMP.format(digest=self._digest())

    def _digest(self) -> str:
        """Of the results, the code that draws them, and the names of the files."""
        what = [report_code(), self.function.__name__, self.suffix, repr(self.content)]
        digest = hashlib.sha256("\0".join(what).encode())
        for run in self.runs:
            for name in (RUN_FILE, CALIBRATION_FILE):
                path = run / name
                digest.update(path.read_bytes() if path.exists() else b"")

        return digest.hexdigest()[:16]


def copy_files(stamp: Path) -> bool:
    """Copies the files of an earlier sweep with the same stamp; returns whether it has any."""
    try:
        for known in stamp.parent.parent.glob(f"*/{stamp.name}"):
            names = [_plain(name) for name in json.loads(known.read_bytes())]
            if not all(known.with_name(name).is_file() for name in names):
                continue

            if known != stamp:
                for name in [*names, known.name]:
                    shutil.copyfile(known.with_name(name), stamp.with_name(name))

            return True
    except (OSError, ValueError, TypeError):
        pass  # what can't be copied is drawn again

    return False


def _plain(name: str) -> str:
    # The stamp may have been edited: its names must not lead out of their folder.
    if Path(name).name != name:
        raise ValueError(f"not the name of a file: {name}")

    return name
