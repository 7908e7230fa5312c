"""From run folders to the contents of the page."""

from collections.abc import Collection, Sequence

from memeval.metrics.accuracy import corrected_text
from memeval.metrics.formats import NONE, percent
from memeval.metrics.metric import PAGE, TILE
from memeval.metrics.registry import metrics_at
from memeval.report.categories import columns_of, rows_of, titles_of
from memeval.report.compared import ComparisonData
from memeval.report.differences import differing_settings, labels, setting_value
from memeval.report.flags import flags
from memeval.report.page.data import (
    CategoryData,
    CellData,
    ConversationData,
    PageData,
    ShownFigure,
)
from memeval.report.page.questions import question_data
from memeval.report.page.runs import PageRun
from memeval.report.plots.curves import curve_panel, curves_of
from memeval.report.plots.prices import price_panels
from memeval.report.sentences import run_sentences
from memeval.results import Record, RunSummary, judge_shown
from memeval.statistics.means import mean
from memeval.text.redaction import redacted
from memeval.text.shown import counted

MAX_CONVERSATIONS = 60
"""Most conversations that are drawn one by one; if there are more, only questions are listed."""


def page_data(runs: Sequence[PageRun], comparison: ComparisonData | None = None) -> PageData:
    """All that a page shows of these runs, in their order."""
    summaries = [run.summary for run in runs]
    keys = [summary.run_key for summary in summaries]
    dataset = ", ".join(dict.fromkeys(summary.dataset for summary in summaries))
    baseline, refused = 0, set[str]()
    if comparison and comparison.baseline in keys:
        baseline = keys.index(comparison.baseline)
        refused = set(keys).difference(row.cell for row in comparison.differences)

    cells = cell_data(summaries)
    # Costs may be compared across judges, but not the accuracies.
    judge = cells[baseline].judge
    refused.update(cell.summary.run_key for cell in cells if cell.judge != judge)
    title, protocol = f"{len(summaries)} runs on {dataset}", ""
    if len(summaries) == 1:
        title, protocol = summaries[0].name, summaries[0].tags.get("protocol", "")

    return PageData(
        title=title,
        dataset=dataset,
        sentences=comparison.sentences if comparison else sentences(cells, runs),
        judges=tuple(dict.fromkeys(cell.judge for cell in cells if cell.judge)),
        protocol=protocol,
        made_at=max(summary.finished_at for summary in summaries),
        cells=cells,
        baseline=baseline,
        comparison=comparison,
        categories=category_data(summaries),
        conversations=conversation_data(runs, baseline, refused),
        settings=setting_data(summaries),
        frontiers=price_panels(summaries, [cell.label for cell in cells]),
        curves=list(map(curve_panel, curves_of(summaries))),
        questions=question_data(runs),
    )


def cell_data(summaries: Sequence[RunSummary]) -> tuple[CellData, ...]:
    """A row of the table for each run."""
    names = labels(summaries)
    if len(summaries) == 1:
        names = [summaries[0].name]

    figures = [_figures(summary, PAGE) for summary in summaries]
    cells = []
    for summary, label, columns in zip(summaries, names, with_figures(figures), strict=True):
        scored = asked = 0
        for row in summary.categories:
            if row.headline:
                scored += row.scored
                asked += row.asked

        cell = CellData(
            summary=summary,
            label=label,
            command=redacted(summary.command),
            judge=judge_shown(summary.judge),
            accuracy=summary.share(),
            columns=columns,
            tiles=_figures(summary, TILE),
            flags=tuple(flags(summary)),
            notes=tuple(redacted(str(note)) for note in summary.notes),
            scored=scored,
            asked=asked,
            corrected=corrected_text(summary),
        )
        cells.append(cell)

    return tuple(cells)


def with_figures(rows: Sequence[Sequence[ShownFigure]]) -> list[tuple[ShownFigure, ...]]:
    """The rows without the columns that no row has a figure for."""
    columns = filter(has_figure, zip(*rows, strict=True))
    return list(zip(*columns, strict=True)) or [()] * len(rows)


def has_figure(column: Sequence[ShownFigure]) -> bool:
    return any(figure.text not in {"", NONE} for figure in column)


def _figures(summary: RunSummary, place: str) -> tuple[ShownFigure, ...]:
    made = []
    for metric in metrics_at(place):
        value, text = metric.of_summary(summary), metric.shown(place, summary)
        before = after = ""
        if value is not None:
            before, after = metric.unit.before, metric.unit.after

        # The page shows the unit separately, so the text omits it.
        text = text.removesuffix(after)
        made.append(ShownFigure(metric.titles[place], metric.hint, value, before, text, after))

    return tuple(made)


def category_data(summaries: Sequence[RunSummary]) -> tuple[CategoryData, ...]:
    """The categories of all runs, those of the headline first."""
    titles = titles_of(summaries)
    by_title = [rows_of(summary, titles) for summary in summaries]
    made = []
    for title in columns_of(titles):
        rows = [titled.get(title) for titled in by_title]
        first = next(filter(None, rows))
        shares = tuple(row.share if row else None for row in rows)
        made.append(CategoryData(title, first.n, first.headline, shares))

    return tuple(made)


def conversation_data(
    runs: Sequence[PageRun], baseline: int, refused: Collection[str] = ()
) -> tuple[ConversationData, ...]:
    """Each run's right answers per conversation; none if there are too many to draw, or nothing was
    answered. `refused` are the keys of runs that may not be compared with the baseline.
    """
    cases: dict[str, dict[str, Record]] = {}
    for run in runs:
        for name, records in run.records.items():
            # The strip shows the accuracy, so categories outside of it are left out.
            if run.counts(records[0]) and not run.summary.only_retrieves:
                cases.setdefault(records[0].case_id, {}).setdefault(name, records[0])

    # LongMemEval has a conversation per question: a strip of 500 columns is useless.
    if not 1 < len(cases) <= MAX_CONVERSATIONS:
        return ()

    made = []
    for case_id, questions in cases.items():
        weights = [record.weight for record in questions.values()]
        scores = [list(run.scores(questions).values()) for run in runs]
        accuracies: list[float | None] = []
        differences: list[float | None] = []
        for number, run_scores in enumerate(scores):
            accuracies.append(mean(run_scores, weights))
            difference = None
            if number != baseline and runs[number].summary.run_key not in refused:
                difference = _difference(run_scores, scores[baseline], weights)

            differences.append(difference)

        made.append(
            ConversationData(case_id, len(questions), tuple(accuracies), tuple(differences))
        )

    return tuple(made)


def _difference(
    scores: Sequence[float | None], others: Sequence[float | None], weights: Sequence[float]
) -> float | None:
    """Mean difference over the questions that both scored."""
    differences: list[float | None] = []
    for score, other in zip(scores, others, strict=True):
        if score is None or other is None:
            differences.append(None)
        else:
            differences.append(score - other)

    return mean(differences, weights)


def setting_data(summaries: Sequence[RunSummary]) -> dict[str, list[str]]:
    """The settings in which the runs differ; for a single run, all that have a value."""
    names = differing_settings(summaries)
    if len(summaries) == 1:
        names = {key: key for key, value in summaries[0].params.items() if value is not None}

    values = {}
    for name in names:
        values[name] = [redacted(setting_value(summary, name)) for summary in summaries]

    return values


def sentences(cells: Sequence[CellData], runs: Sequence[PageRun]) -> tuple[str, ...]:
    """One or two sentences on one run, or on several runs without a comparison."""
    if len(cells) == 1:
        # Only those with questions that count in the accuracy.
        cases = set()
        for records in runs[0].records.values():
            if runs[0].counts(records[0]):
                cases.add(records[0].case_id)

        return tuple(run_sentences(runs[0].summary, len(cases)))

    ranked = [cell for cell in cells if cell.summary.valid and cell.accuracy.value is not None]
    if not ranked:
        return (f"{len(cells)} runs; none has an accuracy that can be compared.",)

    best = max(ranked, key=lambda cell: cell.accuracy.value or 0.0)
    highest = [cell.label for cell in ranked if cell.accuracy.value == best.accuracy.value]
    names, verb = highest[-1], "has"
    if len(highest) > 1:
        names, verb = f"{', '.join(highest[:-1])} and {names}", "have"

    return (
        f"{names} {verb} the highest accuracy of {counted(len(ranked), 'run')}, "
        f"{percent(best.accuracy.value)} %.",
        "Whether this is more than chance is not tested here.",
    )
