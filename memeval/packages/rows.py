"""The rows of a package: content of their files beyond that of the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.packages.form import ANSWERS, INGESTS, TEXTS, VERDICTS, entry_of
from memeval.packages.read import Package
from memeval.pipeline.execute.rows import is_about
from memeval.pipeline.verify.sound import Look
from memeval.records import Usage
from memeval.results import AnswerRow, IngestRow, Record, VerdictRow
from memeval.results.fields import as_read, read_json
from memeval.results.rows import case_of_ingest
from memeval.results.run import Run
from memeval.results.steps import model_texts, tool_texts
from memeval.results.store import R, SoundRows, StoredRow
from memeval.results.texts import Texts
from memeval.text.shown import counted, one_line


class PackagedRows:
    """The rows of a packaged run, by repeat and id."""

    def __init__(self, package: Package, run: Run, look: Look) -> None:
        """`look` has read the rows, which several runs of the package may share."""
        raw = package.folder / "package"
        lines = {
            name: list(_parsed(raw / entry_of(run.key, name)))
            for name in (ANSWERS, VERDICTS, INGESTS)
        }
        self.sequences = {name: _ids(rows) for name, rows in lines.items()}
        self.answers: dict[tuple[int, str], AnswerRow] = {}
        self.ingests: dict[tuple[int, str], IngestRow] = {}
        self.verdicts: dict[tuple[int, str], VerdictRow] = {}
        for number, ids in enumerate(self.sequences[ANSWERS]):
            rows = _rows_of(look.answers, number)
            answers = [row for name in ids if isinstance(row := rows.get(name), AnswerRow)]
            self.answers |= {(number, row.id): row for row in answers}

        for number, ids in enumerate(self.sequences[INGESTS]):
            rows = _rows_of(look.answers, number)
            ingests = [row for name in ids if isinstance(row := rows.get(name), IngestRow)]
            self.ingests |= {(number, row.id): row for row in ingests}

        for number, ids in enumerate(self.sequences[VERDICTS]):
            judged = _rows_of(look.verdicts, number)
            self.verdicts |= {(number, name): judged[name] for name in ids if name in judged}

        self.others = _others(lines[ANSWERS], self.answers)
        """Rows with unknown members."""
        self.others += _others(lines[VERDICTS], self.verdicts)
        self.others += _others(lines[INGESTS], self.ingests)

    @property
    def usages(self) -> list[Usage]:
        """All of the run's."""
        rows: list[AnswerRow | VerdictRow | IngestRow] = [*self.answers.values()]
        rows += [*self.verdicts.values(), *self.ingests.values()]
        return [usage for row in rows for usage in row.usage]

    @property
    def references(self) -> set[str]:
        """Of the texts that the answers refer to."""
        found: set[str | None] = set()
        for row in self.answers.values():
            found |= {row.context, *(message.text for message in row.prompt)}
            found |= {chunk.text for chunk in row.retrieved or ()}
            found.update(model_texts(row.steps), tool_texts(row.steps))
        for ingest in self.ingests.values():
            for session in ingest.written.sessions if ingest.written is not None else ():
                found.update(model_texts(session.made), tool_texts(session.made))

        return {ref for ref in found if ref is not None}

    def problems(self, records: Sequence[Record]) -> Iterator[str]:
        """Rows too many, too few, in another order, or about another answer."""
        repeats = sorted({record.repeat for record in records})
        asked = [[one.question_id for one in records if one.repeat == own] for own in repeats]
        if self.sequences[ANSWERS] != asked:
            yield f"{ANSWERS} does not contain one row per record, in order"

        for number, ids in enumerate(self.sequences[VERDICTS]):
            known, judged = asked[number] if number < len(asked) else [], set(ids)
            if ids != [name for name in known if name in judged]:
                yield f"{VERDICTS} contains rows of other questions, or in a different order"

        cases = {record.case_id for record in records}
        for ids in self.sequences[INGESTS]:
            if len(ids) != len(set(ids)) or None in [case_of_ingest(name, cases) for name in ids]:
                yield f"{INGESTS} contains rows of other conversations, or duplicates"

        if self.others:
            yield f"{counted(len(self.others), 'row')} with unknown members"

        for place, verdict in self.verdicts.items():
            answer = self.answers.get(place)
            if answer and not is_about(verdict, answer):
                yield f"the verdict on {one_line(verdict.id, 60)} is about a different answer"


def _rows_of(repeats: Sequence[SoundRows[R] | None], number: int) -> Mapping[str, R]:
    rows = repeats[number] if number < len(repeats) else None
    return {} if rows is None else rows.rows


def _parsed(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
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


def _others(
    lines: Sequence[tuple[int, dict[str, Any]]], rows: Mapping[tuple[int, str], StoredRow]
) -> list[str]:
    others = []
    for number, line in lines:
        row = rows.get((number, str(line.get("id"))))
        content = {name: value for name, value in line.items() if name != "seal"}
        if row is not None and content != as_read(row.to_json()):
            others.append(row.id)

    return others


def _ids(lines: Sequence[tuple[int, dict[str, Any]]]) -> list[list[str]]:
    ids: list[list[str]] = []
    for number, row in lines:
        while len(ids) <= number:
            ids.append([])

        ids[number].append(str(row.get("id")))

    return ids


def text_problems(package: Package, used: set[str]) -> Iterator[str]:
    """Texts that are missing, that no row refers to, or in another order."""
    path = package.folder / "package" / TEXTS
    ids, parts = [], {}
    for line in path.read_bytes().splitlines():
        try:
            entry = dict(read_json(line))
        except (ValueError, TypeError, RecursionError):
            yield f"{TEXTS}: a line is not an object"
            return

        ids.append(str(entry.get("id")))
        parts[ids[-1]] = [str(part) for part in entry.get("parts") or ()]

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
