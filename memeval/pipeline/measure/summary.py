"""Measures a finished cell, and writes its run folder."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memeval import __version__
from memeval.datasets.own_classes import calling
from memeval.pipeline.execute.ingest import CUT_REPLIES
from memeval.pipeline.execute.repeat import Finished
from memeval.pipeline.execute.rows import RETRYABLE
from memeval.pipeline.measure.figures import found_nothing, statuses
from memeval.pipeline.measure.provenance import config_yaml, params, tags
from memeval.pipeline.measure.records import (
    Ingest,
    as_lines,
    hypotheses,
    ingests,
    records,
    rows_digests,
)
from memeval.pipeline.measure.run_notes import notes, shortened_notes
from memeval.pipeline.measure.selection import has_score, measure
from memeval.pipeline.measure.spending import Metrics
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.judge_identity import judge_identity
from memeval.records import Status
from memeval.results import (
    CONFIG_FILE,
    FEWEST_SESSIONS,
    FINISHED,
    FOUND_NOTHING,
    RECORDS_FILE,
    RUN_FILE,
    STOPPED,
    Record,
    RunSummary,
    hypotheses_file,
    read_records,
    write_atomically,
)
from memeval.results.files import writing
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.private import make_folder
from memeval.text.names import text_digest
from memeval.text.shown import one_line


def finish(cell: Cell, finished: Finished) -> RunSummary:
    """Measures a finished cell and writes its run folder, `run.json` last. Raises `StorageError`.

    A stopped run leaves the folder of a finished run unchanged.
    """
    rows, ingest_rows = list(records(cell, finished)), list(ingests(cell, finished))
    summary = summarise(cell, finished, rows, ingest_rows)
    files = {
        CONFIG_FILE: config_yaml(cell),
        RECORDS_FILE: as_lines([row.to_json() for row in rows]),
    }
    for repeat in summary.repeats:
        files[hypotheses_file(repeat.repeat)] = as_lines(hypotheses(rows, repeat.repeat))

    summary = replace(
        summary,
        files={name: text_digest(text) for name, text in files.items()},
        rows=rows_digests(finished),
        identity=identity(cell),
    )
    # A smaller budget must not replace the figures of a complete run.
    if summary.is_stopped and _was_finished(cell):
        return summary

    with writing(cell.folder):
        make_folder(cell.folder)
        for name, text in files.items():
            write_atomically(cell.folder / name, text)

        # `run.json` contains the digests of the other files: a crash before this line leaves a run
        # that is not finished, and is summarised again from its rows.
        summary.write(cell.folder)

    return summary


def _was_finished(cell: Cell) -> bool:
    """Whether there is a run folder that was not stopped."""
    try:
        return not RunSummary.read(cell.folder).is_stopped
    except (OSError, ValueError):
        return False


def identity(cell: Cell) -> dict[str, Any]:
    """Contents of the run key other than the config: it can be computed without the data."""
    keys = [{"seed": seed, **asdict(cell.keys(seed))} for seed in cell.seeds]
    return {"version": __version__, "inputs": asdict(cell.identity), "keys": keys}


class EarlierRun(Struct, frozen=True):
    summary: RunSummary | None = None
    """Its summary, if it is complete and needs no retries."""
    damage: tuple[str, ...] = ()
    """Mismatches, one line each; these parts are computed again from the rows."""


def read_earlier(cell: Cell) -> EarlierRun:
    """Results of a cell that was finished before."""
    try:
        summary = RunSummary.read(cell.folder)
    except FileNotFoundError:
        return EarlierRun()
    except OSError as error:
        return EarlierRun(damage=(one_line(error.strerror),))
    except ValueError as error:
        return EarlierRun(damage=(one_line(error),))

    damage = summary.find_damage(cell.folder)
    if summary.run_key != cell.run_key:
        damage.insert(0, f"{RUN_FILE} is that of another run, {summary.run_key}")
    if damage:
        return EarlierRun(damage=tuple(damage))

    if summary.tags.get(FIGURES_CODE) != cell.figures_code:
        return EarlierRun()  # the figures are computed again from the rows, without a call

    unfinished = not RETRYABLE.isdisjoint(summary.statuses)
    # A judge's reply that could not be read must be requested again.
    if not unfinished and Status.UNPARSED in summary.statuses:
        unfinished = any(record.tries for record in read_records(cell.folder / RECORDS_FILE))

    is_complete = sum(summary.statuses.values()) > 0 and not unfinished and not summary.is_stopped
    return EarlierRun(summary if is_complete else None)


def summarise(
    cell: Cell, finished: Finished, rows: Sequence[Record], ingest_rows: Sequence[Ingest]
) -> RunSummary:
    # Of all repeats: one of them may have no reply that a metric needs.
    protocol_metrics = tuple(_own_measures(cell, rows))
    figures = measure(
        list(enumerate(repeat.seed for repeat in finished.repeats)),
        *(rows, ingest_rows, cell.dataset.headline),
        imported=cell.is_imported,
        measures=lambda own_rows: _own_measures(cell, own_rows),
        protocol=protocol_metrics,
        has_score=has_score(cell),
    )
    coverage = figures.metrics["coverage"]
    ended = finished.started_at + timedelta(seconds=finished.seconds)
    return RunSummary(
        run_key=cell.run_key,
        name=cell.name,
        dataset=cell.loaded.name or cell.config.dataset["name"],
        sweep=cell.config.sweep_name,
        command=cell.command,
        params=params(cell),
        tags=tags(cell) | _tags_of_rows(cell, rows, ingest_rows),
        metrics=figures.metrics | {"duration_s": finished.seconds},
        categories=figures.categories,
        protocol_metrics=protocol_metrics,
        facets=figures.facets,
        facet_titles=dict(cell.dataset.facet_names),
        repeats=figures.repeats,
        notes=shortened_notes(notes(cell, finished, rows, ingest_rows)),
        valid=not finished.stopped
        and coverage is not None
        and coverage >= cell.config.min_coverage
        and not found_nothing(rows, ingest_rows),
        status=STOPPED if finished.stopped else FINISHED,
        started_at=finished.started_at.isoformat(timespec="milliseconds"),
        finished_at=ended.isoformat(timespec="milliseconds"),
        statuses=statuses(rows),
        judge=judge_identity(cell),
    )


def _own_measures(cell: Cell, rows: Sequence[Record]) -> Metrics:
    with calling(cell.dataset, "measures"):
        return dict(cell.dataset.measures(rows))


def _tags_of_rows(
    cell: Cell, rows: Sequence[Record], ingest_rows: Sequence[Ingest]
) -> dict[str, str]:
    """Tags that depend on the ingested chunks and the search results."""
    labels = {}
    if any(CUT_REPLIES in ingest.row.notes for ingest in ingest_rows):
        labels["cut_at_ingest"] = "true"

    # The smallest number of sessions: recall@k with a k above it can't miss.
    if cell.config.granularity.name in ("session", "summary") and ingest_rows:
        sessions = {ingest.case_id: ingest.row.chunks for ingest in ingest_rows}
        if _finds_sessions(rows, sessions):
            labels[FEWEST_SESSIONS] = str(min(sessions.values()))

    if found_nothing(rows, ingest_rows):
        labels[FOUND_NOTHING] = "true"
    answered = [row for row in rows if row.status.is_complete]
    # Recall covers only questions with a known ranking.
    if len({row.evidence_ranks is None for row in answered if row.retrieved is not None}) > 1:
        labels["ranks_part"] = "true"

    return labels


def _finds_sessions(rows: Sequence[Record], sessions: Mapping[str, int]) -> bool:
    """Whether the search results may be whole sessions, not smaller chunks that a system cuts.

    `sessions` contains the number of sessions of each case.
    """
    found_chunks: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for row in rows:
        covered = [chunk.turn_ids for chunk in row.retrieved or () if chunk.turn_ids]
        found_chunks[row.case_id].update(covered)
        if len(set(covered)) < len(covered):
            return False

    return all(len(found_chunks[case_id]) <= count for case_id, count in sessions.items())
