"""Cases of one's own in the generic schema of network operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar

from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.datasets.locate import check_pin, digest_of, read_file
from memeval.datasets.netops.cases import GenericFile, read_generic
from memeval.errors import unknown
from memeval.records import CategoryId, EvalCase, EvalQuestion


class GenericNetOps(Dataset):
    """Reads a file of cases, each with its chunks and questions."""

    chooses: ClassVar[bool] = True

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        """Empty: the file says which there are, and each is its own name."""
        return {}

    def open(self) -> LoadedDataset:
        pinned = check_pin(
            self.info,
            self.path,
            digest_of(self._bytes),
            allow_unpinned=self.settings.allow_unpinned,
        )
        self._check_categories()

        return LoadedDataset(
            info=self.info,
            path=self.path,
            sha256=digest_of(self._bytes),
            pinned=pinned,
            notes=self._content.notes,
        )

    def read(self) -> Iterator[EvalCase]:
        return iter(self._content.cases)

    def asks(self, question: EvalQuestion) -> bool:
        """By category; `dataset.categories=[5]` is the category `5`."""
        chosen = self.settings.categories
        return chosen is None or str(question.category) in map(str, chosen)

    @cached_property
    def _bytes(self) -> bytes:
        return read_file(self.info, self.path)

    @cached_property
    def _content(self) -> GenericFile:
        return read_generic(self._bytes, self.path)

    def _check_categories(self) -> None:
        questions = [question for case in self._content.cases for question in case.questions]
        known = {str(question.category) for question in questions}
        for category in self.settings.categories or ():
            if str(category) not in known:
                raise unknown("value of dataset.categories", str(category), known)
