"""The rows of a package: content of their files beyond that of the records."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.packages.form import ANSWERS, INGESTS, TEXTS, VERDICTS
from memeval.packages.read import Package
from memeval.pipeline.execute.rows import is_about
from memeval.pipeline.execute.timeline import unasked_checkpoints
from memeval.pipeline.verify.sound import FolderCheck
from memeval.records import Usage
from memeval.results import AnswerRow, IngestRow, Record, VerdictRow
from memeval.results.fields import as_read, read_json
from memeval.results.rows import case_of_ingest
from memeval.results.run import Run
from memeval.results.steps import model_texts, tool_texts
from memeval.results.store import R, SoundRows
from memeval.results.texts import Texts
from memeval.text.shown import counted, one_line

Place = tuple[int, str]
"""Repeat and id of a row."""


class PackagedRows:
    """The rows of a packaged run."""

    def __init__(self, package: Package, run: Run, check: FolderCheck) -> None:
        """`check` has read the rows, which several runs of the package may share."""
        self.places: dict[str, list[Place]] = {}
        """The places of the rows of each file, in its order."""
        self.others: list[str] = []
        """Ids of rows with unknown members."""
        folder = package.folder / "package" / "runs" / run.key
        self.answers = self._read(folder / ANSWERS, check.answers, AnswerRow)
        self.verdicts = self._read(folder / VERDICTS, check.verdicts, VerdictRow)
        self.ingests = self._read(folder / INGESTS, check.answers, IngestRow)

    def _read(
        self, path: Path, repeats: Sequence[SoundRows[Any] | None], wanted: type[R]
    ) -> dict[Place, R]:
        """The sound rows of one file."""
        places = self.places[path.name] = []
        rows = {}
        for number, line in _parse_rows(path):
            place = (number, str(line.get("id")))
            places.append(place)
            row = None
            if number < len(repeats) and (sound := repeats[number]) is not None:
                row = sound.rows.get(place[1])
            if not isinstance(row, wanted):
                continue

            rows[place] = row
            line.pop("seal", None)
            if line != as_read(row.to_json()):
                self.others.append(row.id)

        return rows

    @property
    def usages(self) -> list[Usage]:
        return usages_of(self.answers.values(), self.verdicts.values(), self.ingests.values())

    @property
    def references(self) -> set[str]:
        return {ref for ref, _ in references(self.answers.values(), self.ingests.values())}

    def problems(self, records: Sequence[Record]) -> Iterator[str]:
        """Problems: extra or missing rows, another order, or verdicts about another answer."""
        by_repeat = sorted(records, key=lambda record: record.repeat)
        asked = [(record.repeat, record.question_id) for record in by_repeat]
        if self.places[ANSWERS] != asked:
            yield f"{ANSWERS} does not contain one row per record, in order"

        judged = set(self.places[VERDICTS])
        if self.places[VERDICTS] != [place for place in asked if place in judged]:
            yield f"{VERDICTS} contains rows of other questions, or in a different order"

        made, unasked = self.places[INGESTS], unasked_checkpoints(records)
        cases = [case_of_ingest(name, unasked) for _, name in made]
        if len(made) != len(set(made)) or None in cases:
            yield f"{INGESTS} contains rows of other conversations, or duplicates"

        if self.others:
            yield f"{counted(len(self.others), 'row')} with unknown members"

        for place, verdict in self.verdicts.items():
            answer = self.answers.get(place)
            if answer and not is_about(verdict, answer):
                yield f"the verdict on {one_line(verdict.id, 60)} is about a different answer"


def usages_of(*rows: Iterable[AnswerRow | VerdictRow | IngestRow]) -> list[Usage]:
    usages: list[Usage] = []
    for row in chain.from_iterable(rows):
        usages += row.usage

    return usages


def references(
    answers: Iterable[AnswerRow], ingests: Iterable[IngestRow]
) -> Iterator[tuple[str, bool]]:
    """References of the texts of rows, each with whether the text is a reply, and not data."""
    for ingest in ingests:
        if ingest.written is not None:
            for session in ingest.written.sessions:
                # The output of a writer contains sentences of the data.
                for ref in chain(model_texts(session.made), tool_texts(session.made)):
                    yield ref, False

    for row in answers:
        for ref in model_texts(row.steps):
            yield ref, True
        for ref in tool_texts(row.steps):
            yield ref, False
        for message in row.prompt:
            yield message.text, False
        for chunk in row.retrieved or ():
            if chunk.text is not None:
                yield chunk.text, False
        if row.context is not None:
            yield row.context, False


def _parse_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with the number of their repeat; raises `UserError` for a line that is not a row."""
    number = -1
    for line in path.read_bytes().splitlines():
        try:
            row = dict(read_json(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise UserError(f"{path.name}: {one_line(error, 200)}") from error

        if "header" in row:
            number += 1
        else:
            yield number, row


def text_problems(package: Package, used: set[str]) -> Iterator[str]:
    """Problems: texts that are missing, that no row refers to, or in another order."""
    path = package.folder / "package" / TEXTS
    ids, parts = [], {}
    for line in path.read_bytes().splitlines():
        try:
            entry = dict(read_json(line))
        except (ValueError, TypeError, RecursionError):
            yield f"{TEXTS}: a line is not an object"
            return

        ids.append(str(entry.get("id")))
        parts[ids[-1]] = list(map(str, entry.get("parts") or ()))

    if ids != sorted(set(ids)):
        yield f"{TEXTS}: a duplicate text, or a different order"
    if ids != Texts(path).references():
        yield f"{TEXTS}: a line that is not formatted as a run writes it"

    reached, left = set(), list(used)
    while left:
        ref = left.pop()
        if ref not in reached:
            reached.add(ref)
            left += parts.get(ref, ())

    if reached - set(ids):
        yield f"{TEXTS}: {counted(len(reached - set(ids)), 'text')} that rows refer to are missing"
    if set(ids) - reached:
        yield f"{TEXTS}: {counted(len(set(ids) - reached), 'text')} that no row refers to"
