"""One case in one repeat, computed by another process, which sends its rows immediately."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.pipeline.execute.case_work import CaseWork
from memeval.pipeline.execute.metrics import Measured
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.repeat import Repeat, first_error, ingest_ids
from memeval.records import EvalCase, Usage
from memeval.results import TextStore, VerdictRow
from memeval.results.rows import answer_or_ingest
from memeval.results.store import Json, Parse, R, RowStore, SoundRows, StoredRow

ANSWER_ROW, VERDICT_ROW, TEXT = "answer_row", "verdict_row", "text"
EXPECT, DONE, SAY, SPENT, SCORED = "expect", "done", "say", "spent", "scored"
"""Kinds of messages from a computing process."""
Message = tuple[str, tuple[Any, ...]]
Send = Callable[[Message], None]


class WorkUnit(Struct, frozen=True):
    """Work for a computing process."""

    cell: int
    """Number of the cell in the plan."""
    seed: int
    case: EvalCase
    answers: Sequence[Mapping[str, Any]]
    """Existing rows as JSON, including that of the case's ingest."""
    verdicts: Sequence[Mapping[str, Any]]


class UnitDone(Struct, frozen=True):
    """The results of a unit, other than its rows."""

    measured: Mapping[str, Measured]
    notes: tuple[str, ...]


def unit_of(cell: int, repeat: Repeat, case: EvalCase) -> WorkUnit:
    """The unit of a case, with its existing rows."""
    ids = [question.question_id for question in case.questions]
    answers, verdicts = repeat.answers.rows, repeat.verdicts.rows
    return WorkUnit(
        cell=cell,
        seed=repeat.seed,
        case=case,
        answers=_as_json(answers, (*ingest_ids(case), *ids)),
        verdicts=_as_json(verdicts, ids),
    )


def _as_json(rows: Mapping[str, StoredRow], ids: Iterable[str]) -> list[Json]:
    return [rows[row_id].to_json() for row_id in ids if row_id in rows]


class Keeper:
    """Stores rows and texts that a computing process sends, and forwards its progress."""

    def __init__(self, repeat: Repeat, progress: Progress) -> None:
        self._repeat, self._progress = repeat, progress
        self._reported: Counter[str] = Counter()
        """Items of each stage that were reported as done."""
        self._to_skip: Counter[str] = Counter()
        self._is_repeated = False

    def begin_again(self) -> None:
        """The unit is computed again: items reported before are not reported again."""
        self._is_repeated, self._to_skip = True, Counter(self._reported)

    def keep(self, message: Message) -> None:
        """Stores a row or a text, or reports progress. Raises `StorageError`."""
        kind, content = message
        if kind == ANSWER_ROW:
            self._repeat.answers.append(answer_or_ingest(content[0]))
        elif kind == VERDICT_ROW:
            self._repeat.verdicts.append(VerdictRow.from_json(content[0]))
        elif kind == TEXT:
            self._repeat.texts.put_entry(*content)
        elif kind == DONE:
            self._done(*content)
        # The unit's totals were counted before its process died; its costs are spent again.
        elif kind not in (EXPECT, SCORED) or not self._is_repeated:
            getattr(self._progress, kind)(*content)

    def _done(self, stage: str, reused: bool, failed: bool) -> None:
        if self._to_skip[stage]:
            self._to_skip[stage] -= 1
            return

        self._reported[stage] += 1
        self._progress.done(stage, reused=reused, failed=failed)


class SentRows(RowStore[R]):
    """Rows in a computing process: appended rows are sent."""

    def __init__(self, kind: str, rows: Mapping[str, R], parse: Parse[R], send: Send) -> None:
        """`rows` are the existing rows, by id."""
        super().__init__(Path(kind), {}, parse)
        # Never opened, and so never locked: the process that holds the file stores the rows.
        self._found = SoundRows(dict(rows))
        self._kind, self._send = kind, send

    def _write(self, row: Json) -> str:
        self._send((self._kind, (dict(row),)))
        return ""


class SentTexts(TextStore):
    """The texts of one case in a computing process: new texts are sent."""

    def __init__(self, send: Send) -> None:
        super().__init__(Path(TEXT))
        self._send = send

    def _read_lines(self) -> None:
        return

    def _write(self, entry: dict[str, Any], ref: str) -> None:
        self._send((TEXT, (entry, ref)))
        self._lines[ref] = (0, 0)  # known from now on: each text is sent once


class SentProgress(Progress):
    def __init__(self, send: Send) -> None:
        self._send = send

    def expect(self, stage: str, count: int) -> None:
        self._send((EXPECT, (stage, count)))

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        self._send((DONE, (stage, reused, failed)))

    def say(self, message: str) -> None:
        self._send((SAY, (message,)))

    def spent(self, usages: Sequence[Usage]) -> None:
        self._send((SPENT, (tuple(usages),)))

    def scored(self, score: float) -> None:
        self._send((SCORED, (score,)))


async def compute_unit(work: CaseWork, unit: WorkUnit, send: Send) -> UnitDone:
    """Computes a unit in the computing process. `work` is the work of its cell, after `begin`."""
    answers = {str(row["id"]): answer_or_ingest(row) for row in unit.answers}
    verdicts = {str(row["id"]): VerdictRow.from_json(row) for row in unit.verdicts}
    repeat = Repeat(
        seed=unit.seed,
        answers=SentRows(ANSWER_ROW, answers, answer_or_ingest, send),
        verdicts=SentRows(VERDICT_ROW, verdicts, VerdictRow.from_json, send),
        texts=SentTexts(send),
        judge=work.judge(unit.seed),
    )
    try:
        await work.work(repeat, unit.case)
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors

    return UnitDone(dict(repeat.measured), work.take_notes())
