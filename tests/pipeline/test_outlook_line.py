"""The lines of a plan about its calls, and the smallest difference that the data could show."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import in_conversations, made_run
from msgspec import structs

from memeval.cli.plan_text import call_lines, outlook_line
from memeval.pipeline.open.opening import open_cell
from memeval.records import Role
from memeval.runs.compose.config import compose_config
from memeval.runs.forecast.outlook import Outlook, count_scored, outlook_for
from memeval.runs.forecast.totals import CallSums, Estimate, line_of

OUTLOOK = Outlook(
    dataset="demo",
    questions=3,
    cases=3,
    difference=None,
    cases_needed=None,
    difference_then=None,
    design_effect=1.0,
    basis="assumed",
)


@pytest.mark.parametrize(
    ("difference", "message"),
    [
        (0.123, "can show a difference of 12.3 points of accuracy with 80 % power (assumed)"),
        (1.0, "can't show any difference with 80 % power (assumed)"),
    ],
)
def test_difference_of_the_whole_scale_means_none_can_be_shown(
    difference: float, message: str
) -> None:
    outlook = structs.replace(OUTLOOK, difference=difference)
    assert outlook_line(outlook) == f"demo: 3 questions in 3 cases {message}"


def test_only_questions_that_enter_the_accuracy_are_counted() -> None:
    """LoCoMo's fifth category does not enter it."""
    cell = open_cell(compose_config(["dataset=demo", "system=bm25", "tracking=none"]), "")
    case = next(iter(cell.dataset.cases()))
    adversarial = sum(question.category == 5 for question in case.questions)
    assert adversarial > 0
    assert count_scored(case, cell) == len(case.questions) - adversarial


def test_assumed_number_of_questions_is_marked_as_an_assumption() -> None:
    would = "With 2 questions per case, demo would have 3 questions in 3 cases"
    assert outlook_line(OUTLOOK, per_case=2) == (
        f"{would}: too few to show any difference (assumed)"
    )
    one = structs.replace(OUTLOOK, questions=1, cases=1)
    assert outlook_line(one).startswith("demo: 1 question in 1 case is too few")


def test_too_few_cases_are_reported_with_the_number_needed() -> None:
    few = "demo: 3 questions in 3 cases are too few to show any difference"
    assert outlook_line(OUTLOOK) == f"{few} (assumed)"
    more = structs.replace(OUTLOOK, cases_needed=10, difference_then=0.268)
    assert (
        outlook_line(more) == f"{few}; 10 cases would show about 26.8 points of accuracy (assumed)"
    )


def test_a_single_call_is_named_in_the_singular() -> None:
    sums = CallSums(1, calls=1.0, prompt=10.0, completion=2.0, most_completion=2.0, most_calls=1.0)
    line = line_of((Role.ANSWER, "gpt-4o-mini", "openai", ""), sums, repeated=0.0)
    assert list(call_lines(Estimate([line], ())))[-1].startswith("1 call (at most 1), 12 tokens, $")


def test_earlier_runs_that_differ_by_whole_conversations_raise_the_design_effect(
    tmp_path: Path,
) -> None:
    """Of six conversations with four questions each, the runs differ in two, in all questions."""
    made_run(tmp_path, "A", in_conversations([4, 4, 4, 4, 4, 4]))
    made_run(tmp_path, "B", in_conversations([0, 4, 4, 4, 4, 0]))
    outlook = outlook_for("locomo", questions=24, cases=6, runs=tmp_path)
    # Four questions per conversation count as one: 4, times 23/24 and 6/5 for the small sample.
    assert outlook.design_effect == pytest.approx(4 * 23 / 24 * 6 / 5)
