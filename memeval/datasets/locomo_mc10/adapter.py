"""LoCoMo-MC10: the questions of LoCoMo, each with ten choices; or rows derived from LoCoMo if the
published file is not available.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

from memeval.config.paths import data_dir
from memeval.config.schema import ANSWER, PREPARE, RUN, at
from memeval.datasets.contract import (
    GRANULARITIES,
    SUMMARY,
    Dataset,
    DatasetInfo,
    DatasetSettings,
    LoadedDataset,
)
from memeval.datasets.io.fields import Fields, read_records
from memeval.datasets.io.lines import read_lines
from memeval.datasets.locate import (
    PinnedFile,
    check_pin,
    digest_file,
    digest_of,
    excerpt_notes,
    excerpt_of,
    locate,
    read_pinned,
)
from memeval.datasets.locomo.names import LOCOMO_HEADLINE, category_names
from memeval.datasets.locomo.schema import read_case
from memeval.datasets.locomo_mc10.derive import VERSION, derive_rows
from memeval.datasets.locomo_mc10.evidence import Evidence
from memeval.datasets.locomo_mc10.schema import read_cases, shuffle_choices
from memeval.datasets.registry import dataset_info
from memeval.errors import UserError
from memeval.metrics.positions import POSITION_MEASURES, position_measures
from memeval.records import AnswerKind, CategoryId, EvalCase
from memeval.results import Record

MARK = "derived"
"""Field with the source of a row that `data make` wrote."""
DERIVE = "or derive one from LoCoMo:  dataset.derive=true (every table says so)"


@dataclass(frozen=True)
class LocomoMc10Settings(DatasetSettings):
    choice_order: Literal["given", "shuffled"] = at(ANSWER, "given")
    """`shuffled` puts the choices of each question in a random order, which depends only on
    `choice_seed` and the question's id.
    """
    choice_seed: int = at(ANSWER, 0)
    derive: bool = at(PREPARE, False)
    """Makes the rows from locomo10.json, with wrong choices drawn from other questions' answers;
    `path` then names that file.
    """
    derive_seed: int = at(ANSWER, 0)
    category_names: str = at(RUN, "official")
    """Source of the category names in tables, see `memeval.datasets.locomo.names`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        category_names(self.category_names)


class LocomoMc10(Dataset):
    """Reads a file of JSON lines in LoCoMo-MC10's schema, one case per conversation.

    Evidence comes from LoCoMo's own file, if it exists. Rows can also be derived from that file.
    """

    settings_type = LocomoMc10Settings
    settings: LocomoMc10Settings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.CHOICES,)
    granularities: tuple[str, ...] = (*GRANULARITIES, SUMMARY)
    headline: frozenset[CategoryId] = LOCOMO_HEADLINE
    irregularity_notes: Mapping[str, str] = {
        "twice": (
            "choices: {twice} of {questions} questions list a choice twice; both positions "
            "count as the same answer"
        )
    }
    measure_names: Collection[str] = POSITION_MEASURES

    _evidence: Evidence | None = None

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return category_names(self.settings.category_names)

    def open(self) -> LoadedDataset:
        if self.settings.derive:
            return self._open_derived()

        digest = self._digest
        pinned = check_pin(
            self.info, self.path, digest, allow_unpinned=self.settings.allow_unpinned
        )
        if self._joinable:
            # With evidence the cases differ, so the data set's hash must differ, too.
            digest = digest_of(f"{digest} evidence={self._joinable.sha256}".encode())

        notes = [*excerpt_notes(self.info, self._digest)]
        if not self._joinable:
            problem = (
                "is not the registered file" if self._original_path.is_file() else "is missing"
            )
            notes.append(
                f"evidence: none, since {self._original_path.name} {problem}; retrieval is not "
                "measured"
            )

        mark = self._mark
        if mark:
            notes.append(_derived_note(mark))

        return self._loaded(
            digest,
            pinned=pinned,
            file_sha256=self._digest,
            notes=tuple(notes),
            excerpt=excerpt_of(self.info, self._digest) is not None,
            derived=mark is not None,
        )

    def _open_derived(self) -> LoadedDataset:
        decides = f"{self._original.sha256} seed={self.settings.derive_seed} version={VERSION}"
        return self._loaded(
            digest_of(decides.encode()),
            pinned=self._original.pinned,
            path=self._original_path,
            notes=(_derived_note(self._made_from),),
            derived=True,
        )

    @property
    def _made_from(self) -> Mapping[str, Any]:
        """Origin of derived rows, as they state it."""
        return {
            "from": self._original_path.name,
            "sha256": self._original.sha256,
            "seed": self.settings.derive_seed,
            "version": VERSION,
        }

    def read(self) -> Iterator[EvalCase]:
        self.irregularities.clear()
        self._evidence = None
        if self.settings.derive or self._joinable:
            self._evidence = Evidence(self._conversations, self._original_path.name)

        rows = read_lines(self.path)
        if self.settings.derive:
            rows = derive_rows(self._samples, self.settings.derive_seed)

        for case in read_cases(rows):
            for question in case.questions:
                # conv-26_q49, for example, lists 2021 twice.
                is_twice = len(set(question.choices)) < len(question.choices)
                self.irregularities.update(questions=1, twice=int(is_twice))

            yield self._complete(case)

        if not self.irregularities["questions"]:
            raise UserError(f"{self.path} contains no questions.")

    def notes(self) -> tuple[str, ...]:
        if not self._evidence:
            return super().notes()

        return (self._evidence.note(), *super().notes())

    def write(self, file: IO[str]) -> tuple[int, int]:
        """Writes derived rows in the published schema; the field `derived` names their source."""
        if not self.settings.derive:
            raise UserError(
                f"data set '{self.info.name}' is already a file; only derived rows can be written.",
                "use:  dataset.derive=true",
            )

        questions = 0
        for row in derive_rows(self._samples, self.settings.derive_seed):
            marked = {**row.values, MARK: self._made_from}
            file.write(json.dumps(marked, ensure_ascii=False) + "\n")
            questions += 1

        return len(self._samples), questions

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return position_measures(records)

    def _complete(self, case: EvalCase) -> EvalCase:
        """The case with its evidence, if there is any to join, and its choices in their order."""
        if self._evidence:
            case = self._evidence.join(case)
        if self.settings.choice_order == "given":
            return case

        seed = self.settings.choice_seed
        shuffled = tuple(shuffle_choices(question, seed) for question in case.questions)
        return replace(case, questions=shuffled)

    @cached_property
    def _digest(self) -> str:
        try:
            return digest_file(self.info, self.path)
        except UserError as error:
            if self.path.exists():
                raise

            hints = (*error.hints[:1], DERIVE, *error.hints[1:])
            raise UserError(error.message, *hints) from None

    @property
    def _mark(self) -> Mapping[str, Any] | None:
        """The derivation of a file, as stated in its first row; None if it is not stated, or if the
        file can't be read (`read` then raises).
        """
        try:
            first = next(read_lines(self.path), None)
        except UserError:
            return None

        mark = first and first.values.get(MARK)
        return mark if isinstance(mark, dict) else None

    @property
    def _source_info(self) -> DatasetInfo:
        name = "locomo" if self.info.name == "locomo_mc10" else "demo"
        return dataset_info(name)

    @property
    def _original_path(self) -> Path:
        """LoCoMo's file: the one that `path` names for deriving, or the one in the same data folder
        as this file, or in the usual data folder.
        """
        if self.settings.derive and self.settings.path:
            return self.path

        beside = self.path.parent.parent / self._source_info.file
        if beside.is_file():
            return beside

        return locate(self._source_info, data_dir())

    @cached_property
    def _original(self) -> PinnedFile:
        """LoCoMo's file. Raises `UserError` if it may not be used."""
        return read_pinned(
            self._source_info, self._original_path, allow_unpinned=self.settings.allow_unpinned
        )

    @cached_property
    def _joinable(self) -> PinnedFile | None:
        """LoCoMo's file, if it exists and is the registered one; otherwise None."""
        if not self._original_path.is_file():
            return None

        file = read_pinned(self._source_info, self._original_path, allow_unpinned=True)
        if self._source_info.sha256 in (None, file.sha256):
            return file

        return None

    @cached_property
    def _samples(self) -> list[Fields]:
        original = self._original if self.settings.derive else self._joinable
        assert original is not None  # called only if there is one
        return read_records(original.content, self._original_path, "conversation")

    @cached_property
    def _conversations(self) -> Mapping[str, EvalCase]:
        cases = [read_case(sample, captions=False) for sample in self._samples]
        return {case.case_id: case for case in cases}


def _derived_note(made_from: Mapping[str, Any]) -> str:
    digest = str(made_from.get("sha256"))[:12]
    return (
        f"DERIVED: these rows are not LoCoMo-MC10's. They were made from {made_from.get('from')} "
        f"(sha256 {digest}…) with derive_seed={made_from.get('seed')}, wrong choices drawn from "
        "other questions' answers; the figures can't be compared with published ones"
    )
