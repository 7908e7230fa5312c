"""LoCoMo-MC10: the questions of LoCoMo, each with ten choices; and the same derived from LoCoMo,
where the published file is not available.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar

from memeval.datasets.contract import (
    GRANULARITIES,
    SUMMARY,
    DatasetInfo,
    DatasetSettings,
    LoadedDataset,
)
from memeval.datasets.fetch import file_digest
from memeval.datasets.locate import (
    check_pin,
    digest_of,
    excerpt_notes,
    excerpt_of,
    missing,
)
from memeval.datasets.locomo.names import LOCOMO_HEADLINE, category_names
from memeval.datasets.locomo_mc10.derive import VERSION, derive_rows
from memeval.datasets.locomo_mc10.evidence import Evidence
from memeval.datasets.locomo_mc10.info import LOCOMO_MC10
from memeval.datasets.locomo_mc10.metrics import POSITION_MEASURES, position_measures
from memeval.datasets.locomo_mc10.original import OriginalFile
from memeval.datasets.locomo_mc10.schema import read_cases, read_lines, shuffle_choices
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase
from memeval.results import Record

MARK = "derived"
"""Field of a row that `data make` wrote: what it was made from."""
DERIVE = "or derive one from LoCoMo:  dataset.derive=true (every table says so)"


class LocomoMc10(OriginalFile):
    """Reads a file of JSON lines in LoCoMo-MC10's schema, one case per conversation.

    Evidence is LoCoMo's, if LoCoMo's file is there.
    """

    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.CHOICES,)
    granularities: tuple[str, ...] = (*GRANULARITIES, SUMMARY)

    def __init__(
        self, path: Path, info: DatasetInfo = LOCOMO_MC10, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)
        self._evidence: Evidence | None = None
        self._twice = self._questions = 0

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return category_names(self.settings.category_names)

    @property
    def headline(self) -> frozenset[CategoryId]:
        return LOCOMO_HEADLINE

    def open(self) -> LoadedDataset:
        if self.settings.derive:
            digest, pinned, _ = self._original
            made_of = digest_of(
                f"{digest} seed={self.settings.derive_seed} version={VERSION}".encode()
            )
            return LoadedDataset(
                info=self.info,
                path=self._original_path,
                sha256=made_of,
                pinned=pinned,
                notes=self._derived_notes(),
                derived=True,
            )

        pinned = check_pin(
            self.info, self.path, self._digest, allow_unpinned=self.settings.allow_unpinned
        )
        joined = self._joinable
        digest = (
            # With evidence the cases are others than without it, so the data set's hash must be
            # another one.
            digest_of(f"{self._digest} evidence={joined[0]}".encode()) if joined else self._digest
        )
        part = excerpt_of(self.info, self._digest) is not None
        mark = self._mark
        notes = (*self._file_notes(), *([_derived_note(mark)] if mark else ()))
        return LoadedDataset(
            info=self.info,
            path=self.path,
            sha256=digest,
            pinned=pinned,
            notes=notes,
            excerpt=part,
            derived=mark is not None,
        )

    def read(self) -> Iterator[EvalCase]:
        self._evidence = (
            Evidence(self._conversations, self._original_path.name)
            if self.settings.derive or self._joinable
            else None
        )
        self._twice = self._questions = 0
        rows = (
            derive_rows(self._samples, self.settings.derive_seed)
            if self.settings.derive
            else read_lines(self.path)
        )
        for case in read_cases(rows):
            self._count(case)
            yield self._order_choices(self._evidence.join(case) if self._evidence else case)

        if not self._questions:
            raise UserError(f"{self.path} holds no question.")

    def notes(self) -> tuple[str, ...]:
        notes = [self._evidence.note()] if self._evidence else []
        if self._twice:
            notes.append(
                f"choices: {self._twice} of {self._questions} questions show a choice twice; both "
                "places count as the same answer"
            )

        return tuple(notes)

    def write(self, file: IO[str]) -> tuple[int, int]:
        """Derived rows as JSON lines in the published schema, each with a field `derived` that says
        what it was made from.
        """
        if not self.settings.derive:
            raise UserError(
                f"data set '{self.info.name}' is a file already; derived rows can be written.",
                "say so:  dataset.derive=true",
            )

        seed = self.settings.derive_seed
        made_from = {
            "from": self._original_path.name,
            "sha256": self._original[0],
            "seed": seed,
            "version": VERSION,
        }
        questions = 0
        for row in derive_rows(self._samples, seed):
            file.write(json.dumps({**row.values, MARK: made_from}, ensure_ascii=False) + "\n")
            questions += 1

        return len(self._samples), questions

    @property
    def measure_names(self) -> Collection[str]:
        return POSITION_MEASURES

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return position_measures(records)

    def _order_choices(self, case: EvalCase) -> EvalCase:
        """The case with its choices in the order that is asked for."""
        if self.settings.choice_order == "given":
            return case

        return replace(
            case,
            questions=tuple(
                shuffle_choices(question, self.settings.choice_seed) for question in case.questions
            ),
        )

    def _count(self, case: EvalCase) -> None:
        self._questions += len(case.questions)
        # conv-26_q49, for example, lists 2021 at two places.
        self._twice += sum(
            max(Counter(question.choices).values()) > 1 for question in case.questions
        )

    @cached_property
    def _digest(self) -> str:
        try:
            return file_digest(self.path)
        except FileNotFoundError:
            error = missing(self.info, self.path)
            raise UserError(error.message, *error.hints[:1], DERIVE, *error.hints[1:]) from None
        except OSError as error:
            raise UserError(
                f"data set '{self.info.name}': {self.path} can't be read: {error.strerror}."
            ) from error

    def _file_notes(self) -> Iterator[str]:
        yield from excerpt_notes(self.info, self._digest)
        if self.info.url and self.info.sha256 is None and not excerpt_of(self.info, self._digest):
            yield (
                f"the data file's sha256 is {self._digest[:12]}…; none is registered to compare "
                "it with"
            )

        if not self._joinable:
            what = "is not the registered file" if self._original_path.is_file() else "is missing"
            yield (
                f"evidence: none, since {self._original_path.name} {what}; retrieval is not "
                "measured"
            )

    def _derived_notes(self) -> tuple[str, ...]:
        return (
            _derived_note(
                {
                    "from": self._original_path.name,
                    "sha256": self._original[0],
                    "seed": self.settings.derive_seed,
                }
            ),
        )

    @property
    def _mark(self) -> Mapping[str, Any] | None:
        """What the first row of a file says about its derivation; None if it says nothing, or can't
        be read: `read` then raises.
        """
        try:
            first = next(read_lines(self.path), None)
        except UserError:
            return None

        mark = first.values.get(MARK) if first else None
        return mark if isinstance(mark, dict) else None


def _derived_note(made_from: Mapping[str, Any]) -> str:
    """What every report says of derived rows."""
    return (
        f"DERIVED: these rows are not LoCoMo-MC10's. They were made from {made_from.get('from')} "
        "(sha256 "
        f"{str(made_from.get('sha256'))[:12]}…) with derive_seed={made_from.get('seed')}, wrong "
        "choices drawn from other questions' "
        "answers; the figures compare with no published ones"
    )
