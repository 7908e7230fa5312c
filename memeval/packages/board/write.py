"""Writes the board's files: pages, `board.json` and a feed. The same board gives the same bytes."""

import re
from collections.abc import Iterator
from itertools import starmap, zip_longest
from pathlib import Path
from typing import Any

from msgspec import json

from memeval.errors import UserError
from memeval.metrics.formats import percent
from memeval.packages.board.entries import BASELINES
from memeval.packages.board.pictures import pictures
from memeval.packages.board.records import Board, BoardData, BoardQuestion, BoardRow, BoardTable
from memeval.packages.board.tables import protocol_members
from memeval.report.escaping import html
from memeval.report.page.write import FILES, load_template, policy, raw
from memeval.results.fields import as_plain
from memeval.results.files import as_json, writing
from memeval.text.names import text_digest
from memeval.text.shown import counted, one_line

BOARD_FILE, SCHEMA_FILE, FEED_FILE = "board.json", "board.schema.json", "feed.xml"
SIGNS = {"passed": "✓", "partly": "~", "not done": "–", "failed": "✗"}
PARTS = ("tables", "systems", "questions")
KINDS = {
    "suspect": "Suspect golds",
    "nobody": "No run is right",
    "some": "Some runs are right",
    "everybody": "All runs are right",
    "not scored": "Not scored",
}
"""Titles of the parts of a list of questions, by the share of right runs."""
MARKS = {"right": "✓", "wrong": "✗", "abstained": "–", "not scored": "?"}
LARGEST_FRONT = 145_000
"""Maximum size of the first page, in bytes."""
MAX_ON_FRONT = (90, 60, 30, 10)
"""Its rows over all tables: these numbers are tried until the page is small enough."""
MAX_OF_TABLE = 30
"""Maximum number of rows that the first page shows of one table."""
MAX_LISTED = 60
"""Maximum number of protocols that the first page lists."""
MAX_NEWS = 50
"""Maximum number of entries in the feed."""
_OURS = re.compile(r"[0-9a-f]{12}\.html")


def write_board(board: Board, folder: Path) -> None:
    """Writes the site, replacing an earlier board in the folder.

    Raises `UserError` if the folder contains something else, `StorageError` if it can't be written.
    """
    is_used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if is_used and not (folder / BOARD_FILE).is_file():
        raise UserError(
            f"board: {one_line(folder)} is not a board",
            "use another folder:  -o FOLDER",
        )

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # First of all: the same command continues a board that was not written to its end.
        (folder / BOARD_FILE).touch()
        for name in PARTS:
            part = folder / name
            part.mkdir(exist_ok=True)
            for old in part.iterdir():
                if _OURS.fullmatch(old.name):
                    old.unlink()

        for name, text in site_files(board):
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
            # A web host must be able to read it.
            (folder / name).chmod(0o644)

        folder.chmod(0o755)
        for name in PARTS:
            (folder / name).chmod(0o755)


def site_files(board: Board) -> Iterator[tuple[str, str]]:
    yield "index.html", _front(board)
    yield "matrix.html", _matrix(board)
    yield "disputes.html", _page("disputes", board, "Disputes")
    for table in board.tables:
        title = f"{table.dataset}: {counted(len(table.rows), 'run')}"
        protocol = list(protocol_members(table.protocol))
        others = [other for other in board.tables if other.dataset == table.dataset]
        if len(others) == 1:
            others = []

        page = _page(
            "table",
            board,
            title,
            up="../",
            table=table,
            protocol=protocol,
            others=others[:MAX_LISTED],
            pictures=pictures(table.rows),
        )
        yield f"tables/{table.id}.html", page

        if table.id in board.questions:
            yield from _questions(board, table, board.questions[table.id])

    for system in systems_of(board):
        yield system_file(system), _system(board, system)

    plain = as_plain(board)
    del plain["questions"], plain["known"]
    yield BOARD_FILE, as_json(plain, indent=1) + "\n"
    yield SCHEMA_FILE, as_json(json.schema(BoardData), indent=1) + "\n"
    yield FEED_FILE, feed(board)


def systems_of(board: Board) -> list[str]:
    systems: set[str] = set()
    for table in board.tables:
        systems.update(row.system for row in table.rows)

    return sorted(systems)


def system_file(system: str) -> str:
    """The file of a system's page: a digest, as a name may contain any character."""
    return f"systems/{text_digest(system)[:12]}.html"


def _questions(
    board: Board, table: BoardTable, questions: tuple[BoardQuestion, ...]
) -> Iterator[tuple[str, str]]:
    """The list of a table's questions, and a page for each."""
    title = f"{table.dataset}: {counted(len(questions), 'question')}"
    kinds: dict[str, list[BoardQuestion]] = {kind: [] for kind in KINDS}
    for question in questions:
        kinds[question.kind].append(question)

    page = _page("questions", board, title, up="../", table=table, kinds=kinds, KINDS=KINDS)
    yield f"questions/{table.id}.html", page
    systems = {row.label: row.system for row in table.rows}
    previous = None
    for question, following in zip_longest(questions, questions[1:]):
        page = _page(
            "question",
            board,
            question.id,
            up="../",
            table=table,
            question=question,
            previous=previous,
            following=following,
            systems=systems,
        )
        yield question_file(table, question), page
        previous = question


def question_file(table: BoardTable, question: BoardQuestion) -> str:
    """The file of a question's page: a digest, as an id may contain any character."""
    digest = text_digest(f"{table.id} {question.id}")
    return f"questions/{digest[:12]}.html"


def _front(board: Board) -> str:
    """The first page, with as many rows as fit."""
    for most in MAX_ON_FRONT:
        shown, room = [], most
        for table in board.tables:
            rows = _front_rows(table, min(room, MAX_OF_TABLE))
            room -= len(rows)
            if rows:
                shown.append((table, rows))

        drawn = pictures(shown[0][1]) if shown else []
        listed = board.tables[: max(most, 20)]
        page = _page("front", board, "Board", shown=shown, listed=listed, pictures=drawn)
        if len(page.encode("utf-8", "replace")) <= LARGEST_FRONT:
            break

    return page


def _front_rows(table: BoardTable, most: int) -> list[BoardRow]:
    """Baselines, and the systems with the highest accuracy, in the table's order."""
    first = sorted(table.rows, key=lambda row: row.kind == "system")[:most]
    kept = {row.key for row in first}
    return [row for row in table.rows if row.key in kept]


def _matrix(board: Board) -> str:
    matrix = []
    for system in systems_of(board):
        cells = []
        for table in board.tables:
            rows = _rows_of(system, table)
            measured = [row.accuracy for row in rows if row.valid and row.accuracy is not None]
            cells.append(max(measured, default=None))

        matrix.append((system, cells))

    return _page("matrix", board, "Systems and protocols", matrix=matrix)


def _rows_of(system: str, table: BoardTable) -> list[BoardRow]:
    return [row for row in table.rows if row.system == system]


def _system(board: Board, system: str) -> str:
    runs = []
    ids: dict[str, None] = {}
    for table in board.tables:
        rows = sorted(_rows_of(system, table), key=lambda row: (row.date, row.key))
        if rows:
            runs.append((table, rows))
            ids |= dict.fromkeys(row.package for row in rows)

    packages = list(map(board.package, ids))
    return _page("system", board, system, up="../", system=system, runs=runs, packages=packages)


def _page(kind: str, board: Board, title: str, *, up: str = "", **content: Any) -> str:
    style = "\n".join(map(_source, ("style.css", "board.css")))
    script = "\n".join(map(_source, ("board.js", "sorting.js")))
    return load_template("board.html.j2").render(
        kind=kind,
        board=board,
        title=title,
        up=up,
        style=raw(style),
        script=raw(script),
        policy=policy(style, script),
        system_file=system_file,
        question_file=question_file,
        SIGNS=SIGNS,
        MARKS=MARKS,
        BASELINES=BASELINES,
        **content,
    )


def _source(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def feed(board: Board) -> str:
    """The runs as an Atom feed (RFC 4287), the newest first."""
    rows: list[tuple[BoardRow, BoardTable]] = []
    for table in board.tables:
        rows += [(row, table) for row in table.rows]

    rows.sort(key=lambda pair: (pair[0].date, pair[0].key), reverse=True)
    updated = f"{rows[0][0].date}T00:00:00Z" if rows else "1970-01-01T00:00:00Z"
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "<title>Memory systems, measured</title>",
        "<id>urn:memeval:board</id>",
        f"<updated>{updated}</updated>",
        "<author><name>memeval</name></author>",
        '<link rel="alternate" href="index.html"/>',
    ]
    lines += starmap(_entry, rows[:MAX_NEWS])
    return "\n".join([*lines, "</feed>", ""])


def _entry(row: BoardRow, table: BoardTable) -> str:
    words = "; ".join([f"accuracy {percent(row.accuracy)} %", *row.flags, table.words])
    return (
        f"<entry><title>{html(row.label)} on {html(table.dataset)}</title>"
        f"<id>urn:memeval:run:{row.key}</id><updated>{row.date}T00:00:00Z</updated>"
        f'<link rel="alternate" href="tables/{table.id}.html"/>'
        f"<summary>{html(words)}</summary></entry>"
    )
