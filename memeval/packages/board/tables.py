"""The table of one protocol: its runs compared, next to published figures."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from msgspec import structs

from memeval.comparison.build import compare_runs
from memeval.comparison.claims.matching import Sameness, match_claim
from memeval.comparison.claims.records import Claim
from memeval.metrics.registry import metrics
from memeval.packages.board.entries import BoardEntry, kind_of, name_of
from memeval.packages.board.ranking import rank_runs
from memeval.packages.board.records import LONGEST, BoardRow, BoardTable, PublishedFigure
from memeval.report.differences import labels
from memeval.report.flags import flags
from memeval.results import CategoryResult, RunSummary, judge_shown, run_cost_usd
from memeval.statistics.differences import ClusteredDifference
from memeval.text.shown import counted, one_line

LONGEST_MEMBER = 1_000
"""Characters of a protocol's member: the digests of a reader's prompts are one."""
MAX_MEMBERS = 4
"""Maximum number of members named to distinguish equal protocol names; the table's page has all."""


def table_of(name: str, entries: Sequence[BoardEntry], claims: Sequence[Claim]) -> BoardTable:
    """The runs of one protocol, compared. Raises `UserError` if records can't be read."""
    runs, summaries, scores = [], [], []
    for entry in entries:
        runs.append(entry.run)
        summaries.append(entry.run.summary)
        scores.append(entry.scores)

    differences: dict[str, ClusteredDifference] = {}
    best, best_key = _best_baseline(entries), None
    if best is not None:
        best_key = runs[best].key
        if len(runs) > 1 and any(run_scores.values for run_scores in scores):
            accuracy = metrics()["accuracy"]
            compared = compare_runs(runs, accuracy, baseline=best, categories=False, scores=scores)
            for pair in compared.differences:
                differences[pair.first] = pair.result

    names = _names(summaries)
    ranks = rank_runs(summaries, scores, names)
    rows = []
    for entry, label, letters in zip(entries, names, ranks.letters, strict=True):
        rows.append(_row(entry, label, letters, differences.get(entry.run.key), claims))

    rows.sort(key=lambda row: (row.accuracy is None, -(row.accuracy or 0.0), row.label, row.key))
    return BoardTable(
        id=name,
        dataset=one_line(summaries[0].dataset, LONGEST),
        words=_protocol_words(entries[0].protocol, summaries[0]),
        protocol=entries[0].protocol,
        best_baseline=best_key,
        rows=tuple(rows),
        remarks=tuple(one_line(remark, 400) for remark in ranks.remarks),
    )


def _names(summaries: Sequence[RunSummary]) -> list[str]:
    """The system of each run, and the differing settings if several runs are of one system."""
    systems = list(map(name_of, summaries))
    names = []
    for summary, system, label in zip(summaries, systems, labels(summaries), strict=True):
        text = system
        if systems.count(system) > 1:
            text = label if label.startswith(system) else f"{system} {label}"

        names.append(one_line(text or summary.name, LONGEST))

    return names


def _best_baseline(entries: Sequence[BoardEntry]) -> int | None:
    """Position of the valid baseline with the highest accuracy; the oracle is not one."""
    known = []
    for position, entry in enumerate(entries):
        run = entry.run
        if kind_of(run.summary) == "baseline" and run.valid and not run.summary.is_stopped:
            known.append((-(run.metrics.get("accuracy") or 0.0), run.key, position))

    return min(known)[2] if known else None


def _row(
    entry: BoardEntry,
    label: str,
    letters: str,
    difference: ClusteredDifference | None,
    claims: Sequence[Claim],
) -> BoardRow:
    run, get = entry.run, entry.run.summary.metrics.get
    mean = low = high = None
    if difference is not None:
        mean, low, high = difference.mean, difference.low, difference.high

    return BoardRow(
        key=run.key,
        package=entry.package.id,
        system=one_line(name_of(run.summary), LONGEST),
        label=label,
        kind=kind_of(run.summary),
        letters=letters,
        accuracy=get("accuracy"),
        low=get("accuracy_ci95_low"),
        high=get("accuracy_ci95_high"),
        difference=mean,
        difference_low=low,
        difference_high=high,
        context_tokens=get("context_tokens"),
        usd_per_1000=_usd_per_1000(run.summary),
        latency_p50_ms=get("latency_ms/answer/p50"),
        latency_p95_ms=get("latency_ms/answer/p95"),
        date=run.summary.finished_at[:10],
        valid=run.valid and not run.summary.is_stopped,
        flags=tuple(one_line(flag, LONGEST) for flag in flags(run.summary)),
        categories=tuple(map(_shown_category, run.summary.categories)),
        published=tuple(published_figures(run.summary, claims)),
    )


def _shown_category(row: CategoryResult) -> CategoryResult:
    return replace(row, category=one_line(row.category, LONGEST), name=one_line(row.name, LONGEST))


def published_figures(summary: RunSummary, claims: Sequence[Claim]) -> Iterator[PublishedFigure]:
    """The published claims about a system of this name on this data, compared with the run."""
    system = name_of(summary).casefold()
    for claim in claims:
        if claim.dataset != summary.dataset:
            continue

        for match in match_claim(claim, summary):
            figure = match.figure
            if system in (figure.like, figure.system.casefold()):
                yield PublishedFigure(
                    title=claim.title,
                    source=claim.source,
                    system=figure.system,
                    metric=figure.metric,
                    value=figure.value,
                    own=match.own,
                    verdict=match.verdict,
                    differs=match.texts(Sameness.OTHER),
                    untold=match.texts(Sameness.NOT_DISCLOSED),
                    disputes=tuple(
                        f"{dispute.text} ({dispute.source})" for dispute in claim.disputes
                    ),
                )


def _usd_per_1000(summary: RunSummary) -> float | None:
    cost, asked = run_cost_usd(summary), sum(summary.statuses.values())
    return None if cost is None or not asked else 1_000 * cost / asked


def _protocol_words(protocol: Mapping[str, Any], summary: RunSummary) -> str:
    """`142 questions · judge keyword · reader extractive · prompt short`."""
    reader = protocol["reader"]
    parts = [counted(protocol["questions"], "question")]
    if protocol["stages"] != "all":
        parts.append(f"stages {protocol['stages']}")

    parts.append(f"judge {judge_shown(summary.judge) or 'none'}")
    if isinstance(reader, Mapping):
        model = "imported answers" if reader["imported"] else f"reader {reader['model']}"
        if summary.reads_by_tools:
            model += " with tools"

        parts.append(model)
        if reader["prompt"]:
            parts.append(f"prompt {summary.prompt_name}")

    if protocol["labels"] not in ("", "original"):
        parts.append(f"labels {protocol['labels']}")

    return " · ".join(one_line(part, 120) for part in parts)


def distinguish_tables(tables: Sequence[BoardTable]) -> tuple[BoardTable, ...]:
    """The tables; equal words are extended by the differences of their protocols."""
    alike: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for table in tables:
        alike[table.dataset, table.words].append(dict(protocol_members(table.protocol)))

    extended = []
    for table in tables:
        members, others = dict(protocol_members(table.protocol)), alike[table.dataset, table.words]
        words = [table.words]
        for name in dict.fromkeys(chain.from_iterable(others)):
            values = {other.get(name) for other in others}
            if len(values) > 1:
                words.append(f"{name.rpartition('.')[2]} {_own_part(members.get(name), values)}")

        extended.append(structs.replace(table, words=" · ".join(words[: 1 + MAX_MEMBERS])))

    return tuple(extended)


def _own_part(value: str | None, values: Iterable[str | None]) -> str:
    """The beginning of the first part of a value, such as a digest, that not all values have."""
    shared = set.intersection(*(set((other or "").split()) for other in values))
    parts = [part for part in (value or "").split() if part not in shared]
    return parts[0][:12] if parts else "none"


def protocol_members(protocol: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The members of a protocol by dotted name, without those that are not set."""
    if isinstance(protocol, Mapping):
        for key, member in protocol.items():
            dotted = f"{name}.{key}" if name else str(key)
            yield from protocol_members(member, dotted)
    elif protocol not in (None, ""):
        yield name, one_line(protocol, LONGEST_MEMBER)
