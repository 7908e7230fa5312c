"""Runs that sent the same prompts as another: reported with numbers, and never shown as a
difference of 0.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from made_runs import example, made_run

from memeval.comparison.build import compare_runs
from memeval.comparison.files import comparison_markdown, differences_csv
from memeval.comparison.page import difference_row, page_content
from memeval.comparison.paper.differences import difference_table
from memeval.comparison.tables import comparison_text
from memeval.metrics.registry import metric_named
from memeval.results.rows import SentMessage
from memeval.results.run import Run

PROMPT = (SentMessage("user", "0123456789abcdef"),)


def pair(folder: Path, other: dict[str, Any], **changes: Any) -> list[Run]:
    """A baseline and a run with the same values; `other` says what the second run sent."""
    own = {"prompt": PROMPT, "context": "c" * 16}
    return [
        made_run(folder, "cogcanvas", example("A"), of_records=own),
        made_run(folder, "notemporal", example("A"), of_records={**own, **other}, **changes),
    ]


def test_runs_with_the_same_prompts_are_named_and_not_shown_as_0(tmp_path: Path) -> None:
    comparison = compare_runs(pair(tmp_path, {}), metric_named("accuracy"))
    (difference,) = comparison.differences
    assert difference.sent_alike == 20 and difference.same_prompts
    words = "notemporal sent the same prompts as cogcanvas on 20 of 20 questions."
    for text in (comparison_text(comparison), comparison_markdown(comparison)):
        assert words in " ".join(text.split())
        rows = [line for line in text.splitlines() if line.lstrip("| ").startswith("notemporal ")]
        cells = [cell for row in rows for cell in row.replace("|", " ").split()]
        assert cells.count("same") >= 2 and not {"0.0", "0", "+0.0"}.intersection(cells)

    table = difference_table([comparison])
    assert [column.cells[0].text for column in table.columns] == ["20", "same", "–", "–", "–"]
    page = page_content(comparison, 2)
    assert page is not None and page.differences[0].same_prompts
    tested = page.differences[0].result.p, page.differences[0].adjusted_p
    assert tested == (None, None), "the tables show dashes, too"
    drawn = difference_row(comparison, difference)
    assert drawn.name.endswith("(same prompts)") and not drawn.text
    whole, *_ = csv.DictReader(io.StringIO(differences_csv([comparison])))
    assert whole["sent_alike"] == "20"


def test_without_a_prompt_contexts_are_compared(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, name, example("A"), of_records={"context": "c" * 16}) for name in "AB"
    ]
    assert compare_runs(runs, metric_named("accuracy")).differences[0].same_prompts


@pytest.mark.parametrize(
    ("other", "changes"),
    [
        ({"prompt": (SentMessage("user", "f" * 16),)}, {}),
        ({}, {"params": {"llm.temperature": 0.7}}),
        ({"prompt": (), "context": None}, {}),
    ],
)
def test_different_prompts_or_readers_are_not_the_same_prompts(
    tmp_path: Path, other: dict[str, Any], changes: dict[str, Any]
) -> None:
    runs = pair(tmp_path, other, **changes)
    (difference,) = compare_runs(runs, metric_named("accuracy")).differences
    assert not difference.same_prompts


@pytest.mark.parametrize("setting", ["judge.model", "max_concurrency", "timeout_s", "patience_s"])
def test_settings_that_change_no_answer_make_no_other_reader(tmp_path: Path, setting: str) -> None:
    runs = pair(tmp_path, {}, params={f"llm.{setting}": 4})
    assert compare_runs(runs, metric_named("accuracy")).differences[0].same_prompts


def test_edges_affected_by_a_setting_are_counted(tmp_path: Path) -> None:
    notes = {"notes": {"edges": {"temporal": 2, "all": 4543}}, "context": "c" * 16}
    runs = [
        made_run(
            tmp_path,
            name,
            example("A"),
            of_records=notes,
            params={"system.temporal_edges": name == "cogcanvas"},
        )
        for name in ("cogcanvas", "notemporal")
    ]
    text = " ".join(comparison_text(compare_runs(runs, metric_named("accuracy"))).split())
    assert "on 20 of 20 questions: 10 of 22,715 edges are temporal here." in text
