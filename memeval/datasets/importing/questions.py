"""Questions from a table, for the cases of an import."""

from collections.abc import Iterator, Mapping
from typing import Any

from memeval.datasets.importing.message import ImportLog
from memeval.datasets.importing.table import RawTable, plain_names
from memeval.datasets.importing.times import BY_FORMAT, format_of, iso_text, iso_time, read_time
from memeval.datasets.io.fields import Fields, quoted
from memeval.datasets.io.questions import QuestionEntry
from memeval.datasets.io.tables import named_cells
from memeval.errors import UserError
from memeval.text.shipped import location_of

COLUMNS = ("case_id", *(name for name in QuestionEntry.__struct_fields__ if name != "golds"))
MANY = "|"
"""Separates several answers, pieces of evidence or choices in one cell."""


def _page() -> str:
    return f"the columns:  {location_of('docs/own_data.md')}"


def read_questions(
    table: RawTable, date_format: str | None, log: ImportLog
) -> list[tuple[str, dict[str, Any]]]:
    """Each question with its case id, which is empty if the table has none.

    Raises `UserError` for an unknown column, for a row with more or fewer cells than the header,
    and for dates whose day and month can't be told apart.
    """
    names = plain_names(table.names)
    for name, plain in zip(table.names, names, strict=True):
        if plain not in COLUMNS:
            raise UserError(
                f"{table.path}: column '{name}' is not one of {', '.join(COLUMNS)}.", _page()
            )

    if "answer" not in names:
        raise UserError(f"{table.path}: column 'answer' is missing.", _page())

    rows = []
    for number, cells in table.rows:
        rows.append(named_cells(names, cells, table.path, f"row {number}"))

    location = f"{table.path}: column 'time'"
    date_format = format_of([_cell(row, "time") for row in rows], location, date_format)
    if date_format is not None:
        # It counts as used even if all times that it fits are also ISO 8601 and stay unchanged.
        log.note_conversion(BY_FORMAT.format(date_format), 0)

    return [(_cell(row, "case_id"), dict(_question(row, date_format, log))) for row in rows]


def by_case(
    questions: list[tuple[str, dict[str, Any]]], case_ids: list[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """The questions of each case. Questions without a case id are about the only case.

    Raises `UserError` for a question about an unknown case, or without a case id if several exist.
    """
    known = set(case_ids)
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for case_id, question in questions:
        if not case_id and len(case_ids) > 1:
            raise UserError(
                f"the table of questions has no case_id, but there are {len(case_ids):,} cases.",
                _page(),
            )

        named = case_id or case_ids[0]
        if named not in known:
            raise UserError(
                f"a question is about the case {quoted(named)}, which has no messages.",
                _page(),
                "the cases of --case or --windows may differ from those in the questions",
            )

        grouped.setdefault(named, []).append(question)

    return grouped


def _question(row: Fields, date_format: str | None, log: ImportLog) -> Iterator[tuple[str, Any]]:
    for name in ("id", "question", "category"):
        if value := _cell(row, name):
            yield name, value

    if value := _cell(row, "time"):
        text = iso_text(value)
        if iso_time(value) is None and (time := read_time(value, log, date_format)):
            text = time.isoformat()

        # A time that can't be read stays as it is: the check of the file reports it.
        yield "time", text

    yield "answer", _parts(row, "answer")
    for name in ("evidence", "choices"):
        if parts := _parts(row, name):
            yield name, parts

    # Spreadsheets write TRUE in upper case.
    if flag := _cell(row, "multi_select").lower():
        if flag not in ("true", "false"):
            raise row.wrong("multi_select", f"is {quoted(flag)}, not true or false")

        yield "multi_select", flag == "true"


def _parts(row: Fields, name: str) -> list[str]:
    return list(filter(None, map(str.strip, _cell(row, name).split(MANY))))


def _cell(row: Fields, name: str) -> str:
    """A cell; empty if the table has no such column."""
    return str(row.values.get(name, "")).strip()
