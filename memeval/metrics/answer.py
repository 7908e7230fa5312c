"""All answer metrics of one answer, by name."""

from __future__ import annotations

from collections.abc import Callable

from memeval.metrics.characters import character_f1
from memeval.metrics.keywords import keyword_overlap, keyword_pass
from memeval.metrics.locomo import exact_match, locomo_f1, token_f1
from memeval.metrics.mem0 import bleu1, mem0_f1
from memeval.metrics.refusal import officially_refuses
from memeval.records import EvalQuestion

Metric = Callable[[str, str], float]

SCORERS = ("plain", "locomo", "characters")

METRICS: dict[str, Metric] = {
    "token_f1": token_f1,
    "mem0_f1": mem0_f1,
    "bleu1": bleu1,
    "keyword_overlap": keyword_overlap,
    "keyword_pass": lambda answer, gold: float(keyword_pass(answer, gold)),
    "exact_match": exact_match,
}


def answer_metrics(
    hypothesis: str, question: EvalQuestion, *, scorer: str = "plain"
) -> dict[str, float | None]:
    """Every answer metric, the best over the question's golds; `None` where a metric is not defined, always the same keys.

    `scorer` says what `token_f1` is: `plain` is the metric of that name, `locomo` the official score of the question's category,
    `characters` the metric with each Chinese character as a token. A question whose right answer is a refusal has no gold to compare with:
    only LoCoMo's official rule scores it, in `token_f1`. An answer that was chosen among others is right or wrong, and has none of these.
    A blank answer scores 0 in each that is defined.
    """
    if scorer not in SCORERS:
        raise ValueError(f"no scorer {scorer!r}; there is {', '.join(SCORERS)}")
    scores: dict[str, float | None] = dict.fromkeys(METRICS)
    if question.choices:
        return scores
    if not question.answerable:
        return scores | {
            "token_f1": float(officially_refuses(hypothesis)) if scorer == "locomo" else None
        }
    if not hypothesis.strip():
        return dict.fromkeys(METRICS, 0.0 if question.gold else None)
    for name, metric in METRICS.items():
        chosen = _scored_by(scorer, question) if name == "token_f1" else metric
        scores[name] = max((chosen(hypothesis, gold) for gold in question.gold), default=None)
    return scores


def _scored_by(scorer: str, question: EvalQuestion) -> Metric:
    """The set's own token F1."""
    if scorer == "locomo":
        return lambda prediction, gold: locomo_f1(prediction, gold, int(question.category))
    return character_f1 if scorer == "characters" else token_f1
