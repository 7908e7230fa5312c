"""`report.md` of one run folder.

Every figure with its n, its coverage and its interval, and the command that repeats the run.
"""

from collections.abc import Sequence
from pathlib import Path

from memeval.metrics.accuracy import corrected_text, deviation
from memeval.metrics.formats import NONE, count, coverage_percent, interval, percent, span
from memeval.metrics.metric import REPORT
from memeval.metrics.registry import texts_at
from memeval.report.disclosure import disclosures
from memeval.report.effort import failed_rows, latency_section, status_section, tokens_section
from memeval.report.escaping import code, fenced, inline
from memeval.report.flags import flags
from memeval.report.groups import (
    category_section,
    facet_section,
    protocol_section,
    repeats_section,
    retrieval_section,
)
from memeval.report.stamp import REPORT_FILE
from memeval.report.tables import bullets, table, text
from memeval.results import RECORDS_FILE, NoteKind, Record, RunSummary, write_atomically
from memeval.results.calibration import read_shown_summary
from memeval.results.summary import as_yaml
from memeval.text.redaction import redacted


def write_report(folder: Path, *, plots: bool = True) -> None:
    """Writes `report.md` and `plots/` into a run folder with `run.json` and `records.jsonl`.

    Without `plots` the report has tables only; plots that were drawn earlier stay in the folder.

    Raises `OSError` if the folder can't be read or written, `ValueError` if `run.json` is
    damaged.
    """
    from memeval.report.confusion import confusion_section, read_confusion

    summary = read_shown_summary(folder)
    matrix = read_confusion(folder / RECORDS_FILE)
    drawn = []
    if plots:
        from memeval.report.plots.draw import draw_all
        from memeval.report.plots.run import run_plots

        (folder / "plots").mkdir(exist_ok=True)
        drawn = draw_all(run_plots(summary, matrix), folder / "plots")

    failures = list(failed_rows(folder / RECORDS_FILE))
    positions = []
    if matrix:
        positions = confusion_section(matrix)

    names = [plot.relative_to(folder).as_posix() for plot in drawn]
    write_atomically(folder / REPORT_FILE, report(summary, failures, names, positions))


def report(
    summary: RunSummary,
    failures: Sequence[Record] = (),
    plots: Sequence[str] = (),
    positions: Sequence[str] = (),
) -> str:
    """The report's text; `positions` is the section on chosen positions, if there is one."""
    pictures = []
    for plot in plots:
        title = Path(plot).stem.replace("_", " ")
        pictures.append([f"![{title}]({plot})"])

    sections = (
        [f"# {inline(summary.name)}"],
        banner(summary),
        headline(summary),
        *pictures,
        category_section(summary),
        *(facet_section(summary, facet) for facet in summary.facets),
        protocol_section(summary),
        positions,
        repeats_section(summary),
        retrieval_section(summary),
        tokens_section(summary),
        latency_section(summary),
        status_section(summary, failures),
        notes(summary),
        disclosure(summary),
        ["## Repeat it", "", *fenced(redacted(summary.command), "sh")],
        settings(summary),
    )
    return "\n\n".join(map("\n".join, filter(None, sections))) + "\n"


def banner(summary: RunSummary) -> list[str]:
    """The warning of a cell whose figures can't be trusted."""
    if summary.valid:
        return []
    if summary.is_stopped:
        why = [inline(note.text) for note in summary.notes_of(NoteKind.STOPPED)]
        return [" ".join(["> **STOPPED.**", *why, "The same command continues it."])]

    if summary.found_nothing:
        return ["> **INVALID.** No question got any context from the memory."]

    minimum = ""
    if "min_coverage" in summary.params:
        minimum = f" of {inline(summary.params['min_coverage'])}"

    coverage = coverage_percent(summary.metrics.get("coverage"))
    return [
        f"> **INVALID.** Only {coverage} % of the answers were scored, below the "
        f"minimum{minimum}: do not compare these figures."
    ]


def headline(summary: RunSummary) -> list[str]:
    """Main findings of the run."""
    get = summary.metrics.get
    _, low, high = summary.share()
    ends = NONE
    if low is not None and high is not None:
        ends = f"{interval(low, high)} %"

    questions = count(summary.asked)
    if len(summary.repeats) > 1:
        questions += f", asked {len(summary.repeats)} times"

    rows = [
        ("**accuracy**", f"**{percent(get('accuracy'))} %**"),
        ("95 % interval, clustered by case", ends),
    ]
    if shown := corrected_text(summary):
        rows.append(("accuracy corrected for the judge's error", f"{shown} %"))

    rows += [
        ("std over repeats, points", deviation(summary, get("accuracy_std"))),
        ("questions", questions),
        ("coverage", f"{coverage_percent(get('coverage'))} %"),
    ]
    # With full coverage both bounds are the accuracy itself.
    if get("coverage") not in {None, 1.0}:
        bounds = span(get("accuracy_worst_case"), get("accuracy_best_case"))
        rows.append(("accuracy if all unscored answers were wrong, or right", bounds))

    rows += [(title, text) for title, text in texts_at(REPORT, summary).items() if text]
    if flagged := flags(summary):
        rows.append(("flags", ", ".join(flagged)))

    return table((inline(summary.dataset), ""), rows, figures=False)


def notes(summary: RunSummary) -> list[str]:
    """Notes for the reader, one sentence per note."""
    if not summary.notes:
        return []

    return ["## Notes", "", *bullets(redacted(str(note)) for note in summary.notes)]


def disclosure(summary: RunSummary) -> list[str]:
    """The six things to quote with the run's accuracy."""
    rows = [(name, text(value)) for name, value in disclosures(summary).items()]
    return ["## Quote the accuracy with", "", *table(("what", "this run"), rows, figures=False)]


def settings(summary: RunSummary) -> list[str]:
    """The resolved settings and the provenance of the run."""
    values = [(code(key), text(as_yaml(value))) for key, value in summary.params.items()]
    tags = [
        ("started", inline(summary.started_at)),
        ("finished", inline(summary.finished_at)),
        ("run key", inline(summary.run_key)),
    ]
    for key, value in summary.tags.items():
        if key not in {"run_key", "command"}:
            tags.append((inline(key), text(value)))

    return [
        "## Settings",
        "",
        *table(("setting", "value"), values, figures=False),
        "",
        "## Provenance",
        "",
        *table(("tag", "value"), tags, figures=False),
    ]
