"""All answer metrics of one answer, by name."""

from collections.abc import Callable, Sequence

from memeval.metrics.keywords import keyword_overlap, keyword_pass
from memeval.metrics.mem0 import bleu1, mem0_f1
from memeval.metrics.metric import PAGE, PAPER, REPEATS, REPORT, ROWS, SHOW, TABLE, TILE, Metric
from memeval.metrics.registry import metrics
from memeval.metrics.tokens import contains, exact_match, token_f1
from memeval.records import EvalQuestion
from memeval.text.words import script_without_words

METRICS = (
    Metric(
        "token_f1",
        of_answer=token_f1,
        aliases=("f1",),
        needs_words=True,
        is_main=True,
        columns={
            TABLE: "F1",
            PAGE: "token F1 %",
            PAPER: "F1",
            REPEATS: "token F1 %",
            ROWS: "token_f1",
        },
        lines={TILE: "Token F1", SHOW: "token F1", REPORT: "token F1"},
    ),
    Metric("mem0_f1", of_answer=mem0_f1, needs_words=True, columns={PAPER: "mem0 F1"}),
    Metric("bleu1", of_answer=bleu1, needs_words=True, columns={PAPER: "BLEU-1"}),
    Metric("keyword_overlap", of_answer=keyword_overlap, needs_words=True),
    Metric("keyword_pass", of_answer=lambda answer, gold: float(keyword_pass(answer, gold))),
    Metric("exact_match", of_answer=exact_match),
    Metric("contains", of_answer=contains),
)


def answer_metrics(
    answer: str, question: EvalQuestion, *, official_f1: Callable[[str, str], float] = token_f1
) -> dict[str, float | None]:
    """Every answer metric, the best over the question's golds; always the same keys.

    `official_f1` replaces `token_f1` in the data set's own protocol. A metric is None if it is not
    defined: for a question with choices, whose answer is right or wrong, and for a question whose
    right answer is a refusal, which has no gold. Those that count words are None for golds whose
    words can't be counted (`memeval.text.words.script_without_words`). A blank answer scores 0.
    """
    golds: Sequence[str] = question.gold
    if question.choices or not question.answerable:
        golds = ()

    lacks_words = script_without_words(" ".join(golds)) is not None
    measured: dict[str, float | None] = {}
    for metric in metrics().values():
        if metric.of_answer is None:
            continue

        if not metric.needs_gold:
            measured[metric.name] = metric.compare(answer, "")
        elif not golds:
            measured[metric.name] = None
        elif not answer.strip() and metric.more_is_better:
            measured[metric.name] = 0.0
        elif metric.needs_words and lacks_words:
            measured[metric.name] = None
        else:
            compare = official_f1 if metric.name == "token_f1" else metric.compare
            best = max if metric.more_is_better else min
            measured[metric.name] = best(compare(answer, gold) for gold in golds)

    return measured
