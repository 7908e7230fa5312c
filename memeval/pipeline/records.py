"""Joins what the stages stored into the records that a user reads: one row per question and repeat, in the data set's order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memeval.llm.metering import totals
from memeval.pipeline.cell import Cell
from memeval.pipeline.rows import is_whole, usage_rows, usages_of
from memeval.pipeline.run import Finished, Repeat
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.redaction import without_known_in
from memeval.results import json_line

Record = dict[str, Any]
TIMES = "times"
"""The one field of a record that differs between an interrupted run and an uninterrupted one."""


def records(cell: Cell, finished: Finished) -> Iterator[Record]:
    """All records of a cell's run."""
    for number, repeat in enumerate(finished.repeats):
        for case in finished.cases:
            for question in case.questions:
                yield _record(cell, repeat, number, case, question)


def _record(
    cell: Cell, repeat: Repeat, number: int, case: EvalCase, question: EvalQuestion
) -> Record:
    answer = repeat.answers.rows[question.question_id]
    verdict = (
        repeat.verdicts.rows.get(question.question_id, {}) if answer["status"] == Status.OK else {}
    )
    usages = [*usages_of(answer, cell.run_key), *usages_of(verdict, cell.run_key)]
    record: Record = {
        "question_id": question.question_id,
        "case_id": case.case_id,
        "category": question.category,
        "category_name": cell.dataset.category_names.get(question.category, str(question.category)),
        "repeat": number,
        "seed": repeat.seed,
        "question": question.text,
        "gold": list(question.gold),
        "answerable": question.answerable,
        "facets": dict(question.facets),
        "evidence": list(question.evidence),
        "hypothesis": answer.get("hypothesis"),
        "status": verdict.get("status", answer["status"]),
        "verdict": verdict.get("verdict"),
        "metrics": answer.get("metrics", {}),
        "retrieved": answer.get("retrieved"),
        "evidence_ranks": answer.get("evidence_ranks"),
        "session_evidence_ranks": answer.get("session_evidence_ranks"),
        "context_tokens": answer.get("context_tokens"),
        "usage": usage_rows(totals(usages)),
        TIMES: {**answer.get(TIMES, {}), **verdict.get(TIMES, {})},
    }
    if question.choices:
        record |= {
            "choices": list(question.choices),
            "choice_labels": question.choice_labels.value,
            "right_choices": list(question.right_choices),
            "chosen": (record["verdict"] or {}).get("chosen"),
        }
    notes = {**answer.get("notes", {}), **verdict.get("notes", {})}
    optional = {
        "raw": answer.get("raw"),
        "notes": notes or None,
        "error": verdict.get("error", answer.get("error")),
    }
    return record | {name: value for name, value in optional.items() if value is not None}


def ingests(cell: Cell, finished: Finished) -> Iterator[Record]:
    """What each case's ingest took, per repeat; nothing for cases whose memory was not needed."""
    from memeval.pipeline.run import ingest_id

    for repeat in finished.repeats:
        for case in finished.cases:
            row = repeat.answers.rows.get(ingest_id(case.case_id))
            if row is not None:
                yield {
                    **row,
                    "case_id": case.case_id,
                    "seed": repeat.seed,
                    "usage": usage_rows(usages_of(row, cell.run_key)),
                }


def hypotheses(rows: Iterable[Record], repeat: int) -> list[Record]:
    """The answers of one repeat in LongMemEval's format, `{question_id, hypothesis}`; questions without an answer are left out."""
    kept = (row for row in rows if row["repeat"] == repeat and is_whole(row))
    return [{"question_id": row["question_id"], "hypothesis": row["hypothesis"]} for row in kept]


def as_lines(rows: list[Record]) -> str:
    """Records as JSON lines."""
    return "".join(json_line(without_known_in(row)) for row in rows)


def rows_digests(finished: Finished) -> dict[str, str]:
    """A digest of the rows that a run is made of, by their file below outputs/."""
    ids = [question.question_id for case in finished.cases for question in case.questions]
    digests = {}
    for repeat in finished.repeats:
        for store in (repeat.answers, repeat.verdicts):
            digests[f"{store.path.parent.name}/{store.path.name}"] = rows_digest(ids, store.seals)
    return digests


def rows_digest(ids: Iterable[str], seals: Mapping[str, str]) -> str:
    """Digest of the rows of these ids, in this order, by their seals; a row that there is not counts as such."""
    listed = "".join(f"{row_id} {seals.get(row_id, '-')}\n" for row_id in ids)
    return hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()
