"""Reads a user's own file in the schema of docs/datasets/json.md, and notes every mistake."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from msgspec import Meta, Struct, field

from memeval.datasets.io.entries import Entry, Items, Mistakes, Name, Place, Text
from memeval.datasets.io.fields import REPLACE, parse_json, quoted, unique_fields
from memeval.datasets.io.lines import first_value, json_lines, located_cases
from memeval.datasets.io.questions import (
    CaseNames,
    OrderCheck,
    QuestionEntry,
    QuestionReader,
    check_zones,
    in_utc,
    notes_of,
    question_entries,
    session_id,
    turn_id,
)
from memeval.datasets.json.operations import (
    LivingQuestion,
    changes_memory,
    checkpoints,
    operation_entries,
    read_operation,
    with_checkpoint,
)
from memeval.datasets.stats import counts
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion, Session, Turn
from memeval.results.files import file_digest, reading, stamp_of
from memeval.text.shipped import location_of
from memeval.text.shown import in_shell

META = "meta"
"""A field that any object may have: it is not read."""
DRAFTED, ACCEPTED, REJECTED = "drafted", "accepted", "rejected"
"""Statuses of a question that a model proposed. A question without a status is the user's own."""

EXPORTS = (".csv", ".tsv", ".xlsx", ".zip")
"""Endings of files that `data import` reads."""
NOT_PLAIN = re.compile(r"[^\w .-]+")
LONGEST_NAME = 60


class FileEntry(Entry, frozen=True, kw_only=True):
    name: Text | None = None
    cases: list[Any] = field(default_factory=list)
    meta: Any = None


class OwnCase(Entry, frozen=True, kw_only=True):
    aliases: ClassVar[Mapping[str, str]] = {"id": "case_id"}
    case_id: Name
    sessions: Items
    operations: list[Any] | None = None
    questions: list[Any]
    meta: Any = None


class SessionEntry(Entry, frozen=True, kw_only=True):
    aliases: ClassVar[Mapping[str, str]] = {"timestamp": "time", "messages": "turns"}
    id: Name | None = None
    time: Any = None
    turns: Items
    meta: Any = None


class TurnEntry(Entry, frozen=True, kw_only=True):
    aliases: ClassVar[Mapping[str, str]] = {
        "role": "speaker",
        "content": "text",
        "timestamp": "time",
    }
    position: ClassVar[str] = "session {session}, turn {turn}"
    """The place of a turn in its case; `index` counts the turns of all sessions."""
    id: Name | None = None
    speaker: Text
    text: Text
    time: Any = None
    meta: Any = None


class ReviewedQuestion(LivingQuestion, frozen=True, kw_only=True):
    aliases: ClassVar[Mapping[str, str]] = {"timestamp": "time"}
    status: Annotated[str, Meta(pattern=r"^(?:drafted|accepted|rejected)\Z")] | None = None
    reviews: list[Any] | None = None
    meta: Any = None


class ReviewEntry(Entry, frozen=True, kw_only=True):
    reviewer: Text
    decision: Annotated[str, Meta(pattern=r"^(?:accepted|rejected)\Z")]
    reason: Text | None = None
    at: Any = None
    seconds: Annotated[float, Meta(ge=0)] | None = None
    wording: Text | None = None


def schema() -> str:
    """Location of the page that documents the file."""
    return location_of("docs/datasets/json.md")


class Layout(Enum):
    """How a file stores its cases."""

    LINES = "JSON Lines"
    OBJECT = "an object with `cases`"
    LIST = "a list"
    CASE = "one case"


class OwnReader(Struct, dict=True):
    """Reads one file, once."""

    path: Path
    counts: Counter[str] = field(default_factory=Counter)
    """Cases, sessions, turns, questions; `answerable` questions; of these, `without_evidence`."""
    categories: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    """Number of questions by status; those without a status are not counted."""
    left_out: frozenset[str] = frozenset()
    """Statuses of questions that are checked but left out of the cases."""
    stamp: tuple[int, ...] | None = None
    """Stamp of the file as it was checked; a file that changed since is refused. None: any."""
    stated_name: str | None = None
    """The data set's name in the file; None if it has none."""
    layout: Layout = Layout.OBJECT
    """How the cases are stored; known once the file was read."""
    header: dict[str, Any] = field(default_factory=dict)
    """The file's header: all but its cases."""
    ids: dict[str, str] = field(default_factory=dict)
    """First position of each id of a case or a question."""

    case_type: ClassVar[type[OwnCase]] = OwnCase
    turn_type: ClassVar[type[TurnEntry]] = TurnEntry
    question_type: ClassVar[type[QuestionEntry]] = ReviewedQuestion

    @cached_property
    def mistakes(self) -> Mistakes:
        return Mistakes(self.path, schema(), strict=True)

    @cached_property
    def sha256(self) -> str:
        with reading(self.path, end="."):
            return file_digest(self.path)

    @property
    def name(self) -> str:
        """The data set's name: the one in the file, else the file's name, in plain characters."""
        name = NOT_PLAIN.sub("_", self.stated_name or self.path.stem).strip(" ._")
        return name[:LONGEST_NAME].strip() or "json"

    def check(self) -> None:
        """Reads the whole file, and keeps only counts and mistakes."""
        for _ in self.cases():
            pass

    def cases(self) -> Iterator[EvalCase]:
        """The cases that have no mistake; the mistakes of the others are noted."""
        for _, case in self.pairs():
            if case is not None:
                yield case

    def pairs(self) -> Iterator[tuple[Any, EvalCase | None]]:
        """Each case as written and as read; the latter is None if it has a mistake."""
        for location, value in self.values():
            case = self.case(location, value)
            if case is not None:
                self._count(case)

            yield value, case

    def notes(self) -> tuple[str, ...]:
        """Notes for a report, complete once the whole file was read."""
        answerable, without = self.counts["answerable"], self.counts["without_evidence"]
        return tuple(notes_of(answerable, without, self.mistakes))

    def values(self) -> Iterator[tuple[str, Any]]:
        """Each case with its place in the file."""
        is_export = not self.path.is_file() or self.path.suffix.lower() in EXPORTS
        if is_export and self.path.exists():
            raise UserError(
                f"{self.path} is not a file of dataset=json.",
                f"make one:  python -m memeval data import {in_shell(self.path)} --into FILE.json",
            )

        with reading(self.path, end="."):
            file = self.path.open("rb")

        with file:
            first = first_value(file)
            file.seek(0)
            # A first line that is a whole object means JSON Lines, unless it contains all cases.
            if isinstance(first, dict) and "cases" not in first:
                for located in self._lines(file):
                    self._refuse_change(file)
                    yield located

                return

            content = file.read()
            self._refuse_change(file)

        if not content.removeprefix(b"\xef\xbb\xbf").strip():
            raise UserError(f"{self.path} is empty.", REPLACE)

        as_object = unique_fields if self.mistakes.strict else None
        yield from self._cases_in(parse_json(content, self.path, as_object))

    def _refuse_change(self, file: BinaryIO) -> None:
        if self.stamp is not None and stamp_of(file.fileno()) != self.stamp:
            raise UserError(
                f"{self.path} was changed while this command used it.",
                "repeat the command, which reads the changed file",
            )

    def _lines(self, file: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
        """One case per line; the first line may name the data set instead."""
        self.layout = Layout.LINES
        for number, (location, value) in enumerate(json_lines(file, self.mistakes)):
            is_header = isinstance(value, dict) and {"name"} <= set(value) <= {"name", META}
            if number == 0 and is_header:
                self.header = value
                self._read_header(location, value)
            else:
                yield location, value

    def _cases_in(self, value: Any) -> Iterator[tuple[str, Any]]:
        """The cases of a JSON file: a list, an object with `cases`, or one case."""
        cases = value
        self.layout = Layout.LIST
        if isinstance(value, dict) and "cases" in value:
            self.layout = Layout.OBJECT
            self.header = dict(value)
            del self.header["cases"]
            header = self._read_header("the file", value)
            if header is None:
                return

            cases = header.cases
        elif isinstance(value, dict):
            self.layout = Layout.CASE

        yield from located_cases(cases, self.path, f"the schema:  {self.mistakes.schema}")

    def _read_header(self, location: str, value: dict[str, Any]) -> FileEntry | None:
        header = Place(location, self.mistakes).read(value, FileEntry)
        if header is not None:
            self.stated_name = header.name

        return header

    def case(self, location: str, value: Any) -> EvalCase | None:
        """A case; None if it has a mistake. Mistakes are noted."""
        named = location
        if isinstance(value, dict):
            name = value.get("case_id", value.get("id"))
            if isinstance(name, str | int):
                named = f"{location} {quoted(name)}"

        before = len(self.mistakes.messages)
        place = Place(named, self.mistakes)
        entry = place.read(value, self.case_type)
        if entry is None:
            return None

        check_new(self.ids, "case_id", str(entry.case_id), place, location)
        case = _CaseReader(self, place, entry, CaseNames(len(entry.sessions))).read()
        return case if len(self.mistakes.messages) == before else None

    def _count(self, case: EvalCase) -> None:
        self.counts += counts([case])
        for question in case.questions:
            self.categories[str(question.category)] += 1
            self.counts["answerable"] += question.answerable
            self.counts["without_evidence"] += question.answerable and not question.evidence


def check_new(first: dict[str, str], noun: str, name: str, place: Place, position: str) -> None:
    """Notes an id that occurred before; `first` has the first position of each."""
    key = f"{noun} {name}"
    if key in first:
        place.add(f"{noun} {quoted(name)} is already in {first[key]}; ids must be unique")

    first.setdefault(key, position)


def _check_reviews(question: Place, values: Sequence[Any]) -> None:
    for number, value in enumerate(values):
        place = question.part(f"review {number}")
        review = place.read(value, ReviewEntry)
        if review is not None:
            place.time(review.at, "at")


class _CaseReader(Struct):
    """Reads one case. Parts with a mistake are noted and left out."""

    file: OwnReader
    place: Place
    case: OwnCase
    names: CaseNames
    count: int = 0
    """Turns so far, including those left out."""
    times: list[datetime | None] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    """First position of each id of a session or a turn."""
    starts: OrderCheck = field(default_factory=lambda: OrderCheck("an earlier session"))

    def read(self) -> EvalCase | None:
        """The case, with ids by position, because the file's ids may reveal which turns are asked
        for; None if an object in it has a mistake.
        """
        before = len(self.place.mistakes.messages)
        values = enumerate(self.case.sessions)
        sessions = tuple(self._session(number, value) for number, value in values)
        operations = operation_entries(self.place, self.case.operations or ())
        asked = question_entries(self.place, self.case.questions, self.file.question_type)
        # References between these objects are checked only if all of them could be read.
        if len(self.place.mistakes.messages) > before:
            return None

        done = tuple(read_operation(place, entry, self.names) for place, entry in operations)
        questions, kept = self._questions(asked, changes_memory(done, self.case.questions))
        check_zones(self.place, self.times)
        return EvalCase(
            case_id=str(self.case.case_id),
            sessions=tuple(filter(None, sessions)),
            questions=tuple(kept),
            operations=done,
            # Of all questions, even those left out: the memory must be the same without them.
            checkpoints=checkpoints(questions, len(sessions)),
        )

    def _questions(
        self, asked: Sequence[tuple[Place, QuestionEntry]], changes: bool
    ) -> tuple[list[EvalQuestion], list[EvalQuestion]]:
        """All questions, and those that are asked."""
        questions, kept = [], []
        names, noun = self.names, self.file.turn_type.noun()
        reader = QuestionReader(str(self.case.case_id), names, noun)
        for number, (place, entry) in enumerate(asked):
            question, status = reader.read(number, place, entry), None
            location = self.place.location
            check_new(self.file.ids, "question id", question.question_id, self.place, location)
            if isinstance(entry, ReviewedQuestion):
                question = with_checkpoint(place, entry, question, names, changes_memory=changes)
                status = entry.status
                _check_reviews(place, entry.reviews or ())

            questions.append(question)
            if status is not None:
                self.file.statuses[status] += 1
            if status not in self.file.left_out:
                kept.append(question)

        self.times += reader.times
        return questions, kept

    def _session(self, number: int, value: Any) -> Session | None:
        place = self.place.part(f"session {number}")
        entry = place.read(value, SessionEntry)
        if entry is None:
            return None
        if entry.id is not None:
            check_new(self.ids, "session id", str(entry.id), place, place.location)
            self.names.sessions[str(entry.id)] = number

        started = place.time(entry.time)
        order = OrderCheck(f"its session or of an earlier {self.file.turn_type.noun()} in it")
        self._check_order(started, order, place)
        turns = []
        for at, turn in enumerate(entry.turns):
            numbers = {"session": number, "turn": at, "index": self.count}
            self.count += 1
            part = self.place.part(self.file.turn_type.position.format_map(numbers))
            spoken = self._turn(part, turn, order)
            if spoken is not None:
                started = started or spoken.time
                self.names.session_of[spoken.turn_id] = number
                turns.append(spoken)

        return Session(session_id(number), started and in_utc(started), tuple(turns))

    def _turn(self, place: Place, value: Any, order: OrderCheck) -> Turn | None:
        entry = place.read(value, self.file.turn_type)
        if entry is None:
            return None

        name, text = turn_id(len(self.names.texts)), entry.text.strip()
        self.names.texts[name] = text
        if entry.id is not None:
            noun = f"{self.file.turn_type.noun()} id"
            check_new(self.ids, noun, str(entry.id), place, place.location)
            self.names.turns[str(entry.id)] = name

        time = place.time(entry.time)
        self._check_order(time, order, place)
        return Turn(turn_id=name, speaker=entry.speaker, text=text, time=time and in_utc(time))

    def _check_order(self, time: datetime | None, order: OrderCheck, place: Place) -> None:
        """Sessions may overlap, as threads do: only their starts are in order."""
        self.times.append(time)
        if order.latest is None:
            self.starts.check(time, place)

        order.check(time, place)
