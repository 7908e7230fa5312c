"""Joins the rows of all stages into records, one per question and repeat, in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memeval.metrics.tools import WRITE_RECALL
from memeval.pipeline.execute.metrics import Measured
from memeval.pipeline.execute.repeat import Finished, Repeat, ingest_id, ingest_ids
from memeval.pipeline.execute.rows import Bill
from memeval.pipeline.execute.timeline import id_until, operations_done, timeline_events
from memeval.pipeline.open.cell import Cell
from memeval.records import EvalCase, EvalQuestion, Status, Usage
from memeval.results import AnswerRow, IngestRow, Record, RunSummary, VerdictRow, json_line
from memeval.results.record import TimelineEvent
from memeval.results.rows import OperationDone
from memeval.results.store import Json, Parse, R, SoundRows, read_row_file
from memeval.text.names import text_digest
from memeval.text.redaction import without_known_in


class Ingest(Struct, frozen=True):
    """Costs of the ingest of one case in one repeat."""

    case_id: str
    seed: int
    row: IngestRow
    usage: tuple[Usage, ...]
    """As the run counts them: those paid for by another run or an earlier repeat as cached."""


def records(cell: Cell, finished: Finished) -> Iterator[Record]:
    """All records of a cell's run."""
    bill = Bill(cell.run_key)
    for number, repeat in enumerate(finished.repeats):
        for case in finished.cases:
            done = operations_done(case, partial(_done_until, repeat)) if case.operations else {}
            for question in case.questions:
                timeline = tuple(timeline_events(case, question, done))
                yield _record(cell, repeat, number, case, question, bill=bill, timeline=timeline)


def _done_until(repeat: Repeat, case_id: str) -> Sequence[OperationDone]:
    row = repeat.answers.rows.get(ingest_id(case_id))
    return row.operations if isinstance(row, IngestRow) else ()


def _record(
    cell: Cell,
    repeat: Repeat,
    number: int,
    case: EvalCase,
    question: EvalQuestion,
    *,
    bill: Bill,
    timeline: tuple[TimelineEvent, ...],
) -> Record:
    answer = repeat.answers.rows[question.question_id]
    assert not isinstance(answer, IngestRow), "ids of ingests and of questions differ"
    verdict = repeat.verdicts.rows.get(question.question_id)
    measured = repeat.measured.get(question.question_id, Measured())
    memory = repeat.answers.rows.get(ingest_id(id_until(case, question)))
    return Record(
        question_id=question.question_id,
        case_id=case.case_id,
        category_name=cell.dataset.category_names.get(question.category, str(question.category)),
        repeat=number,
        seed=repeat.seed,
        metrics={**measured.metrics, **write_recall(memory, question)},
        choice_labels=question.choice_labels,
        top_k=None if measured.shown is None else cell.config.top_k,
        timeline=timeline,
        **members_of_data(question, measured),
        **members_of_rows(answer, verdict, bill),
    )


def members_of_data(question: EvalQuestion, measured: Measured) -> dict[str, Any]:
    """The members of a record that are those of its question, and the ranks of its evidence, each
    None if not known.
    """
    names = ("category", "gold", "answerable", "asked_at", "facets", "evidence", "weight")
    members = {name: getattr(question, name) for name in (*names, "choices", "right_choices")}
    ranking, shown = measured.ranking, measured.shown
    return {
        **members,
        "question": question.text,
        "evidence_ranks": ranking and ranking.turns,
        "session_evidence_ranks": ranking and ranking.sessions,
        "shown_evidence_ranks": shown and shown.turns,
        "shown_session_ranks": shown and shown.sessions,
    }


def members_of_rows(answer: AnswerRow, verdict: VerdictRow | None, bill: Bill) -> dict[str, Any]:
    """The members of a record that come from its rows alone."""
    usage, times, notes = bill.usages_of(answer), answer.times, dict(answer.notes)
    status, error, judged = answer.status, answer.error, None
    # A verdict may be left from an answer that was replaced by a failure: it no longer counts.
    if verdict is not None and answer.status is Status.OK:
        status, error, judged = verdict.status, verdict.error or error, verdict.verdict
        # Answer and verdict may come from different runs: each records which run paid for it.
        usage += bill.usages_of(verdict)
        times = times.join(verdict.times)
        notes |= verdict.notes

    return {
        "hypothesis": answer.hypothesis,
        "status": status,
        "verdict": judged,
        "retrieved": answer.retrieved,
        "context": answer.context,
        "prompt": answer.prompt,
        "steps": answer.steps,
        "step_limit": answer.step_limit,
        "context_tokens": answer.context_tokens,
        "usage": usage,
        "times": times,
        "finish_reason": answer.finish_reason,
        "raw": answer.raw,
        "notes": notes,
        "error": error,
    }


def write_recall(memory: object, question: EvalQuestion) -> dict[str, float]:
    """Share of a question's evidence that its memory quotes under `writer=tools`, by the name of
    the metric; `memory` is the row of its ingest. Empty if the written content is unknown.
    """
    if not isinstance(memory, IngestRow) or not question.evidence:
        return {}
    if memory.written is None or memory.written.quoted is None:
        return {}

    evidence = set(question.evidence)
    return {WRITE_RECALL: len(evidence.intersection(memory.written.quoted)) / len(evidence)}


def ingests(cell: Cell, finished: Finished) -> Iterator[Ingest]:
    """Ingest costs of each case, per repeat; nothing for cases whose memory was not needed."""
    bill = Bill(cell.run_key)
    for repeat in finished.repeats:
        for case in finished.cases:
            for row in map(repeat.answers.rows.get, ingest_ids(case)):
                if isinstance(row, IngestRow):
                    yield Ingest(case.case_id, repeat.seed, row, bill.usages_of(row))


def hypotheses(rows: Iterable[Record], repeat: int) -> Iterator[dict[str, Any]]:
    """The answers of one repeat in LongMemEval's format; those without one are left out."""
    for record in rows:
        if record.repeat == repeat and record.is_whole:
            yield {"question_id": record.question_id, "hypothesis": record.hypothesis}


def as_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Objects as JSON lines, without known secrets."""
    return "".join(json_line(without_known_in(row)) for row in rows)


def rows_digests(finished: Finished) -> dict[str, str]:
    """Digest of the rows of a run, by the path of their file below outputs/."""
    ids: list[str] = []
    for case in finished.cases:
        ids += [question.question_id for question in case.questions]

    digests = {}
    for repeat in finished.repeats:
        for store in (repeat.answers, repeat.verdicts):
            name = f"{store.path.parent.name}/{store.path.name}"
            digests[name] = rows_digest(ids, store.seals)

    return digests


def rows_of_run(
    path: Path, header: Json, parse: Parse[R], *, ids: Sequence[str], summary: RunSummary
) -> SoundRows[R]:
    """The rows of a file as they were when a run of these questions finished.

    Another run that shares the file may have replaced some since, such as verdicts that could not
    be read. If no earlier state matches `summary`, the current rows. Raises `OSError`.
    """
    digest = summary.rows.get(f"{path.parent.name}/{path.name}")
    rows = read_row_file(path, header, parse)
    then = replace(rows, rows=dict(rows.rows), seals=dict(rows.seals))
    for row, seal in reversed(rows.replaced):
        if rows_digest(ids, then.seals) == digest:
            return then

        then.rows[row.id], then.seals[row.id] = row, seal

    return then if rows_digest(ids, then.seals) == digest else rows


def rows_digest(ids: Iterable[str], seals: Mapping[str, str]) -> str:
    """Digest of the rows of these ids, in this order, by their seals; `-` for a missing row."""
    listed = "".join(f"{row_id} {seals.get(row_id, '-')}\n" for row_id in ids)
    return text_digest(listed)
