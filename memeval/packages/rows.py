"""The rows of a run, and the lines that a package has for them: `pack` writes these lines, and
`verify` compares them with those of a package.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from memeval.packages.form import ANSWERS, INGESTS, VERDICTS
from memeval.pipeline.execute.timeline import unasked_checkpoints
from memeval.pipeline.verify.sound import FolderCheck
from memeval.results import AnswerRow, IngestRow, Record, VerdictRow, json_line
from memeval.results.rows import case_of_ingest
from memeval.results.steps import model_texts, tool_texts
from memeval.results.store import seal_of, sealed_line
from memeval.results.texts import WITHHELD, Joined, ReadStored

Json = dict[str, Any]
Place = tuple[int, str]
"""Repeat and id of a row."""
PackedRow = AnswerRow | VerdictRow | IngestRow
STAGES = {ANSWERS: "answer", VERDICTS: "judge", INGESTS: "answer"}
"""The stage whose key is in the headers of each file."""


class RunRows:
    """The rows of a run; those of questions are in the order of its records."""

    def __init__(self, check: FolderCheck) -> None:
        """`check` has read them, from files that may also have rows of other runs."""
        self.answers: dict[Place, AnswerRow] = {}
        self.verdicts: dict[Place, VerdictRow] = {}
        self.ingests: dict[Place, IngestRow] = {}
        for number, (answers, verdicts) in enumerate(
            zip(check.answers, check.verdicts, strict=True)
        ):
            records = [record for record in check.records if record.repeat == number]
            if answers is not None:
                self._add_answers(number, records, answers.rows)

            stored = verdicts.rows if verdicts else {}
            for record in records:
                if record.question_id in stored:
                    self.verdicts[number, record.question_id] = stored[record.question_id]

    def _add_answers(
        self, number: int, records: Sequence[Record], rows: Mapping[str, AnswerRow | IngestRow]
    ) -> None:
        for record in records:
            answer = rows.get(record.question_id)
            if isinstance(answer, AnswerRow):
                self.answers[number, answer.id] = answer

        unasked = unasked_checkpoints(records)
        for row in rows.values():
            if isinstance(row, IngestRow) and case_of_ingest(row.id, unasked) is not None:
                self.ingests[number, row.id] = row

    @property
    def files(self) -> Mapping[str, Mapping[Place, PackedRow]]:
        return {ANSWERS: self.answers, VERDICTS: self.verdicts, INGESTS: self.ingests}

    def __iter__(self) -> Iterator[PackedRow]:
        for rows in self.files.values():
            yield from rows.values()

    def references(self, repeat: int) -> Iterator[tuple[str, bool]]:
        """References of the texts of a repeat's rows, each with whether the text is a reply."""
        for (number, _), ingest in self.ingests.items():
            if number == repeat and ingest.written is not None:
                for session in ingest.written.sessions:
                    # The output of a writer contains sentences of the data.
                    for ref in chain(model_texts(session.made), tool_texts(session.made)):
                        yield ref, False

        for (number, _), row in self.answers.items():
            if number == repeat:
                for ref in model_texts(row.steps):
                    yield ref, True
                for ref in _data_texts(row):
                    yield ref, False


def _data_texts(row: AnswerRow) -> Iterator[str]:
    """References of the texts of an answer that contain data."""
    yield from tool_texts(row.steps)
    for message in row.prompt:
        yield message.text
    for chunk in row.retrieved or ():
        if chunk.text is not None:
            yield chunk.text
    if row.context is not None:
        yield row.context


def row_lines(
    keys: Sequence[Json],
    name: str,
    rows: Mapping[Place, PackedRow],
    as_json: Callable[[Place, PackedRow], Json],
    seals: dict[Place, str],
) -> Iterator[bytes]:
    """The lines of a file, each made when it is needed: for each repeat a header, and the sealed
    rows, which `as_json` converts. Adds the seal of each row to `seals`.
    """
    for number, repeat in enumerate(keys):
        header = {STAGES[name]: repeat[STAGES[name]], "seed": repeat["seed"]}
        yield sealed_line(header, {"header": header})
        for place, row in rows.items():
            if place[0] == number:
                line = sealed_line(header, as_json(place, row))
                seals[place] = seal_of(line)
                yield line


def add_text(
    lines: dict[str, bytes], ref: str, read: ReadStored, show: Callable[[str], str | None]
) -> None:
    """Adds the line of a text, and those of its parts; `show` returns the text as it is shown, or
    None for one that is withheld.
    """
    waiting = [ref]
    while waiting:
        ref = waiting.pop()
        if ref in lines:
            continue

        stored = read(ref)
        if isinstance(stored, Joined):
            members: Json = {"join": stored.separator, "parts": list(stored.parts)}
            waiting += reversed(stored.parts)
        else:
            text = None if stored is None else show(stored)
            members = {WITHHELD: True} if text is None else {"text": text}

        lines[ref] = json_line({"id": ref, **members}, (",", ":")).encode()
