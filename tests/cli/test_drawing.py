"""`plots` sets whether plots are drawn; it changes no result."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import SMALL, completed, memeval, runs


def pictures(home: Path) -> set[str]:
    return {path.name for path in home.glob("outputs/**/*.png")}


@pytest.mark.slow
def test_plots_are_drawn_unless_they_are_turned_off(tmp_path: Path) -> None:
    words = ("-m", "system=bm25,no_memory", *SMALL)
    without = completed(tmp_path, *words, "plots=false", MEMEVAL_PLOTS="true")
    reports = sorted(tmp_path.glob("outputs/runs/*/report.md"))
    assert pictures(tmp_path) == set()
    assert len(reports) == 2 and all("![" not in path.read_text("utf-8") for path in reports)
    before = runs(tmp_path)

    # Finished runs are not repeated, but their plots are drawn.
    drawn = completed(tmp_path, *words, MEMEVAL_PLOTS="")
    assert drawn.err.count("already done: reused") == 2
    assert pictures(tmp_path) == {
        "accuracy_by_category.png",
        "comparison.png",
        "comparison_ranked.png",
        "differences.png",
    }
    assert all("![" in path.read_text("utf-8") for path in reports)
    # The first command made the page; the second copies it.
    marks = {path.name for path in tmp_path.glob("outputs/sweeps/*/.comparison-*")}
    assert len(marks) == 2
    assert len(list(tmp_path.glob("outputs/sweeps/*/comparison.html"))) == 2
    assert runs(tmp_path) == before
    assert without.out.splitlines()[:3] == drawn.out.splitlines()[:3]


@pytest.mark.slow
def test_plots_setting_is_not_recorded_with_a_run(tmp_path: Path) -> None:
    completed(tmp_path, *SMALL, "plots=false")
    (run,) = runs(tmp_path)
    assert not any("plots" in name for name in run["params"])
    assert "plots" not in run["command"]
    (config,) = tmp_path.glob("outputs/runs/*/config.yaml")
    assert "plots" not in config.read_text("utf-8")


def test_invalid_memeval_plots_is_refused(tmp_path: Path) -> None:
    ended = memeval(tmp_path, *SMALL, MEMEVAL_PLOTS="no")
    assert ended.status == 2
    assert ended.message == "memeval: MEMEVAL_PLOTS must be true or false, not 'no'"


@pytest.mark.slow
def test_unwritable_report_is_reported(tmp_path: Path) -> None:
    """The run's own process writes the report if nothing is tracked or drawn."""
    completed(tmp_path, *SMALL)
    (folder,) = tmp_path.glob("outputs/runs/*")
    (folder / "report.md").unlink()
    (folder / "report.md").mkdir()

    ended = completed(tmp_path, *SMALL)
    assert "can't be written: Is a directory" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_sweep_of_more_runs_than_a_page_shows_says_so(tmp_path: Path) -> None:
    ended = completed(tmp_path, "-m", "system=bm25,rag,dense", "top_k=range(1,8)", *SMALL)
    assert "no page: it would show more than 20 runs; to compare some:" in ended.err
    assert not list(tmp_path.glob("outputs/sweeps/*/comparison.html"))
