"""Accuracy, recall, cost and latency of a system over its versions."""

from collections.abc import Sequence

from msgspec.structs import replace

from memeval.metrics.formats import significant
from memeval.report.plots.model import (
    BLUE,
    Axis,
    Mark,
    MarkStyle,
    Panel,
    Plot,
    named_axis,
    title_of_cells,
    wrap_title,
)
from memeval.results import RunSummary, run_cost_usd

TITLES = {
    "accuracy": "accuracy, %",
    "recall_at_10": "recall@10, %",
    "cost": "cost of a fresh run, $",
    "latency_ms/answer/p50": "time of an answer (p50), ms",
}
STYLE = MarkStyle(BLUE, "o")
MAX_LETTERS = 14
"""Characters per line of a version's name."""
WIDEST = 100.0
"""Inches. Names of more versions than fit cover each other."""


def history_plot(summaries: Sequence[RunSummary], names: Sequence[str]) -> Plot:
    """The versions from left to right, the oldest first; a panel for each measured metric."""
    rows: list[list[Panel]] = []
    for metric in TITLES:
        panel = history_panel(summaries, names, metric)
        if not panel.all_marks:
            continue
        if not rows or len(rows[-1]) == 2:
            rows.append([])

        rows[-1].append(panel)

    title = f"{summaries[-1].dataset}: {names[0]} … {names[-1]}; bars are 95 % intervals"
    width = min(WIDEST, max(9.0, 2.4 * len(names)))
    return Plot(title_of_cells(title, summaries), rows, width, height=3.4 * len(rows))


def history_panel(summaries: Sequence[RunSummary], names: Sequence[str], metric: str) -> Panel:
    """One metric over the versions; a version in which it was not measured has no mark."""
    marks = []
    for x, (summary, name) in enumerate(zip(summaries, names, strict=True)):
        value = run_cost_usd(summary) if metric == "cost" else summary.metrics.get(metric)
        if value is None:
            continue

        low = high = None
        if TITLES[metric].endswith("%"):
            value *= 100
            _, low, high = summary.share(metric).percent

        style = replace(STYLE, is_hollow=not summary.valid)
        marks.append(Mark(x, value, style, low, high, name, run_key=summary.run_key))

    highest = max((mark.top for mark in marks), default=0.0)
    up = Axis(0.0, 1.08 * highest or 1.0).with_ticks(significant)
    across = named_axis([wrap_title(name, MAX_LETTERS) for name in names])
    return Panel(across=across, up=up, title=TITLES[metric], lines=[marks])
