"""Plots of curves over a number that a sweep varies, and of accuracy against dollars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_runs import summary

from memeval.report.plots.curves import curve_name, curve_panel, curve_plot, curves_of
from memeval.report.plots.draw import draw_all
from memeval.report.plots.model import styles_of
from memeval.report.plots.prices import price_axis, prices, sweep_plot
from memeval.report.plots.sweep import sweep_plots
from memeval.results import RunSummary


def cell(system: str, **settings: object) -> RunSummary:
    plain = summary(system, run_key=f"{system}-{settings}")
    return replace(plain, params={**plain.params, **settings})  # type: ignore[dict-item]


def test_each_number_varied_by_a_sweep_has_a_curve() -> None:
    cells = [cell(system, top_k=k) for system in ("rag", "bm25") for k in (10, 1, 3)]
    (curves,) = curves_of(cells)
    assert curves.setting == "top_k" and curves.values == [1, 3, 10]
    tops = {name: [run.params["top_k"] for run in line] for name, line in curves.lines.items()}
    assert tops == {"rag": [1, 3, 10], "bm25": [1, 3, 10]}


def test_two_numbers_have_a_curve_each_with_lines_by_the_other() -> None:
    cells = [
        cell("rag", top_k=k, compression_turn=turn) for k in (5, 10) for turn in (20, 40, "never")
    ]
    by_setting = {curves.setting: curves for curves in curves_of(cells)}
    assert set(by_setting) == {"top_k", "compression_turn"}
    # A word such as `never` can't be placed on an axis of numbers.
    assert by_setting["compression_turn"].values == [20, 40]
    assert len(by_setting["compression_turn"].lines) == 2
    assert len(by_setting["top_k"].lines) == 3


def test_words_seeds_and_single_points_make_no_curve() -> None:
    assert curves_of([cell("rag", top_k=5), cell("bm25", top_k=10)]) == []
    assert curves_of([cell("rag", seed=1), cell("rag", seed=2)]) == []
    assert curves_of([cell("rag", granularity=name) for name in ("turn", "session")]) == []


def test_a_system_looks_the_same_on_all_plots() -> None:
    # One system has no context and one value, so two plots lack it.
    cells = [
        cell("dense", top_k=5),
        *(cell(name, top_k=k) for name in ("rag", "bm25") for k in (1, 5)),
    ]
    cells[0] = replace(cells[0], metrics={"accuracy": 0.1})
    (curves,) = curves_of(cells)
    plots = [sweep_plot(cells), curve_plot(curves)]
    expected = {
        name: style
        for name, style in styles_of(["dense", "rag", "bm25"]).items()
        if name != "dense"
    }
    assert [plot.legend for plot in plots] == [expected, expected]
    drawn = {mark.style for line in plots[1].panels[0][0].lines for mark in line}
    assert drawn == set(expected.values())


def test_single_system_is_drawn_as_a_curve(tmp_path: Path) -> None:
    cells = [cell("rag", top_k=k) for k in (1, 40)]
    cells[0] = replace(cells[0], valid=False)
    (curves,) = curves_of(cells)
    assert list(curves.lines) == ["rag"]
    names = list(sweep_plots(cells, "_a"))
    assert "curve_top_k_a" in names and "comparison_a_ranked" in names


@pytest.mark.parametrize("tops", [(3, 10), (1, 2, 3), (1, 40), (5, 10, 1000)])
def test_adjacent_lines_stay_inside_the_axes(tops: tuple[int, ...]) -> None:
    (curves,) = curves_of([cell(system, top_k=k) for system in ("rag", "bm25") for k in tops])
    panel = curve_panel(curves)
    assert panel.across.is_logarithmic == (tops[-1] > 10 * tops[0])
    left, right = panel.lines
    assert left[0].aside == -right[0].aside < 0
    for line in panel.lines:
        places = [panel.across.at(mark.x) + mark.aside for mark in line]
        assert min(places) > 0 and max(places) < 100
        assert places == sorted(places)

    # Lines at the same value are closer together than lines at neighbouring values.
    first = [panel.across.at(mark.x) + mark.aside for mark in (right[0], left[1])]
    assert first[1] - first[0] > right[0].aside - left[0].aside


def test_setting_names_cannot_leave_the_plot_folder() -> None:
    assert curve_name("system.depth") == "curve_system_depth"
    assert "/" not in curve_name("../x") and ".." not in curve_name("../x")


@pytest.mark.slow
def test_cells_with_a_cost_are_plotted_against_cost(tmp_path: Path) -> None:
    cells = [
        replace(run, metrics={**run.metrics, "cost_usd_uncached/total": cost})
        for run, cost in zip([cell("rag"), cell("bm25"), cell("mem0")], (0.02, 0.4, 3), strict=True)
    ]
    names = [path.name for path in draw_all(sweep_plots(cells), tmp_path)]
    assert "comparison_cost.png" in names
    assert b"<svg" in (tmp_path / "comparison_cost.svg").read_bytes()
    free = [replace(run, metrics={**run.metrics, "cost_usd_uncached/total": 0.0}) for run in cells]
    assert "comparison_cost" not in sweep_plots(free)


def test_looks_of_34_systems_differ_in_colour_or_mark() -> None:
    looks = styles_of(f"system {number}" for number in range(34))
    assert len({(look.colour, look.mark) for look in looks.values()}) == 34
    assert len({look.mark for look in list(looks.values())[:8]}) == 8


def test_runs_that_cost_nothing_are_left_of_the_others_on_a_logarithmic_axis() -> None:
    price = prices()["cost"]
    free, paid = price_axis([0.0, 0.01, 1.0], price), price_axis([0.01, 1.0], price)
    assert free.is_logarithmic and free.low == pytest.approx(0.01 / 3) and 0.0 in free.ticks
    assert paid.is_logarithmic and paid.low == 0.01 and 0.0 not in paid.ticks
