"""Cases in ForgetEval's format (arXiv 2606.15903), judged by its scorer."""

from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import msgspec

from memeval.config.schema import ANSWER, at
from memeval.datasets.contract import DatasetSettings, LoadedDataset
from memeval.datasets.locate import digest_of, read_file
from memeval.datasets.own import OwnFile
from memeval.errors import UserError
from memeval.metrics.lifecycle import FORGETEVAL
from memeval.records import (
    AnswerKind,
    EvalCase,
    EvalOperation,
    EvalQuestion,
    ForgetRequest,
    OperationKind,
    Session,
    Traces,
)
from memeval.results import Record
from memeval.text.shipped import location_of
from memeval.text.shown import one_line
from memeval.text.typed import decoder

SPEAKER = "user"
PAGE = "docs/datasets/forgeteval.md"
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]
PARTS = {"supersede": 3, "release": 2, "purge": 2}
"""Number of elements of each kind of mutation, including its name."""
NOT_APPLICABLE = f"{FORGETEVAL}_not_applicable"
WISHES = {
    "supersede": "This is out of date: {}.",
    "release": "You need not keep this any longer: {}.",
    "purge": "Delete this for good: {}.",
}
"""A user's words for each mutation, with a placeholder for its subject."""


class ForgetEvalRow(msgspec.Struct, frozen=True):
    """A case as the file contains it."""

    id: Text
    family: Text
    setup_facts: Annotated[list[Text], msgspec.Meta(min_length=1)]
    mutations: list[list[Text]]
    final_query: Text
    must_contain: list[Text]
    must_not_contain: list[Text]


@dataclass(frozen=True)
class ForgetEvalSettings(DatasetSettings):
    probed: bool = at(ANSWER, False)
    """Whether each forbidden string is also used as a query, whose results must not contain it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.canaries:
            raise UserError(
                "dataset.canaries: forgeteval only scores the strings in its own cases",
                "leave dataset.canaries out",
            )


class ForgetEval(OwnFile):
    """Reads a file of cases. The facts are one session. Each mutation is an operation after the
    last session so far, and a fact that supersedes another gets a session of its own.
    """

    settings_type = ForgetEvalSettings
    settings: ForgetEvalSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.VALUES,)
    benchmark = "lifecycle"
    measure_names: Collection[str] = (FORGETEVAL, NOT_APPLICABLE)

    def open(self) -> LoadedDataset:
        self.check_categories(row.family for row in self._rows)
        return self._loaded(digest_of(self._content), pinned=False)

    @cached_property
    def _content(self) -> bytes:
        return read_file(self.info, self.path)

    @cached_property
    def _rows(self) -> Sequence[ForgetEvalRow]:
        # Some editors begin a file with a byte-order mark.
        content = self._content.removeprefix(BOM_UTF8).lstrip()
        try:
            if content.startswith(b"["):
                rows = decoder(list[ForgetEvalRow]).decode(content)
            else:
                rows = decoder(ForgetEvalRow).decode_lines(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{self.path}: {one_line(error, 300)}", _form()) from error

        seen: set[str] = set()
        for row in rows:
            if row.id in seen:
                raise UserError(f"{self.path}: two cases have the id '{one_line(row.id, 80)}'")

            seen.add(row.id)
            for mutation in row.mutations:
                _check(self.path, row, mutation)

        if not rows:
            raise UserError(f"{self.path} contains no cases", _form())

        return rows

    def read(self) -> Iterator[EvalCase]:
        for row in self._rows:
            yield self._case(row)

    def _case(self, row: ForgetEvalRow) -> EvalCase:
        right, deleted = tuple(row.must_contain), tuple(row.must_not_contain)
        sessions = [_session(1, row.setup_facts)]
        operations = []
        for kind, about, *new in row.mutations:
            operations.append(
                EvalOperation(
                    kind=OperationKind.FORGET,
                    after=sessions[-1].session_id,
                    forget=ForgetRequest(words=WISHES[kind].format(about), about=about),
                    values=deleted,
                )
            )
            if new:
                sessions.append(_session(len(sessions) + 1, new))

        probes: tuple[str, ...] = (row.final_query,)
        if self.settings.probed:
            probes += deleted

        question = EvalQuestion(
            question_id=row.id,
            text=row.final_query,
            category=row.family,
            gold=right,
            answerable=bool(right),
            traces=Traces(kind=FORGETEVAL, right=right, deleted=deleted, probes=probes),
        )
        return EvalCase(
            case_id=row.id,
            sessions=tuple(sessions),
            questions=(question,),
            speakers=(SPEAKER,),
            operations=tuple(operations),
        )

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """Number of cases whose mutations the system can't express."""
        unable = [row for row in records if row.is_whole and FORGETEVAL not in row.metrics]
        return {NOT_APPLICABLE: float(len(unable))}


def _session(number: int, facts: Sequence[str]) -> Session:
    return Session.of(f"s{number}", ((SPEAKER, fact) for fact in facts), ids=f"D{number}:")


def _check(path: object, row: ForgetEvalRow, mutation: Sequence[str]) -> None:
    """Raises `UserError` for an invalid mutation."""
    # A request with a blank subject would empty the memory.
    is_said = all(map(str.strip, mutation))
    if mutation and PARTS.get(mutation[0]) == len(mutation) and is_said:
        return

    raise UserError(
        f"{path}: case '{one_line(row.id, 80)}': a mutation must be [supersede, ABOUT, NEW], "
        f"[release, ABOUT] or [purge, ABOUT], but is {one_line(list(mutation), 120)}",
        _form(),
    )


def _form() -> str:
    return f"the form:  {location_of(PAGE)}"
