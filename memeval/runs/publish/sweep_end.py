"""Tells MLflow of the end of a sweep: names, settings and sentences of its comparison."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.config.paths import project_root
from memeval.config.schema import TrackingConfig
from memeval.report.differences import differing, labels, system_of
from memeval.results import RunSummary
from memeval.results.calibration import read_shown_summary
from memeval.runs.publish.publishers import start_publisher, tracking_publishers
from memeval.runs.session import DoneCell
from memeval.tracking.home import read_tracked
from memeval.tracking.known import shows_comparison
from memeval.tracking.store import LOCAL_PAGE, locate
from memeval.tracking.sweep_end import SweepEnd, short_names

if TYPE_CHECKING:
    from memeval.comparison import Comparison

MOST_SENTENCES = 12
"""Differences that are put in words; the files of a comparison have all."""


@dataclass(frozen=True)
class Compared:
    """The cells of one data set, and how they differ."""

    folders: Sequence[Path]
    suffix: str
    """Of the names of its files, where the sweep has several data sets."""
    comparison: Comparison | None
    """None where nothing can be compared, such as a single cell."""


@dataclass(frozen=True)
class Logged:
    """Where the end of a sweep is in MLflow."""

    urls: Sequence[str] = ()
    """Of its runs at servers."""
    errors: Sequence[str] = ()
    """Why it was not logged to a store, one line each."""


def log_sweep_end(cells: Sequence[DoneCell], compared: Sequence[Compared], folder: Path) -> Logged:
    """Logs the end of a sweep to every store that has its cells."""
    end = end_of(cells, compared)
    if end is None:
        return Logged()

    publishers = tracking_publishers()
    if not publishers:
        # All cells were logged before, or by workers in processes of their own.
        tracking = TrackingConfig(name="mlflow")
        store = locate(project_root(), os.environ.get("MLFLOW_TRACKING_URI") or None)
        # Cells of a store that `tracking.uri` names are not in this one, which must not be made.
        is_here = any(store.name in read_tracked(cell) for cell in end.names)
        if not is_here or shows_comparison(end.names, end.digest, store):
            return Logged()

        publishers = [start_publisher(tracking, plots=False)]

    results = [publisher.log_comparison(folder, end) for publisher in publishers]
    urls = [url for result in results for url in result.urls]
    return Logged(
        # Nothing answers at the address of a local store until `memeval ui` runs.
        urls=[url for url in urls if not url.startswith(LOCAL_PAGE)],
        errors=[result.error for result in results if result.error is not None],
    )


def end_of(cells: Sequence[DoneCell], compared: Sequence[Compared]) -> SweepEnd | None:
    """The end of a sweep as MLflow shows it; None if no two of its cells are tracked."""
    tracked = {Path(cell.folder): cell.sweep_id for cell in cells if cell.sweep_id}
    if len(tracked) < 2:
        return None

    names: dict[Path, str] = {}
    settings: list[str] = []
    for group in compared:
        summaries = [read_shown_summary(cell) for cell in group.folders]
        names |= dict(zip(group.folders, full_labels(summaries), strict=True))
        settings += differing(summaries)

    shown = [cell for cell in names if cell in tracked]
    return SweepEnd(
        sweep_id=next(filter(None, tracked.values())),
        names=dict(zip(shown, short_names([names[cell] for cell in shown]), strict=True)),
        settings=list(dict.fromkeys(settings)),
        sentences=list(sentences_of(compared)),
    )


def full_labels(summaries: Sequence[RunSummary]) -> list[str]:
    """The label of each cell with its system first, whether systems differ or not."""
    names = []
    for summary, label in zip(summaries, labels(summaries), strict=True):
        system = system_of(summary)
        others = [word for word in label.split() if word != system]
        names.append(" ".join([system, *others]))

    return names


def sentences_of(compared: Sequence[Compared]) -> Iterator[str]:
    """What the comparisons say in words, each after the name of its data set if there are several.

    Of many differences the first ones: the files have all.
    """
    from memeval.comparison.sentences import lead, sentences

    comparisons = [group.comparison for group in compared if group.comparison]
    for comparison in comparisons:
        before = f"{comparison.runs[0].dataset}: " if len(comparisons) > 1 else ""
        # The lead of one difference is its sentence.
        lines = [*lead(comparison), *sentences(comparison, MOST_SENTENCES)]
        for line in dict.fromkeys(lines):
            yield f"{before}{line}"
