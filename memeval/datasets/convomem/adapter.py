"""ConvoMem (2025): questions about what was said in a few messages, among conversations that do not
matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import (
    Dataset,
    DatasetInfo,
    DatasetSettings,
    LoadedDataset,
)
from memeval.datasets.convomem.info import CONVOMEM
from memeval.datasets.convomem.schema import CATEGORIES, File, find_files, read_case
from memeval.datasets.fetch import file_digest
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.json_stream import stream_list
from memeval.datasets.locate import check_pin, missing
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase


@dataclass(frozen=True)
class ConvoMemSettings(DatasetSettings):
    """Settings of the data sets in ConvoMem's schema."""

    context_size: int | None = at(PREPARE)
    """Conversations of a case: others are left out. None reads all."""
    n_evidence: int | None = at(PREPARE)
    """Messages that hold the answer: other files are left out. None reads all."""

    def __post_init__(self) -> None:
        DatasetSettings.__post_init__(self)
        for name in ("context_size", "n_evidence"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"dataset.{name} must be at least 1, not {value}")


class ConvoMem(Dataset):
    """Reads the files of a folder one test case at a time."""

    settings_type = ConvoMemSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    benchmark: ClassVar[str | None] = "convomem"
    settings: ConvoMemSettings

    def __init__(
        self, path: Path, info: DatasetInfo = CONVOMEM, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)
        self._unplaced = self._questions = 0

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return CATEGORIES

    @property
    def facet_names(self) -> Mapping[str, str]:
        return {"context_size": "Conversations", "n_evidence": "Evidence messages"}

    def open(self) -> LoadedDataset:
        whole, pinned = sha256(), True
        for file in self._files:
            try:
                digest = file_digest(file.path)
            except OSError as error:
                raise UserError(
                    f"data set '{self.info.name}': {file.path} can't be read: {error.strerror}."
                ) from error

            name = file.path.relative_to(self.path).as_posix()
            # The names count, too: the category and the number of evidence messages are read from
            # them.
            whole.update(f"{name}\0{digest}\n".encode())
            allowed = check_pin(
                self.info, file.path, digest, allow_unpinned=self.settings.allow_unpinned
            )
            pinned = allowed and pinned

        return LoadedDataset(
            info=self.info, path=self.path, sha256=whole.hexdigest(), pinned=pinned
        )

    @cached_property
    def _files(self) -> list[File]:
        if not self.path.exists():
            raise missing(self.info, self.path)

        files = find_files(self.path)
        if not files:
            raise UserError(
                f"{self.path} holds no <category>/<n>_evidence/<name>.json; the categories are "
                f"{', '.join(map(str, CATEGORIES))}."
            )

        wanted = self.settings.n_evidence
        chosen = [file for file in files if wanted in (None, file.evidence)]
        if not chosen:
            known = sorted({file.evidence for file in files})
            raise UserError(f"dataset.n_evidence={wanted}: {self.path} only has files of {known}.")

        return chosen

    def read(self) -> Iterator[EvalCase]:
        self._unplaced = self._questions = 0
        wanted = self.settings.context_size
        count = 0
        for file in self._files:
            for index, value in enumerate(stream_list(file.path)):
                # Before the filter, so that a case has the same id under all settings.
                count += 1
                fields = Fields.of(file.path, f"record {index}", value)
                read = read_case(fields, f"c{count}", file)
                if wanted not in (None, read.context_size):
                    continue

                self._unplaced += read.unplaced
                self._questions += len(read.case.questions)
                yield read.case

        if not self._questions:
            raise UserError(
                f"{self.path} holds no case with dataset.context_size={wanted}."
                if wanted
                else f"{self.path} holds no question."
            )

    def notes(self) -> tuple[str, ...]:
        if not self._unplaced:
            return ()

        return (
            f"evidence: {self._unplaced} of {self._questions} questions cite a message that is not "
            "the text of exactly one turn; they enter no retrieval metric",
        )
