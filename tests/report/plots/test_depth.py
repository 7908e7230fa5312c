"""The plots of a sweep over haystacks, and the tables of facets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.image import imread
from sample_runs import summary

from memeval.report.markdown import report
from memeval.report.plots.curves import (
    TOKENS,
    by_line,
    curve_plot,
    curves_of,
    short_number,
    value_of,
)
from memeval.report.plots.depth import map_columns
from memeval.report.plots.draw import draw, draw_all
from memeval.report.plots.sweep import sweep_plots
from memeval.results import CategoryResult, RunSummary
from memeval.text.shown import natural_order

DEPTHS = ("0-20%", "20-40%", "80-100%")


def rows(accuracy: float, names: tuple[str, ...] = DEPTHS) -> tuple[CategoryResult, ...]:
    return tuple(
        CategoryResult(name, f"depth/{name}", 20, 20, 20, True, accuracy, None, 0.1, 0.9, 0.5)
        for name in names
    )


def cell(system: str, tokens: int, **changes: object) -> RunSummary:
    plain = summary(system, run_key=f"{system}-{tokens}")
    return replace(
        plain,
        params={**plain.params, "dataset.tokens": tokens},
        facets={"depth": rows(0.5)},
        **changes,
    )  # type: ignore[arg-type]


def drawn(cells: list[RunSummary], folder: Path) -> list[str]:
    """File names of the haystack plots drawn for a sweep of these cells."""
    paths = draw_all(sweep_plots(cells), folder)
    assert all(path.with_suffix(".svg").is_file() for path in paths)
    return [path.name for path in paths if path.name.startswith("haystack")]


def test_plots_of_each_data_set_have_distinct_names() -> None:
    cells = [cell("bm25", 1_000), cell("rag", 1_000)]
    assert not set(sweep_plots(cells, "_mine")) & set(sweep_plots(cells, "_yours"))


@pytest.mark.slow
def test_cells_that_differ_in_size_have_scale_and_depth_plots(tmp_path: Path) -> None:
    cells = [
        cell(system, tokens) for tokens in (1_000, 100_000) for system in ("bm25", "rag", "oracle")
    ]
    assert drawn(cells, tmp_path) == [
        "haystack_scale.png",
        "haystack_depth.png",
        "haystack_depth_curves.png",
    ]
    assert all(imread(path).std() > 0.01 for path in tmp_path.glob("*.png")), "something is drawn"
    before = (tmp_path / "haystack_scale.png").read_bytes()
    draw(curve_plot(curves_of(cells)[0]), tmp_path / "haystack_scale.png")
    assert (tmp_path / "haystack_scale.png").read_bytes() == before, (
        "the same cells give the same bytes"
    )


def test_a_single_system_with_a_long_name_is_drawn(tmp_path: Path) -> None:
    assert len(drawn([cell("bm25", 1_000), cell("bm25", 100_000)], tmp_path)) == 3


def test_cells_of_one_size_have_only_depth_plots(tmp_path: Path) -> None:
    assert drawn([cell("bm25", 1_000), cell("rag", 1_000)], tmp_path) == [
        "haystack_depth.png",
        "haystack_depth_curves.png",
    ]


@pytest.mark.slow
def test_cells_of_other_data_sets_have_no_haystack_plots(tmp_path: Path) -> None:
    assert drawn([summary("bm25"), summary("rag")], tmp_path) == []


def test_line_contains_the_cells_that_differ_only_in_size() -> None:
    cells = [cell("bm25", 100_000), cell("rag", 1_000), cell("bm25", 1_000), cell("rag", 100_000)]
    lines = by_line(cells, TOKENS)
    assert {name: [value_of(one, TOKENS) for one in line] for name, line in lines.items()} == {
        "bm25": [1_000, 100_000],
        "rag": [1_000, 100_000],
    }
    assert map_columns(lines["bm25"][:1], [1_000, 100_000]) == [
        ("1k", dict.fromkeys(DEPTHS, 0.5)),
        ("100k", {}),
    ]


def test_sizes_are_abbreviated_and_depths_sorted() -> None:
    assert [short_number(tokens) for tokens in (10, 999, 1_000, 2_500, 1_000_000, 10_000_000)] == [
        "10",
        "999",
        "1k",
        "2.5k",
        "1M",
        "10M",
    ]
    assert sorted(["80-100%", "unknown", "0-20%", "20-40%"], key=natural_order) == [
        "0-20%",
        "20-40%",
        "80-100%",
        "unknown",
    ]


def test_a_report_has_a_table_for_each_facet() -> None:
    run = replace(
        summary(),
        facets={"depth": rows(0.5), "ability": rows(0.25, ("TR|x",))},
        facet_titles={"depth": "depth of the evidence"},
    )
    text = report(run)
    assert "## By depth of the evidence\n\n| depth of the evidence | n | scored |" in text
    assert "| 20-40% | 20 | 20 of 20 | 50.0 |" in text
    assert "## By ability\n" in text
    assert "| TR\\|x | 20 | 20 of 20 | 25.0 |" in text
    assert (
        text.index("## By category")
        < text.index("## By depth of the evidence")
        < text.index("## Retrieval")
    )


def test_facet_with_many_values_shows_the_40_largest() -> None:
    many = tuple(
        replace(row, n=index)
        for index, row in enumerate(rows(0.5, tuple(f"v{number:02d}" for number in range(50))))
    )
    text = report(replace(summary(), facets={"topic": many}))
    section = text[text.index("## By topic") :].split("\n## ")[0]
    assert section.count("\n| v") == 40
    assert "| v49 |" in section and "| v10 |" in section and "| v09 |" not in section
    assert "The 40 largest of 50." in section


def test_facets_and_titles_survive_writing_a_summary(tmp_path: Path) -> None:
    run = replace(
        summary(), facets={"depth": rows(0.5)}, facet_titles={"depth": "depth of the evidence"}
    )
    run.write(tmp_path)
    assert RunSummary.read(tmp_path) == run


def test_metrics_of_the_data_sets_protocol_are_in_the_report() -> None:
    run = summary()
    named = replace(
        run,
        metrics={**run.metrics, "mar": 3.25, "a_at_1": None},
        protocol_metrics=("mar", "a_at_1"),
    )
    text = report(named)
    assert "## By the data set's own protocol" in text
    assert "| `mar` | 3.25 |" in text
    assert "a_at_1" not in text
    assert "own protocol" not in report(run)
