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
from memeval.report.plots.differences import DifferenceRow, forest_plot
from memeval.report.plots.sweep import sweep_plots
from memeval.runs.invocation import DoneCell
from memeval.runs.publish import conclusion
from memeval.runs.publish.conclusion import Conclusion
from memeval.runs.publish.pictures import SweepPicture
from memeval.runs.publish.publisher import Publisher

DIFFERENCES = forest_plot([DifferenceRow("rag", 4.1, 0.9, 7.3, True)], "a title", "points")
CELLS = [summary(system) for system in ("bm25", "rag")]


class Drawer(Publisher):
    """Remembers the names of submitted functions."""

    def __init__(self, root: Path, **needs: bool) -> None:
        super().__init__(root, **{"track": False, "plots": False, **needs})
        self.asked: list[str] = []

    def submit(self, function: Any, folder: Path, *arguments: object) -> Future[Any]:
        self.asked.append(function.__name__)
        return super().submit(function, folder, *arguments)


def draw(picture: SweepPicture, drawer: Drawer) -> str | None:
    """Draws a picture unless there is a copy of it; returns the reason if it could not be drawn."""
    return None if picture.copy() else picture.make(drawer)


def pictures(folder: Path) -> list[SweepPicture]:
    folder.mkdir(parents=True, exist_ok=True)
    plots = {**sweep_plots(CELLS), "differences": DIFFERENCES}
    return [SweepPicture(folder, name, plot) for name, plot in plots.items()]


@pytest.mark.slow
def test_equal_results_are_drawn_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    drawer = Drawer(tmp_path)
    for folder in (first, second):
        # A picture drawn while the last runs were published is found again at the end of the sweep.
        made = [draw(picture, drawer) for picture in pictures(folder) * 2]
        assert set(made) == {None}

    assert drawer.asked == ["draw_plot"] * len(pictures(first))
    files = {path.name: path.read_bytes() for path in first.iterdir()}
    assert files == {path.name: path.read_bytes() for path in second.iterdir()}
    assert {"comparison.png", "comparison.svg", "differences.png"} <= set(files)


@pytest.mark.slow
def test_other_results_are_drawn_again(tmp_path: Path) -> None:
    drawer = Drawer(tmp_path)
    picture = pictures(tmp_path / "a")[0]
    draw(picture, drawer)
    other = sweep_plots([CELLS[0], replace(CELLS[1], valid=False)])["comparison"]
    draw(structs.replace(picture, content=other), drawer)
    (tmp_path / "a" / "comparison.svg").unlink()
    draw(picture, drawer)
    assert drawer.asked == ["draw_plot"] * 3


def test_page_of_changed_runs_is_not_copied(tmp_path: Path) -> None:
    run = write_folder(tmp_path / "runs", CELLS[0])
    page = SweepPicture(tmp_path, "comparison", None, [run])
    assert page.make(Drawer(tmp_path)) is None and page.copy()
    replace(CELLS[0], valid=False).write(run)
    assert not structs.replace(page, runs=[run]).copy()


@pytest.mark.slow
def test_repeated_comparison_starts_no_drawing_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Drawer] = []

    def start() -> list[Drawer]:
        started.append(Drawer(tmp_path))
        return started[-1:]

    folder = tmp_path / "a"
    monkeypatch.setattr(conclusion, "start_drawers", start)
    monkeypatch.setattr(Conclusion, "_pictures", lambda _, *, plots: pictures(folder))
    cell = DoneCell(job=0, folder="", reused=True, plots=True, url=None)
    for _ in range(2):
        assert Conclusion(folder, [cell], CELLS, []).draw() == []

    assert [drawer.asked for drawer in started] == [["draw_plot"] * len(pictures(folder))]


def test_reason_for_a_failed_drawing_is_returned(tmp_path: Path) -> None:
    picture = pictures(tmp_path / "a")[0]
    (tmp_path / "a" / "comparison.png").mkdir()
    assert "comparison.png can't be written" in (picture.make(Drawer(tmp_path)) or "")
    assert not picture.copy()


@pytest.mark.slow
def test_report_is_written_by_the_given_publisher(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "runs", summary())
    drawer, tracker = Drawer(tmp_path), Drawer(tmp_path, track=True)
    (tmp_path / "mlruns").write_text("")
    result = tracker.publish(folder, Filing(), drawer).result()
    tracker.close()
    assert (drawer.asked, tracker.asked) == (["report_run"], [])
    assert "a file is where a folder should be" in (result.error or "")
    # With plots only if the run's own settings ask for them, not those of the publisher.
    assert (folder / "report.md").exists() and not (folder / "plots").exists()
