"""Sources of a run's answers: a memory that is asked, or a file; and the watch over a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from memeval.errors import MemoryServiceError, WorldError
from memeval.pipeline.execute.turns import CaseTurns
from memeval.records import EvalCase, EvalQuestion
from memeval.results import AnswerRow, IngestRow, TextStore


class CaseAnswers(ABC):
    """The answers of one case in one repeat."""

    reused: bool = False
    """Whether what answers was found ready: a saved memory."""
    ingest: IngestRow | None = None
    """Costs of its ingest; None if nothing was ingested. The run gives it its id."""

    @abstractmethod
    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        """The answer to a question. A failure is a row with its status and no exception."""

    async def close(self) -> None:
        """Closes what is held."""


class AnswerSource(ABC):
    """Source of a run's answers."""

    @abstractmethod
    def cases(self) -> Iterator[EvalCase]:
        """The cases, with the questions that this run asks."""

    @abstractmethod
    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        """Opens the answers to the questions of a case in the repeat under `seed`."""

    def notes(self) -> tuple[str, ...]:
        """Notes on the answers for the reader, a sentence each; asked when the run is done."""
        return ()


class ServiceWatch:
    """Counts failures of a served memory in a row: each may take as long as its time limit."""

    def __init__(self, most: int | None) -> None:
        """`most` failures stop the run (`stop_after_failures`); None never does."""
        self._most, self._in_row = most, 0

    def succeeded(self) -> None:
        """A question was answered, or a case ingested."""
        self._in_row = 0

    def failed(self, error: Exception) -> None:
        """A question or an ingest failed. Raises `WorldError` for the last one that is allowed."""
        # An error raised by a model or the user's class says nothing about a service.
        if not isinstance(error, MemoryServiceError):
            return

        self._in_row += 1
        if self._most is not None and self._in_row >= self._most:
            raise WorldError(
                f"stopped: the memory failed {self._in_row} times in a row, the last time: {error} "
                f"(stop_after_failures={self._most}); the same command continues"
            ) from error
