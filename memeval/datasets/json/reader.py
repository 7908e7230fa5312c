"""Reads a file of one's own in the schema of docs/datasets/json.md, and notes every mistake."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from memeval.datasets.io.asked import (
    QUESTION_FIELDS,
    Chunk,
    QuestionReader,
    check_zones,
    in_utc,
    notes_of,
)
from memeval.datasets.io.entries import Entry, Mistakes
from memeval.datasets.io.fields import REPLACE, parse_json, quoted
from memeval.datasets.io.lines import first_value, json_lines
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion, Session, Turn

SCHEMA = "docs/datasets/json.md"

META = "meta"
"""A field that any object may have: it is not read."""
FILE_FIELDS = ("name", "cases", META)
CASE_FIELDS = ("case_id", "sessions", "questions", META)
SESSION_FIELDS = ("id", "time", "turns", META)
TURN_FIELDS = ("id", "speaker", "text", "time", META)
ASKED_FIELDS = (*QUESTION_FIELDS, META)

NOT_PLAIN = re.compile(r"[^\w .-]+")
LONGEST_NAME = 60
BLOCK = 1 << 20


@dataclass
class OwnReader:
    """Reads one file, once."""

    path: Path
    counts: Counter[str] = field(default_factory=Counter)
    """Cases, sessions, turns, questions; `answerable` ones, and those `without_evidence`."""
    categories: Counter[str] = field(default_factory=Counter)
    given_name: str | None = None
    """The name that the file gives itself."""
    _seen: dict[str, str] = field(default_factory=dict)
    """Where each id of a case or a question was first."""

    @cached_property
    def mistakes(self) -> Mistakes:
        return Mistakes(self.path, SCHEMA, strict=True)

    @cached_property
    def sha256(self) -> str:
        digest = sha256()
        with _opened(self.path) as file:
            while block := file.read(BLOCK):
                digest.update(block)

        return digest.hexdigest()

    @property
    def name(self) -> str:
        """The data set's name: the one in the file, else the file's own, in plain characters."""
        name = NOT_PLAIN.sub("_", self.given_name or self.path.stem).strip(" ._")
        return name[:LONGEST_NAME].strip() or "json"

    def check(self) -> None:
        """Reads the whole file, and keeps nothing of it but counts and mistakes."""
        for _ in self.cases():
            pass

    def cases(self) -> Iterator[EvalCase]:
        """The cases that have no mistake; the mistakes of the others are noted."""
        for place, value in self._values():
            case = self._case(place, value)
            if case is not None:
                self._count(case)
                yield case

    def notes(self) -> tuple[str, ...]:
        """What a report must say, once all was read."""
        answerable, without = self.counts["answerable"], self.counts["without_evidence"]
        return tuple(notes_of(answerable, without, self.mistakes))

    def _values(self) -> Iterator[tuple[str, Any]]:
        """Each case with its place in the file."""
        with _opened(self.path) as file:
            first = first_value(file)
            file.seek(0)
            # A first line that is an object by itself shows JSON Lines, unless it holds all cases.
            if isinstance(first, dict) and "cases" not in first:
                yield from self._lines(file)
                return

            content = file.read()

        if not content.removeprefix(b"\xef\xbb\xbf").strip():
            raise UserError(f"{self.path} is empty.", REPLACE)

        yield from self._listed(parse_json(content, self.path, unique=True))

    def _lines(self, file: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
        """One case per line; the first line may name the data set instead."""
        for number, (place, value) in enumerate(json_lines(file, self.mistakes)):
            is_header = isinstance(value, dict) and {"name"} <= set(value) <= {"name", META}
            if number == 0 and is_header:
                self._read_name(self._entry(place, value, "file", FILE_FIELDS))
            else:
                yield place, value

    def _listed(self, value: Any) -> Iterator[tuple[str, Any]]:
        """The cases of a JSON file: a list, an object with `cases`, or one case."""
        cases = value
        if isinstance(value, dict) and "cases" in value:
            entry = self._entry("the file", value, "file", FILE_FIELDS)
            self._read_name(entry)
            cases = [] if entry is None else entry.items("cases", required=True)
            if cases is None:
                return
        elif isinstance(value, dict):
            cases = [value]

        if not isinstance(cases, list) or not cases:
            raise UserError(
                f"{self.path} holds no cases: it must be a list of cases, or one per line.",
                f"the schema:  {SCHEMA}",
            )

        for number, case in enumerate(cases, start=1):
            yield f"case {number}", case

    def _read_name(self, entry: Entry | None) -> None:
        if entry is not None:
            self.given_name = entry.text("name")

    def _case(self, place: str, value: Any) -> EvalCase | None:
        """A case; None where it has a mistake."""
        before = len(self.mistakes.found)
        entry = self._entry(place, value, "case", CASE_FIELDS)
        if entry is None:
            return None

        case_id = entry.name("case_id", required=True)
        if case_id is not None:
            entry = replace(entry, place=f"{place} {quoted(case_id)}")
            self._check_new("case_id", case_id, place, entry.place)

        sessions = _SessionReader(entry).read()
        chunks = [chunk for session in sessions for chunk in session.chunks]
        reader = QuestionReader(
            entry.place,
            case_id or "",
            chunks,
            self.mistakes,
            known=ASKED_FIELDS,
            noun="turn",
        )
        asked = entry.items("questions", required=True) or []
        questions = []
        for number, question in enumerate(asked):
            questions.append(reader.read(number, question))

        self._check_questions(questions, entry.place)
        times = [time for session in sessions for time in session.times]
        check_zones(entry.place, [*times, *reader.times], self.mistakes)
        if len(self.mistakes.found) > before:
            return None

        return EvalCase(
            case_id=case_id or "",
            sessions=tuple(session.as_session() for session in sessions),
            questions=tuple(filter(None, questions)),
        )

    def _check_questions(self, questions: Sequence[EvalQuestion | None], place: str) -> None:
        for question in questions:
            if question is not None:
                self._check_new("question id", question.question_id, place, place)

    def _check_new(self, what: str, name: str, place: str, shown: str) -> None:
        """Notes an id that was there before, with the place of the first."""
        key = f"{what} {name}"
        if key in self._seen:
            self.mistakes.add(
                shown, f"{what} {quoted(name)} is in {self._seen[key]} already; ids are unique"
            )
        else:
            self._seen[key] = place

    def _entry(self, place: str, value: Any, noun: str, known: Sequence[str]) -> Entry | None:
        return Entry.of(place, value, noun=noun, known=known, mistakes=self.mistakes)

    def _count(self, case: EvalCase) -> None:
        turns = sum(len(session.turns) for session in case.sessions)
        self.counts.update(
            cases=1, sessions=len(case.sessions), turns=turns, questions=len(case.questions)
        )
        for question in case.questions:
            self.categories[str(question.category)] += 1
            self.counts["answerable"] += question.answerable
            self.counts["without_evidence"] += question.answerable and not question.evidence


@dataclass
class _Read:
    """A session as it was read."""

    number: int
    time: datetime | None
    chunks: list[Chunk]

    @property
    def times(self) -> list[datetime | None]:
        return [self.time, *(chunk.time for chunk in self.chunks)]

    def as_session(self) -> Session:
        """The session as systems see it: with ids by position, because the file's ids may give away
        which turns are asked for.
        """
        turns = tuple(
            Turn(
                turn_id=chunk.turn_id,
                speaker=chunk.speaker,
                text=chunk.text,
                time=None if chunk.time is None else in_utc(chunk.time),
            )
            for chunk in self.chunks
        )
        started = next((time for time in self.times if time is not None), None)
        return Session(
            session_id=f"s{self.number + 1}",
            started_at=None if started is None else in_utc(started),
            turns=turns,
        )


@dataclass
class _SessionReader:
    """Reads the sessions of one case."""

    case: Entry
    turns: int = 0
    latest: datetime | None = None
    names: dict[str, str] = field(default_factory=dict)
    """Where each id of a session or a turn was first."""

    def read(self) -> list[_Read]:
        values = self.case.items("sessions", required=True)
        if values == []:
            self.case.wrong("sessions", "is empty")

        sessions = [self._session(number, value) for number, value in enumerate(values or [])]
        return [session for session in sessions if session is not None]

    def _session(self, number: int, value: Any) -> _Read | None:
        place = f"{self.case.place}, session {number}"
        mistakes = self.case.mistakes
        entry = Entry.of(place, value, noun="session", known=SESSION_FIELDS, mistakes=mistakes)
        if entry is None:
            return None

        self._check_new("session", entry.name("id"), place)
        time = entry.time("time")
        self._check_order(time, place)
        turns = entry.items("turns", required=True)
        if turns == []:
            entry.wrong("turns", "is empty")

        chunks = [self._turn(f"{place}, turn {at}", turn) for at, turn in enumerate(turns or [])]
        return _Read(number=number, time=time, chunks=chunks)

    def _turn(self, place: str, value: Any) -> Chunk:
        """A turn. One with a mistake is kept, for its place among the others."""
        turn_id = f"t{self.turns}"
        self.turns += 1
        entry = Entry.of(place, value, noun="turn", known=TURN_FIELDS, mistakes=self.case.mistakes)
        if entry is None:
            return Chunk(turn_id=turn_id)

        name = entry.name("id")
        self._check_new("turn", name, place)
        time = entry.time("time")
        self._check_order(time, place)
        return Chunk(
            turn_id=turn_id,
            text=(entry.text("text", required=True) or "").strip(),
            name=name,
            time=time,
            speaker=entry.text("speaker", required=True) or "",
        )

    def _check_new(self, what: str, name: str | None, place: str) -> None:
        if name is None:
            return

        key = f"{what} {name}"
        if key in self.names:
            self.case.mistakes.add(
                place, f"the id {quoted(name)} is that of {self.names[key]}, too; ids are unique"
            )
        else:
            self.names[key] = place.removeprefix(f"{self.case.place}, ")

    def _check_order(self, time: datetime | None, place: str) -> None:
        """Memory takes sessions and turns in the file's order, which must be that of time."""
        if time is None:
            return

        if self.latest is not None and in_utc(time) < self.latest:
            self.case.mistakes.add(
                place, "field 'time' is before that of an earlier session or turn"
            )

        self.latest = max(in_utc(time), self.latest or in_utc(time))


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error
