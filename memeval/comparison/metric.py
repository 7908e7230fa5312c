"""What two runs are compared by: a figure that each question has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memeval.errors import UserError, unknown
from memeval.llm.prices import total_cost_usd
from memeval.metrics.retrieval import retrieval_metrics, retrieval_of
from memeval.results import Record
from memeval.shown import one_line

POINTS = "points"
"""Unit of shares in [0, 1], which are shown times 100."""


@dataclass(frozen=True)
class Metric:
    """A figure of a question."""

    name: str
    """As in a record: `accuracy`, `token_f1`, `recall_at_5` …"""
    unit: str = POINTS
    judged: bool = False
    """Whether it is the judge's: another judge then makes another metric."""
    of_record: Callable[[Record], float | None] | None = None
    """Reads it from a whole record; None for accuracy and for the record's own metrics."""
    of_calls: bool = False
    """Whether it counts what was spent on calls, which of imported answers is not known."""
    all_categories: bool = False
    """Whether it counts every question, as the tables' figure of this name does; else only the
    categories that enter the accuracy.
    """

    @property
    def most(self) -> float | None:
        """The largest difference there can be; None where there is no bound."""
        return 1.0 if self.unit == POINTS else None

    @property
    def scale(self) -> float:
        """What values are multiplied by where they are shown."""
        return 100.0 if self.unit == POINTS else 1.0


def metric_named(word: str) -> Metric:
    """The metric of a word of the command line: `accuracy`, `f1`, `recall@5`, `cost`, `latency` …

    Any other word names a metric of the records themselves, such as `bleu1`.
    """
    name = ALIASES.get(word.strip().lower(), word.strip()).replace("@", "_at_")
    return BUILT_IN.get(name) or Metric(name)


def unknown_metric(name: str, recorded: Iterable[str]) -> UserError:
    """The error for a metric that no question of a run has."""
    # The name is right: these runs were not judged, or retrieved nothing.
    if name in BUILT_IN:
        return UserError(
            f"no question of these runs has a value of {name}",
            "after stages=retrieve:  --metric recall@10",
            "of imported answers neither retrieval nor cost is known",
        )

    known = sorted({*BUILT_IN, *(one_line(other) for other in recorded)})
    return unknown("metric", one_line(name), known)


def _cost(record: Record) -> float | None:
    # What was read from the cache counts, too: else the second run of a command would be cheaper.
    return total_cost_usd(record.usage, billed=False)


def _tokens(record: Record) -> float | None:
    total = 0
    for usage in record.usage:
        # Not known is not 0: one such call would make a system look cheap.
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None

        total += usage.prompt_tokens + usage.completion_tokens

    return float(total)


def _latency(record: Record) -> float | None:
    return record.times.answer_ms


def _context(record: Record) -> float | None:
    return None if record.context_tokens is None else float(record.context_tokens)


def _of_ranking(name: str) -> Callable[[Record], float | None]:
    """Reads a retrieval metric from the ranks of the evidence, as records hold no other."""

    def read(record: Record) -> float | None:
        # Records of other programs may have the metric without the ranks.
        if not record.evidence_ranks:
            return record.metrics.get(name)

        return retrieval_of(record)[name]

    return read


def _score(record: Record) -> float | None:
    return None if record.score is None or record.verdict is None else record.verdict.score


_METRICS = (
    Metric("accuracy", judged=True),
    Metric("score", judged=True, of_record=_score),
    Metric("cost_usd", unit="$", of_record=_cost, of_calls=True, all_categories=True),
    Metric("tokens", unit="tokens", of_record=_tokens, of_calls=True, all_categories=True),
    Metric("context_tokens", unit="tokens", of_record=_context, all_categories=True),
    Metric("latency_ms", unit="ms", of_record=_latency, all_categories=True),
    *(
        Metric(name, of_record=_of_ranking(name), all_categories=True)
        for name in retrieval_metrics(None, None, None)
    ),
)
BUILT_IN = {metric.name: metric for metric in _METRICS}
ALIASES = {
    "acc": "accuracy",
    "f1": "token_f1",
    "cost": "cost_usd",
    "latency": "latency_ms",
    "context": "context_tokens",
}
