"""Sources of a run's answers: a memory that is asked, or a file of another program's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

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
        """Gives back what is held."""


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
