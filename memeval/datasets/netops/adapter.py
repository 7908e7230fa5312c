"""A user's own cases of network operations: chunks, and questions about them."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

from msgspec import field

from memeval.datasets.contract import LoadedDataset
from memeval.datasets.grouping import repeated
from memeval.datasets.io.entries import Items, Mistakes, Place
from memeval.datasets.io.fields import quoted
from memeval.datasets.io.questions import QuestionEntry
from memeval.datasets.json.reader import OwnCase, OwnReader, TurnEntry
from memeval.datasets.locate import read_pinned
from memeval.datasets.netops.flat import as_cases, as_chunk, is_record
from memeval.datasets.own import OwnFile
from memeval.errors import UserError
from memeval.records import EvalCase
from memeval.results.files import stamp_of
from memeval.text.shipped import location_of
from memeval.text.shown import counted

PAGE = "docs/datasets/netops.md"
DEFAULT_SPEAKER = "Record"
"""The speaker of a chunk that has none."""


class GenericNetOps(OwnFile):
    """Reads a file of cases, each with its chunks and questions."""

    def open(self) -> LoadedDataset:
        file = read_pinned(self.info, self.path, allow_unpinned=self.settings.allow_unpinned)
        _, reader = self._content
        self.check_categories(reader.categories)
        return self._loaded(file.sha256, pinned=file.pinned, notes=reader.notes())

    def read(self) -> Iterator[EvalCase]:
        return iter(self._content[0])

    @cached_property
    def _content(self) -> tuple[list[EvalCase], OwnReader]:
        reader = NetOpsReader(self.path, stamp=stamp_of(self.path))
        cases = list(reader.cases())
        reader.mistakes.refuse()
        return cases, reader


class CaseEntry(OwnCase, frozen=True, kw_only=True):
    """A case with its chunks as sessions of turns; messages still name the chunks."""

    aliases: ClassVar[Mapping[str, str]] = {}
    sessions: Items = field(name="chunks")
    questions: Items


class ChunkEntry(TurnEntry, frozen=True):
    aliases: ClassVar[Mapping[str, str]] = {"source": "speaker"}
    position: ClassVar[str] = "chunk {index}"


class NetOpsReader(OwnReader):
    """Reads cases of chunks, or of records, as cases of sessions and turns."""

    case_type: ClassVar[type[OwnCase]] = CaseEntry
    turn_type: ClassVar[type[TurnEntry]] = ChunkEntry
    question_type: ClassVar[type[QuestionEntry]] = QuestionEntry

    @cached_property
    def mistakes(self) -> Mistakes:
        return Mistakes(self.path, location_of(PAGE))

    def values(self) -> Iterator[tuple[str, Any]]:
        """Each case with its place in the file, from a file of cases or of records."""
        values = list(super().values())
        if values and is_record(values[0][1]):
            if not any(isinstance(value, dict) and "question" in value for _, value in values):
                records = counted(len(values), "record")
                raise UserError(
                    f"{self.path} contains {records} but no questions about them",
                    'add objects like:  {"question": "Which switch failed?", "answer": "sw2"}',
                    f"the schema:  {self.mistakes.schema}",
                )

            values = list(as_cases(values))

        for location, value in values:
            yield location, self._with_sessions(Place(location, self.mistakes), value)

    def _with_sessions(self, place: Place, value: Any) -> Any:
        """A case with its chunks as turns: adjacent chunks of one session form a session."""
        if not isinstance(value, dict):
            return value

        case = dict(value)
        # Own data has these fields, but this schema does not.
        for name in case.keys() & {"operations", "meta"}:
            self.mistakes.unread[f"case.{name}"] += 1
            del case[name]

        if not isinstance(case.get("chunks"), list) or not case["chunks"]:
            return case

        names, sessions = [], []
        for name, run in groupby(map(_session_and_turn, case.pop("chunks")), key=itemgetter(0)):
            names.append(name)
            sessions.append({"turns": [turn for _, turn in run]})

        for name, _ in repeated(filter(None, names)):
            place.add(f"session {quoted(name)} is interrupted; its chunks must be consecutive")

        return case | {"chunks": sessions}


def _session_and_turn(value: Any) -> tuple[str, Any]:
    """The session that a chunk names, and the chunk as a turn of own data."""
    chunk = as_chunk(value)
    if not isinstance(chunk, dict):
        return "", chunk

    turn = {name: given for name, given in chunk.items() if given is not None}
    session = turn.pop("session") if isinstance(turn.get("session"), str | int) else ""
    if "speaker" not in turn:
        turn["speaker"] = turn.pop("source", DEFAULT_SPEAKER)

    return str(session), turn
