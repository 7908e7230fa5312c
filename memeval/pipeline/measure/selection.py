"""The validity of a cell's figures if it asked only some of the questions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from memeval.metrics.lifecycle import RATES
from memeval.pipeline.measure.figures import (
    Headline,
    main_metrics,
    measure_categories,
    measure_cell,
    measure_facets,
    measure_repeat,
)
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.spending import Metrics
from memeval.pipeline.open.cell import Cell
from memeval.results import CategoryResult, Record, RepeatResult
from memeval.text.shown import counted

Measures = Callable[[Sequence[Record]], Mapping[str, float | None]]
"""Returns a data set's own metrics for the records of a repeat: `Dataset.measures`."""


def has_score(cell: Cell) -> bool:
    """Whether a cell has an accuracy: questions chosen for their wrong answers are not a sample."""
    return cell.config.dataset["only"] is None


class Figures(Struct, frozen=True):
    metrics: Metrics
    repeats: tuple[RepeatResult, ...]
    categories: tuple[CategoryResult, ...]
    facets: Mapping[str, tuple[CategoryResult, ...]]


def measure(
    seeds: Sequence[tuple[int, int]],
    records: Sequence[Record],
    ingests: Sequence[Ingest],
    headline: Headline,
    *,
    imported: bool,
    measures: Measures | None,
    protocol: Sequence[str],
    has_score: bool,
) -> Figures:
    """The figures of a cell, and of each repeat; `seeds` has the number and the seed of each.

    With `measures`, they include the data set's own. Without `has_score` there is no accuracy, no
    rates of a memory's life, and none of the `protocol` metrics of the data set.
    """
    repeats: list[Metrics] = []
    for number, seed in seeds:
        own_records = [record for record in records if record.repeat == number]
        own_ingests = [ingest for ingest in ingests if ingest.seed == seed]
        repeat = measure_repeat(own_records, own_ingests, headline, imported=imported)
        if measures is not None:
            repeat |= measures(own_records)

        repeats.append(repeat)

    metrics = measure_cell(repeats, records, headline, ingests)
    categories = measure_categories(records, repeats, headline)
    facets = measure_facets(records, repeats)
    if not has_score:
        names = *(metric.name for metric in (*main_metrics(), *RATES)), *protocol
        metrics = _blank_out(metrics, names)
        repeats = [_blank_out(repeat, names) for repeat in repeats]
        categories = _rows_without_score(categories)
        facets = {name: _rows_without_score(rows) for name, rows in facets.items()}

    results = (RepeatResult(*pair, figures) for pair, figures in zip(seeds, repeats, strict=True))
    return Figures(metrics, tuple(results), categories, facets)


def _blank_out(metrics: Metrics, names: tuple[str, ...]) -> Metrics:
    return metrics | dict.fromkeys(name for name in metrics if name.startswith(names))


def _rows_without_score(rows: Sequence[CategoryResult]) -> tuple[CategoryResult, ...]:
    scores = ("accuracy", "accuracy_std", "ci95_low", "ci95_high", "token_f1")
    unscored: dict[str, Any] = dict.fromkeys(scores)
    return tuple(replace(row, **unscored) for row in rows)


def notes_on_questions(cell: Cell, records: Sequence[Record]) -> Iterator[str]:
    """Notes on the selection of questions and its consequences for the figures."""
    settings = cell.config.dataset
    sample = cell.dataset.sample
    if sample is not None:
        yield (
            f"A sample: {len(sample.weights):,} of {sample.of:,} questions, drawn by category from "
            f"{sample.drawn_conversations} of {sample.conversations} conversations "
            f"(seed {settings['sample_seed']}). Figures are weighted back to all questions; "
            "question counts, tokens and cost are those of the sample, and metrics of the data "
            "set's own protocol are not weighted."
        )

    cut = settings["limit_questions"]
    if cut is not None:
        first = "question" if cut == 1 else f"{cut} questions"
        yield (
            f"A biased cut: dataset.limit_questions={cut} asks the first {first} of each "
            "conversation, and early questions differ from later ones. dataset.sample=N draws "
            "from all."
        )

    if settings["only"] is not None:
        asked, right = set(), set()
        for record in records:
            asked.add(record.question_id)
            if record.is_right:
                right.add(record.question_id)

        yield (
            f"Asked only what run {str(settings['only']).removeprefix('wrong:')} got wrong: "
            f"{len(right)} of {len(asked)} questions are right now. The run has no accuracy, "
            "because questions that were right before were not asked."
        )
    elif settings["question_ids"] is not None:
        yield (
            f"{counted(len(settings['question_ids']), 'named question')}: the figures are not an "
            "estimate for all questions."
        )
