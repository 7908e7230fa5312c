"""A file of rankings instead of a memory: the results of another program for each question."""

import hashlib
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct

from memeval.errors import MemevalError, UserError
from memeval.llm.metering import current_ledger
from memeval.metrics.quotation import Quotations, lines_of_turns
from memeval.records import Finite, MemoryChunk, Query, Retrieved
from memeval.results.files import reading
from memeval.systems.base import RUNTIME, QuickSystem, RecallSystem, SystemContext, SystemSettings
from memeval.systems.external.wire import LONGEST_TEXT, MAX_RESULTS
from memeval.text.shown import one_line
from memeval.text.typed import decoder, fault_in

EXAMPLE = 'rows look like:  {"question_id": "conv-26/q0", "ranked": [{"text": "…", "score": 0.9}]}'


class QuestionRow(Struct, frozen=True):
    """A line of another program's file, about one question."""

    question_id: str


R = TypeVar("R", bound=QuestionRow)


class QuestionRows(Struct, Generic[R], frozen=True):
    """Another program's file, read."""

    path: Path
    sha256: str
    rows: Mapping[str, R]
    """By question id, the first row of each."""
    repeated: tuple[str, ...]
    """Ids of rows whose id occurred in an earlier row."""
    lines: Mapping[str, int]
    """By question id, the line of its row."""


def read_rows(
    path: Path, content: bytes, read: Callable[[bytes], R], example: str
) -> QuestionRows[R]:
    """The rows of a file in JSON lines. Raises `UserError` that names file, line and member."""
    rows: dict[str, R] = {}
    lines: dict[str, int] = {}
    repeated = []
    # Editors on Windows put a byte order mark at the beginning of a file.
    for number, line in enumerate(content.removeprefix(BOM_UTF8).split(b"\n"), start=1):
        if not line.strip():
            continue

        try:
            row = read(line)
        except (ValueError, RecursionError) as error:
            where, why = f"{one_line(path)}, line {number}", one_line(fault_in(error), 200)
            raise UserError(f"{where}: not a row in JSON: {why}", example) from error

        if row.question_id in rows:
            repeated.append(row.question_id)
        else:
            rows[row.question_id], lines[row.question_id] = row, number

    if not rows:
        raise UserError(f"{one_line(path)} is empty", example)

    return QuestionRows(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        rows=rows,
        repeated=tuple(repeated),
        lines=lines,
    )


class RankedItem(Struct, frozen=True):
    text: Annotated[str, Meta(max_length=LONGEST_TEXT)] | None = None
    """None shows the text of the turns in `turn_ids`."""
    turn_ids: Annotated[tuple[str, ...], Meta(max_length=MAX_RESULTS)] | None = None
    """None means the turns that the text quotes."""
    score: Finite | None = None

    def __post_init__(self) -> None:
        if self.text is None and not self.turn_ids:
            raise ValueError("it has neither text nor turn_ids")


class RankedRow(QuestionRow, frozen=True):
    question_id: Annotated[str, Meta(min_length=1)]
    ranked: Annotated[tuple[RankedItem, ...], Meta(max_length=MAX_RESULTS)]
    """Best first."""


Rankings = QuestionRows[RankedRow]


def read_rankings(file: str) -> Rankings:
    """Reads JSON lines. Raises `UserError` that names file, line and member."""
    with reading(one_line(file), EXAMPLE):
        content = Path(file).read_bytes()

    return _read(file, content)


# Cached, because each case has its own system.
@lru_cache(maxsize=4)
def _read(file: str, content: bytes) -> Rankings:
    return read_rows(Path(file), content, decoder(RankedRow).decode, EXAMPLE)


@dataclass(frozen=True)
class RankedSettings(SystemSettings):
    # The file's content is part of the identity, not its path (`files`).
    file: str = field(default="", metadata=RUNTIME)


class Ranked(QuickSystem, RecallSystem):
    """Returns the results in the file. The cell's reader answers from the first `top_k`."""

    settings_type = RankedSettings

    def __init__(self, settings: Any, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self._rows = read_rankings(settings.file).rows

    @classmethod
    def resolve_settings(cls, settings: Any, *, has_language_model: bool) -> Any:
        read_rankings(settings.file)
        return settings

    @classmethod
    def files(cls, settings: Any) -> tuple[Path, ...]:
        return (Path(settings.file),)

    def reset(self) -> None:
        self._text_of: dict[str, str] = {}
        self._lines: dict[str, str] = {}
        self._quotations: Quotations[str] | None = None

    def ingest(self, chunk: MemoryChunk) -> None:
        self._text_of |= dict.fromkeys(chunk.turn_ids, chunk.text)
        self._lines |= dict(lines_of_turns(chunk.content, chunk.turn_ids, chunk.speakers))
        self._quotations = None

    def recall(self, query: Query, depth: int) -> Sequence[Retrieved]:
        # Only this system sees a question's id: its rows replace the search that answers the
        # question.
        row = self._rows.get(current_ledger().scope)
        if row is None:
            raise MemevalError("the file has no row for it")

        return [self._found(item, f"ranked[{at}]") for at, item in enumerate(row.ranked)]

    async def probe(self, query: Query, depth: int) -> None:
        """Nothing: the file has results of questions only."""

    def _found(self, item: RankedItem, where: str) -> Retrieved:
        turns = item.turn_ids
        if turns is None:
            if self._quotations is None:
                self._quotations = Quotations(self._lines)

            turns = self._quotations.found_in(item.text or "")

        for turn in turns:
            if turn not in self._text_of:
                raise MemevalError(
                    f"{where}.turn_ids names '{one_line(turn, 80)}', which its case does not have"
                )

        texts = dict.fromkeys(map(self._text_of.__getitem__, turns))
        text = "\n".join(texts) if item.text is None else item.text
        return Retrieved(text=text, turn_ids=turns, score=item.score)
