"""Sections of a report on groups of questions: categories, facets, repeats, retrieval."""

from memeval.metrics.accuracy import deviation
from memeval.metrics.formats import count, coverage_percent, interval, percent
from memeval.metrics.metric import REPEATS, SECTION, SECTION_BY_CATEGORY
from memeval.metrics.registry import metrics_at
from memeval.metrics.retrieval import CUTOFFS
from memeval.report.escaping import code, inline
from memeval.report.flags import recall_warnings
from memeval.report.tables import table, text
from memeval.results import CategoryResult, RunSummary

VALUES_SHOWN = 40
MEASURED = ("n", "scored", "accuracy %", "95 % interval", "std", "token F1 %")


def category_section(summary: RunSummary) -> list[str]:
    """Accuracy by category; those that are not in the headline are last, and marked."""
    rows = []
    for row in sorted(summary.categories, key=lambda row: not row.headline):
        title = inline(row.name)
        if not row.headline:
            title += " (not in accuracy)"

        rows.append(measured_row(summary, row, title))

    lines = ["## By category", "", *table(("category", *MEASURED), rows)]
    abstained = abstentions(summary)
    if abstained:
        lines += ["", " ".join(abstained)]

    return lines


def abstentions(summary: RunSummary) -> list[str]:
    """The shares of refusals, one sentence per measured rate."""
    questions = {
        "abstention_rate": "that count",
        "abstention_rate/unanswerable": "whose right answer is a refusal",
    }
    lines = []
    for name, which in questions.items():
        rate = summary.metrics.get(name)
        if rate is not None:
            lines.append(f"Abstained on {percent(rate)} % of the questions {which}.")

    return lines


def facet_section(summary: RunSummary, facet: str) -> list[str]:
    """Accuracy by the values of a further grouping, in their order.

    If there are more than `VALUES_SHOWN`, only those with the most questions.
    """
    rows = shown = list(summary.facets[facet])
    if len(rows) > VALUES_SHOWN:
        shown = sorted(rows, key=lambda row: (-row.n, row.category))[:VALUES_SHOWN]

    title = summary.facet_titles.get(facet, facet)
    cells = [measured_row(summary, row, text(row.category)) for row in shown]
    lines = [f"## By {inline(title)}", "", *table((text(title), *MEASURED), cells)]
    if len(shown) < len(rows):
        lines += ["", f"The {len(shown)} largest of {len(rows)}."]

    return lines


def protocol_section(summary: RunSummary) -> list[str]:
    """The metrics of the data set's own protocol, by their names in MLflow."""
    rows = []
    for name in summary.protocol_metrics:
        value = summary.metrics.get(name)
        if value is not None:
            rows.append((code(name), f"{value:.4g}"))

    if not rows:
        return []

    return ["## By the data set's own protocol", "", *table(("metric", "value"), rows)]


def measured_row(summary: RunSummary, row: CategoryResult, title: str) -> tuple[str, ...]:
    """A row of a table of groups of questions, in the columns of `MEASURED`."""
    return (
        title,
        count(row.n),
        f"{row.scored:,} of {row.asked:,}",
        percent(row.accuracy),
        interval(*row.share[1:]),
        deviation(summary, row.accuracy_std),
        percent(row.token_f1),
    )


def repeats_section(summary: RunSummary) -> list[str]:
    """One line per repeat, if there are several."""
    if len(summary.repeats) < 2:
        return []

    columns = metrics_at(REPEATS)
    header = ("repeat", "seed", *(metric.titles[REPEATS] for metric in columns), "coverage %")
    rows = []
    for row in summary.repeats:
        figures = [metric.unit.full(metric.of_figures(row.metrics)) for metric in columns]
        coverage = coverage_percent(row.metrics.get("coverage"))
        rows.append((str(row.repeat), str(row.seed), *figures, coverage))

    return ["## Repeats", "", *table(header, rows)]


def retrieval_section(summary: RunSummary) -> list[str]:
    """Retrieval against the evidence, by turn and by session.

    For systems that show their retrieval.
    """
    get = summary.metrics.get
    rows = []
    for metric in metrics_at(SECTION):
        prefixes = ("", "session_", "ranking_", "ranking_session_")
        values = [get(f"{prefix}{metric.name}") for prefix in prefixes]
        if values[0] is not None or values[2] is not None:
            rows.append((metric.titles[SECTION], *map(percent, values)))

    if not rows:
        return [
            "## Retrieval",
            "",
            "Not measured: the system does not show its retrieval, or the data set has no "
            "evidence.",
        ]

    header = (
        "against the evidence",
        "shown: turns %",
        "sessions %",
        "whole ranking: turns %",
        "sessions %",
    )
    depths = [f"recall_at_{k}" for k in CUTOFFS if get(f"recall_at_{k}") is not None]
    lines = ["## Retrieval", "", *table(header, rows), *_retrieval_by_category(summary)]
    for warning in recall_warnings(summary, depths):
        lines += ["", inline(f"Of recall: {warning}.")]

    return lines


def _retrieval_by_category(summary: RunSummary) -> list[str]:
    """Retrieval of the evidence by category, if the run measured nothing else."""
    columns = metrics_at(SECTION_BY_CATEGORY)
    rows = []
    for category in summary.categories:
        values = [summary.metrics.get(f"{metric.name}/{category.name}") for metric in columns]
        if values.count(None) < len(values):
            rows.append((inline(category.name), count(category.n), *map(percent, values)))

    if not rows:
        return []

    header = ("category", "n", *(metric.titles[SECTION_BY_CATEGORY] for metric in columns))
    return ["", *table(header, rows)]
