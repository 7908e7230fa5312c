"""Builds the table of a paper from finished runs, by the same rule as all comparisons."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memeval.comparison.build import compare_runs
from memeval.comparison.paper.records import NOT_MEASURED, PaperCell, PaperColumn, PaperTable
from memeval.comparison.records import Comparison, are_too_few
from memeval.comparison.sentences import detection_limit, interval, widest_of
from memeval.comparison.words import caveats, refusal_lines
from memeval.errors import UserError, unknown
from memeval.metrics.formats import count, figure
from memeval.metrics.formats import interval as interval_of_shares
from memeval.metrics.metric import POINTS, Metric
from memeval.metrics.registry import metric_named, metrics
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
    words = list(columns) or _usual_columns(summaries)
    paper_columns, comparisons = _columns_named(words, runs, force=force)
    if not paper_columns:
        raise UserError(
            "the table has no columns: no run has a category",
            "use:  --columns accuracy (in Python: columns='accuracy')",
        )

    return PaperTable(
        headings=headings,
        names=names,
        columns=tuple(paper_columns),
        flags=tuple(tuple(flags(summary)) for summary in summaries),
        notes=tuple(dict.fromkeys(_notes(summaries, names, paper_columns, comparisons))),
        caption=caption or f"{', '.join(datasets)}, {_measured_on(summaries)}.",
        label=label or f"tab:{next(iter(datasets), 'memeval')}",
    )


def _measured_on(summaries: Sequence[RunSummary]) -> str:
    """`142 questions, means of 3 repeats`."""
    asked = dict.fromkeys(count(summary.asked) for summary in summaries)
    repeats = dict.fromkeys(str(len(summary.repeats) or 1) for summary in summaries)
    means = "" if [*repeats] == ["1"] else f", means of {' or '.join(repeats)} repeats"
    return f"{' or '.join(asked)} questions{means}"


def _columns_named(
    words: Sequence[str], runs: Sequence[Run], *, force: bool
) -> tuple[list[PaperColumn], dict[str, Comparison]]:
    """The columns, and the comparisons behind those that are tested, by metric."""
    summaries = [run.summary for run in runs]
    columns: list[PaperColumn] = []
    comparisons = {}
    for word in words:
        if word == CATEGORIES:
            columns += _category_columns(summaries)
            continue

        metric = metric_named(word)
        if metric.figure:
            columns.append(_described_column(metric, summaries))
            continue

        comparison = compare_runs(runs, metric, all_pairs=True, force=force, categories=False)
        _refuse_other_protocols(comparison)
        comparisons[metric.name] = comparison
        columns.append(_compared_column(metric, comparison))

    return columns, comparisons


def _usual_columns(summaries: Sequence[RunSummary]) -> list[str]:
    usual = []
    for word in USUAL:
        values: list[float | None] = []
        for summary in summaries:
            if word == CATEGORIES:
                values += [row.accuracy for row in summary.categories]
            else:
                values.append(metric_named(word).of_summary(summary))

        if values.count(None) < len(values):
            usual.append(word)

    return usual


def _named_rows(
    summaries: Sequence[RunSummary], rows: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The headings and names of the rows. Raises `UserError` if two rows have the same name."""
    headings, columns = [], []
    for name in rows:
        known = set().union(*(summary.params for summary in summaries))
        if name not in known:
            raise unknown(
                "setting",
                one_line(name),
                known,
                "for example:  --rows system,top_k (in Python: rows='system,top_k')",
            )

        headings.append(name.removesuffix(".name"))
        columns.append([one_line(setting_value(summary, name)) for summary in summaries])

    if not rows:
        headings, columns = ["run"], [labels(summaries)]

    names = tuple(zip(*columns, strict=True))
    for row_name, times in Counter(names).items():
        if times > 1:
            hint = "leave one of them out"
            wanted = _distinguishing(summaries, rows, names)
            if wanted != list(rows):
                named = ",".join(wanted)
                hint = f"use:  --rows {named} (in Python: rows='{named}')"

            raise UserError(f"{times} runs are named {' '.join(row_name)}", hint)

    return tuple(headings), names


def _distinguishing(
    summaries: Sequence[RunSummary], rows: Sequence[str], names: Sequence[object]
) -> list[str]:
    """The settings of the rows, whose values are `names`, and each other setting that distinguishes
    more of them.
    """
    wanted = list(rows)
    for setting in differing_settings(summaries):
        values = [setting_value(run, setting) for run in summaries]
        more = list(zip(names, values, strict=True))
        if len(set(more)) > len(set(names)):
            wanted, names = [*wanted, setting], more

    return wanted


def _compared_column(metric: Metric, comparison: Comparison) -> PaperColumn:
    """A mean over questions, with its interval and the letters of rows that can't be told apart."""
    cells, best = [], _best_run(comparison, metric)
    for run in comparison.runs:
        cell = NOT_MEASURED
        if run.result is not None:
            cell = PaperCell(
                value=run.result.mean,
                low=run.result.low,
                high=run.result.high,
                text=figure(run.result.mean, metric.unit.name),
                interval=interval(run.result, metric.unit.name),
                letters=run.letters,
                is_best=run.key == best,
            )

        cells.append(cell)

    return PaperColumn(name=metric.name, title=_title(metric), cells=tuple(cells))


def _best_run(comparison: Comparison, metric: Metric) -> str | None:
    """Key of the run that is shown to be better than each other run that has a value."""
    # Without the metric it is unknown whether more is better, except for the data sets' own shares.
    if metric.name not in metrics() and not metric.name.startswith("official/"):
        return None

    beaten: dict[str, set[str]] = defaultdict(set)
    for difference in comparison.differences:
        is_higher = difference.result.mean > 0
        better, worse = difference.first, difference.second
        if is_higher != metric.higher_is_better:
            better, worse = worse, better

        # A forced difference may be due to judges or questions.
        if difference.is_shown and not difference.forced:
            beaten[better].add(worse)

    measured = _measured_keys(comparison)
    for key, worse_keys in beaten.items():
        if worse_keys >= measured - {key}:
            return key

    return None


def _described_column(metric: Metric, summaries: Sequence[RunSummary]) -> PaperColumn:
    """A sum or a median of a run: it has no interval, and is not tested."""
    values = list(map(metric.of_summary, summaries))
    if values.count(None) == len(values):
        raise UserError(f"none of these runs has {metric.name}", "leave the column out")

    cells = tuple(PaperCell(value, figure(value, metric.unit.name)) for value in values)
    return PaperColumn(name=metric.name, title=_title(metric), cells=cells)


def _category_columns(summaries: Sequence[RunSummary]) -> Iterator[PaperColumn]:
    """The accuracy by category: described, and not tested one by one."""
    titles = titles_of(summaries)
    for title in columns_of(titles):
        cells, apart = [], ""
        for summary in summaries:
            row = rows_of(summary, titles).get(title)
            cells.append(_category_cell(row))
            if row is not None and not row.headline:
                apart = " (not in accuracy)"

        yield PaperColumn(
            name=f"accuracy/{one_line(title)}",
            title=f"{one_line(title)}{apart}",
            cells=tuple(cells),
            group="accuracy by category (%)",
        )


def _category_cell(row: CategoryResult | None) -> PaperCell:
    if row is None or row.accuracy is None:
        return NOT_MEASURED

    low, high, brackets = row.ci95_low, row.ci95_high, ""
    if low is not None and high is not None:
        brackets = interval_of_shares(low, high)

    text = figure(row.accuracy, POINTS.name)
    return PaperCell(value=row.accuracy, low=low, high=high, text=text, interval=brackets)


def _title(metric: Metric) -> str:
    unit = "%" if metric.unit == POINTS else metric.unit.name
    return f"{metric.paper_title} ({unit})"


def _refuse_other_protocols(comparison: Comparison) -> None:
    """Raises `UserError` for runs that may not share a column."""
    measured = _measured_keys(comparison)
    others = [
        refusal for refusal in comparison.refusals if {refusal.first, refusal.second} <= measured
    ]
    if others:
        first, *more = refusal_lines(replace(comparison, refusals=tuple(others)))
        if all(refused.can_be_forced for refused in others):
            more.append(
                "to show them in one column:  --force (in Python: force=True; the table will "
                "mention it)"
            )

        raise UserError(f"{comparison.metric}: {first}", *more)


def _measured_keys(comparison: Comparison) -> set[str]:
    return {run.key for run in comparison.runs if run.result}


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

    cells: list[PaperCell] = []
    measured, described = [], []
    for column in columns:
        cells += column.cells
        if not column.group:
            metric = metric_named(column.name)
            measured.append(metric.name)
            if metric.figure:
                described.append(metric.paper_title)

    if any(cell.interval for cell in cells):
        yield "In brackets: 95 % intervals, clustered by conversation."

    yield from _notes_on_differences(list(comparisons.values()), cells)
    if any(column.group for column in columns):
        yield "Categories are described, not tested one by one."
    if described:
        yield f"Described, not tested: {', '.join(described)}."

    yield from _notes_on_rows(summaries, names, measured)


def _notes_on_rows(
    summaries: Sequence[RunSummary], names: Sequence[Sequence[str]], measured: Sequence[str]
) -> Iterator[str]:
    """Warnings and flags, each once, with the rows that have it."""
    flagged: dict[str, list[str]] = {}
    for name, summary in zip(names, summaries, strict=True):
        for words in (*recall_warnings(summary, measured), *flags(summary)):
            flagged.setdefault(words, []).append(" ".join(name))

    for words, flagged_rows in flagged.items():
        subject = "All rows" if len(flagged_rows) == len(names) > 1 else ", ".join(flagged_rows)
        yield f"{subject}: {words}."


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

        yield from caveats(comparison)
