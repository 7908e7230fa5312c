"""Plots of differences: all rows are drawn, ranked, in both formats, with the same bytes each
time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_member
from sample_runs import CONTEXT, summary

from memeval.report.plots.differences import (
    DifferenceRow,
    forest_panel,
    forest_plot,
    strip_plot,
)
from memeval.report.plots.draw import draw, draw_figure
from memeval.report.plots.model import Axis, wrap_name
from memeval.report.plots.prices import area_words, frontier_steps, sweep_plot
from memeval.report.plots.sweep import mark_row, ranked_plot, sweep_plots
from memeval.results.summary import Share


def rows(count: int) -> list[DifferenceRow]:
    return [
        DifferenceRow(
            name=f"rag k={index}",
            delta=index - 3.0,
            low=index - 5.0,
            high=index - 1.0,
            is_shown=index > 5,
            text=f"figure {index}",
            cases=(index - 4.0, index - 2.0),
        )
        for index in range(count)
    ]


def both(png: Path) -> list[bytes]:
    """A plot as PNG and as SVG."""
    return [png.read_bytes(), png.with_suffix(".svg").read_bytes()]


@pytest.mark.slow
def test_png_and_svg_repeat_byte_for_byte(tmp_path: Path) -> None:
    for describe in (forest_plot, strip_plot):
        first = both(draw(describe(rows(3), "a title", "points"), tmp_path / "a.png"))
        again = both(draw(describe(rows(3), "a title", "points"), tmp_path / "b.png"))
        assert first == again
        assert first[0].startswith(b"\x89PNG") and b"<svg" in first[1]


def test_labels_of_34_rows_do_not_overlap() -> None:
    short = rows(34)
    pairs = [replace_member(row, name=f"{'a long name ' * 5}− {row.name}") for row in short]
    for several in (short, pairs):
        figure = draw_figure(forest_plot(several, "a title", "points"))
        figure.draw_without_rendering()
        (axes,) = figure.axes
        labels = axes.get_yticklabels()
        assert len({label.get_text() for label in labels}) == 34, "no two rows look the same"
        for below, above in pairwise(label.get_window_extent() for label in labels):
            assert below.y1 <= above.y0


def test_a_line_marks_zero_also_at_an_end_of_the_axis() -> None:
    plot = forest_plot(rows(9)[6:], "a title", "points")
    zero = plot.panels[0][0].across.at(0)
    (axes,) = draw_figure(plot).axes
    assert [zero, zero] in [list(line.get_xdata()) for line in axes.get_lines()]


def test_the_highest_difference_is_on_top_with_its_figure() -> None:
    (axes,) = draw_figure(forest_plot(rows(4), "a title", "points")).axes
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "rag k=3"
    assert [text.get_text() for text in axes.texts] == [f"figure {index}" for index in range(4)]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((-620.0, 1500.0), ["−500", "0", "+500", "+1,000", "+1,500"]),
        ((-0.000101, 0.00018), ["−0.0001", "0", "+0.0001"]),
    ],
)
def test_an_axis_of_differences_has_no_exponents(
    ends: tuple[float, float], expected: list[str]
) -> None:
    row = DifferenceRow("rag", 0.0, *ends, is_shown=False)
    assert list(forest_panel([row], "").across.ticks.values()) == expected


def test_hostile_names_are_escaped_in_svg(tmp_path: Path) -> None:
    hostile = DifferenceRow("<script>$x^2$\x1b[31m", 1.0, None, None, is_shown=False)
    _, svg = both(draw(forest_plot([hostile], "<b>&", "points"), tmp_path / "a.png"))
    assert b"<script" not in svg


def test_frontier_goes_through_undominated_cells() -> None:
    points = [(10.0, 20.0), (100.0, 15.0), (100.0, 40.0), (1000.0, 40.0)]
    assert frontier_steps(points) == [(10.0, 20.0), (100.0, 40.0), (1000.0, 40.0)]
    assert frontier_steps(points[:1]) == []
    # Half of the logarithmic range at 20, half at 40.
    assert area_words(points) == "frontier, 30.0 % on average over 10 to 1,000 tokens"
    cheap = [(1e-7, 30.0), (2.5, 30.0)]
    words = "frontier, 30.0 % on average over 0.0000001 to 2.5 dollars"
    assert area_words(cheap, "dollars") == words


@pytest.mark.parametrize("points", [[], [(5.0, 1.0)], [(0.0, 1.0), (7.0, 2.0)]])
def test_without_a_range_of_budgets_there_is_no_area(points: list[tuple[float, float]]) -> None:
    assert area_words(points) == ""


def test_sweep_plot_is_drawn(tmp_path: Path) -> None:
    draw(sweep_plot([summary(system) for system in CONTEXT]), tmp_path / "sweep.png")
    svg = (tmp_path / "sweep.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {system} -->" in svg for system in CONTEXT)


@pytest.mark.slow
def test_ranked_plot_does_not_depend_on_the_order_of_cells(tmp_path: Path) -> None:
    cells = [summary(system, top_k=k) for system in CONTEXT for k in (5, 10)]
    unmeasured = replace(cells[0], metrics={"accuracy": None})
    paths = [tmp_path / name for name in ("a.png", "b.png")]
    draw(ranked_plot([*cells, unmeasured]), paths[0])
    draw(ranked_plot(cells[::-1]), paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size > 10_000


@pytest.mark.parametrize("name", ["knowledge-update", "Wissensaktualisierung", "z" * 60])
def test_names_of_categories_are_no_wider_than_their_panel(name: str) -> None:
    lines = wrap_name(name).split("\n")
    assert "".join(lines).replace("-", "") == name.replace("-", "")
    assert max(map(len, lines)) <= 15


def test_a_sweep_draws_no_empty_axes() -> None:
    retrieved = replace(summary("rag"), metrics={"context_tokens": 300.0})
    assert not sweep_plots([retrieved, retrieved])

    imported = replace(summary("rag"), metrics={"accuracy": 0.5})
    assert list(sweep_plots([imported, imported])) == ["comparison_ranked"]


def test_mark_shape_and_fill_show_controls_and_invalid_cells() -> None:
    control = summary("oracle", params={"system": "oracle"})
    invalid = summary("rag", params={"system": "rag"}, valid=False)
    marks = [*mark_row(control, 0, Share(0.5)), *mark_row(invalid, 1, Share(0.5, 0.4, 0.6))]
    assert [(mark.style.mark, mark.style.is_hollow) for mark in marks] == [
        ("s", False),
        ("o", True),
    ]
    assert [(mark.low, mark.high) for mark in marks] == [(None, None), (40.0, 60.0)]
    assert mark_row(control, 2, Share(None)) == []


def test_an_axis_keeps_its_marks_inside() -> None:
    axis = Axis(-0.34, 0.11)
    assert [round(value, 2) for value in axis.round_values()] == [-0.3, -0.2, -0.1, 0.0, 0.1]
    assert (axis.at(-0.34), axis.at(0.11)) == (4.0, 96.0)
    assert Axis(1, 200, is_logarithmic=True).round_values() == [1.0, 10.0, 100.0]
    # Twelve powers of ten would cover each other.
    wide = Axis(1e-7, 3e5, is_logarithmic=True).round_values()
    assert wide == pytest.approx([1e-7, 1e-4, 1e-1, 1e2, 1e5])
