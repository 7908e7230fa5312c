"""MemoryAgentBench's schema: a row with a long context becomes one case with all the questions
about it.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from memeval.datasets.io.fields import KINDS, Fields, kind_of, parse_json, quoted
from memeval.datasets.io.json_stream import stream_list
from memeval.datasets.io.lines import read_lines
from memeval.datasets.longmemeval.schema import ABSTENTION, EXAMPLE, PREFERENCE, parse_date
from memeval.datasets.memory_agent_bench.metrics import (
    CHAT,
    ITEMS,
    SUMMARY,
    by_prefix,
    metric_of,
    split_of,
)
from memeval.datasets.memory_agent_bench.text import chunks
from memeval.records import EvalCase, EvalQuestion, Session

SPEAKER = "Context"
TITLES = "entity2id.json"
"""A file next to a split, with the titles for the numbers in the golds of recommendations."""
SIZE = re.compile(r"(?:^|_)(\d+k)(?:_|$)", re.IGNORECASE)
HOPS = re.compile(r"factconsolidation_(sh|mh)(?:_|$)")
INSTRUCTIONS: Mapping[str, str] = {
    "factconsolidation": (
        "Where facts contradict each other, the one with the largest number holds, whatever else "
        "you know. Give it alone."
    ),
    "ruler": "Give the answer alone, in a few words.",
    "eventqa": "Give the event that comes next, word for word as it is listed.",
    "icl": "Give the label that the examples teach, and nothing else.",
    "detective": "Give the letter and the text of the right option as they are listed.",
    "recsys": "Recommend five titles, best first, a numbered line each.",
    "infbench": "Write the whole summary.",
}
"""Instructions of the task, by prefix of a sub-data set's name; the questions do not state them."""


class BenchRow(Struct, frozen=True):
    """One row, whose outline is checked; its context is not cut yet."""

    index: int
    fields: Fields
    source: str
    """The sub-data set."""
    split: str
    metric: str
    ids: tuple[str | None, ...]
    """Ids of its questions; None for a question without one."""
    content_sha256: str
    """sha256 of its context and its questions."""


def rows(path: Path) -> Iterator[BenchRow]:
    """The rows of a file, a JSON list or JSON lines, one after the other.

    Raises `UserError` naming record and field.
    """
    for index, value in enumerate(_values(path)):
        yield _row(index, Fields.of(path, f"record {index}", value))


def _values(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        starts = (line.lstrip(b"\xef\xbb\xbf \t\r\n") for line in file)
        first = next(filter(None, starts), b"")

    if not first.startswith(b"{"):
        yield from stream_list(path)
        return

    for fields in read_lines(path):
        yield fields.values


def _row(index: int, row: Fields) -> BenchRow:
    metadata = row.member("metadata", f"{row.record} metadata")
    source = metadata.text("source")
    metric, split = metric_of(source), split_of(source)
    if metric is None or split is None:
        raise metadata.wrong(
            "source", f"is {quoted(source)}, a sub-data set without a known metric"
        )

    questions = row.texts("questions")
    count = len(questions)
    if not count or not all(map(str.strip, questions)):
        raise row.wrong("questions", "is empty, or contains an empty string")

    if len(row.items("answers")) != count:
        raise row.wrong(
            "answers", f"has {len(row.items('answers'))} lists of golds for {count} questions"
        )

    content = sha256("\0".join((row.text("context"), *questions)).encode()).hexdigest()
    return BenchRow(
        index=index,
        fields=row,
        source=source,
        split=split,
        metric=metric,
        ids=tuple(_per_question(metadata, "qa_pair_ids", count)),
        content_sha256=content,
    )


def read_case(
    row: BenchRow,
    question_ids: tuple[str, ...],
    *,
    case_id: str,
    chunk_tokens: int,
    instruction: bool,
    titles: Mapping[str, str],
) -> EvalCase:
    """The case of a row. `titles` maps the numbers in the golds of recommendations to titles."""
    parts = chunks(row.fields.filled("context"), chunk_tokens)
    session = Session.of("s1", ((SPEAKER, part) for part in parts), ids="t")
    questions = tuple(_questions(row, question_ids, instruction, titles))
    return EvalCase(case_id=case_id, sessions=(session,), questions=questions)


def _questions(
    row: BenchRow, question_ids: tuple[str, ...], instruction: bool, titles: Mapping[str, str]
) -> Iterator[EvalQuestion]:
    metadata = row.fields.member("metadata", f"{row.fields.record} metadata")
    texts = row.fields.texts("questions")
    names = ("question_types", "question_dates", "question_ids", "keypoints")
    columns = [list(_per_question(metadata, name, len(texts))) for name in names]
    types, dates, official, points = columns
    added = by_prefix(INSTRUCTIONS, row.source, "") if instruction else ""
    groups = {"split": row.split}
    for name, pattern in (("size", SIZE), ("hops", HOPS)):
        match = pattern.search(row.source)
        if match:
            groups[name] = match[1].lower()

    for position, text in enumerate(texts):
        gold = _golds(row, position, titles)
        if row.metric == SUMMARY and points[position]:
            gold = (*gold, f"Key points: {points[position]}")

        facets = dict(groups)
        if types[position]:
            facets["question_type"] = str(types[position])

        ids = f"{official[position] or ''} {row.ids[position] or ''}"
        # No evidence: the rows name none, and searching for a fact by its gold would be a guess.
        yield EvalQuestion(
            question_id=question_ids[position],
            text=text,
            instruction=added,
            category=row.source,
            gold=gold,
            asked_at=_date(metadata, f"question_dates[{position}]", dates[position]),
            answerable=row.metric != CHAT or ABSTENTION not in ids,
            whole_answer=row.metric in (ITEMS, SUMMARY) or types[position] == PREFERENCE,
            facets=facets,
        )


def _golds(row: BenchRow, position: int, titles: Mapping[str, str]) -> tuple[str, ...]:
    """The golds of a question as strings, none of them empty."""
    golds = row.fields.items("answers")[position]
    field = f"answers[{position}]"
    if not isinstance(golds, list):
        raise row.fields.wrong(field, f"is {kind_of(golds)}, not a list of golds")
    if not golds:
        raise row.fields.wrong(field, "is empty")

    texts = []
    for index, gold in enumerate(golds):
        name = f"{field}[{index}]"
        text = Fields(row.fields.path, row.fields.record, {name: gold}).answer(name).strip()
        texts.append(titles.get(text, text))

    # A number would never match a title, and every answer would be wrong.
    if row.metric == ITEMS and any(map(str.isdigit, texts)):
        raise row.fields.wrong(
            field, f"contains the number of a title, but {TITLES} next to the file does not list it"
        )

    return tuple(texts)


def read_titles(path: Path) -> Mapping[str, str]:
    """Titles by number, from a table of URLs such as `http://…/The_Sting_(film)` with their
    numbers; empty if there is no table.

    The title is the last part of the URL, without brackets at its end.
    """
    if not path.is_file():
        return {}

    table = Fields.of(path, "the table", parse_json(path.read_bytes(), path))
    return {
        str(table.get(address, "a string or a number")): _title(address) for address in table.values
    }


def _title(address: str) -> str:
    last = unquote(address.strip("<>").rstrip("/").rpartition("/")[2]).replace("_", " ")
    return re.sub(r"\s*\([^()]*\)$", "", last).strip() or last


def _per_question(metadata: Fields, name: str, count: int) -> Iterator[Any]:
    """A field of the metadata with an entry for each question; None for every question if the field
    is missing, null or empty.
    """
    values = metadata.values.get(name)
    if not values:
        yield from [None] * count
        return

    items = metadata.items(name)
    if name == "keypoints" and len(items) != count and count == 1:
        items = ["; ".join(map(str, items))]
    if len(items) != count:
        raise metadata.wrong(name, f"has {len(items)} entries for {count} questions")

    for item in items:
        text = "; ".join(map(str, item)) if isinstance(item, list) else item
        if text is not None and not isinstance(text, KINDS["a string or a number"]):
            raise metadata.wrong(name, f"contains {kind_of(text)}, not a string")

        yield text if text is None else str(text).strip() or None


def _date(metadata: Fields, name: str, text: str | None) -> datetime | None:
    if text is None:
        return None

    return metadata.time(name, parse_date, EXAMPLE, text=text)
