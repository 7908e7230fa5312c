"""Reads a user's own file in the schema of docs/datasets/json.md, and notes every mistake."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from memeval.datasets.io.entries import EntryKind, FileEntry, Mistakes
from memeval.datasets.io.fields import REPLACE, parse_json, quoted, unique_fields
from memeval.datasets.io.lines import first_value, json_lines, located_cases
from memeval.datasets.io.questions import (
    QUESTION,
    Chunk,
    OrderCheck,
    QuestionReader,
    check_zones,
    in_utc,
    notes_of,
)
from memeval.datasets.json.operations import (
    LIFE_FIELDS,
    CaseSessions,
    changes_memory,
    checkpoints,
    read_operations,
    session_id,
    with_checkpoint,
)
from memeval.datasets.stats import counts
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion, Session
from memeval.results.files import file_digest, reading, stamp_of
from memeval.text.shipped import location_of

META = "meta"
"""A field that any object may have: it is not read."""
FILE = EntryKind("file", ("name", "cases", META))
CASE = EntryKind(
    "case", ("case_id", "sessions", "operations", "questions", META), {"id": "case_id"}
)
SESSION = EntryKind(
    "session", ("id", "time", "turns", META), {"timestamp": "time", "messages": "turns"}
)
TURN = EntryKind(
    "turn",
    ("id", "speaker", "text", "time", META),
    {"role": "speaker", "content": "text", "timestamp": "time"},
)
REVIEWED_QUESTION = EntryKind(
    "question",
    (*QUESTION.fields, *LIFE_FIELDS, "stale", "status", "reviews", META),
    {"timestamp": "time"},
)
REVIEW = EntryKind("review", ("reviewer", "decision", "reason", "at", "seconds", "wording"))
DRAFTED, ACCEPTED, REJECTED = "drafted", "accepted", "rejected"
"""Statuses of a question that a model proposed. A question without a status is the user's own."""

NOT_PLAIN = re.compile(r"[^\w .-]+")
LONGEST_NAME = 60


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
    """Statuses of questions that are checked, but left out of the cases."""
    stamp: tuple[int, ...] | None = None
    """Stamp of the file as it was checked; a file that changed since is refused. None: any."""
    stated_name: str | None = None
    """The data set's name in the file; None if it has none."""
    layout: Layout = Layout.OBJECT
    """How the cases are stored; known once the file was read."""
    header: dict[str, Any] = field(default_factory=dict)
    """The file's header: all but its cases."""
    _seen: dict[str, str] = field(default_factory=dict)
    """First position of each id of a case or a question."""

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

        yield from self._cases_in(parse_json(content, self.path, unique_fields))

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
            cases = self._read_header("the file", value).items("cases", required=True)
            if cases is None:
                return
        elif isinstance(value, dict):
            self.layout = Layout.CASE

        yield from located_cases(cases, self.path, f"the schema:  {schema()}")

    def _read_header(self, location: str, value: dict[str, Any]) -> FileEntry:
        entry = FileEntry.of(location, value, FILE, self.mistakes)
        assert entry is not None, "an object is an entry"
        self.stated_name = entry.text("name")
        return entry

    def case(self, location: str, value: Any) -> EvalCase | None:
        """A case; None if it has a mistake, which is noted."""
        before = len(self.mistakes.messages)
        read = FileEntry.of_case(location, value, CASE, self.mistakes)
        if read is None:
            return None

        entry, case_id = read
        if case_id is not None:
            self._check_new("case_id", case_id, location, entry.location)

        conversation = _SessionReader(entry)
        sessions = conversation.read()
        named = conversation.case_sessions(len(sessions))
        operations = read_operations(entry, named, (META,))
        values = entry.items("questions", required=True) or []
        reader = _ReviewedReader(
            entry.location,
            case_id or "",
            conversation.chunks,
            self.mistakes,
            sessions=named,
            changes_memory=changes_memory(operations, values),
        )
        questions = reader.read_all(values)
        for question in questions:
            self._check_new("question id", question.question_id, entry.location, entry.location)

        check_zones(entry.location, [*conversation.times, *reader.times], self.mistakes)
        if len(self.mistakes.messages) > before:
            return None

        asked = tuple(self._not_left_out(questions, values))
        # Of all questions, even those left out: the memory must be the same without them.
        ends = checkpoints(questions, len(sessions))
        return EvalCase(case_id or "", sessions, asked, operations=operations, checkpoints=ends)

    def _not_left_out(
        self, questions: Sequence[EvalQuestion], values: list[Any]
    ) -> list[EvalQuestion]:
        """The questions that are asked; counts the statuses of all."""
        asked = []
        # Without a mistake, each value became a question.
        for question, value in zip(questions, values, strict=True):
            status = value.get("status")
            if status:
                self.statuses[status] += 1
            if status not in self.left_out:
                asked.append(question)

        return asked

    def _check_new(self, what: str, name: str, location: str, shown: str) -> None:
        """Notes an id that occurred before, with the place of its first occurrence."""
        key = f"{what} {name}"
        if key in self._seen:
            self.mistakes.add(
                shown, f"{what} {quoted(name)} is already in {self._seen[key]}; ids must be unique"
            )
        else:
            self._seen[key] = location

    def _count(self, case: EvalCase) -> None:
        self.counts += counts([case])
        for question in case.questions:
            self.categories[str(question.category)] += 1
            self.counts["answerable"] += question.answerable
            self.counts["without_evidence"] += question.answerable and not question.evidence


@dataclass(kw_only=True)
class _ReviewedReader(QuestionReader):
    """Reads questions with status, reviews and the session after which they are asked."""

    kind: EntryKind = REVIEWED_QUESTION
    noun: str = "turn"
    sessions: CaseSessions
    changes_memory: bool
    """Whether something happens to the memory between the sessions of the case."""

    def _question(self, entry: FileEntry, number: int) -> EvalQuestion:
        question = super()._question(entry, number)
        return with_checkpoint(entry, question, self.sessions, changes_memory=self.changes_memory)

    def _entry(self, number: int, value: Any) -> FileEntry | None:
        entry = super()._entry(number, value)
        if entry is None:
            return None

        _check_decision(entry, "status", (DRAFTED, ACCEPTED, REJECTED))
        for at, review in enumerate(entry.items("reviews") or []):
            self._check_review(f"{entry.location}, review {at}", review)

        return entry

    def _check_review(self, location: str, value: Any) -> None:
        review = FileEntry.of(location, value, REVIEW, self.mistakes)
        if review is None:
            return

        review.text("reviewer", required=True)
        _check_decision(review, "decision", (ACCEPTED, REJECTED), required=True)
        review.text("reason")
        review.text("wording")
        review.time("at")
        seconds = review.values.get("seconds")
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and seconds >= 0):
            review.add_mistake("seconds", "must be a number of seconds, 0 or more")


def _check_decision(
    entry: FileEntry, name: str, known: Sequence[str], *, required: bool = False
) -> None:
    word = entry.text(name, required=required)
    if word is not None and word not in known:
        entry.add_mistake(name, f"is {quoted(word)}, not one of {', '.join(known)}")


class _SessionReader(Struct, dict=True):
    """Reads the sessions of one case."""

    case: FileEntry
    chunks: list[Chunk] = field(default_factory=list)
    times: list[datetime | None] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    """Position of each session that has an id."""
    of_turn: dict[str, int] = field(default_factory=dict)
    """Position of the session of each turn."""
    names: dict[str, str] = field(default_factory=dict)
    """First position of each id of a session or a turn."""

    @cached_property
    def starts(self) -> OrderCheck:
        return OrderCheck(self.case.mistakes, "an earlier session")

    def read(self) -> tuple[Session, ...]:
        """The sessions as systems see them: with ids by position, because the file's ids may reveal
        which turns are asked for.
        """
        sessions = []
        for number, value in enumerate(self.case.required_items("sessions")):
            session = self._session(number, value)
            if session is not None:
                sessions.append(session)

        return tuple(sessions)

    def case_sessions(self, count: int) -> CaseSessions:
        texts = {chunk.turn_id: chunk.text for chunk in self.chunks}
        return CaseSessions(self.positions, self.of_turn, texts, count)

    def _session(self, number: int, value: Any) -> Session | None:
        location = f"{self.case.location}, session {number}"
        mistakes = self.case.mistakes
        entry = FileEntry.of(location, value, SESSION, mistakes)
        if entry is None:
            return None

        name = entry.name("id")
        self._check_new("session", name, location)
        if name is not None:
            self.positions[name] = number

        started = entry.time("time")
        order = OrderCheck(mistakes, "its session or of an earlier turn in it")
        self._check_order(started, order, location)
        turns = []
        for at, turn in enumerate(entry.required_items("turns")):
            chunk = self._turn(f"{location}, turn {at}", turn, order)
            started = started or chunk.time
            self.chunks.append(chunk)
            self.of_turn[chunk.turn_id] = number
            turns.append(chunk.as_turn())

        return Session(session_id(number), started and in_utc(started), tuple(turns))

    def _turn(self, location: str, value: Any, order: OrderCheck) -> Chunk:
        """A turn. It is kept even if it has a mistake, so that later turns keep their positions."""
        turn_id = f"t{len(self.chunks)}"
        entry = FileEntry.of(location, value, TURN, self.case.mistakes)
        if entry is None:
            return Chunk(turn_id=turn_id)

        name = entry.name("id")
        self._check_new("turn", name, location)
        time = entry.time("time")
        self._check_order(time, order, location)
        return Chunk(
            turn_id=turn_id,
            text=(entry.text("text", required=True) or "").strip(),
            name=name,
            time=time,
            speaker=entry.text("speaker", required=True) or "",
        )

    def _check_order(self, time: datetime | None, order: OrderCheck, location: str) -> None:
        """Sessions may overlap, as threads do: only their starts are in order."""
        self.times.append(time)
        if order.latest is None:
            self.starts.check(time, location)

        order.check(time, location)

    def _check_new(self, what: str, name: str | None, location: str) -> None:
        if name is None:
            return

        key = f"{what} {name}"
        if key in self.names:
            self.case.mistakes.add(
                location,
                f"the id {quoted(name)} is also that of {self.names[key]}; ids must be unique",
            )
        else:
            self.names[key] = location.removeprefix(f"{self.case.location}, ")
