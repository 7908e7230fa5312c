"""Answers of the cell's memory system: one memory per case, asked question by question."""

import asyncio
from collections.abc import Iterator

from msgspec import structs
from msgspec.structs import replace

from memeval.errors import StorageError, UserError
from memeval.metrics.lifecycle import FORGETEVAL
from memeval.pipeline.execute.builder import Builder
from memeval.pipeline.execute.memory import Memory
from memeval.pipeline.execute.question import ask, failed_answer, milliseconds
from memeval.pipeline.execute.source import AnswerSource, CaseAnswers, ServiceWatch
from memeval.pipeline.execute.tool_reader import ToolReader
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import FailedMemory
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.results import AnswerRow, IngestRow, StepTimes, TextStore


class MemorySource(AnswerSource):
    """Answers from the memories that the cell's system builds for the cases."""

    def __init__(self, cell: Cell, models: Models, *, saves: bool = True) -> None:
        """Without `saves`, for an estimate, nothing on disk is changed."""
        self._cell = cell
        self._builder = Builder(cell, models, saves=saves)
        self._notes: list[str] = []
        self._service = ServiceWatch(cell.config.stop_after_failures)

    def cases(self) -> Iterator[EvalCase]:
        return self._cell.dataset.cases()

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        try:
            memory = await self._builder.memory(case, seed)
        except (asyncio.CancelledError, StorageError, UserError):
            raise  # these concern the whole run, not this case
        except Exception as error:  # noqa: BLE001
            # A case's boundary: a failure to ingest becomes the status of its questions.
            self._service.note_failure(error)
            return FailedIngest(error, self._builder.failed_memory(case, seed))

        if memory.save_error:
            self._notes.append(
                f"A memory could not be saved, so it is rebuilt when needed: {memory.save_error}"
            )

        only = retrieves_only(self._cell.config)
        return MemoryAnswers(
            memory,
            self._notes,
            self._service,
            retrieves_only=only,
            tool_reader=self._builder.tool_reader(memory.watched, seed),
        )

    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._notes, *self._builder.notes()]))


class FailedIngest(CaseAnswers):
    """A case without a memory: the error of its ingest becomes the status of each question."""

    failed = True

    def __init__(self, error: Exception, failed: FailedMemory | None) -> None:
        self._error = error
        if failed is not None and failed.usage:
            # The failed ingest was paid for, too.
            self.ingest = IngestRow(
                id="", chunks=0, compressions=0, usage=failed.usage, origin=failed.origin
            )

    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        return failed_answer(question.question_id, Status.INGEST_FAILED, self._error)


class MemoryAnswers(CaseAnswers):
    def __init__(
        self,
        memory: Memory,
        notes: list[str],
        service: ServiceWatch,
        *,
        retrieves_only: bool,
        tool_reader: ToolReader | None,
    ) -> None:
        """`service` counts failures of a service; `tool_reader` answers with the memory's tools."""
        self._memory, self._notes, self._service = memory, notes, service
        self._retrieves_only, self._tool_reader = retrieves_only, tool_reader
        self.reused = memory.was_loaded
        members = structs.asdict(memory.ingested)
        ingest_ms = milliseconds(members.pop("seconds"))
        times = StepTimes(ingest_ms=ingest_ms, ready_ms=milliseconds(members.pop("ready_seconds")))
        self.ingest = IngestRow(id="", times=times, **members)

    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        row = await ask(
            self._memory.watched,
            question,
            turns,
            texts,
            retrieves_only=self._retrieves_only,
            service=self._service,
            tool_reader=self._tool_reader,
        )
        # ForgetEval: an operation that the system doesn't support is neither a pass nor a failure.
        is_unable = any(done.items is None for done in self._memory.ingested.operations)
        if is_unable and question.traces is not None and question.traces.kind == FORGETEVAL:
            row = replace(row, seen={})

        return row

    async def close(self) -> None:
        if error := await self._memory.watched.close():
            self._notes.append(f"close() of a memory failed; no answer is affected: {error}")
