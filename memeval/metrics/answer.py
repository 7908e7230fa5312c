"""All answer metrics of one answer, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memeval.metrics.keywords import keyword_overlap, keyword_pass
from memeval.metrics.mem0 import bleu1, mem0_f1
from memeval.metrics.tokens import contains, exact_match, token_f1
from memeval.records import EvalQuestion
from memeval.words import script_without_words

COUNT_WORDS = ("token_f1", "mem0_f1", "bleu1", "keyword_overlap")
"""Metrics that need the words of a text, and so say nothing of a script whose words they can't
tell apart.
"""

Metric = Callable[[str, str], float]
"""Compares an answer with a gold."""

METRICS: dict[str, Metric] = {
    "token_f1": token_f1,
    "mem0_f1": mem0_f1,
    "bleu1": bleu1,
    "keyword_overlap": keyword_overlap,
    "keyword_pass": lambda answer, gold: float(keyword_pass(answer, gold)),
    "exact_match": exact_match,
    "contains": contains,
}


def answer_metrics(
    answer: str, question: EvalQuestion, *, official_f1: Metric = token_f1
) -> dict[str, float | None]:
    """Every answer metric, the best over the question's golds; always the same keys.

    `official_f1` is what the data set's own protocol has for `token_f1`. A metric is None where it
    is not defined: for a question with choices, whose answer is right or wrong, and for a question
    whose right answer is a refusal, which has no gold. Those that count words are None for golds
    whose words can't be counted (`memeval.words.script_without_words`). A blank answer scores 0.
    """
    if question.choices or not question.answerable or not question.gold:
        return dict.fromkeys(METRICS)
    if not answer.strip():
        return dict.fromkeys(METRICS, 0.0)

    metrics = METRICS | {"token_f1": official_f1}
    measured: dict[str, float | None] = {
        name: _best(metric, answer, question.gold) for name, metric in metrics.items()
    }
    if script_without_words(" ".join(question.gold)):
        measured |= dict.fromkeys(COUNT_WORDS)

    return measured


def _best(metric: Metric, answer: str, golds: Sequence[str]) -> float:
    return max(metric(answer, gold) for gold in golds)
