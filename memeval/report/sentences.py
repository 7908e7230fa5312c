"""Findings of a run in words, for the terminal and for its page."""

from __future__ import annotations

from memeval.metrics.accuracy import right_phrase
from memeval.metrics.formats import count, percent
from memeval.results import RunSummary, judge_shown


def run_sentences(summary: RunSummary, conversations: int | None = None) -> list[str]:
    """How many questions are answered right, and how much of the evidence is found.

    `conversations` is the number of the questions' conversations, if it is known.
    """
    return list(filter(None, [_result(summary, conversations), _evidence(summary)]))


def _result(summary: RunSummary, conversations: int | None) -> str:
    asked = "n_records" if summary.only_retrieves else "n_questions"
    number = count(summary.metrics.get(asked))
    questions = "1 question" if number == "1" else f"{number} questions"
    accuracy = summary.metrics.get("accuracy")
    if accuracy is None and summary.only_retrieves:
        return f"{questions}; only the retrieval was measured, so no answer was judged."
    if accuracy is None and number == "1":
        return "The only question could not be scored."
    if accuracy is None:
        return f"None of the {questions} could be scored."

    judge = judge_shown(summary.judge)
    of = f" of {conversations:,} conversations" if conversations and conversations > 1 else ""
    by = f", according to the judge {judge}" if judge else ""
    repeats = len(summary.repeats)
    often = f", mean of {repeats} repeats" if repeats > 1 else ""

    return f"{percent(accuracy)} % of {right_phrase(summary, of)}{by}{often}."


def _evidence(summary: RunSummary) -> str:
    recall = summary.metrics.get("recall_at_10")
    if recall is None:
        return ""

    return f"{percent(recall)} % of the evidence is among the first 10 chunks that it finds."
