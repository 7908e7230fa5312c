"""The result of a run, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_runs import summary

from memeval.report.sentences import run_sentences
from memeval.results.judge import JudgeIdentity


@pytest.mark.parametrize(
    ("questions", "result"),
    [
        (1, "50.0 % of 1 question is answered right."),
        (2, "50.0 % of 2 questions are answered right."),
    ],
)
def test_one_question_is_in_the_singular(questions: int, result: str) -> None:
    cell = summary()
    metrics = {**cell.metrics, "n_questions": questions, "accuracy": 0.5}
    sentence, *_ = run_sentences(replace(cell, metrics=metrics, judge=None))
    assert sentence == result


def test_a_mean_of_grades_is_not_called_a_share_of_right_answers() -> None:
    cell = summary()
    judge = JudgeIdentity(name="beam", scoring="v2")
    metrics = {**cell.metrics, "n_questions": 2, "accuracy": 0.604}
    sentence, *_ = run_sentences(replace(cell, metrics=metrics, judge=judge))
    reached = "60.4 % of the possible score of 2 questions is reached, according to the judge beam"
    assert sentence.startswith(reached)
    long, *_ = run_sentences(replace(cell, metrics=metrics, judge=JudgeIdentity("n" * 300)))
    assert long.endswith("n….") and len(long) < 300


@pytest.mark.parametrize(
    ("questions", "stages", "result"),
    [
        (0, "all", "No question was answered."),
        (1, "all", "The only question could not be scored."),
        (2, "all", "None of the 2 questions could be scored."),
        (1, "retrieve", "1 question; only the retrieval was measured, so no answer was judged."),
        (2, "retrieve", "2 questions; only the retrieval was measured, so no answer was judged."),
    ],
)
def test_sentence_says_that_nothing_was_scored(questions: int, stages: str, result: str) -> None:
    cell = summary()
    # If nothing was answered, questions that accuracy leaves out are counted too, as in the table.
    counted = "n_records" if stages == "retrieve" else "n_questions"
    metrics = {**cell.metrics, counted: questions, "accuracy": None}
    tags = {**cell.tags, "stages": stages}
    sentence, *_ = run_sentences(replace(cell, metrics=metrics, tags=tags))
    assert sentence == result


def test_questions_that_do_not_count_are_not_called_unanswered() -> None:
    cell = summary()
    apart = {**cell.metrics, "n_questions": 0.0, "n_records": 20.0, "accuracy": None}
    sentence, *_ = run_sentences(replace(cell, metrics=apart))
    assert sentence == "None of the questions that were asked counts in the accuracy."


def test_repeats_without_a_score_are_not_counted() -> None:
    cell = summary(repeats=3)
    failed = replace(cell.repeats[0], metrics={"accuracy": None})
    sentence, *_ = run_sentences(replace(cell, repeats=(*cell.repeats[1:], failed)))
    assert sentence.endswith(", mean of 2 repeats.")
