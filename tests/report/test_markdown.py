"""report.md says what was measured, and marks what was not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_runs import summary, write_folder

from memeval.comparison.gating.baseline import tokens_and_usd
from memeval.metrics.metric import TAGS
from memeval.metrics.registry import texts_at
from memeval.report.markdown import report, write_report
from memeval.report.page.build import cell_data
from memeval.results import JudgeIdentity


def test_report_has_all_sections(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, summary("rag", repeats=3))
    write_report(folder)
    text = (folder / "report.md").read_text(encoding="utf-8")
    for heading in (
        "By category",
        "Repeats",
        "Retrieval",
        "Tokens and cost",
        "Latency",
        "Statuses",
        "Notes",
        "Repeat it",
        "Settings",
        "Provenance",
    ):
        assert f"\n## {heading}\n" in text
    assert "| questions | 1,540, asked 3 times |" in text
    assert "adversarial (not in accuracy)" in text and text.index("single_hop") < text.index(
        "adversarial (not"
    )
    assert "```sh\npython -m memeval system=rag top_k=10 dataset=locomo\n```" in text
    assert "![accuracy by category](plots/accuracy_by_category.png)" in text
    assert "INVALID" not in text
    assert text.count("ReadTimeout: no reply \\| after 60 s") == 6


def test_whole_report_is_unchanged() -> None:
    cell = summary("rag", repeats=2)
    small, large = cell.categories[2:4]
    tags = ("pinned", "excerpt", "derived", "drafted")
    shown = replace(
        cell,
        facets={"place": (replace(small, category="home"), replace(large, category="work"))},
        tags={
            **cell.tags,
            **{f"data_{name}": str(name != "pinned").lower() for name in tags},
            "data_version": "3",
            "prompt_sha256": "5eed",
        },
        params={
            **cell.params,
            "dataset.limit_questions": 20,
            "dataset.split": "all",
            "system.only_listed": True,
            "granularity": "turn",
            "compression_turn": "never",
            "llm": "extractive",
            "llm.temperature": 0.0,
            "prompt": "short",
            "reader": "tools",
        },
        metrics={
            **cell.metrics,
            "ingest_ready_s": 0.5,
            "latency_ms/ingest/p50": 12.0,
            "recall_at_10/temporal": 0.5,
            "retry_wait_s": 3.0,
        },
        judge=JudgeIdentity("keyword"),
    )
    golden = Path(__file__).with_name("whole_report.md").read_text(encoding="utf-8")
    assert report(shown) == golden


def test_report_of_a_retrieval_counts_all_questions() -> None:
    answered = summary("rag")
    metrics, tags = {**answered.metrics, "n_records": 1986}, {**answered.tags, "stages": "retrieve"}
    assert "| questions | 1,986 |" in report(replace(answered, metrics=metrics, tags=tags))


def test_every_table_row_has_as_many_cells_as_its_header(tmp_path: Path) -> None:
    lines = report(summary("rag", repeats=3, params={"a|b": "c|d\ne"})).splitlines()
    width = 0
    for line in lines:
        cells = line.replace("\\|", "").count("|") if line.startswith("|") else 0
        assert 0 in (width, cells) or cells == width, line
        width = cells


def test_unknown_cost_is_not_shown_as_zero() -> None:
    text = report(summary())
    assert (
        "| cost of a fresh run | unknown |" in text
        and "| **all** | 1,330,666 in all |  |  | **unknown** |" in text
    )
    cell = summary()
    billed = report(
        replace(
            cell,
            metrics={
                **cell.metrics,
                "cost_usd/answer": 0.31,
                "cost_usd/total": 0.0,
                "cost_usd_uncached/total": 0.31,
            },
        )
    )
    assert "| cost of a fresh run | $0.31 |" in billed and "| billed | $0 |" in billed


def test_cost_of_imported_answers_is_unknown() -> None:
    cell = summary()
    judged = {**cell.metrics, "cost_usd/total": 0.02, "cost_usd_uncached/total": 0.02}
    imported = replace(cell, metrics=judged, tags={**cell.tags, "imported": "true"})

    text = report(imported)
    assert "| cost of a fresh run | unknown |" in text
    assert "A fresh run, without memeval's cache: unknown." in text
    assert "| retrieval | another program: its retrieval is not in the answer file |" in text
    # The judge's cost is known, so it is billed.
    assert "| billed | $0.02 |" in text
    assert (
        tokens_and_usd(imported) == (None, None)
        and tokens_and_usd(replace(cell, metrics=judged))[1] == 0.02
    )
    (tile,) = [tile for tile in cell_data([imported])[0].tiles if tile.title.startswith("Cost")]
    assert (tile.value, tile.text) == (None, "unknown")
    assert texts_at(TAGS, imported)["cost"] == ""


def test_a_tile_of_the_page_has_its_unit_once() -> None:
    cell = summary()
    rates = {"breach_rate": 1.0, "breach_rate_ci95_low": 0.862, "breach_rate_ci95_high": 1.0}
    measured = replace(cell, metrics={**cell.metrics, **rates, "token_f1": None})

    tiles = {tile.title: tile for tile in cell_data([measured])[0].tiles}
    breach, f1 = tiles["breach rate"], tiles["Token F1"]
    assert (breach.text, breach.after) == ("100.0 [86.2, 100.0]", " %")
    assert (f1.text, f1.after) == ("–", "")
    assert "| token F1 | – |" in report(measured)


def test_deviation_of_one_repeat_is_a_dash_and_deterministic_says_why() -> None:
    assert "| std over repeats, points | – |" in report(summary())
    cell = summary(repeats=3)
    assert "| std over repeats, points | 0 (deterministic reader) |" in report(
        replace(cell, metrics={**cell.metrics, "accuracy_std": 0.0})
    )


def test_invalid_run_is_reported_first_with_its_bounds() -> None:
    cell = summary(valid=False)
    text = report(
        replace(
            cell,
            metrics={
                **cell.metrics,
                "coverage": 0.931,
                "accuracy_worst_case": 0.28,
                "accuracy_best_case": 0.36,
            },
        )
    )
    assert text.splitlines()[2].startswith(
        "> **INVALID.** Only 93.1 % of the answers were scored, below the minimum of 0.99"
    )
    assert "| accuracy if all unscored answers were wrong, or right | 28.0 to 36.0 |" in text


def test_a_cell_that_measured_nothing_still_has_a_report(tmp_path: Path) -> None:
    cell = summary(metrics={}, categories=(), statuses={}, notes=())
    folder = write_folder(tmp_path, cell)
    (folder / "records.jsonl").unlink()
    write_report(folder)
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "| **accuracy** | **– %** |" in text and "0.0" not in text
    assert list((folder / "plots").iterdir()) == []


def test_a_damaged_summary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        write_report(tmp_path)
