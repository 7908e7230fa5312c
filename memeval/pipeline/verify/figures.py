"""Makes a run's figures again from its rows, which finds edits of figure and digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isclose

from memeval.pipeline.measure.chosen import measure
from memeval.pipeline.measure.figures import measure_repeat
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.spending import Metrics
from memeval.results import CategoryResult, Record, RunSummary
from memeval.text.shown import one_line

SHOWN = 5
"""Figures that a line names; it counts the others."""
OF_INGEST = (
    "tokens",
    "cost",
    "calls",
    "latency",
    "ingest",
    "duration",
    "retries",
    "wait",
    "stored",
)
"""First words of the metrics that are made from ingests, too."""


def figure_problems(
    summary: RunSummary, records: Sequence[Record], ingests: Sequence[Ingest] | None
) -> Iterator[str]:
    """Differences of `run.json` from the records, and from the ingests if given."""
    names = {row.category for row in summary.categories if row.headline}
    headline = frozenset(record.category for record in records if str(record.category) in names)
    whole = all(row.headline for row in summary.categories)
    repeats = []
    for repeat in summary.repeats:
        own = [record for record in records if record.repeat == repeat.repeat]
        made = [ingest for ingest in ingests or () if ingest.seed == repeat.seed]
        repeats.append(measure_repeat(own, made, None if whole else headline))

    scored = summary.params.get("dataset.only") is None
    figures = measure(repeats, records, None if whole else headline, has_score=scored)

    unlike = list(_unlike("", summary.metrics, figures.metrics, alone=ingests is None))
    for repeat, own_metrics in zip(summary.repeats, figures.repeats, strict=True):
        begin = f"repeat {repeat.repeat}: "
        unlike += _unlike(begin, repeat.metrics, own_metrics, alone=ingests is None)

    unlike += _unlike_rows("category", summary.categories, figures.categories)
    for name, rows in figures.facets.items():
        unlike += _unlike_rows(name, summary.facets.get(name, ()), rows)

    if unlike:
        more = f" and {len(unlike) - SHOWN} more" if len(unlike) > SHOWN else ""
        yield f"run.json: figures unlike those of the rows: {'; '.join(unlike[:SHOWN])}{more}"


def _unlike(
    begin: str, said: Mapping[str, float | None], made: Metrics, *, alone: bool
) -> Iterator[str]:
    for name, value in made.items():
        if alone and name.startswith(OF_INGEST):
            continue

        if not same_figure(said.get(name), value):
            yield f"{begin}{one_line(name, 60)} {_shown(said.get(name))}, not {_shown(value)}"


def _unlike_rows(
    group: str, said: Sequence[CategoryResult], made: Sequence[CategoryResult]
) -> Iterator[str]:
    by_name = {row.category: row for row in said}
    for row in made:
        other = by_name.pop(row.category, None)
        if other is None or not all(
            same_figure(value, asdict(other)[name])
            for name, value in asdict(row).items()
            if isinstance(value, int | float | None)
        ):
            yield f"{group} {one_line(row.name, 60)}"

    yield from (f"{group} {one_line(name, 60)}" for name in by_name)


def same_figure(one: float | None, other: float | None) -> bool:
    """Whether two figures are equal but for the rounding of another order of sums."""
    if one is None or other is None:
        return one is other

    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _shown(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.6g}"
