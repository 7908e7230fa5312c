"""Probe items: answers that are known to be right, or to be wrong in a known way."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from memeval.datasets.io.fields import Fields, quoted
from memeval.datasets.io.lines import parse_lines
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

    try:
        items = [_item(row, kind) for row in parse_lines(lines, path)]
    except UserError as error:
        raise UserError(error.message, *error.hints, FORM) from error

    if not items:
        raise UserError(f"{one_line(path)} is empty", FORM)

    return items


def _item(row: Fields, kind: str | None) -> ProbeItem:
    own_kind = row.values.get("kind", kind)
    if own_kind is None:
        missing = row.wrong("kind", "is missing")
        raise UserError(missing.message, "for all rows of a file:  --items vague=FILE")
    if not isinstance(own_kind, str) or not own_kind.strip() or len(own_kind) > LONGEST_KIND:
        mistake = f"is {quoted(own_kind)}, not a word such as right, specific or vague"
        raise row.wrong("kind", mistake)

    answer_name = "answer" if "answer" in row.values else "hypothesis"
    return ProbeItem(
        question_id=row.text("question_id"),
        kind=one_line(own_kind.strip(), LONGEST_KIND),
        answer=row.text(answer_name),
        where=f"{one_line(row.path)}, {row.record}",
    )


def match_questions(
    items: Sequence[ProbeItem], questions: Mapping[str, EvalQuestion]
) -> list[AskedItem]:
    """The items with their questions. An item that files list twice counts once.

    Raises `UserError` for an item on a question that the data set does not have, or that has no
    answer in words.
    """
    matched: dict[tuple[str, str, str], AskedItem] = {}
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

        matched.setdefault((item.question_id, item.kind, item.answer), (item, question))

    return list(matched.values())


def ordered_kinds(kinds: Collection[str]) -> list[str]:
    """Each kind once, the built-in ones first."""
    built_in = [kind for kind in BUILT_IN if kind in kinds]
    return list(dict.fromkeys([*built_in, *kinds]))
