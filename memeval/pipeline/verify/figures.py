"""Compares figures, settings and tags of `run.json` with their sources."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import isclose
from operator import attrgetter

from memeval.pipeline.measure.figures import Headline
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.run_notes import notes_of_rows, shortened_notes
from memeval.pipeline.measure.selection import Figures, Measures, measure
from memeval.pipeline.measure.spending import UNKNOWN_IF_IMPORTED
from memeval.pipeline.open.code import OtherMetrics
from memeval.results import CategoryResult, Record, RunSummary, is_imported
from memeval.results.own_prices import FIGURES_CODE
from memeval.text.shown import one_line, some_of

PRICE_PREFIX = "cost"
"""Prefix of the figures that depend on prices."""
CLOCK_FIGURES = ("duration_s",)
"""Figures that can't be computed from rows."""
MAX_SHOWN = 5
"""Maximum figures that a line names; the others are counted."""
INGEST_PREFIXES = (
    "tokens",
    "cost",
    "calls",
    "latency",
    "ingest",
    "duration",
    "retries",
    "wait",
    "stored",
    "write",
    "operations",
)
"""Prefixes of the metrics that are computed from ingests, too."""


def figure_problems(
    summary: RunSummary,
    records: Sequence[Record],
    ingests: Sequence[Ingest] | None,
    measures: Measures | None = None,
    *,
    has_prices: bool = True,
) -> Iterator[str]:
    """Differences of `run.json` from the records, from `ingests` if given, and from the data set's
    own metrics if `measures` computes them; costs only if `has_prices`: the run's own are in use.
    """
    figures = _measure_again(summary, records, ingests or (), measures)
    others = set(CLOCK_FIGURES)
    skipped: list[str] = []
    if measures is None:
        others.update(summary.protocol_metrics)
    if ingests is None:
        skipped += INGEST_PREFIXES
    if not has_prices:
        skipped.append(PRICE_PREFIX)

    compare = partial(
        _differences,
        others=others,
        skipped_prefixes=tuple(skipped),
        other_metrics=OtherMetrics.of(summary.tags.get(FIGURES_CODE, "")),
    )
    differences = list(compare("", summary.metrics, figures.metrics))
    for repeat, measured in zip(summary.repeats, figures.repeats, strict=True):
        differences += compare(f"repeat {repeat.repeat}: ", repeat.metrics, measured.metrics)

    differences += [f"no {name}" for name in CLOCK_FIGURES if summary.metrics.get(name) is None]
    differences += _row_differences("category", summary.categories, figures.categories)
    for name in dict.fromkeys((*figures.facets, *summary.facets)):
        rows = summary.facets.get(name, ()), figures.facets.get(name, ())
        differences += _row_differences(name, *rows)

    if differences:
        listed = some_of(differences, MAX_SHOWN, "; ")
        yield f"run.json: figures differ from those of the rows: {listed}"


def _measure_again(
    summary: RunSummary,
    records: Sequence[Record],
    ingests: Sequence[Ingest],
    measures: Measures | None,
) -> Figures:
    imported = is_imported(summary)
    # In older runs, these metrics contain the judge's spending.
    if any(summary.metrics.get(name) is not None for name in UNKNOWN_IF_IMPORTED):
        imported = False

    return measure(
        [(repeat.repeat, repeat.seed) for repeat in summary.repeats],
        records,
        ingests,
        _headline(summary, records),
        imported=imported,
        measures=measures,
        protocol=summary.protocol_metrics,
        has_score=summary.params.get("dataset.only") is None,
    )


def note_problems(
    summary: RunSummary, records: Sequence[Record], ingests: Sequence[Ingest]
) -> Iterator[str]:
    """Notes that follow from records and ingests, but are missing in `run.json`."""
    expected = shortened_notes(notes_of_rows(records, ingests, _headline(summary, records)))
    for note in expected:
        if note not in summary.notes:
            yield f"run.json: a note is missing: {one_line(note.text, 100)}"


def _headline(summary: RunSummary, records: Sequence[Record]) -> Headline:
    if all(row.headline for row in summary.categories):
        return None

    names = summary.headline
    return frozenset(record.category for record in records if str(record.category) in names)


def _differences(
    prefix: str,
    recorded: Mapping[str, float | None],
    computed: Mapping[str, float | None],
    *,
    others: Collection[str],
    skipped_prefixes: tuple[str, ...],
    other_metrics: OtherMetrics,
) -> Iterator[str]:
    """Skips `others`, names with one of `skipped_prefixes`, and those of `other_metrics`: they are
    not computed here.
    """
    for name in dict.fromkeys((*computed, *recorded)):
        if name in others or name.startswith(skipped_prefixes):
            continue
        if other_metrics.include(name, computed):
            continue

        value = computed.get(name)
        # An unmeasured figure is present, as None.
        if (name in recorded) != (name in computed) or not same_figure(recorded.get(name), value):
            yield f"{prefix}{one_line(name, 60)} {_shown(recorded.get(name))}, not {_shown(value)}"


def _row_differences(
    group: str, recorded: Sequence[CategoryResult], computed: Sequence[CategoryResult]
) -> Iterator[str]:
    if len(recorded) != len(computed):
        yield f"{len(recorded)} rows of {group}, not {len(computed)}"
        return

    # The order of the rows is only for display.
    by_id = attrgetter("category")
    for row, again in zip(sorted(recorded, key=by_id), sorted(computed, key=by_id), strict=True):
        figures, other_figures = asdict(row), asdict(again)
        del other_figures["category"], other_figures["name"]
        is_other = (row.category, row.name) != (again.category, again.name)
        if is_other or not all(
            same_figure(figures[name], value) for name, value in other_figures.items()
        ):
            yield f"{group} {one_line(again.name, 60)}"


def same_figure(first: float | None, second: float | None) -> bool:
    """Whether two figures are equal up to rounding, as sums may be in another order."""
    if first is None or second is None:
        return first is second

    return isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)


def _shown(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.6g}"
