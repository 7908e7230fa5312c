"""`report.md` of one run folder.

Every figure with its n, its coverage and its interval, and the command that repeats the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from memeval.records import Status
from memeval.redaction import redacted
from memeval.report.differences import as_yaml
from memeval.report.disclosure import disclosed
from memeval.report.escaping import code, fenced, inline
from memeval.report.figures import (
    NONE,
    STAGES,
    corrected,
    count,
    deviation,
    dollars,
    flags,
    interval,
    milliseconds,
    percent,
)
from memeval.results import (
    RECORDS_FILE,
    CategoryResult,
    Record,
    RunSummary,
    read_records,
    write_atomically,
)
from memeval.results.calibration import read_shown_summary
from memeval.shown import one_line

FAILURES_SHOWN, VALUES_SHOWN = 10, 40
LONGEST_CELL = 1000
"""Characters of a cell: a whole value is in the records, or in `config.yaml`."""
MEASURED = ("n", "scored", "accuracy %", "95 % interval", "std", "token F1 %")
SOUND = (Status.OK, Status.RETRIEVED)
RETRIEVAL = ("recall_at", "hit_at", "recall_all_at", "ndcg_at", "mrr")


def write_report(folder: Path, *, plots: bool = True) -> None:
    """Writes `report.md` and `plots/` into a run folder with `run.json` and `records.jsonl`.

    Without `plots` the report has tables only; plots that were drawn earlier stay in the folder.

    Raises `OSError` where the folder can't be read or written, `ValueError` where `run.json` is
    damaged.
    """
    from memeval.report.confusion import confusion_plot, confusion_section, read_confusion
    from memeval.report.plots import write_plots

    summary = read_shown_summary(folder)
    matrix = read_confusion(folder / RECORDS_FILE)
    drawn = write_plots(folder, summary) if plots else []
    if plots and matrix:
        drawn.append(confusion_plot(matrix, summary.name, folder / "plots" / "positions.png"))

    failures = list(failed_rows(folder / RECORDS_FILE))
    positions = confusion_section(matrix) if matrix else []
    names = [plot.relative_to(folder).as_posix() for plot in drawn]
    write_atomically(folder / "report.md", report(summary, failures, names, positions))


def report(
    summary: RunSummary,
    failures: Sequence[Record] = (),
    plots: Sequence[str] = (),
    positions: Sequence[str] = (),
) -> str:
    """The report's text; `positions` is the section on chosen positions, for runs that chose."""
    sections = (
        [f"# {inline(summary.name)}"],
        banner(summary),
        headline(summary),
        *([f"![{Path(plot).stem.replace('_', ' ')}]({plot})"] for plot in plots),
        by_category(summary),
        *(by_facet(summary, facet) for facet in summary.facets),
        by_protocol(summary),
        positions,
        repeats(summary),
        retrieval(summary),
        tokens(summary),
        latency(summary),
        statuses(summary, failures),
        notes(summary),
        disclosure(summary),
        ["## Repeat it", "", *fenced(redacted(summary.command), "sh")],
        settings(summary),
    )
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def banner(summary: RunSummary) -> list[str]:
    """The warning of a cell whose figures can't be trusted."""
    if summary.valid:
        return []
    if summary.is_stopped:
        return [f"> **STOPPED.** {inline(summary.notes[0])} The same command continues it."]

    minimums = [value for key, value in summary.params.items() if key.endswith("min_coverage")]
    minimum = f" of {inline(minimums[0])}" if minimums else ""
    coverage = percent(summary.metrics.get("coverage"))

    return [
        f"> **INVALID.** Only {coverage} % of the answers were scored, below the "
        f"minimum{minimum}: do not compare these figures."
    ]


def headline(summary: RunSummary) -> list[str]:
    """What the run found, before any detail."""
    get = summary.metrics.get
    low, high = get("accuracy_ci95_low"), get("accuracy_ci95_high")
    has_interval = low is not None and high is not None
    times = f", asked {len(summary.repeats)} times" if len(summary.repeats) > 1 else ""

    rows = [
        ("**accuracy**", f"**{percent(get('accuracy'))} %**"),
        (
            "95 % interval, clustered by case",
            f"{interval(low, high)} %" if has_interval else NONE,
        ),
        *corrected_rows(summary),
        ("std over repeats, points", deviation(summary, get("accuracy_std"))),
        ("questions", count(get("n_questions")) + times),
        ("coverage", f"{percent(get('coverage'))} %"),
        ("token F1", f"{percent(get('token_f1'))} %"),
    ]
    if get("coverage") not in {None, 1.0}:
        bounds = interval(get("accuracy_worst_case"), get("accuracy_best_case"))
        rows.append(("accuracy if the unscored were all wrong, all right", bounds))

    rows.append(("context", f"{count(get('context_tokens'))} tokens per question"))
    rows.append(("cost", money(get("cost_usd/total"))))
    if flagged := flags(summary):
        rows.append(("flags", ", ".join(flagged)))

    return table((inline(summary.dataset), ""), rows, figures=False)


def corrected_rows(summary: RunSummary) -> list[tuple[str, str]]:
    """The accuracy that allows for the judge's errors, beside the raw one."""
    text = corrected(summary)
    return [] if not text else [("accuracy corrected for the judge's error", f"{text} %")]


def by_category(summary: RunSummary) -> list[str]:
    """Accuracy by category; those that are not in the headline are last, and marked."""
    rows = []
    for row in sorted(summary.categories, key=lambda row: not row.headline):
        remark = "" if row.headline else " (not in accuracy)"
        rows.append(measured(summary, row, f"{inline(row.name)}{remark}"))

    lines = ["## By category", "", *table(("category", *MEASURED), rows)]
    abstained = abstentions(summary)
    if abstained:
        lines += ["", " ".join(abstained)]

    return lines


def abstentions(summary: RunSummary) -> list[str]:
    """How often the answers were refusals, one sentence per measured rate."""
    questions = {
        "abstention_rate": "that count",
        "abstention_rate/unanswerable": "whose right answer is a refusal",
    }
    return [
        f"Abstained on {percent(rate)} % of the questions {which}."
        for name, which in questions.items()
        if (rate := summary.metrics.get(name)) is not None
    ]


def by_facet(summary: RunSummary, facet: str) -> list[str]:
    """Accuracy by the values of a further grouping, in their order.

    Of more than `VALUES_SHOWN`, those with the most questions.
    """
    rows = shown = list(summary.facets[facet])
    if len(rows) > VALUES_SHOWN:
        shown = sorted(rows, key=lambda row: (-row.n, row.category))[:VALUES_SHOWN]

    title = summary.facet_titles.get(facet, facet)
    cells = [measured(summary, row, text(row.category)) for row in shown]
    lines = [f"## By {inline(title)}", "", *table((text(title), *MEASURED), cells)]
    if len(shown) < len(rows):
        lines += ["", f"The {len(shown)} largest of {len(rows)}."]

    return lines


def by_protocol(summary: RunSummary) -> list[str]:
    """The metrics of the data set's own protocol, by their names in MLflow."""
    rows = [
        (code(name), f"{value:.4g}")
        for name in summary.protocol_metrics
        if (value := summary.metrics.get(name)) is not None
    ]
    if not rows:
        return []

    return ["## By the data set's own protocol", "", *table(("metric", "value"), rows)]


def measured(summary: RunSummary, row: CategoryResult, title: str) -> tuple[str, ...]:
    """A row of a table of groups of questions, below `MEASURED`."""
    return (
        title,
        count(row.n),
        f"{row.scored:,} of {row.asked:,}",
        percent(row.accuracy),
        interval(row.ci95_low, row.ci95_high),
        deviation(summary, row.accuracy_std),
        percent(row.token_f1),
    )


def repeats(summary: RunSummary) -> list[str]:
    """One line per repeat, where there are several."""
    if len(summary.repeats) < 2:
        return []

    rows = [
        (
            str(row.repeat),
            str(row.seed),
            percent(row.metrics.get("accuracy")),
            percent(row.metrics.get("token_f1")),
            percent(row.metrics.get("coverage")),
        )
        for row in summary.repeats
    ]
    return [
        "## Repeats",
        "",
        *table(("repeat", "seed", "accuracy %", "token F1 %", "coverage %"), rows),
    ]


def retrieval(summary: RunSummary) -> list[str]:
    """Retrieval against the evidence, by turn and by session.

    For systems that show what they retrieved.
    """
    names = [
        name
        for name in summary.metrics
        if name.startswith(RETRIEVAL) and "/" not in name and summary.metrics[name] is not None
    ]
    if not names:
        return [
            "## Retrieval",
            "",
            "Not measured: the system does not show what it retrieved, or the data set names no "
            "evidence.",
        ]

    rows = []
    for name in names:
        title = name.replace("_at_", "@").replace("mrr", "MRR").replace("ndcg", "nDCG")
        by_turn = percent(summary.metrics[name])
        by_session = percent(summary.metrics.get(f"session_{name}"))
        rows.append((title.replace("|", "\\|"), by_turn, by_session))

    lines = ["## Retrieval", "", *table(("against the evidence", "turns %", "sessions %"), rows)]
    return lines + _retrieval_by_category(summary)


def _retrieval_by_category(summary: RunSummary) -> list[str]:
    """How well the evidence is found by category, where the run measured nothing else."""
    names = ("recall_at_1", "recall_at_5", "recall_at_10", "recall_all_at_10", "mrr", "ndcg_at_10")
    rows = []
    for category in summary.categories:
        values = [summary.metrics.get(f"{name}/{category.name}") for name in names]
        if any(value is not None for value in values):
            rows.append((inline(category.name), count(category.n), *map(percent, values)))

    if not rows:
        return []

    header = ("category", "n", "R@1", "R@5", "R@10", "all@10", "MRR", "nDCG@10")
    return ["", *table(header, rows)]


def tokens(summary: RunSummary) -> list[str]:
    """Tokens by stage, and their cost with and without our response cache."""
    get = summary.metrics.get
    rows = []

    for stage in STAGES:
        moved = [get(f"tokens/{stage}/{kind}") for kind in ("prompt", "completion", "cached")]
        if any(moved):
            rows.append((stage, *map(count, moved), money(get(f"cost_usd/{stage}"))))

    if get("tokens/total") is not None or "cost_usd/total" in summary.metrics:
        total = f"{count(get('tokens/total'))} in all"
        rows.append(("**all**", total, "", "", f"**{money(get('cost_usd/total'))}**"))

    if not rows:
        return []

    header = (
        "stage",
        "prompt tokens",
        "completion tokens",
        "of the prompt, cached by the provider",
        "billed",
    )
    uncached = f"Cost without our response cache: {money(get('cost_usd_uncached/total'))}."

    return ["## Tokens and cost", "", *table(header, rows), "", uncached]


def latency(summary: RunSummary) -> list[str]:
    """Latency by stage, of calls that reached the model."""
    get = summary.metrics.get
    rows = [
        (
            stage,
            milliseconds(get(f"latency_ms/{stage}/p50")),
            milliseconds(get(f"latency_ms/{stage}/p95")),
        )
        for stage in STAGES
        if get(f"latency_ms/{stage}/p50") is not None
    ]

    lines: list[str] = []
    if rows:
        lines += ["", "Calls answered from our cache are left out.", ""]
        lines += table(("stage", "median", "95th percentile"), rows)

    seconds, wait = get("duration_s"), get("retry_wait_s")
    if seconds is not None:
        waited = ""
        if wait:
            waited = f", {milliseconds(1000 * wait)} of waits before retries in all calls"

        lines += ["", f"Wall time {milliseconds(1000 * seconds)}{waited}."]

    return ["## Latency", *lines] if lines else []


def statuses(summary: RunSummary, failures: Sequence[Record]) -> list[str]:
    """How far the questions got, and the first that failed."""
    if not summary.statuses:
        return []

    counts = [(inline(status), count(n)) for status, n in summary.statuses.items()]
    lines = ["## Statuses", "", *table(("status", "records"), counts)]
    if not failures:
        return lines

    rows = [
        (
            text(record.question_id),
            text(record.repeat),
            text(record.status.value),
            text(record.error),
        )
        for record in failures
    ]
    title = f"The first {len(rows)} that failed:" if len(rows) > 1 else "The one that failed:"
    lines += ["", title, ""]
    lines += table(("question", "repeat", "status", "error"), rows, figures=False)

    return lines


def notes(summary: RunSummary) -> list[str]:
    """What a reader must know, one sentence per note."""
    if not summary.notes:
        return []

    return ["## Notes", "", *(f"- {inline(redacted(note))}" for note in summary.notes)]


def disclosure(summary: RunSummary) -> list[str]:
    """The six things that whoever quotes the run's accuracy must say."""
    rows = [(name, text(value)) for name, value in disclosed(summary).items()]
    return ["## To be quoted with", "", *table(("what", "this run"), rows, figures=False)]


def settings(summary: RunSummary) -> list[str]:
    """The resolved settings and where the run came from."""
    values = [(code(key), text(as_yaml(value))) for key, value in summary.params.items()]
    tags = [
        (inline(key), text(value))
        for key, value in summary.tags.items()
        if key not in {"run_key", "command"}
    ]
    times = [
        ("started", inline(summary.started_at)),
        ("finished", inline(summary.finished_at)),
        ("run key", inline(summary.run_key)),
    ]

    return [
        "## Settings",
        "",
        *table(("setting", "value"), values, figures=False),
        "",
        "## Provenance",
        "",
        *table(("tag", "value"), [*times, *tags], figures=False),
    ]


def failed_rows(path: Path) -> Iterator[Record]:
    """The first records that did not end as `ok`; none where there is no file of records."""
    if not path.exists():
        return

    failed = (record for record in read_records(path) if record.status not in SOUND)
    yield from islice(failed, FAILURES_SHOWN)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], figures: bool = True) -> list[str]:
    """A Markdown table. Columns of figures, after the first one, are aligned to the right."""
    alignment = "---:" if figures else "---"
    rule = ["---", *[alignment] * (len(header) - 1)]

    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def text(value: object) -> str:
    """Any value in one cell of a table, cut where it is very long.

    What looks like a secret is taken out: errors may quote one.
    """
    return NONE if value is None else inline(one_line(value, LONGEST_CELL))


def money(value: float | None) -> str:
    """A cost with its unit, where it is known."""
    return dollars(value) if value is None else f"${dollars(value)}"
