"""Makes a file of one's own from other forms: ChatGPT's export, plain CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from memeval.datasets.io.fields import Fields, parse_json
from memeval.datasets.io.tables import header, read_table
from memeval.datasets.json.chatgpt import conversations
from memeval.errors import UserError

TURN_COLUMNS = ("case_id", "session", "time", "speaker", "text", "id")
QUESTION_COLUMNS = (
    "case_id",
    "id",
    "question",
    "answer",
    "category",
    "evidence",
    "choices",
    "multi_select",
    "time",
)
MANY = "|"
"""Parts several answers, pieces of evidence or choices in one cell."""


@dataclass
class Converted:
    """What was read from the sources, on its way into one file."""

    cases: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def case(self, case_id: str) -> dict[str, Any]:
        """The case of an id, made where it is new."""
        new = {"case_id": case_id, "sessions": [], "questions": []}
        return self.cases.setdefault(case_id, new)

    def write(self, file: IO[str], *, lines: bool) -> None:
        """Writes the cases: as JSON, or one per line."""
        cases = list(self.cases.values())
        if lines:
            file.writelines(f"{json.dumps(case, ensure_ascii=False)}\n" for case in cases)
        else:
            json.dump({"cases": cases}, file, indent=1, ensure_ascii=False)
            file.write("\n")


def from_chatgpt(sources: Sequence[Path]) -> Converted:
    """An export of ChatGPT as one case whose sessions are the conversations in order of time; a
    table of questions may come with it.

    Raises `UserError` for what is neither.
    """
    converted = Converted()
    for path in sources:
        content = _read(path)
        # An export is a list; anything else must be a table of questions.
        if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            _add_table(converted, path, content, only_questions=True)
            continue

        sessions, notes = conversations(parse_json(content, path), path)
        converted.case("chatgpt")["sessions"] += sessions
        converted.notes += notes

    return converted


def from_csv(sources: Sequence[Path]) -> Converted:
    """Tables of turns and of questions, recognised by their columns.

    Raises `UserError` for a file that is neither.
    """
    converted = Converted()
    for path in sources:
        _add_table(converted, path, _read(path))

    return converted


CONVERTERS: Mapping[str, Callable[[Sequence[Path]], Converted]] = {
    "chatgpt": from_chatgpt,
    "csv": from_csv,
}
"""By the name that `data make` takes."""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error


def _add_table(
    converted: Converted, path: Path, content: bytes, *, only_questions: bool = False
) -> None:
    names = header(content, path)
    if "question" in names:
        rows = read_table(content, path, ("question", "answer"))
        _check_columns(names, QUESTION_COLUMNS, path)
        _add_questions(converted, rows)
    elif "text" in names and not only_questions:
        rows = read_table(content, path, ("text", "speaker"))
        _check_columns(names, TURN_COLUMNS, path)
        _add_turns(converted, rows)
    else:
        wanted = "'question'" if only_questions else "'text' or 'question'"
        raise UserError(f"{path}: line 1 has no column {wanted}.", PAGE)


PAGE = "the columns:  docs/datasets/converting.md"


def _check_columns(names: Iterable[str], known: Sequence[str], path: Path) -> None:
    for name in names:
        if name not in known:
            raise UserError(
                f"{path}: line 1: column '{name}' is not one of {', '.join(known)}.", PAGE
            )


def _add_turns(converted: Converted, rows: Iterable[Fields]) -> None:
    """Neighbouring rows of one case and session are a session."""
    latest: tuple[str, str] | None = None
    for row in rows:
        case_id, session = _cell(row, "case_id") or "case", _cell(row, "session")
        sessions = converted.case(case_id)["sessions"]
        if latest != (case_id, session):
            sessions.append(({"id": session} if session else {}) | {"turns": []})
            latest = (case_id, session)

        turn = {name: _cell(row, name) for name in ("id", "speaker", "text", "time")}
        sessions[-1]["turns"].append({name: value for name, value in turn.items() if value})


def _add_questions(converted: Converted, rows: Iterable[Fields]) -> None:
    for row in rows:
        # Without the column, the questions are about the only case there is.
        only = next(iter(converted.cases), "case")
        case_id = _cell(row, "case_id") or only
        if case_id not in converted.cases:
            raise UserError(
                f"{row.path}: {row.record}: no turn is of the case '{case_id}'.",
                "name the table of turns before that of questions",
            )

        converted.case(case_id)["questions"].append(dict(_question(row)))


def _question(row: Fields) -> Iterator[tuple[str, Any]]:
    for name in ("id", "question", "category", "time"):
        if value := _cell(row, name):
            yield name, value

    yield "answer", _parts(row, "answer")
    for name in ("evidence", "choices"):
        if parts := _parts(row, name):
            yield name, parts

    if flag := _cell(row, "multi_select"):
        if flag not in ("true", "false"):
            raise row.wrong("multi_select", "is not true or false")

        yield "multi_select", flag == "true"


def _parts(row: Fields, name: str) -> list[str]:
    return [part.strip() for part in _cell(row, name).split(MANY) if part.strip()]


def _cell(row: Fields, name: str) -> str:
    """A cell; empty where the table has no such column."""
    return str(row.values.get(name, "")).strip()
