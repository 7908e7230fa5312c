"""`python -m memeval history [FILTER ...]`: a system's figures over its versions."""

from collections.abc import Sequence
from pathlib import Path

from memeval.api.history import EXAMPLE, History, history
from memeval.cli.parser import LAST, Parser
from memeval.comparison.tables import align
from memeval.config.paths import outputs_dir
from memeval.metrics.formats import count, dollars, milliseconds, percent
from memeval.metrics.metric import with_interval_of
from memeval.results import run_cost_usd
from memeval.results.files import writing
from memeval.results.private import make_folder
from memeval.runs.display.terminal import print_folded
from memeval.text.names import text_digest

COLUMNS = ["version", "n", "accuracy", "recall@10", "cost $", "answer ms", "when"]

USAGE = f"""
shows how a system's figures changed from version to version

words* FILTER  system=NAME, dataset=NAME, since=7d, tags.NAME=VALUE, or runs; {EXAMPLE}
--metric M     metric of the steps: accuracy (default), recall@5 …
{LAST}
--no-plots     don't draw a plot
"""
PARSER = Parser.of("history", USAGE)


def show_history(arguments: Sequence[str]) -> int:
    """Prints a line per version and the real changes, and draws the figures."""
    options = PARSER.parse_intermixed_args(list(arguments))
    shown = history(*options.words, metric=options.metric, last=options.last)
    for line in shown.sentences:
        print_folded(line)

    print()
    print("\n".join(align(rows(shown))))
    if not options.no_plots:
        print(f"plot: {draw(shown)}")

    return 0


def rows(history: History) -> list[list[str]]:
    """The table of the versions, the oldest first."""
    lines = [COLUMNS]
    for run, name in zip(history.runs, history.names, strict=True):
        get = run.summary.metrics.get
        shown = name if run.summary.valid else f"{name} INVALID"
        lines.append(
            [
                shown,
                count(run.summary.asked),
                with_interval_of("accuracy", run.summary),
                percent(get("recall_at_10")),
                dollars(run_cost_usd(run.summary)),
                milliseconds(get("latency_ms/answer/p50")),
                f"{run.summary.ended:%Y-%m-%d %H:%M}",
            ]
        )

    return lines


def draw(history: History) -> Path:
    """Draws the history below outputs/history/. Raises `StorageError`."""
    from memeval.report.plots.draw import draw as draw_plot
    from memeval.report.plots.history import history_plot

    keys = " ".join(run.key for run in history.runs)
    folder = outputs_dir() / "history" / text_digest(keys)[:12]
    with writing(folder):
        make_folder(folder)
        plot = history_plot([run.summary for run in history.runs], history.names)
        return draw_plot(plot, folder / "history.png")
