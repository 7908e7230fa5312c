"""ConvoMem (2025): questions about a few messages among many irrelevant conversations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.convomem.schema import CATEGORIES, File, find_files, read_case
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.folder import check_files, digest_of_files
from memeval.datasets.io.json_stream import stream_list
from memeval.datasets.locate import missing
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase


@dataclass(frozen=True)
class ConvoMemSettings(DatasetSettings):
    context_size: int | None = at(PREPARE, least=1)
    """Number of conversations of a case; cases with another number are left out. None reads all."""
    n_evidence: int | None = at(PREPARE, least=1)
    """Number of messages that contain the answer; other files are left out. None reads all."""


class ConvoMem(Dataset):
    """Reads the files of a folder one test case at a time."""

    settings_type = ConvoMemSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    benchmark: ClassVar[str | None] = "convomem"
    category_names: Mapping[CategoryId, str] = CATEGORIES
    facet_names: Mapping[str, str] = {
        "context_size": "Conversations",
        "n_evidence": "Evidence messages",
    }
    irregularity_notes: Mapping[str, str] = {
        "unplaced": (
            "evidence: {unplaced} of {questions} questions cite a message that does not match "
            "exactly one turn; they do not count in retrieval metrics"
        )
    }
    settings: ConvoMemSettings

    def open(self) -> LoadedDataset:
        digests, pinned = check_files(self, [file.path for file in self._files])
        # The digest covers file names, too: they give category and number of evidence messages.
        return self._loaded(digest_of_files(digests), pinned=pinned)

    @cached_property
    def _files(self) -> list[File]:
        if not self.path.exists():
            raise missing(self.info, self.path)

        files = list(find_files(self.path))
        if not files:
            raise UserError(
                f"{self.path} contains no <category>/<n>_evidence/<name>.json; the categories are "
                f"{', '.join(map(str, CATEGORIES))}."
            )

        wanted = self.settings.n_evidence
        chosen = [file for file in files if wanted in (None, file.evidence)]
        if not chosen:
            known = sorted({file.evidence for file in files})
            raise UserError(f"dataset.n_evidence={wanted}: {self.path} only has files of {known}.")

        return chosen

    def read(self) -> Iterator[EvalCase]:
        self.irregularities.clear()
        wanted = self.settings.context_size
        count = 0
        for file in self._files:
            for index, value in enumerate(stream_list(file.path)):
                # Counted before the filter, so that a case has the same id under all settings.
                count += 1
                fields = Fields.of(file.path, f"record {index}", value)
                case, size, unplaced = read_case(fields, f"c{count}", file)
                if wanted in (None, size):
                    self.irregularities.update(unplaced=unplaced, questions=len(case.questions))
                    yield case

        if not self.irregularities["questions"]:
            raise UserError(f"{self.path} contains no cases with dataset.context_size={wanted}.")
