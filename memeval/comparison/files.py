"""A comparison as files: Markdown, CSV, JSON and LaTeX."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memeval.comparison.records import Comparison, Difference, pair_labels
from memeval.comparison.sentences import lead_sentences, sentence
from memeval.comparison.tables import (
    CATEGORIES_TITLE,
    Cells,
    category_cells,
    category_names,
    pair_label,
    result_tables,
)
from memeval.comparison.words import describe_counts, headline, legend, refusal_lines, table_remarks
from memeval.metrics.registry import metric_named
from memeval.report.escaping import inline, tex, tex_row
from memeval.report.tables import bullets, csv_text, table
from memeval.results.files import as_json, write_atomically, writing
from memeval.statistics.differences import ClusteredDifference
from memeval.text.redaction import redacted_in
from memeval.text.shown import printable

WHOLE = "all"
"""Scope of a CSV row that covers all questions, not one category."""


def write_comparisons(
    comparisons: Sequence[Comparison], folder: Path, markdown: str, cells_csv: str
) -> None:
    """Writes `comparison.md` and `.csv` (the runs), and if any were compared `.json`, `.tex` and
    `differences.csv`.

    `markdown` and `cells_csv` are the tables of the single runs. Raises `StorageError` if the disk
    can't be written.
    """
    remarks = [f"{remark}\n" for remark in table_remarks(comparisons)]
    parts = [*remarks, markdown, *map(comparison_markdown, comparisons)]
    texts = {"comparison.md": "\n".join(parts), "comparison.csv": cells_csv}
    if comparisons:
        texts |= data_files(comparisons)

    with writing(folder):
        for name, text in texts.items():
            write_atomically(folder / name, text)


def as_json_value(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """A comparison as a JSON object; several (data sets, metrics) as a list under `comparisons`."""
    content = [comparison.to_json() for comparison in comparisons]
    return content[0] if len(content) == 1 else {"comparisons": content}


def data_files(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """The files for programs by name."""
    return {
        "comparison.json": as_json(redacted_in(as_json_value(comparisons))) + "\n",
        "comparison.tex": "\n".join(map(comparison_tex, comparisons)),
        "differences.csv": differences_csv(comparisons),
    }


def comparison_markdown(comparison: Comparison) -> str:
    """Sentences, figures, categories, and the pairs that were not compared."""
    lines = []
    if comparison.differences:
        first, *others = headline(comparison)
        leads = [f"{inline(line)}\n" for line in lead_sentences(comparison)]
        lines = [f"## {inline(first)}", "", *leads]
        # Two spaces at the end of a line of Markdown keep the line break.
        lines += [inline(line) + "  " for line in others]
        lines.append("")
        for pair in comparison.differences:
            finding = f"{sentence(comparison, pair)} {describe_counts(comparison, pair)}"
            lines.append(f"- {inline(finding)}")

        for cells in result_tables(comparison):
            lines += ["", *_table(_one_line_cells(cells))]

        lines += [*_categories(comparison), "", *bullets(legend(comparison))]

    lines += ["", *bullets(refusal_lines(comparison))]
    return "\n".join(lines).strip("\n") + "\n"


def _one_line_cells(cells: Cells) -> Cells:
    """A table with one line per cell, and a heading for the last column."""
    header, *rows = map(_one_line_row, cells)
    return [[name or "letters" for name in header], *rows]


def _one_line_row(row: list[str]) -> list[str]:
    return [cell.replace("\n", " ") for cell in row]


def _categories(comparison: Comparison) -> list[str]:
    names = category_names(comparison)
    if len(names) < 2:
        return []

    rows = [["run", *names]]
    for pair in comparison.differences:
        cells = category_cells(comparison, pair, names)
        rows.append([pair_label(comparison, pair), *cells])

    title = f"{CATEGORIES_TITLE} {comparison.warning}".rstrip()
    return ["", inline(title), "", *_table(rows)]


def _table(rows: Cells) -> list[str]:
    header, *body = [list(map(inline, row)) for row in rows]
    return table(header, body)


def differences_csv(comparisons: Sequence[Comparison]) -> str:
    """A row per difference and per category of it, unrounded, shares in [0, 1]."""
    tests = ["p", "adjusted_p", "only_first", "only_second", "first_alone", "second_alone"]
    result = ["n", "clusters", "delta", "se", "se_independent", "low", "high", "mde"]
    names = ["first_key", "first", "second_key", "second", "metric", "scope"]
    last = ["mcnemar_p", "forced", "adjustment", "verdicts", "sent_alike"]
    rows: list[list[object]] = [[*names, *result, *tests, *last]]

    for comparison in comparisons:
        verdicts = "raw" if metric_named(comparison.metric).judged else ""
        for pair in comparison.differences:
            tested = [getattr(pair, name) for name in [*tests, "mcnemar_p"]]
            how = ["; ".join(pair.forced), comparison.adjustment, verdicts, pair.sent_alike]
            words = _name_cells(comparison, pair, WHOLE)
            rows.append([*words, *_figures(pair.result), *tested, *how])
            for row in pair.categories:
                words = _name_cells(comparison, pair, row.category)
                rows.append([*words, *_figures(row.result), *[""] * len(tested), *how])

    return csv_text(rows)


def _name_cells(comparison: Comparison, pair: Difference, scope: str) -> list[object]:
    first, second = pair_labels(comparison, pair)
    words = [pair.first, first, pair.second, second, comparison.metric, scope]
    return list(map(redacted_in, words))


def _figures(result: ClusteredDifference) -> list[object]:
    figures = [result.mean, result.se, result.independent_se, result.low, result.high, result.mde]
    return [result.count, result.groups, *figures]


def comparison_tex(comparison: Comparison) -> str:
    """The table of the figures for a paper (needs `booktabs`), with explanations in comments."""
    notes, tables = refusal_lines(comparison), []
    if comparison.differences:
        notes = [*headline(comparison), *legend(comparison), *notes]
        tables = result_tables(comparison)

    lines = []
    for note in notes:
        words = printable(note).split()
        lines.append(" ".join(["%", *words]))

    for cells in tables:
        columns = len(cells[0])
        first, *body = [tex_row(list(map(tex, row))) for row in _one_line_cells(cells)]
        lines += [rf"\begin{{tabular}}{{l{'r' * (columns - 1)}}}", r"\toprule", first, r"\midrule"]
        lines += [*body, r"\bottomrule"]
        if comparison.forced:
            forced = tex(comparison.warning)
            lines.append(rf"\multicolumn{{{columns}}}{{l}}{{{forced}}} \\")

        lines.append(r"\end{tabular}")

    return "\n".join([*lines, ""])
