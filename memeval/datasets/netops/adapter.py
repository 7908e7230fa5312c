"""A user's own cases of network operations: chunks, and questions about them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from memeval.datasets.contract import LoadedDataset
from memeval.datasets.grouping import repeated
from memeval.datasets.io.entries import EntryKind, FileEntry, Mistakes
from memeval.datasets.io.fields import REPLACE, parse_json, quoted
from memeval.datasets.io.lines import first_value, json_lines, located_cases
from memeval.datasets.io.questions import (
    DEFAULT_SPEAKER,
    Chunk,
    OrderCheck,
    QuestionReader,
    check_zones,
    notes_of,
)
from memeval.datasets.locate import PinnedFile, read_pinned
from memeval.datasets.netops.flat import as_cases, as_chunk, is_record
from memeval.datasets.own import OwnFile
from memeval.errors import UserError
from memeval.records import EvalCase, Session
from memeval.text.shipped import location_of

CASE = EntryKind("case", ("case_id", "chunks", "questions"))
CHUNK = EntryKind("chunk", ("text", "id", "time", "speaker", "source", "session"))
PAGE = "docs/datasets/netops.md"


class GenericNetOps(OwnFile):
    """Reads a file of cases, each with its chunks and questions."""

    def open(self) -> LoadedDataset:
        cases, notes = self._content
        questions = chain.from_iterable(case.questions for case in cases)
        self.check_categories(str(question.category) for question in questions)
        return self._loaded(self._file.sha256, pinned=self._file.pinned, notes=notes)

    def read(self) -> Iterator[EvalCase]:
        return iter(self._content[0])

    @cached_property
    def _file(self) -> PinnedFile:
        return read_pinned(self.info, self.path, allow_unpinned=self.settings.allow_unpinned)

    @cached_property
    def _content(self) -> tuple[list[EvalCase], tuple[str, ...]]:
        return read_generic(self._file.content, self.path)


def read_generic(content: bytes, path: Path) -> tuple[list[EvalCase], tuple[str, ...]]:
    """The cases of a file, and notes on it. Raises `UserError` that lists its mistakes by case,
    chunk, question.
    """
    mistakes = Mistakes(path, location_of(PAGE))
    values = list(_values(content, path, mistakes))
    if values and is_record(values[0][1]):
        if not any(isinstance(value, dict) and "question" in value for _, value in values):
            raise UserError(
                f"{path} contains {len(values):,} records but no questions about them",
                'add objects like:  {"question": "Which switch failed?", "answer": "sw2"}',
                f"the schema:  {location_of(PAGE)}",
            )

        values = list(as_cases(values))

    cases = []
    case_ids, question_ids = Counter[str](), Counter[str]()
    answerable = without = 0
    for location, value in values:
        case = _case(location, value, mistakes)
        if case is not None:
            cases.append(case)
            case_ids[case.case_id] += 1
            for question in case.questions:
                question_ids[question.question_id] += 1
                answerable += question.answerable
                without += question.answerable and not question.evidence

    _check_unique("case", case_ids, mistakes)
    # The questions of a duplicated case are duplicated as well.
    mistakes.refuse()
    _check_unique("question", question_ids, mistakes)
    mistakes.refuse()
    return cases, tuple(notes_of(answerable, without, mistakes))


def _values(content: bytes, path: Path, mistakes: Mistakes) -> Iterator[tuple[str, Any]]:
    """Each case or record with its place: from a JSON list, one object, or one object per line."""
    if not content.removeprefix(b"\xef\xbb\xbf").strip():
        raise UserError(f"{path} is empty.", REPLACE)

    lines = list(filter(bytes.strip, content.splitlines()))
    if len(lines) > 1 and isinstance(first_value(lines), dict):
        yield from json_lines(content.split(b"\n"), mistakes)
        return

    yield from located_cases(parse_json(content, path), path)


def _case(location: str, value: Any, mistakes: Mistakes) -> EvalCase | None:
    """A case; None if it has a mistake, which is noted."""
    # A case with a mistake is read to its end, so that all mistakes are listed together.
    before = len(mistakes.messages)
    read = FileEntry.of_case(location, value, CASE, mistakes)
    if read is None:
        return None

    entry, case_id = read
    chunks = _chunks(entry)
    asked = entry.required_items("questions")
    reader = QuestionReader(entry.location, case_id or "", chunks, mistakes)
    questions = reader.read_all(asked)
    check_zones(entry.location, [*(chunk.time for chunk in chunks), *reader.times], mistakes)
    if len(mistakes.messages) > before:
        return None

    return EvalCase(case_id=case_id or "", sessions=_sessions(chunks), questions=questions)


def _chunks(case: FileEntry) -> list[Chunk]:
    """A case's chunks, in order. Those with mistakes stay, so the others keep their positions."""
    location = case.location
    chunks = []
    for number, value in enumerate(case.required_items("chunks")):
        chunks.append(_chunk(location, number, value, case.mistakes))

    for name, count in repeated(chunk.name for chunk in chunks if chunk.name is not None):
        case.mistakes.add(
            location, f"chunk {quoted(name)} occurs {count} times; ids must be unique"
        )

    order = OrderCheck(case.mistakes, "an earlier chunk; chunks must be sorted by time")
    for number, chunk in enumerate(chunks):
        order.check(chunk.time, f"{location}, chunk {number}")

    runs = groupby(chunks, key=attrgetter("session"))
    for session, _ in repeated(session for session, _ in runs if session):
        what = f"session {quoted(session)} is interrupted; its chunks must be consecutive"
        case.mistakes.add(location, what)

    return chunks


def _chunk(location: str, number: int, value: Any, mistakes: Mistakes) -> Chunk:
    location = f"{location}, chunk {number}"
    turn_id = f"t{number}"
    entry = FileEntry.of(location, as_chunk(value), CHUNK, mistakes)
    if entry is None:
        return Chunk(turn_id=turn_id)

    speaker, source = entry.text("speaker"), entry.text("source")
    if speaker is not None and source is not None:
        entry.add_mistake("source", "is an alias of 'speaker': use only one of them")

    return Chunk(
        turn_id=turn_id,
        text=(entry.text("text", required=True) or "").strip(),
        name=entry.text("id"),
        time=entry.time("time"),
        speaker=speaker or source or DEFAULT_SPEAKER,
        session=entry.name("session"),
    )


def _check_unique(what: str, names: Counter[str], mistakes: Mistakes) -> None:
    for name, count in repeated(names):
        mistakes.add(f"{what} {quoted(name)}", f"this id occurs {count} times, but must be unique")


def _sessions(chunks: Sequence[Chunk]) -> tuple[Session, ...]:
    """Sessions of consecutive chunks; if no chunk names a session, the case is one session."""
    sessions = []
    for number, (_, members) in enumerate(groupby(chunks, key=attrgetter("session")), start=1):
        turns = tuple(chunk.as_turn() for chunk in members)
        started_at = next((turn.time for turn in turns if turn.time), None)
        sessions.append(Session(session_id=f"s{number}", started_at=started_at, turns=turns))

    return tuple(sessions)
