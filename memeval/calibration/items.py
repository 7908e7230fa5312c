"""Probe items: answers that are known to be right, or to be wrong in a known way."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.errors import UserError
from memeval.records import EvalQuestion
from memeval.results.files import reading
from memeval.text.shown import one_line

RIGHT = "right"
"""The kind of right answers. All other kinds are kinds of wrong ones."""
BUILT_IN = ("right", "specific", "vague")
"""The built-in kinds, in display order."""
LONGEST_KIND = 40
FORM = 'rows look like:  {"question_id": "demo-1/q0", "kind": "vague", "answer": "some time ago"}'


class ProbeItem(Struct, frozen=True):
    """An answer to a question of a data set."""

    question_id: str
    kind: str
    """`right`, or a kind of wrong answer such as `specific` or `vague`."""
    answer: str
    where: str
    """File and line, for errors."""


AskedItem = tuple[ProbeItem, EvalQuestion]


def read_items(path: Path, kind: str | None = None) -> list[ProbeItem]:
    """Reads JSON lines `{question_id, kind, answer}`; `hypothesis` is another name for `answer`.

    `kind` is used for rows without one. Raises `UserError` naming file, line and member.
    """
    with reading(one_line(path)):
        lines = path.read_bytes().split(b"\n")

    items = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            items.append(_item(f"{one_line(path)}, line {number}", line, kind))

    if not items:
        raise UserError(f"{one_line(path)} is empty", FORM)

    return items


def _item(where: str, line: bytes, kind: str | None) -> ProbeItem:
    try:
        # Some editors begin a file with a byte order mark.
        row: Any = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({one_line(error)})", FORM) from error

    if not isinstance(row, dict):
        raise UserError(f"{where}: not an object", FORM)

    own_kind = row.get("kind", kind)
    if own_kind is None:
        raise UserError(
            f"{where}: kind is missing", FORM, "for all rows of a file:  --items vague=FILE"
        )

    answer_name = "answer" if "answer" in row else "hypothesis"
    return ProbeItem(
        question_id=_string(row, "question_id", where),
        kind=_kind(own_kind, where),
        answer=_string(row, answer_name, where),
        where=where,
    )


def _string(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise UserError(f"{where}: {name} is missing, or is not a string", FORM)

    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{where}: {name} contains a lone surrogate (half a character)") from error

    return value


def _kind(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_KIND:
        raise UserError(
            f"{where}: kind must be a word such as right, specific or vague, not "
            f"{one_line(value, 40)}"
        )

    return one_line(value.strip(), LONGEST_KIND)


def match_questions(
    items: Sequence[ProbeItem], questions: Mapping[str, EvalQuestion]
) -> list[AskedItem]:
    """The items with their questions.

    Raises `UserError` for an item on a question that the data set does not have, or that has no
    answer in words.
    """
    matched = []
    for item in items:
        question = questions.get(item.question_id)
        if question is None:
            raise UserError(
                f"{item.where}: the data set has no question '{one_line(item.question_id)}'",
                f"this data set's ids look like:  {one_line(min(questions, default='none'))}",
                "if the items are about another data set:  dataset=NAME",
            )

        if not question.answerable or question.choices:
            raise UserError(
                f"{item.where}: question '{one_line(item.question_id)}' has no free-text answer",
                "choose a question that is neither unanswerable nor multiple choice",
            )

        matched.append((item, question))

    return matched


def ordered_kinds(kinds: Collection[str]) -> list[str]:
    """Each kind once, the built-in ones first."""
    built_in = [kind for kind in BUILT_IN if kind in kinds]
    return list(dict.fromkeys([*built_in, *kinds]))
