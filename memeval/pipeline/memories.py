"""Answers of the cell's memory system: one memory per case, asked question by question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from memeval.errors import StorageError, UserError
from memeval.pipeline.builder import Builder
from memeval.pipeline.cell import Cell
from memeval.pipeline.memory import Memory
from memeval.pipeline.models import Models
from memeval.pipeline.question import ask, failed_answer, milliseconds
from memeval.pipeline.retrieving import retrieves_only
from memeval.pipeline.service_watch import ServiceWatch
from memeval.pipeline.source import AnswerSource, CaseAnswers
from memeval.pipeline.turns import CaseTurns
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.results import AnswerRow, IngestRow, StepTimes, TextStore


class MemorySource(AnswerSource):
    """Asks the memories that the cell's system makes of the cases."""

    def __init__(self, cell: Cell, models: Models, *, saves: bool = True) -> None:
        """Without `saves` nothing on disk is changed: for an estimate."""
        self._cell = cell
        self._builder = Builder(cell, models, saves=saves)
        self._noted: list[str] = []
        self._service = ServiceWatch(cell.config.stop_after_failures)

    def cases(self) -> Iterator[EvalCase]:
        return self._cell.dataset.cases()

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        try:
            memory = await self._builder.memory(case, seed)
        except (asyncio.CancelledError, StorageError, UserError):
            raise  # these concern the whole run, and not this case
        except Exception as error:  # noqa: BLE001
            # The boundary of a case: a system's failure to ingest is the status of its questions.
            self._service.failed(error)
            return FailedIngest(error)

        if memory.unsaved:
            self._noted.append(
                "A memory could not be saved, and is built again when it is needed: "
                f"{memory.unsaved}"
            )

        only = retrieves_only(self._cell.config)
        return MemoryAnswers(memory, self._noted, self._service, retrieves_only=only)

    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._noted, *self._builder.notes()]))


class FailedIngest(CaseAnswers):
    """A case without a memory: what its ingest raised is the status of each question."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        return failed_answer(question.question_id, Status.INGEST_FAILED, self._error)


class MemoryAnswers(CaseAnswers):
    """The answers of one memory."""

    def __init__(
        self,
        memory: Memory,
        noted: list[str],
        service: ServiceWatch | None = None,
        *,
        retrieves_only: bool = False,
    ) -> None:
        """`service` counts failures of the memory that are those of a service."""
        self._memory, self._noted, self._service = memory, noted, service
        self._retrieves_only = retrieves_only
        self.reused = memory.found
        self.ingest = ingest_row(memory)

    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        return await ask(
            self._memory.watched,
            question,
            turns,
            texts,
            retrieves_only=self._retrieves_only,
            service=self._service,
        )

    async def close(self) -> None:
        if trouble := await self._memory.close():
            self._noted.append(f"close() of a memory failed, which spoils no answer: {trouble}")


def ingest_row(memory: Memory) -> IngestRow:
    """What the ingest of a memory took."""
    return IngestRow(
        id="",
        chunks=memory.chunks,
        compressions=memory.compressions,
        origin=memory.origin,
        health=memory.health,
        usage=memory.usage,
        times=StepTimes(
            ingest_ms=milliseconds(memory.seconds), ready_ms=milliseconds(memory.ready_seconds)
        ),
        notes=memory.notes,
    )
