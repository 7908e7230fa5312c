"""The publisher's share of a sweep: pictures that are drawn once, runs that are noted once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sample_runs import summary, write_folder

from memeval.config.filing import Filing
from memeval.report.plots.differences import DifferenceRow, forest_plot
from memeval.runs.publish import work
from memeval.runs.publish.drawing import Drawing
from memeval.runs.publish.publisher import Publisher
from memeval.runs.publish.work import PublishResult

ROW = DifferenceRow("rag", 4.1, 0.9, 7.3, True)
DIFFERENCES = {"differences": forest_plot([ROW], "a title", "points")}


class Drawer(Publisher):
    """Does what it is asked for in this process, and counts it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, track=False)
        self.asked: list[str] = []

    def ask(self, function: Any, folder: Path, *arguments: object) -> PublishResult:
        self.asked.append(function.__name__)
        return work.attempt(function, folder, *arguments)


def test_equal_results_are_drawn_once(tmp_path: Path) -> None:
    runs = [write_folder(tmp_path / "runs", summary(system)) for system in ("bm25", "rag")]
    first, second = tmp_path / "sweeps" / "a", tmp_path / "sweeps" / "b"
    drawer = Drawer(tmp_path)
    for folder in (first, second):
        folder.mkdir(parents=True)
        drawings = [
            Drawing(folder, work.draw_runs, runs, None, ""),
            Drawing(folder, work.draw_plots, [], DIFFERENCES, ""),
        ]
        # What was drawn while the last runs were published is there at the end of the sweep.
        assert [drawing.draw(drawer) for drawing in drawings * 2] == [None] * 4

    assert drawer.asked == ["draw_runs", "draw_plots"]
    pictures = {path.name: path.read_bytes() for path in first.iterdir()}
    assert pictures == {path.name: path.read_bytes() for path in second.iterdir()}
    assert {"comparison.png", "comparison.svg", "differences.png"} <= set(pictures)


def test_other_results_are_drawn_again(tmp_path: Path) -> None:
    runs = [write_folder(tmp_path / "runs", summary(system)) for system in ("bm25", "rag")]
    folder = tmp_path / "sweeps" / "a"
    folder.mkdir(parents=True)
    drawer = Drawer(tmp_path)
    drawing = Drawing(folder, work.draw_runs, runs, None, "")
    drawing.draw(drawer)
    replace(summary("rag"), valid=False).write(runs[1])
    drawing.draw(drawer)
    (folder / "comparison.svg").unlink()
    drawing.draw(drawer)
    assert drawer.asked == ["draw_runs"] * 3


def test_a_stamp_leads_out_of_no_folder(tmp_path: Path) -> None:
    folder, other = tmp_path / "sweeps" / "a", tmp_path / "sweeps" / "b"
    drawer = Drawer(tmp_path)
    for place in (folder, other):
        place.mkdir(parents=True)
    Drawing(folder, work.draw_plots, [], DIFFERENCES, "").draw(drawer)
    (stamp,) = folder.glob(".drawn-*")
    (tmp_path / "secret.png").write_text("")
    stamp.write_text('["../../secret.png"]')
    Drawing(other, work.draw_plots, [], DIFFERENCES, "").draw(drawer)
    assert len(drawer.asked) == 2


def test_another_publisher_writes_the_report(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "runs", summary())
    drawer, tracker = Drawer(tmp_path), Drawer(tmp_path)
    tracker.track, tracker.plots = True, False
    (tmp_path / "mlruns").write_text("")
    result = tracker.publish(folder, Filing(), drawer)
    assert (drawer.asked, tracker.asked) == (["report_run"], ["track_run"])
    assert "a file is in the place of a folder" in (result.error or "")
    # As the run's own settings ask for it, not those of the publisher that draws.
    assert (folder / "report.md").exists() and not (folder / "plots").exists()
