"""A user's own questions, checked against the turns of their case."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct, field

from memeval.datasets.io.entries import Entry, Mistakes, Name, Place, Text
from memeval.datasets.io.fields import quoted
from memeval.records import ChoiceLabels, EvalQuestion, Finite
from memeval.text.shown import counted, one_line

CATEGORY = re.compile(r"\w[\w .-]{0,59}")
"""Category names that can be part of a metric's name."""
DEFAULT_CATEGORY = "general"
"""The category of a question that names none."""
MAX_CHOICES = 26
"""The number of letters from A to Z."""
Gold = Text | int | Finite
Golds = str | int | Finite | list[Gold]
"""Not `Gold | list[Gold]`: msgspec 0.22 crashes when it frees a type with a pattern and a list."""
SessionName = str | int
"""The id of a session, or its index from 0."""


class QuestionEntry(Entry, frozen=True, kw_only=True):
    """A question as the file contains it."""

    id: Name | None = None
    question: Text
    answer: Golds | None = None
    golds: Golds | None = None
    category: Name | None = None
    evidence: list[str | int] | None = None
    choices: list[Text] | None = None
    multi_select: bool | None = None
    time: Any = None


Q = TypeVar("Q", bound=QuestionEntry)


class CaseNames(Struct):
    """The sessions and turns of a case by their names in the file."""

    count: int
    """Number of sessions."""
    sessions: dict[str, int] = field(default_factory=dict)
    """Position of each session that has an id."""
    turns: dict[str, str] = field(default_factory=dict)
    """memeval's id of each turn that has an id in the file."""
    session_of: dict[str, int] = field(default_factory=dict)
    """Position of the session of each turn."""
    texts: dict[str, str] = field(default_factory=dict)
    """Text of each turn, in order."""

    def position_of(self, session: SessionName, name: str, place: Place) -> int | None:
        """Position of the session that the field `name` names; None if there is no such session: a
        mistake is noted.
        """
        if isinstance(session, str) and session in self.sessions:
            return self.sessions[session]
        if isinstance(session, int) and 0 <= session < self.count:
            return session

        place.add(f"is {quoted(session)}, which is not a session of the case", name=name)
        return None

    def turn_ids(self, evidence: Iterable[str | int], noun: str, place: Place) -> tuple[str, ...]:
        """memeval's ids of turns, which the file calls `noun`, and names by id or by index."""
        # A dict: each id once, in the order of the file.
        turn_ids: dict[str, None] = {}
        for value in evidence:
            if isinstance(value, str) and value in self.turns:
                turn_ids[self.turns[value]] = None
            elif isinstance(value, int) and 0 <= value < len(self.texts):
                turn_ids[turn_id(value)] = None
            else:
                place.add(f"evidence {quoted(value)} is not a {noun} of the case")

        return tuple(turn_ids)


def session_id(position: int) -> str:
    """The id of a session as systems see it; positions start at 0."""
    return f"s{position + 1}"


def turn_id(position: int) -> str:
    """The id of a turn as systems see it: the file's ids may reveal which turn is asked for."""
    return f"t{position}"


class OrderCheck(Struct):
    """Notes times out of order: the memory gets the texts in the file's order."""

    what: str
    """The thing with the later time, for messages about the field `time`."""
    latest: datetime | None = None

    def check(self, time: datetime | None, place: Place) -> None:
        if time is None:
            return

        time = in_utc(time)
        if self.latest is not None and time < self.latest:
            place.add(f"is before that of {self.what}", name="time")

        self.latest = max(time, self.latest or time)


def question_entries(case: Place, values: Sequence[Any], wanted: type[Q]) -> list[tuple[Place, Q]]:
    """The questions of a case with their places; those with a mistake are left out."""
    entries = []
    for number, value in enumerate(values):
        shown = str(number)
        if isinstance(value, dict) and isinstance(value.get("id"), str | int):
            shown = quoted(value["id"])

        place = case.part(f"question {shown}")
        entry = place.read(value, wanted)
        if entry is not None:
            entries.append((place, entry))

    return entries


class QuestionReader(Struct):
    case_id: str
    names: CaseNames
    noun: str
    """The file's word for a turn."""
    times: list[datetime | None] = field(default_factory=list)
    """Times at which the questions read so far are asked, as in the file."""

    def read(self, number: int, place: Place, entry: QuestionEntry) -> EvalQuestion:
        """A question; mistakes are noted."""
        category = DEFAULT_CATEGORY if entry.category is None else str(entry.category)
        if not CATEGORY.fullmatch(category):
            rule = "it must be up to 60 letters, digits, spaces, '.', '-' or '_'"
            place.add(f"is {quoted(category)}; {rule}", name="category")

        name = f"q{number}" if entry.id is None else entry.id
        choices = tuple(map(str.strip, entry.choices or ()))
        golds = _golds(place, entry)
        if entry.choices is not None:
            _check_choices(place, entry, choices, golds)

        asked_at = place.time(entry.time)
        self.times.append(asked_at)
        return EvalQuestion(
            question_id=f"{self.case_id}/{name}",
            text=entry.question.strip(),
            category=category,
            gold=golds,
            evidence=self.names.turn_ids(entry.evidence or (), self.noun, place),
            asked_at=asked_at and in_utc(asked_at),
            choices=choices,
            right_choices=tuple(at for at, choice in enumerate(choices) if choice in golds),
            choice_labels=ChoiceLabels.LETTERS,
            multi_select=bool(entry.multi_select),
            answerable=bool(golds),
        )


def _golds(place: Place, entry: QuestionEntry) -> tuple[str, ...]:
    """The accepted answers; empty if a refusal is right."""
    given = entry.answer if entry.golds is None else entry.golds
    if given is None:
        place.add("is missing; if a refusal is right, use an empty list", name="answer")
        return ()
    if entry.answer is not None and entry.golds is not None:
        place.add("is an alias of 'golds': use only one of them", name="answer")

    if isinstance(given, str):
        place.check_text(given, name="answer" if entry.golds is None else "golds")

    values = given if isinstance(given, list) else [given]
    return tuple(str(value).strip() for value in values)


def _check_choices(
    place: Place, entry: QuestionEntry, choices: Sequence[str], golds: Sequence[str]
) -> None:
    """Notes choices that can't be asked; the answer names the right ones by their texts."""
    if not 2 <= len(choices) <= MAX_CHOICES:
        place.add(f"contains {len(choices)}, not 2 to {MAX_CHOICES}", name="choices")
    if len(set(choices)) < len(choices):
        place.add("lists a choice twice", name="choices")

    for gold in golds:
        if gold not in choices:
            place.add(f"is {quoted(gold)}, which is not one of the choices", name="answer")
    if not golds:
        place.add("is empty; a question with choices needs a right one", name="answer")
    if len(set(golds)) > 1 and not entry.multi_select:
        # Systems see whether several choices may be right: the answer must not decide that.
        mistake = 'contains several choices, which needs "multi_select": true'
        place.add(mistake, name="answer")


def in_utc(time: datetime) -> datetime:
    """The time without a zone: converted to UTC if it had one, else unchanged."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def check_zones(place: Place, times: Sequence[datetime | None]) -> None:
    """Notes a mistake if some times have a zone and others do not: they can't be compared."""
    if len({time.tzinfo is None for time in times if time is not None}) > 1:
        place.add("some times have a zone and others do not")


def notes_of(answerable: int, without_evidence: int, mistakes: Mistakes) -> Iterator[str]:
    """Notes for a report about a user's own file."""
    if without_evidence:
        recall = "is measured on the others" if without_evidence < answerable else "is not measured"
        yield (
            f"evidence: {without_evidence} of {answerable} questions with an answer have none; "
            f"recall {recall}"
        )

    if mistakes.aliases_used:
        aliases = []
        for (other, name), count in sorted(mistakes.aliases_used.items()):
            aliases.append(f"'{other}' for '{name}' ({counted(count, 'time')})")

        yield f"fields: took {', '.join(aliases)}"

    for name, count in sorted(mistakes.unread.items()):
        yield f"fields: {one_line(name, 60)} is not read ({counted(count, 'time')})"
