"""Findings of a run in words, for the terminal and for its page."""

from memeval.metrics.accuracy import right_phrase
from memeval.metrics.formats import count, percent
from memeval.results import RunSummary, judge_shown
from memeval.text.shown import one_line


def run_sentences(summary: RunSummary, conversations: int | None = None) -> list[str]:
    """Sentences on the share of right answers and of found evidence.

    `conversations` is the number of the questions' conversations, if it is known.
    """
    return list(filter(None, [_result(summary, conversations), _evidence(summary)]))


def _result(summary: RunSummary, conversations: int | None) -> str:
    accuracy = summary.metrics.get("accuracy")
    if accuracy is None:
        return _unjudged(summary)

    of = ""
    if conversations and conversations > 1:
        of = f" of {conversations:,} conversations"

    text = f"{percent(accuracy)} % of {right_phrase(summary, of)}"
    judge = judge_shown(summary.judge)
    if judge:
        text += f", according to the judge {one_line(judge)}"
    scored = sum(repeat.metrics.get("accuracy") is not None for repeat in summary.repeats)
    if scored > 1:
        text += f", mean of {scored} repeats"

    return f"{text}."


def _unjudged(summary: RunSummary) -> str:
    number = count(summary.asked)
    if number == "0" and summary.metrics.get("n_records"):
        return "None of the questions that were asked counts in the accuracy."
    # A run that was stopped before its first answer.
    if number == "0":
        return "No question was answered."

    questions = "1 question" if number == "1" else f"{number} questions"
    if summary.only_retrieves:
        return f"{questions}; only the retrieval was measured, so no answer was judged."
    if number == "1":
        return "The only question could not be scored."

    return f"None of the {questions} could be scored."


def _evidence(summary: RunSummary) -> str:
    recall = summary.metrics.get("recall_at_10")
    if recall is None or summary.tags.get("ranks_part") == "true":
        return ""

    return f"{percent(recall)} % of the evidence is among the first 10 chunks that it finds."
