"""Sources of a run's answers (a memory or a file), and a counter of a memory service's failures."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from memeval.errors import MemoryServiceError, WorldError
from memeval.pipeline.execute.turns import CaseTurns
from memeval.records import EvalCase, EvalQuestion
from memeval.results import AnswerRow, IngestRow, TextStore
from memeval.text.shown import counted


class CaseAnswers(ABC):
    """The answers of one case in one repeat."""

    reused: bool = False
    """Whether the answers come from a saved memory."""
    failed: bool = False
    """Whether there is no memory, because its ingest failed."""
    ingest: IngestRow | None = None
    """Costs of the case's ingest; None if nothing was ingested. The run sets the row's id."""

    @abstractmethod
    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        """The answer to a question. A failure is returned as a row with its status, not raised."""

    async def close(self) -> None:
        """Closes the source of the answers, such as a memory."""


class AnswerSource(ABC):
    @abstractmethod
    def cases(self) -> Iterator[EvalCase]:
        """The cases, with the questions that this run asks."""

    @abstractmethod
    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        """Opens the answers to the questions of a case in the repeat under `seed`."""

    def notes(self) -> tuple[str, ...]:
        """Notes on the answers for the reader, one sentence each; called when the work is done."""
        return ()


class ServiceWatch:
    """Counts consecutive failures of a memory service: each may take as long as its time limit."""

    def __init__(self, most: int | None) -> None:
        """`most` failures in a row stop the run (`stop_after_failures`); None: never."""
        self._most, self._in_row = most, 0

    def note_success(self) -> None:
        """A question was answered: the count starts again."""
        self._in_row = 0

    def note_failure(self, error: Exception) -> None:
        """A question or an ingest failed. Raises `WorldError` at the `most`th failure in a row."""
        # An error of a model or the user's class is not a failure of the service.
        if not isinstance(error, MemoryServiceError):
            return

        self._in_row += 1
        if self._most is not None and self._in_row >= self._most:
            raise WorldError(
                f"stopped: the memory failed {counted(self._in_row, 'time')} in a row, the last "
                f"time: {error} (stop_after_failures={self._most}); the same command continues"
            ) from error
