"""A user's own cases in the generic schema of network operations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from memeval.datasets.contract import LoadedDataset
from memeval.datasets.locate import check_pin, digest_of, read_file
from memeval.datasets.netops.cases import GenericFile, read_generic
from memeval.datasets.own import OwnFile
from memeval.records import EvalCase


class GenericNetOps(OwnFile):
    """Reads a file of cases, each with its chunks and questions."""

    def open(self) -> LoadedDataset:
        pinned = check_pin(
            self.info,
            self.path,
            digest_of(self._bytes),
            allow_unpinned=self.settings.allow_unpinned,
        )
        questions = (question for case in self._content.cases for question in case.questions)
        self.check_categories(str(question.category) for question in questions)

        return LoadedDataset(
            info=self.info,
            path=self.path,
            sha256=digest_of(self._bytes),
            pinned=pinned,
            notes=self._content.notes,
        )

    def read(self) -> Iterator[EvalCase]:
        return iter(self._content.cases)

    @cached_property
    def _bytes(self) -> bytes:
        return read_file(self.info, self.path)

    @cached_property
    def _content(self) -> GenericFile:
        return read_generic(self._bytes, self.path)
