"""Claims a cell may make about its figures if it asked only some of the questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memeval.pipeline.measure.figures import main_metrics
from memeval.pipeline.open.cell import Cell
from memeval.results import CategoryResult, Record


def has_score(cell: Cell) -> bool:
    """Whether a cell has an accuracy: a choice of wrong answers is not a sample."""
    return cell.config.dataset["only"] is None


def without_score(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Metrics of a cell that has no score of its own."""
    scores = tuple(metric.name for metric in main_metrics())
    return {name: None if name.startswith(scores) else value for name, value in metrics.items()}


def row_without_score(row: CategoryResult) -> CategoryResult:
    """A category of a cell that has no score of its own."""
    return replace(
        row, accuracy=None, accuracy_std=None, ci95_low=None, ci95_high=None, token_f1=None
    )


def notes_on_questions(cell: Cell, records: Sequence[Record]) -> Iterator[str]:
    """Which questions were asked, and the consequences for the figures."""
    settings = cell.config.dataset
    sample = cell.dataset.sample
    if sample is not None:
        yield (
            f"A sample: {len(sample.weights):,} of {sample.of:,} questions, drawn by category from "
            f"{sample.drawn_conversations} of {sample.conversations} conversations "
            f"(seed {settings['sample_seed']}). Figures are weighted back to all questions; "
            "numbers of questions, tokens and cost are those of the sample, and metrics of the "
            "data set's own protocol are not weighted."
        )

    cut = settings["limit_questions"]
    if cut is not None:
        yield (
            f"A biased cut: dataset.limit_questions={cut} asks the first {cut} questions of each "
            "conversation, which are not like the others. dataset.sample=N draws from all."
        )

    if settings["only"] is not None:
        right = len({record.question_id for record in records if record.is_right})
        asked = len({record.question_id for record in records})
        yield (
            f"Asked again what run {str(settings['only']).removeprefix('wrong:')} got wrong: "
            f"{right} of {asked} questions are right now. The run has no accuracy: what was right "
            "before was not asked."
        )
    elif settings["question_ids"] is not None:
        yield (
            f"{len(settings['question_ids'])} named questions: the figures are theirs, and not an "
            "estimate for all questions."
        )
