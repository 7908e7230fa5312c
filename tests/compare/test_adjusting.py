"""p adjusted over the pairs of one metric (max-T), or over several metrics (Benjamini-Hochberg)."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from made_runs import example, in_conversations, made_run
from msgspec import structs

from memeval.comparison.build import compare_runs
from memeval.comparison.files import as_json_value, differences_csv
from memeval.comparison.page import page_content
from memeval.comparison.records import Comparison, Difference
from memeval.comparison.significance import adjust_by_discovery
from memeval.comparison.tables import comparison_text
from memeval.metrics.registry import metric_named
from memeval.results.run import Run

HOCHBERGS = (
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
)
ADJUSTED = (
    *(0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.06385714, 0.06385714, 0.0645),
    *(0.0765, 0.486, 0.58118182, 0.714875, 0.75323077, 0.81321429, 1.0),
)


@pytest.fixture
def cells(tmp_path: Path) -> list[Run]:
    return [made_run(tmp_path, name, example(name)) for name in "ABC"]


def compared(cells: list[Run], metric: str) -> Comparison:
    return compare_runs(cells, metric_named(metric))


def with_p(difference: Difference, p: float) -> Difference:
    return replace(difference, result=structs.replace(difference.result, p=p))


def test_equal_totals_of_three_repeats_are_no_difference(tmp_path: Path) -> None:
    cells = []
    for name, counts in (("A", (1, 3, 2, 0)), ("B", (2, 2, 1, 1))):
        scores = {}
        for case in range(10):
            for number, right in enumerate(counts):
                repeats = [float(repeat < right) for repeat in range(3)]
                scores[f"conv-{case}/q{number}"] = repeats

        cells.append(made_run(tmp_path, name, scores))

    (difference,) = compared(cells, "accuracy").differences
    assert (difference.p, difference.adjusted_p) == (1.0, 1.0)
    assert {case.mean for case in difference.cases} == {0.0}


def test_a_conversation_that_a_pair_lacks_counts_nothing_in_the_flips_of_all(
    tmp_path: Path,
) -> None:
    """Max-T by hand, over all sign flips of eight conversations; C was scored in six of them."""
    rights = {"A": (4, 4, 3, 4, 3, 3, 4, 1), "B": (2, 1, 4, 3, 1, 2, 3, 3), "C": (3, 1, 2, 1, 2, 1)}
    unscored = {f"conv-{case}/q{number}": [None] for case in (6, 7) for number in range(4)}
    cells = []
    for name, right in rights.items():
        more = unscored if name == "C" else {}
        cells.append(made_run(tmp_path, name, {**in_conversations(right), **more}))

    rows = []
    for first, second in combinations(rights.values(), 2):
        changes = [a - b for a, b in zip(first, second, strict=False)]
        rows.append([*changes, *[0] * (8 - len(changes))])

    rows.sort(key=lambda row: -abs(sum(row)))
    flips = np.abs(np.array(list(product((1, -1), repeat=8))) @ np.array(rows).T)
    by_hand = [
        float(np.mean(flips[:, n:].max(axis=1) >= abs(sum(row)))) for n, row in enumerate(rows)
    ]
    found = compare_runs(cells, metric_named("accuracy"), all_pairs=True).differences
    assert sorted(row.adjusted_p for row in found) == list(np.maximum.accumulate(by_hand))


def test_benjamini_hochberg_covers_all_metrics(cells: list[Run]) -> None:
    plain = compared(cells, "accuracy")
    rows = iter(HOCHBERGS)
    metrics = [
        replace(
            plain,
            differences=tuple(with_p(plain.differences[0], next(rows)) for _ in range(count)),
        )
        for count in (5, 10)
    ]
    made = adjust_by_discovery(metrics)
    adjusted = [row.adjusted_p for comparison in made for row in comparison.differences]
    assert adjusted == pytest.approx(ADJUSTED, abs=1e-8)
    assert [row.is_shown for row in made[0].differences] == [True, True, True, True, False]
    assert [comparison.tests for comparison in made] == [15, 15]
    # Letters depend on max-T, so there are none here.
    assert all(run.letters == "" for comparison in made for run in comparison.runs)


def test_every_form_says_how_p_was_adjusted(tmp_path: Path) -> None:
    rights = {"A": [2] * 10, "B": [3] * 10, "C": [2] * 9 + [1]}
    cells = [made_run(tmp_path, name, in_conversations(own)) for name, own in rights.items()]
    made = adjust_by_discovery([compared(cells, "accuracy"), compared(cells, "f1")])
    text = " ".join(comparison_text(made[0]).split())
    assert "Benjamini–Hochberg over 4 tests of all metrics" in text
    assert "(p .002, Benjamini–Hochberg .004)" in text and "max-T" not in text
    whole = as_json_value(made)["comparisons"]
    assert {(one["adjustment"], one["tests"]) for one in whole} == {("bh", 4)}
    rows = list(csv.DictReader(io.StringIO(differences_csv(made))))
    assert {row["adjustment"] for row in rows} == {"bh"}
    assert {(row["metric"], row["verdicts"]) for row in rows} == {
        ("accuracy", "raw"),
        ("token_f1", ""),
    }
    page = page_content(made[0], 3)
    assert page is not None and page.adjusted_how.startswith("by Benjamini–Hochberg over 4 tests")


def test_one_conversation_has_no_p_to_adjust(tmp_path: Path) -> None:
    alone = [
        made_run(tmp_path, name, {f"c/q{number}": [float(number < right)] for number in range(4)})
        for name, right in (("A", 1), ("B", 3))
    ]
    (made,) = adjust_by_discovery([compared(alone, "accuracy")])
    assert made.tests == 0 and made.differences[0].adjusted_p is None


def test_a_pair_with_other_weights_is_tested_by_its_own_differences(tmp_path: Path) -> None:
    first = made_run(tmp_path, "A", example("A"))
    second = made_run(tmp_path, "B", example("B"), weights=[1.0, 2.0])
    comparison = compare_runs([first, second], metric_named("accuracy"), force=True)
    (difference,) = comparison.differences
    assert difference.adjusted_p == difference.p
