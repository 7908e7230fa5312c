"""The plots are drawn in a sensible size, and labels hide nothing."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import matplotlib
import pytest
from matplotlib.text import Text
from sample_runs import CONTEXT, summary, write_folder

from memeval.report.markdown import write_report
from memeval.report.plots.draw import _further_fonts, draw, draw_figure
from memeval.report.plots.history import history_panel, history_plot
from memeval.report.plots.labelling import overlap
from memeval.report.plots.model import INK, Axis, Mark, MarkStyle, Panel, Plot
from memeval.report.plots.prices import sweep_plot
from memeval.report.plots.run import category_plot
from memeval.report.plots.sweep import ranked_plot
from memeval.results import RunSummary

LONGMEMEVAL = [
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
]


def size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def ticks_shown(plot: Plot) -> list[bool]:
    return [axes.yaxis.get_tick_params()["labelleft"] for axes in draw_figure(plot).axes]


def test_panels_have_their_own_ticks_unless_they_share_an_axis() -> None:
    versions = [summary("bm25"), summary("rag")]
    assert ticks_shown(history_plot(versions, ["v1", "v2"])) == [True] * 4
    cheap = replace(summary(), metrics={"cost_usd_uncached/total": 3.1e-5})
    assert "0.00002" in history_panel([cheap], ["v1"], "cost").up.ticks.values()
    free = replace(summary(), metrics={"cost_usd_uncached/total": 0.0})
    assert "1" in history_panel([free], ["v1"], "cost").up.ticks.values()
    first, *others = ticks_shown(ranked_plot(versions))
    assert first and others and not any(others)


def test_characters_that_the_font_lacks_are_drawn_without_a_warning(tmp_path: Path) -> None:
    japanese = replace(summary(), name="日本", params={"label": "日本"})
    draw(ranked_plot([japanese]), tmp_path / "a.png")
    assert (tmp_path / "a.svg").exists()


def test_characters_that_the_font_lacks_are_drawn_with_an_installed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A font that comes with matplotlib replaces an East Asian one.
    monkeypatch.setattr("memeval.report.plots.draw.FURTHER_FONTS", ("STIXNonUni",))
    _further_fonts.cache_clear()
    # A notebook's own plots keep their settings.
    before = dict(matplotlib.rcParams)
    figure = draw_figure(ranked_plot([summary()]))
    _further_fonts.cache_clear()
    assert dict(matplotlib.rcParams) == before

    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        assert text.get_fontfamily() == ["sans-serif", "STIXNonUnicode"]
        assert not text.get_parse_math()


def test_threads_draw_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """matplotlib's settings are those of all threads: two at once would leave some behind."""
    meeting = Barrier(2, timeout=0.5)
    monkeypatch.setattr("memeval.report.plots.draw._write_files", lambda *_: meeting.wait())
    plot, file = ranked_plot([summary()]), tmp_path / "plot.png"
    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(draw, plot, file) for _ in range(2)]

    assert all(isinstance(end.exception(), BrokenBarrierError) for end in ends)


def test_names_of_many_versions_do_not_cover_each_other() -> None:
    names = [f"3f2a1b9 edited 11-{day} 14:05:09" for day in range(10, 19)]
    plot = history_plot([summary(valid=False)] * len(names), names)
    assert plot.title.endswith("; hollow: INVALID")
    figure = draw_figure(plot)
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.slow
def test_the_plots_of_a_run_repeat_byte_for_byte(tmp_path: Path) -> None:
    folders = [write_folder(tmp_path, summary(system)) for system in CONTEXT]
    write_report(folders[1])
    first = {path.name: path.read_bytes() for path in (folders[1] / "plots").iterdir()}
    names = {"accuracy_by_category"}
    assert set(first) == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    write_report(folders[1])
    assert {path.name: path.read_bytes() for path in (folders[1] / "plots").iterdir()} == first


def test_long_category_names_and_missing_figures_are_drawn(tmp_path: Path) -> None:
    rows = [
        replace(summary().categories[0], name=name, n=n)
        for name, n in zip(LONGMEMEVAL, (70, 56, 30, 133, 133, 78), strict=True)
    ]
    rows[2] = replace(rows[2], ci95_low=None, ci95_high=None)
    rows[3] = replace(rows[3], accuracy=None, ci95_low=None, ci95_high=None)
    path = draw(category_plot(summary(categories=tuple(rows))), tmp_path / "plot.png")
    width, height = size(path)
    assert width > 1000 and 500 < height < 700


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [[], [summary()], [summary(system) for system in CONTEXT]],
    ids=["none", "one", "seven"],
)
def test_sweep_plot_has_a_fixed_size_for_any_number_of_cells(
    tmp_path: Path, cells: list[RunSummary]
) -> None:
    draw(sweep_plot(cells), tmp_path / "sweep.png")
    # With several systems, there is a legend next to the plot.
    width = 1305 if len({cell.params["system"] for cell in cells}) > 1 else 1080
    assert size(tmp_path / "sweep.png") == (width, 720)


def test_cells_without_figures_or_interval_are_drawn(tmp_path: Path) -> None:
    bare = summary("rag", metrics={"accuracy": 0.3, "context_tokens": 100.0})
    draw(sweep_plot([bare, summary("mem0", metrics={})]), tmp_path / "sweep.png")
    svg = (tmp_path / "sweep.svg").read_text(encoding="utf-8")
    assert "<!-- accuracy against context, locomo -->" in svg and "mem0" not in svg


def test_names_cover_neither_each_other_nor_the_points() -> None:
    points = [(50 + 0.1 * index, 50 + 0.5 * index) for index in range(12)]
    marks = [
        Mark(x, y, MarkStyle(INK, "o"), y - 3, y + 3, name=f"system {index} top_k={index}")
        for index, (x, y) in enumerate(points)
    ]
    axis = Axis(0, 100, edge=0)
    panel = Panel(axis, axis, marks=marks, has_names=True)
    figure = draw_figure(Plot("", [[panel]], width=7, height=5))
    (axes,) = figure.axes
    extents = [text.get_window_extent().extents for text in axes.texts if text.get_text()]
    assert len(extents) >= 8, "most find a place"
    boxes = [tuple(float(edge) for edge in extent) for extent in extents]
    assert not any(
        overlap(one, other) for index, one in enumerate(boxes) for other in boxes[index + 1 :]
    )  # type: ignore[arg-type]
    places = [axes.transData.transform((x, y)) for x, y in points]
    assert not any(box[0] < x < box[2] and box[1] < y < box[3] for box in boxes for x, y in places)


def test_importing_the_report_loads_nothing_heavy() -> None:
    code = (
        "import sys, memeval.report; heavy = ('rich', 'matplotlib', 'pandas', 'numpy', 'mlflow'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
