"""Metrics of one answer, from its row and the gold; computed for each summary, not stored."""

from collections.abc import Mapping

from msgspec import Struct, field

from memeval.datasets.contract import Dataset
from memeval.datasets.own_classes import calling
from memeval.judges.accuracy import read_choices
from memeval.metrics.lifecycle import AFTER, trace_metrics
from memeval.metrics.retrieval import EvidenceRanks
from memeval.pipeline.execute.turns import CaseTurns
from memeval.records import EvalQuestion, Status
from memeval.results.rows import AnswerRow


class Measured(Struct, frozen=True):
    """The figures of an answer other than its verdict."""

    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Answer and ranking metrics by name; empty without an answer."""
    ranking: EvidenceRanks | None = None
    """Ranks of the evidence in the whole ranking; None without a ranking."""
    shown: EvidenceRanks | None = None
    """Ranks of the evidence among the chunks shown to the reader; None if they are not known."""


def measure_answer(
    row: AnswerRow, question: EvalQuestion, turns: CaseTurns, dataset: Dataset
) -> Measured:
    """Measures one answer. Raises `UserError` if the data set's own metrics raise."""
    metrics: dict[str, float | None] = {}
    if row.status is Status.OK and row.hypothesis is not None:
        with calling(dataset, "answer_metrics"):
            metrics = dict(dataset.answer_metrics(row.hypothesis, question))

    elif row.status is not Status.RETRIEVED:
        return Measured()  # a failed answer has no figures, not figures of 0

    if question.traces is not None:
        after = question.facets.get(AFTER, "")
        answer = _answer_text(row, question)
        # Only the answers of another program are known.
        metrics |= trace_metrics(answer, row.seen or {}, question.traces, after=after)

    if row.ranking is None:
        return Measured(metrics)

    shown = None
    if row.retrieved is not None:
        positions = turns.positions(chunk.turn_ids for chunk in row.retrieved)
        shown = turns.evidence_ranks(positions, question.evidence)

    # The ids of a ranking are made only for a data set with metrics of its own.
    if type(dataset).ranking_metrics is not Dataset.ranking_metrics:
        with calling(dataset, "ranking_metrics"):
            ranking = turns.ranking(row.ranking)
            metrics |= dataset.ranking_metrics(question, ranking, turns.session_of)

    return Measured(
        metrics=metrics,
        ranking=turns.evidence_ranks(row.ranking, question.evidence),
        shown=shown,
    )


def _answer_text(row: AnswerRow, question: EvalQuestion) -> str | None:
    """The answer, which may be only a letter, with the texts of the choices that it names."""
    if row.hypothesis is None or not question.choices:
        return row.hypothesis

    chosen = read_choices(question, row.hypothesis) or ()
    return "\n".join([row.hypothesis, *map(question.choices.__getitem__, chosen)])
