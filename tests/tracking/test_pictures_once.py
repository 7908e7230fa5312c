"""Plots of a comparison are drawn once; a run's report is written by another process."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sample_runs import summary, write_folder

from memeval.config.filing import Filing
from memeval.report.compared import ComparisonData
from memeval.report.plots.differences import DifferenceRow, forest_panel, forest_plot
from memeval.report.plots.sweep import sweep_plots
from memeval.results import RUN_FILE
from memeval.runs.invocation import DoneCell
from memeval.runs.publish import conclusion
from memeval.runs.publish.conclusion import Conclusion
from memeval.runs.publish.pictures import SweepPicture
from memeval.runs.publish.publisher import Publisher, PublishError
from memeval.tracking.store import TrackingStore, locate

DIFFERENCES = forest_plot([DifferenceRow("rag", 4.1, 0.9, 7.3, True)], "a title", "points")
COMPARISON = ComparisonData(
    metric="accuracy",
    unit="points",
    sentences=(),
    baseline=None,
    differences=(),
    forest=forest_panel([], "points"),
    letters={},
    remarks=(),
)
CELLS = [summary(system) for system in ("bm25", "rag")]


class Drawer(Publisher):
    """Remembers the names of submitted functions."""

    def __init__(self, store: TrackingStore | None = None) -> None:
        super().__init__(store, plots=False)
        self.asked: list[str] = []

    def submit(self, function: Any, folder: Path, *arguments: object) -> Future[Any]:
        self.asked.append(function.__name__)
        return super().submit(function, folder, *arguments)


def draw(picture: SweepPicture, folder: Path) -> bool:
    """Draws a picture unless there is a copy of it; returns whether it was drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    if picture.copy(folder):
        return False

    picture.draw(folder, picture.mark)
    return True


def pictures() -> list[SweepPicture]:
    plots = {**sweep_plots(CELLS), "differences": DIFFERENCES}
    return [SweepPicture(name, plot) for name, plot in plots.items()]


def shown(valid: bool) -> SweepPicture:
    plots = sweep_plots([CELLS[0], replace(CELLS[1], valid=valid)])
    return SweepPicture("comparison", plots["comparison"])


@pytest.mark.slow
def test_equal_results_are_drawn_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    # A picture drawn while the last runs were published is found again at the end of the sweep.
    count = len(pictures())
    assert [draw(picture, first) for picture in pictures() * 2] == [True] * count + [False] * count
    assert not any(draw(picture, second) for picture in pictures())
    files = {path.name: path.read_bytes() for path in first.iterdir()}
    assert files == {path.name: path.read_bytes() for path in second.iterdir()}
    assert {"comparison.png", "comparison.svg", "differences.png"} <= set(files)


@pytest.mark.slow
def test_other_results_are_drawn_again(tmp_path: Path) -> None:
    assert draw(shown(valid=True), tmp_path / "a")
    assert draw(shown(valid=False), tmp_path / "a")
    (tmp_path / "a" / "comparison.svg").unlink()
    assert draw(shown(valid=True), tmp_path / "a")


def test_page_of_changed_runs_is_not_copied(tmp_path: Path) -> None:
    run = write_folder(tmp_path / "runs", CELLS[0])
    page = SweepPicture("comparison", COMPARISON, [run])
    assert draw(page, tmp_path) and page.copy(tmp_path)
    replace(CELLS[0], valid=False).write(run)
    assert not structs.replace(page, runs=[run]).copy(tmp_path)


def test_page_of_an_unreadable_run_is_neither_copied_nor_drawn(tmp_path: Path) -> None:
    (tmp_path / "run" / RUN_FILE).mkdir(parents=True)
    page = SweepPicture("comparison", COMPARISON, [tmp_path / "run"])
    assert not page.copy(tmp_path)
    with pytest.raises(OSError, match=RUN_FILE):
        page.draw(tmp_path, "mark")


@pytest.mark.slow
def test_repeated_comparison_starts_no_drawing_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Drawer] = []

    def start() -> list[Drawer]:
        started.append(Drawer())
        return started[-1:]

    folder = tmp_path / "a"
    folder.mkdir()
    monkeypatch.setattr(conclusion, "start_drawers", start)
    monkeypatch.setattr(Conclusion, "_pictures", lambda _, *, plots: pictures())
    cell = DoneCell(job=0, folder="", reused=True, plots=True, url=None)
    for _ in range(2):
        assert Conclusion(folder, [cell], CELLS, []).draw() == []

    assert [drawer.asked for drawer in started] == [["draw"] * len(pictures())]


def test_reason_for_a_failed_drawing_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conclusion, "start_drawers", lambda: [Drawer()])
    monkeypatch.setattr(Conclusion, "_pictures", lambda _, *, plots: [shown(valid=True)])
    cell = DoneCell(job=0, folder="", reused=True, plots=True, url=None)
    (tmp_path / "comparison.png").mkdir()
    (problem,) = Conclusion(tmp_path, [cell], CELLS, []).draw()
    assert problem == f"not drawn: {tmp_path}/comparison.png can't be written: Is a directory"
    assert not shown(valid=True).copy(tmp_path)


@pytest.mark.slow
def test_report_is_written_by_the_given_publisher(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "runs", summary())
    drawer, tracker = Drawer(), Drawer(locate(tmp_path))
    (tmp_path / "mlruns").write_text("")
    published = tracker.publish(folder, Filing(), plots=False, drawer=drawer)
    with pytest.raises(PublishError, match="a file is where a folder should be"):
        published.result()

    tracker.close()
    assert (drawer.asked, tracker.asked) == (["report_run"], [])
    # With plots only if the run's own settings ask for them, not those of the publisher.
    assert (folder / "report.md").exists() and not (folder / "plots").exists()
