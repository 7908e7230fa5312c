"""Builds the table of a paper from finished runs, by the same rule as all comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from memeval.comparison.build import compare_runs
from memeval.comparison.paper.records import PaperCell, PaperColumn, PaperTable
from memeval.comparison.records import ComparedRun, Comparison
from memeval.comparison.sentences import are_too_few, detection_limit, interval, widest_of
from memeval.comparison.words import dominating_conversations, refusal_lines
from memeval.errors import UserError, unknown
from memeval.metrics.formats import NONE, count, figure
from memeval.metrics.formats import interval as interval_of_shares
from memeval.metrics.metric import POINTS, Metric
from memeval.metrics.registry import metric_named
from memeval.report.categories import columns_of, rows_of, titles_of
from memeval.report.comparison import judged_by
from memeval.report.differences import differing_settings, labels, setting_value
from memeval.report.flags import flags, recall_warnings
from memeval.results import CategoryResult, RunSummary
from memeval.results.run import Run
from memeval.text.shown import one_line

CATEGORIES = "categories"
"""The word for one column per category."""
USUAL = ("accuracy", CATEGORIES, "f1", "recall@10", "context", "cost", "latency")
"""Default columns, each if a run has it."""
NOT_MEASURED = PaperCell(value=None, text=NONE)


def paper_table(
    runs: Sequence[Run],
    columns: Sequence[str] = (),
    *,
    rows: Sequence[str] = (),
    caption: str = "",
    label: str = "",
    force: bool = False,
) -> PaperTable:
    """The table of some runs.

    `columns` are metrics as `compare --metric` names them, and `categories`; by default, those of
    `USUAL` that a run has. `rows` are the settings that name the rows; by default a short name that
    distinguishes the runs. Raises `UserError` for runs of several data sets, for runs that may not
    be compared unless `force`, for rows with equal names, and for columns that no run has.
    """
    summaries = [run.summary for run in runs]
    datasets = dict.fromkeys(one_line(summary.dataset) for summary in summaries)
    if len(datasets) > 1:
        raise UserError(
            f"a table shows one data set, but the runs have {len(datasets)}: {', '.join(datasets)}",
            f"add:  dataset={next(iter(datasets))}",
        )

    headings, names = _named_rows(summaries, rows)
    paper_columns: list[PaperColumn] = []
    comparisons: dict[str, Comparison] = {}
    for word in columns or _usual_columns(summaries):
        if word == CATEGORIES:
            paper_columns += _category_columns(summaries)
            continue

        metric = metric_named(word)
        if metric.figure:
            paper_columns.append(_described_column(metric, summaries))
            continue

        comparison = compare_runs(runs, metric, all_pairs=True, force=force)
        _refuse_other_protocols(comparison)
        comparisons[metric.name] = comparison
        paper_columns.append(_compared_column(metric, comparison))

    if not paper_columns:
        raise UserError(
            "the table has no columns: no run has a category", "use:  --columns accuracy"
        )

    return PaperTable(
        headings=headings,
        names=names,
        columns=tuple(paper_columns),
        flags=tuple(tuple(flags(summary)) for summary in summaries),
        notes=tuple(dict.fromkeys(_notes(summaries, names, paper_columns, comparisons))),
        caption=caption or _caption(summaries),
        label=label or f"tab:{next(iter(datasets), 'memeval')}",
    )


def _usual_columns(summaries: Sequence[RunSummary]) -> list[str]:
    usual = []
    for word in USUAL:
        if word == CATEGORIES:
            rows = chain.from_iterable(summary.categories for summary in summaries)
            is_measured = any(row.accuracy is not None for row in rows)
        else:
            metric = metric_named(word)
            values = [metric.of_summary(summary) for summary in summaries]
            is_measured = any(value is not None for value in values)

        if is_measured:
            usual.append(word)

    return usual


def _named_rows(
    summaries: Sequence[RunSummary], rows: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The headings and names of the rows. Raises `UserError` if two rows have the same name."""
    names: list[tuple[str, ...]]
    if not rows:
        headings: tuple[str, ...] = ("run",)
        names = [(name,) for name in labels(summaries)]
    else:
        known = {name for summary in summaries for name in summary.params}
        for name in rows:
            if name not in known:
                raise unknown(
                    "setting", one_line(name), differing_settings(summaries) or {"system"}
                )

        names = []
        for summary in summaries:
            names.append(tuple(one_line(setting_value(summary, row)) for row in rows))

        headings = tuple(row.removesuffix(".name") for row in rows)

    for own in names:
        if names.count(own) > 1:
            more = [row for row in differing_settings(summaries) if row not in rows]
            chosen = ",".join([*rows, *more[:1]]) or "system"
            raise UserError(
                f"{names.count(own)} runs are named {' '.join(own)}",
                f"use:  --rows {chosen}" if more else "leave one of them out",
            )

    return headings, tuple(names)


def _compared_column(metric: Metric, comparison: Comparison) -> PaperColumn:
    """A mean over questions, with its interval and the letters of rows that can't be told apart."""
    cells = tuple(_compared_cell(run, comparison, metric) for run in comparison.runs)
    return PaperColumn(name=metric.name, title=_title(metric), cells=cells)


def _compared_cell(run: ComparedRun, comparison: Comparison, metric: Metric) -> PaperCell:
    if run.result is None:
        return NOT_MEASURED

    return PaperCell(
        value=run.result.mean,
        low=run.result.low,
        high=run.result.high,
        text=figure(run.result.mean, metric.unit.name),
        interval=interval(run.result, metric.unit.name),
        letters=run.letters,
        is_best=_is_best(run, comparison, metric),
    )


def _is_best(run: ComparedRun, comparison: Comparison, metric: Metric) -> bool:
    """Whether a run is shown to be better than each other run that has a value."""
    others = [other.key for other in comparison.runs if other.result and other.key != run.key]
    beaten = set()
    for difference in comparison.differences:
        is_higher = difference.result.mean > 0
        better, worse = difference.first, difference.second
        if is_higher != metric.higher_is_better:
            better, worse = worse, better

        # A forced difference may be due to judges or questions.
        if better == run.key and difference.is_shown and not difference.forced:
            beaten.add(worse)

    return bool(others) and beaten >= set(others)


def _described_column(metric: Metric, summaries: Sequence[RunSummary]) -> PaperColumn:
    """A sum or a median of a run: it has no interval, and is not tested."""
    values = [metric.of_summary(summary) for summary in summaries]
    if all(value is None for value in values):
        raise UserError(f"none of these runs has {metric.name}", "leave the column out")

    cells = tuple(PaperCell(value, figure(value, metric.unit.name)) for value in values)
    return PaperColumn(name=metric.name, title=_title(metric), cells=cells)


def _category_columns(summaries: Sequence[RunSummary]) -> Iterator[PaperColumn]:
    """The accuracy by category: described, and not tested one by one."""
    titles = titles_of(summaries)
    for title in columns_of(titles):
        rows = [rows_of(summary, titles).get(title) for summary in summaries]
        is_headline = all(row.headline for row in rows if row is not None)
        apart = "" if is_headline else " (not in accuracy)"
        yield PaperColumn(
            name=f"accuracy/{one_line(title)}",
            title=f"{one_line(title)}{apart}",
            cells=tuple(map(_category_cell, rows)),
            group="accuracy by category (%)",
        )


def _category_cell(row: CategoryResult | None) -> PaperCell:
    if row is None or row.accuracy is None:
        return NOT_MEASURED

    has_interval = row.ci95_low is not None and row.ci95_high is not None
    return PaperCell(
        value=row.accuracy,
        low=row.ci95_low,
        high=row.ci95_high,
        text=figure(row.accuracy, POINTS.name),
        interval=interval_of_shares(row.ci95_low, row.ci95_high) if has_interval else "",
    )


def _title(metric: Metric) -> str:
    unit = "%" if metric.unit == POINTS else metric.unit.name
    return f"{metric.paper_title} ({unit})"


def _refuse_other_protocols(comparison: Comparison) -> None:
    """Raises `UserError` for runs that may not share a column."""
    measured = {run.key for run in comparison.runs if run.result}
    others = [own for own in comparison.refusals if {own.first, own.second} <= measured]
    if others:
        first, *more = refusal_lines(replace(comparison, refusals=tuple(others)))
        if all(own.can_be_forced for own in others):
            more.append("to show them in one column:  --force (the table will mention it)")

        raise UserError(f"{comparison.metric}: {first}", *more)


def _caption(summaries: Sequence[RunSummary]) -> str:
    asked = dict.fromkeys(count(summary.metrics.get("n_questions")) for summary in summaries)
    datasets = dict.fromkeys(one_line(summary.dataset) for summary in summaries)
    return f"{', '.join(datasets)}, {' or '.join(asked)} questions."


def _notes(
    summaries: Sequence[RunSummary],
    names: Sequence[Sequence[str]],
    columns: Sequence[PaperColumn],
    comparisons: dict[str, Comparison],
) -> Iterator[str]:
    for comparison in comparisons.values():
        if comparison.forced:
            yield f"{comparison.warning}."

    judge = judged_by(summaries)
    if judge:
        yield f"{judge[0].upper()}{judge[1:]}."

    cells = [cell for column in columns for cell in column.cells]
    if any(cell.interval for cell in cells):
        yield "In brackets: 95 % intervals, clustered by conversation."

    yield from _notes_on_differences(list(comparisons.values()), cells)
    if any(column.group for column in columns):
        yield "Categories are described, not tested one by one."

    metrics = [metric_named(column.name) for column in columns if not column.group]
    described = [metric.paper_title for metric in metrics if metric.figure]
    if described:
        yield f"Described, not tested: {', '.join(described)}."

    for name, summary in zip(names, summaries, strict=True):
        for warning in recall_warnings(summary, [metric.name for metric in metrics]):
            yield f"{' '.join(name)}: {warning}."
        if own := flags(summary):
            yield f"{' '.join(name)}: {', '.join(own)}."


def _notes_on_differences(
    comparisons: Sequence[Comparison], cells: Sequence[PaperCell]
) -> Iterator[str]:
    """Meaning of letters and bold; or that no difference can be shown."""
    if any(cell.letters for cell in cells):
        yield (
            "Rows that share a letter in a column can't be told apart: by flipping the signs of "
            "whole conversations, all pairs of a column adjusted together (max-T)."
        )
    if any(cell.is_best for cell in cells):
        yield "Bold: the best of its column, and shown to differ from every other row."

    for comparison in comparisons:
        if not comparison.differences:
            continue
        if are_too_few(comparison.differences):
            limit = detection_limit(widest_of(comparison.differences), comparison.unit)
            yield f"{comparison.metric}: {limit}."

        yield from dominating_conversations(comparison)
