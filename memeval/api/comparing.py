"""Compares finished runs: with each other, in the table of a paper, with a published figure."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.api.arguments import check_types
from memeval.api.notebook import Table, first_lines, list_html, paper_cells, table_html
from memeval.api.selecting import Selection, check_other_run, run_word, select_run, select_runs
from memeval.comparison.build import compare_runs
from memeval.comparison.files import differences_csv
from memeval.comparison.finding import check_records, named_run, run_among, usual_metric
from memeval.comparison.paper.build import paper_table
from memeval.comparison.paper.differences import difference_table
from memeval.comparison.records import ADJUSTMENTS, BENJAMINI_HOCHBERG, MAX_T, Comparison
from memeval.comparison.sentences import findings
from memeval.comparison.significance import adjust_by_discovery
from memeval.comparison.words import refusal_lines
from memeval.errors import UserError, unknown
from memeval.metrics.metric import Metric
from memeval.metrics.registry import metric_named
from memeval.results.note import NoteKind
from memeval.results.run import Run
from memeval.text.shown import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from memeval.comparison.claims.explaining import Explanation

EXAMPLE = "for example:  python -m memeval compare sweep=baselines --baseline bm25"
OF_VERSIONS = frozenset({NoteKind.DATA, NoteKind.QUESTIONS, NoteKind.LABELS})
"""How versions of a data set differ: `--common` helps against nothing else."""


class Comparisons(tuple[Comparison, ...]):
    """Differences between runs: a comparison for each metric, or for each data set of a sweep."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = first_lines(self.sentences, ".sentences")
        return "\n".join(lines) or "<no differences>"

    def _repr_html_(self) -> str:
        html = list_html(first_lines(self.sentences, ".sentences"))
        header, rows = paper_cells(difference_table(self))
        if rows:
            html += table_html("differences", header, rows)

        return html

    @property
    def sentences(self) -> list[str]:
        """The sentences of `compare` about the differences, and about pairs not compared."""
        lines = []
        for comparison in self:
            lines += [*findings(comparison), *refusal_lines(comparison)]

        return lines

    def table(self) -> Table:
        """The differences as a table for a paper: intervals, p, and the detectable difference."""
        return Table(difference_table(self))

    def plot(self, number: int = 0) -> Figure:
        """The differences of one comparison with 95 % intervals, as a figure of matplotlib; no
        file is written.

        Raises `UserError` if nothing was compared.
        """
        from memeval.comparison.page import difference_plots
        from memeval.report.plots.draw import draw_figure

        chosen = list(map(difference_plots, self[number : number + 1 or None]))
        if not any(chosen):
            raise UserError("there are no differences to plot", f"comparisons: {len(self)}")

        return draw_figure(chosen[0]["differences"])

    def to_pandas(self) -> pd.DataFrame:
        """The columns of `differences.csv`: a row per difference and category, shares in [0, 1]."""
        import pandas as pd

        return pd.read_csv(io.StringIO(differences_csv(self)))


@check_types
def compare(
    *runs: Run | str | Path | Iterable[Run | str | Path],
    baseline: Run | str | Path | None = None,
    metric: str | Sequence[str] = (),
    last: int | None = None,
    all_pairs: bool = False,
    adjust: str = MAX_T,
    force: bool = False,
    common: bool = False,
) -> Comparisons:
    """How finished runs differ from the first of them, or from `baseline`, on the questions that
    both scored.

    A run is a `Run`, its key, its name, its folder or its MLflow run id; a string such as
    `"sweep=baselines"` or `"system=bm25"` selects all finished runs that match, and `last` keeps
    the newest of them. A sweep or a list of runs counts as one argument.

    `metric` is accuracy (recall@10 after `stages=retrieve`), or one or several metrics of `compare
    --metric`. p is adjusted over the differences of each metric (`"max-t"`), or over those of all
    metrics (`"bh"`). `common` compares versions of a data set, on the questions that all runs asked
    in the same words with the same answers.

    Raises `UserError` if nothing can be compared.
    """
    if adjust not in ADJUSTMENTS:
        raise unknown("adjustment", adjust, ADJUSTMENTS)

    metrics = [metric] if isinstance(metric, str) else list(metric)
    first = None if baseline is None else run_word(baseline)
    _, comparisons = compare_named(
        _run_words(runs),
        metrics,
        baseline=first,
        last=last,
        all_pairs=all_pairs,
        adjust=adjust,
        force=force,
        common=common,
    )
    return comparisons


def compare_named(
    words: Sequence[str],
    metrics: Sequence[str],
    *,
    baseline: str | None,
    last: int | None,
    all_pairs: bool,
    adjust: str,
    force: bool,
    common: bool,
) -> tuple[list[Run], Comparisons]:
    """The runs selected by command-line words and `baseline`, and a comparison for each metric.

    Raises `UserError` if nothing can be compared.
    """
    if all_pairs and baseline is not None:
        raise UserError("all pairs of runs are compared without a baseline: leave it out")

    runs, position = _choose_runs(words, last, baseline)
    comparisons = []
    for metric in chosen_metrics(metrics, runs):
        compared = compare_runs(
            runs, metric, baseline=position, all_pairs=all_pairs, force=force, common=common
        )
        comparisons.append(compared)

    # Runs that can't be compared by one metric may be comparable by another: a different judge only
    # affects accuracies.
    if not any(comparison.differences for comparison in comparisons):
        raise refusal(comparisons[0])
    if adjust == BENJAMINI_HOCHBERG:
        comparisons = adjust_by_discovery(comparisons)

    return runs, Comparisons(comparisons)


def _choose_runs(
    words: Sequence[str], last: int | None, baseline: str | None
) -> tuple[list[Run], int]:
    """The runs to compare, whose records can be read, and the position of the baseline."""
    if not words and last is None:
        raise UserError("compare needs two runs, or a filter such as sweep=…", EXAMPLE)

    selection = select_runs(words, last)
    runs, position = selection.chosen, 0
    if baseline is not None:
        runs, position = _with_baseline(baseline, selection)
    if len(runs) < 2:
        raise UserError(f"only one run: {one_line(runs[0].name)} has nothing to compare with")

    check_records(*runs)
    return runs, position


def _with_baseline(baseline: str, selection: Selection) -> tuple[list[Run], int]:
    """The chosen runs and the baseline, and its position among them."""
    # `baseline` may be the system or the label of a chosen run, or the name of any run.
    runs = selection.chosen
    first = run_among(baseline, runs) or named_run(baseline, selection.known)
    keys = [run.key for run in runs]
    check_other_run(first, dict(zip(keys, runs, strict=True)))
    if first.key in keys:
        return runs, keys.index(first.key)

    return [first, *runs], 0


def chosen_metrics(words: Sequence[str], runs: Sequence[Run]) -> list[Metric]:
    """The named metrics without duplicates; if none is named, the usual metric of these runs.

    Raises `UserError`.
    """
    if not words:
        return [metric_named(usual_metric([run.summary for run in runs]))]

    by_name = {metric.name: metric for metric in map(metric_named, ",".join(words).split(","))}
    return list(by_name.values())


def refusal(comparison: Comparison) -> UserError:
    """The error for runs of which no two can be compared."""
    message, *others = refusal_lines(comparison)
    kinds: set[NoteKind] = set()
    for refusal in comparison.refusals:
        if not refusal.can_be_forced:
            return UserError(message, *others)

        kinds.update(note.kind for note in refusal.notes)

    if NoteKind.DATA in kinds and kinds <= OF_VERSIONS:
        others.append(
            "to compare the questions that have the same words in both versions:  --common "
            "(in Python: common=True)"
        )

    others.append(
        "to compare them anyway:  --force (in Python: force=True; every table will mention it)"
    )
    return UserError(message, *others)


@check_types
def table(
    *runs: Run | str | Path | Iterable[Run | str | Path],
    columns: str | Sequence[str] = (),
    rows: str | Sequence[str] = (),
    caption: str = "",
    label: str = "",
    last: int | None = None,
    force: bool = False,
) -> Table:
    """The table of a paper: runs by metrics and categories, with intervals, and with letters for
    runs that can't be told apart.

    Runs are named as for `compare`. `columns` are metrics and `categories`, `rows` the settings
    that name the rows. Raises `UserError` for runs that may not share a table, unless `force`.
    """
    words = _run_words(runs)
    if not words and last is None:
        raise UserError(
            "table needs runs, or a filter such as sweep=…",
            "for example:  python -m memeval table sweep=baselines --rows system --format latex",
        )

    chosen = select_runs(words, last).chosen
    check_records(*chosen)
    content = paper_table(
        chosen, _names(columns), rows=_names(rows), caption=caption, label=label, force=force
    )
    return Table(content)


def _run_words(runs: Iterable[Run | str | Path | Iterable[Run | str | Path]]) -> list[str]:
    words: list[str] = []
    for run in runs:
        if isinstance(run, Run | str | Path):
            words.append(run_word(run))
        else:
            words += map(run_word, run)

    return words


def _names(words: str | Sequence[str]) -> list[str]:
    """The names of an argument: a list, or a string with commas."""
    if isinstance(words, str):
        words = words.split(",")

    return list(filter(None, map(str.strip, words)))


@check_types
def explain(run: Run | str | Path, claim: str) -> Explanation:
    """Explains why a run's figure differs from a published one: the parts that differ, and the
    effect of each on the figure if finished runs show it.

    `claim` is a name as `claims list` prints it, or `name/system` for a source with several. Raises
    `UserError` for names that are unknown, and for a claim about another data set.
    """
    from memeval.comparison.claims.explaining import explain_match
    from memeval.comparison.claims.matching import match_claim
    from memeval.comparison.claims.reading import find_figure, load_claims

    published, figure = find_figure(claim, load_claims())
    selected, known = select_run(run, "explain")
    if selected.summary.dataset != published.dataset:
        raise UserError(
            f"claim {published.name} is about {published.dataset}, but run {selected.key} is about "
            f"{one_line(selected.summary.dataset)}",
            f"claims about it:  python -m memeval claims {selected.key}",
        )

    (match,) = [
        claimed for claimed in match_claim(published, selected.summary) if claimed.figure == figure
    ]
    return explain_match(match, selected, known)
