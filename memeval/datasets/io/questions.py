"""A user's own questions, checked against the chunks of their case."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from memeval.datasets.io.entries import EntryKind, FileEntry, Mistakes
from memeval.datasets.io.fields import kind_of, quoted
from memeval.records import ChoiceLabels, EvalQuestion, Turn
from memeval.text.shown import one_line

_FIELDS = "id question answer golds category evidence choices multi_select time"
QUESTION = EntryKind("question", tuple(_FIELDS.split()))

CATEGORY = re.compile(r"\w[\w .-]{0,59}")
"""Category names that can be part of a metric's name."""
DEFAULT_CATEGORY = "general"
"""The category of a question that names none."""
DEFAULT_SPEAKER = "Record"
"""The speaker of a chunk that has none."""
MOST_CHOICES = 26
"""The number of letters from A to Z."""


class Chunk(Struct, frozen=True):
    """One chunk of a case."""

    turn_id: str
    """memeval's own id, by position: the file's ids may reveal which chunk is asked for."""
    text: str = ""
    name: str | None = None
    """Its id in the file."""
    time: datetime | None = None
    """Time as in the file, with its zone if it has one."""
    speaker: str = DEFAULT_SPEAKER
    session: str | None = None

    def as_turn(self) -> Turn:
        """The chunk as systems see it."""
        time = self.time and in_utc(self.time)
        return Turn(turn_id=self.turn_id, speaker=self.speaker, text=self.text, time=time)


class OrderCheck(Struct):
    """Notes times that run backwards: the memory gets the texts in the file's order."""

    mistakes: Mistakes
    what: str
    """What has the later time, for the message about a mistake in the field `time`."""
    latest: datetime | None = None

    def check(self, time: datetime | None, location: str) -> None:
        if time is None:
            return

        time = in_utc(time)
        if self.latest is not None and time < self.latest:
            self.mistakes.add(location, f"field 'time' is before that of {self.what}")

        self.latest = max(time, self.latest or time)


@dataclass
class QuestionReader:
    """Reads the questions of one case."""

    location: str
    case_id: str
    chunks: Sequence[Chunk]
    mistakes: Mistakes
    kind: EntryKind = QUESTION
    noun: str = "chunk"
    """What the file calls a chunk."""
    times: list[datetime] = field(default_factory=list)
    """Times at which the questions read so far are asked, as in the file."""

    def read_all(self, values: Sequence[Any]) -> tuple[EvalQuestion, ...]:
        """The questions that have no mistake; the mistakes of the others are noted."""
        questions = [self.read(number, value) for number, value in enumerate(values)]
        return tuple(filter(None, questions))

    def read(self, number: int, value: Any) -> EvalQuestion | None:
        """A question; None if it has a mistake, which is noted."""
        before = len(self.mistakes.messages)
        entry = self._entry(number, value)
        if entry is None:
            return None

        question = self._question(entry, number)
        return question if len(self.mistakes.messages) == before else None

    def _question(self, entry: FileEntry, number: int) -> EvalQuestion:
        """The question in an object; its mistakes are noted."""
        name = entry.name("id")
        text = entry.text("question", required=True)
        category = _category(entry)
        choices = _choices(entry)
        golds = _golds(entry)
        right = _right_choices(entry, choices, golds)
        evidence = self._evidence(entry)
        asked_at = entry.time("time")
        multi_select = entry.boolean("multi_select")
        if asked_at is not None:
            self.times.append(asked_at)

        return EvalQuestion(
            question_id=f"{self.case_id}/{name or f'q{number}'}",
            text=(text or "").strip(),
            category=category,
            gold=tuple(golds),
            evidence=evidence,
            asked_at=asked_at and in_utc(asked_at),
            choices=choices,
            right_choices=right,
            choice_labels=ChoiceLabels.LETTERS,
            multi_select=multi_select,
            answerable=bool(golds),
        )

    def _entry(self, number: int, value: Any) -> FileEntry | None:
        location = f"{self.location}, question {number}"
        if isinstance(value, dict) and isinstance(value.get("id"), str | int):
            location = f"{self.location}, question {quoted(value['id'])}"

        return FileEntry.of(location, value, self.kind, self.mistakes)

    def _evidence(self, entry: FileEntry) -> tuple[str, ...]:
        """Turn ids of the chunks with the answer; the file names them by id or by index from 0."""
        by_name = {chunk.name: chunk.turn_id for chunk in self.chunks if chunk.name is not None}
        # A dict: each id once, in the order of the file.
        turn_ids: dict[str, None] = {}
        for value in entry.items("evidence") or []:
            if isinstance(value, str) and value in by_name:
                turn_ids[by_name[value]] = None
            elif _is_index(value, len(self.chunks)):
                turn_ids[self.chunks[value].turn_id] = None
            elif isinstance(value, str | int) and not isinstance(value, bool):
                self.mistakes.add(
                    entry.location, f"evidence {quoted(value)} is not a {self.noun} of the case"
                )
            else:
                entry.add_mistake(
                    "evidence", f"contains {kind_of(value)}, not the id or index of a {self.noun}"
                )

        return tuple(turn_ids)


def in_utc(time: datetime) -> datetime:
    """The time without a zone: converted to UTC if it had one, else unchanged."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _is_index(value: Any, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def _category(entry: FileEntry) -> str:
    name = entry.name("category") or DEFAULT_CATEGORY
    if not CATEGORY.fullmatch(name):
        entry.add_mistake(
            "category",
            f"is {quoted(name)}; it must be up to 60 letters, digits, spaces, '.', '-' or '_'",
        )

    return name


def _choices(entry: FileEntry) -> tuple[str, ...]:
    values = entry.items("choices")
    if values is None:
        return ()

    choices = tuple(map(str.strip, entry.texts("choices")))
    if not 2 <= len(values) <= MOST_CHOICES:
        entry.add_mistake("choices", f"contains {len(values)}, not 2 to {MOST_CHOICES}")
    if len(set(choices)) < len(choices):
        entry.add_mistake("choices", "lists a choice twice")

    return choices


def _golds(entry: FileEntry) -> list[str]:
    """The accepted answers; empty if a refusal is right."""
    given = [name for name in ("answer", "golds") if entry.values.get(name) is not None]
    if not given:
        entry.add_mistake("answer", "is missing; if a refusal is right, use an empty list")
        return []
    if len(given) > 1:
        entry.add_mistake("answer", "is an alias of 'golds': use only one of them")
        return []

    (name,) = given
    values = entry.values[name]
    if not isinstance(values, list):
        values = [values]

    texts = [entry.answer(name, value) for value in values]
    return list(map(str.strip, filter(None, texts)))


def _right_choices(
    entry: FileEntry, choices: Sequence[str], golds: Sequence[str]
) -> tuple[int, ...]:
    """Positions of the right choices, which the answer names by their texts."""
    if not choices:
        return ()

    for gold in golds:
        if gold not in choices:
            entry.add_mistake("answer", f"is {quoted(gold)}, which is not one of the choices")
    if not golds:
        entry.add_mistake("answer", "is empty; a question with choices needs a right one")
    if len(set(golds)) > 1 and entry.values.get("multi_select") is not True:
        # Systems see whether several choices may be right: the answer must not decide that.
        entry.add_mistake("answer", 'contains several choices, which needs "multi_select": true')

    return tuple(position for position, choice in enumerate(choices) if choice in golds)


def check_zones(location: str, times: Sequence[datetime | None], mistakes: Mistakes) -> None:
    """Notes a mistake if some times have a zone and others do not: they can't be compared."""
    if len({time.tzinfo is None for time in times if time is not None}) > 1:
        mistakes.add(location, "some times have a zone and others do not")


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
            aliases.append(f"'{other}' for '{name}' ({count:,} times)")

        yield f"fields: took {', '.join(aliases)}"

    for name, count in sorted(mistakes.unread.items()):
        yield f"fields: {one_line(name, 60)} is not read ({count:,} times)"
