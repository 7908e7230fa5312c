"""A user's own cases in the generic schema of network operations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from memeval.datasets.contract import LoadedDataset
from memeval.datasets.locate import PinnedFile, read_pinned
from memeval.datasets.netops.cases import read_generic
from memeval.datasets.own import OwnFile
from memeval.records import EvalCase


class GenericNetOps(OwnFile):
    """Reads a file of cases, each with its chunks and questions."""

    def open(self) -> LoadedDataset:
        cases, notes = self._content
        questions = (question for case in cases for question in case.questions)
        self.check_categories(str(question.category) for question in questions)

        return LoadedDataset(
            info=self.info,
            path=self.path,
            sha256=self._file.sha256,
            pinned=self._file.pinned,
            notes=notes,
        )

    def read(self) -> Iterator[EvalCase]:
        return iter(self._content[0])

    @cached_property
    def _file(self) -> PinnedFile:
        return read_pinned(self.info, self.path, allow_unpinned=self.settings.allow_unpinned)

    @cached_property
    def _content(self) -> tuple[list[EvalCase], tuple[str, ...]]:
        return read_generic(self._file.content, self.path)
