"""The page of a comparison, next to its other files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from memeval.comparison.records import Comparison, Difference
from memeval.comparison.sentences import lead_sentences, sentence, with_interval
from memeval.comparison.tables import pair_label
from memeval.comparison.words import (
    adjusted_how,
    caveats,
    corrections,
    refusal_lines,
    table_remarks,
)
from memeval.report.compared import ComparisonData, DifferenceData
from memeval.report.plots.differences import DifferenceRow, forest_panel, forest_plot, strip_plot
from memeval.report.plots.model import Plot
from memeval.results.files import writing

MAX_CELLS = 20
"""Maximum runs on one page: more are slow to open, and too many to view side by side."""


def page_content(comparison: Comparison, runs: int) -> ComparisonData | None:
    """Content of the page of a comparison.

    None if nothing could be compared, or if there are more than `MAX_CELLS` runs: then there is no
    page.
    """
    if runs > MAX_CELLS or not comparison.differences:
        return None

    return ComparisonData(
        metric=comparison.metric,
        unit=comparison.unit,
        sentences=(*lead_sentences(comparison), *caveats(comparison)),
        baseline=comparison.baseline,
        differences=tuple(_row(comparison, pair) for pair in comparison.differences),
        forest=forest_panel(difference_rows(comparison), comparison.unit),
        letters={run.key: run.letters for run in comparison.runs},
        remarks=tuple(_remarks(comparison)),
        adjusted_how=adjusted_how(comparison),
    )


def write_page_of(comparison: Comparison, folders: Sequence[Path], target: Path) -> None:
    """Writes the page of compared runs if there is one, see `page_content`.

    Raises `StorageError` if the disk can't be written.
    """
    content = page_content(comparison, len(folders))
    if content is None:
        return

    from memeval.report.page import write_page

    with writing(target):
        write_page(folders, target, content)


def _remarks(comparison: Comparison) -> Iterator[str]:
    """Notes for the reader: overridden checks, uncorrected differences and pairs not compared."""
    if comparison.warning:
        yield f"{comparison.warning}."

    yield from table_remarks([comparison])
    # The table of the page has the corrected accuracies themselves.
    yield from corrections(comparison)[-1:]
    for line in refusal_lines(comparison):
        yield f"{line[0].upper()}{line[1:]}."


def _row(comparison: Comparison, pair: Difference) -> DifferenceData:
    result, adjusted_p = pair.result, pair.adjusted_p
    if pair.same_prompts:
        # Nothing was tested, as the tables say.
        result, adjusted_p = replace(result, p=None, mde=None), None

    return DifferenceData(
        cell=pair.first,
        label=pair_label(comparison, pair),
        result=result,
        adjusted_p=adjusted_p,
        is_shown=pair.is_shown,
        sentence=sentence(comparison, pair),
        categories={row.category: row.result for row in pair.categories},
        same_prompts=pair.same_prompts,
    )


def write_comparison_plots(comparison: Comparison, folder: Path, suffix: str = "") -> None:
    """Draws the differences and the conversations behind them.

    Raises `StorageError` if the disk can't be written.
    """
    from memeval.report.plots.draw import draw_all

    with writing(folder):
        draw_all(difference_plots(comparison, suffix), folder)


def difference_plots(comparison: Comparison, suffix: str = "") -> dict[str, Plot]:
    """The plots of the differences and of several conversations; `suffix` ends their names."""
    rows = difference_rows(comparison)
    title, unit = plot_title(comparison), comparison.unit
    plots = {}
    if rows:
        plots[f"differences{suffix}"] = forest_plot(rows, title, unit)
        if max(len(row.cases) for row in rows) > 1:
            plots[f"conversations{suffix}"] = strip_plot(rows, title, unit)

    return plots


def difference_rows(comparison: Comparison) -> list[DifferenceRow]:
    return [difference_row(comparison, pair) for pair in comparison.differences]


def difference_row(comparison: Comparison, pair: Difference) -> DifferenceRow:
    scale, result = comparison.scale, pair.result
    name, low, high = pair_label(comparison, pair), result.low, result.high
    text = with_interval(result, comparison.unit, signed=True)
    if pair.same_prompts:
        # A mark at 0 would look like a measurement.
        name, text = f"{name} (same prompts)", ""
    if low is not None and high is not None:
        low, high = scale * low, scale * high

    return DifferenceRow(
        name=name,
        delta=scale * result.mean,
        low=low,
        high=high,
        is_shown=pair.is_shown,
        text=text,
        cases=tuple(scale * case.mean for case in pair.cases),
    )


def plot_title(comparison: Comparison) -> str:
    """Title of a plot, with the forced checks."""
    title = f"{comparison.metric}, each pair of runs"
    if comparison.baseline is not None:
        title = f"{comparison.metric} minus that of {comparison.run(comparison.baseline).label}"

    if comparison.warning:
        title += f". {comparison.warning}"

    return title
