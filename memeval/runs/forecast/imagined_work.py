"""The work on a cell's cases with made-up replies: nothing is sent, and nothing is written."""

from __future__ import annotations

from pathlib import Path

from memeval.pipeline.execute.case_work import CaseWork
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.source import CaseAnswers
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import EvalCase
from memeval.results import VerdictRow
from memeval.results.store import Json, Parse, R, RowStore, SoundRows
from memeval.runs.forecast.imagined import Tally


class ImaginedRows(RowStore[R]):
    """Rows of a file, and those that are made up, which are not written."""

    def __init__(self, path: Path, stored: SoundRows[R], parse: Parse[R]) -> None:
        super().__init__(path, {}, parse)
        self._found = SoundRows(dict(stored.rows), dict(stored.seals))

    def _write(self, row: Json) -> str:
        return ""


class ImaginedWork(CaseWork):
    """Work that continues whatever its made-up replies are like."""

    # A run stops after many verdicts that can't be read. Here a reply may be made up badly.
    def watch(self, row: VerdictRow) -> None: ...


class ImaginedSource(MemorySource):
    """Memories that are built and not saved."""

    def __init__(self, cell: Cell, models: Models, tally: Tally) -> None:
        super().__init__(cell, models, saves=False)
        self._tally = tally

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        self._tally.begin_case()
        before = self._tally.made_up
        answers = await super().open(case, seed)
        self._tally.made_up_case = self._tally.made_up > before

        return answers
