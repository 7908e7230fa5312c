"""PersonaMem's two files: a CSV with one question per row, and JSON lines with the conversations
that the questions share.
"""

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from memeval.datasets.io.fields import Fields, quoted
from memeval.datasets.io.lines import parse_lines
from memeval.datasets.io.tables import read_table
from memeval.errors import UserError
from memeval.records import ChoiceLabels, EvalQuestion, Session

COLUMNS = (
    "question_id",
    "question_type",
    "topic",
    "user_question_or_message",
    "correct_answer",
    "all_options",
    "shared_context_id",
    "end_index_in_shared_context",
)
"""Columns that are read; the others say how long the context is and how far back the answer."""
ROLES = ("system", "user", "assistant")
MAX_CHOICES = 26
INSTRUCTION = (
    "The message is from the user whose conversations these are. Choose the response that suits "
    "this user best by now."
)

_LABEL = re.compile(r"\s*\(([a-z])\)\s*(.*)", re.DOTALL)
_LETTER = re.compile(r"\s*\(?\s*([A-Za-z])\s*\)?\s*")
_INDEX = re.compile(r"\s*([0-9]{1,12})\s*")


class PersonaMemRow(Struct, frozen=True):
    """One question and its position in the conversation."""

    fields: Fields
    question: EvalQuestion
    context_id: str
    end: int
    """Number of messages of the conversation before the question."""


Message = tuple[str, str]
"""Role and text of a message."""


def read_rows(content: bytes, path: Path, *, instruction: bool) -> list[PersonaMemRow]:
    """The questions in the file's order. Raises `UserError` naming line and column."""
    rows = [_row(fields, instruction=instruction) for fields in read_table(content, path, COLUMNS)]

    seen: set[str] = set()
    for row in rows:
        row.fields.check_new("question_id", row.question.question_id, seen)

    return rows


def _row(fields: Fields, *, instruction: bool) -> PersonaMemRow:
    choices = _choices(fields)
    right = _right(fields, len(choices))
    question = EvalQuestion(
        question_id=fields.answer("question_id").strip(),
        text=fields.answer("user_question_or_message"),
        category=fields.answer("question_type").strip(),
        # Without evidence: the rows say how far back the reference is, but not which message it
        # is.
        gold=(choices[right],),
        choices=choices,
        right_choices=(right,),
        choice_labels=ChoiceLabels.LETTERS,
        instruction=INSTRUCTION if instruction else "",
        # A slash would divide the name of the facet's metrics.
        facets={"topic": fields.answer("topic").strip().replace("/", "-")},
    )
    return PersonaMemRow(
        fields=fields,
        question=question,
        context_id=fields.answer("shared_context_id").strip(),
        end=_end(fields),
    )


def _choices(fields: Fields) -> tuple[str, ...]:
    """The texts of the options, without the letter in front of each."""
    listed = _python_list(fields)
    if not 2 <= len(listed) <= MAX_CHOICES:
        raise fields.wrong("all_options", f"has {len(listed)} options, not 2 to {MAX_CHOICES}")

    choices = []
    for position, option in enumerate(listed):
        expected = chr(ord("a") + position)
        match = None
        if isinstance(option, str):
            match = _LABEL.fullmatch(option)

        if match is None or match[1] != expected or not match[2].strip():
            raise fields.wrong(
                "all_options", f"contains {quoted(option)} instead of '({expected}) …'"
            )

        choices.append(match[2].strip())

    return tuple(choices)


def _python_list(fields: Fields) -> Sequence[object]:
    """A list in Python syntax, which the file uses for its options."""
    text = fields.answer("all_options")
    try:
        with warnings.catch_warnings():
            # Python warns of a backslash in an option that escapes nothing.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None

    if not isinstance(value, list):
        raise fields.wrong("all_options", f"is {quoted(text)}, not a list such as ['(a) …']")

    return value


def _right(fields: Fields, count: int) -> int:
    text = fields.answer("correct_answer")
    match = _LETTER.fullmatch(text)
    position = ord(match[1].lower()) - ord("a") if match else count
    if position >= count:
        raise fields.wrong("correct_answer", f"is {quoted(text)}, not the letter of an option")

    return position


def _end(fields: Fields) -> int:
    name = "end_index_in_shared_context"
    text = fields.answer(name)
    match = _INDEX.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise fields.wrong(name, f"is {quoted(text)}, not a number of messages, 1 or more")

    return int(match[1])


def read_contexts(content: bytes, path: Path) -> Mapping[str, tuple[Message, ...]]:
    """The conversations by id. Raises `UserError` naming the line and the invalid message."""
    contexts: dict[str, tuple[Message, ...]] = {}
    for fields in parse_lines(content.split(b"\n"), path):
        if len(fields.values) != 1:
            raise UserError(
                f"{path}: {fields.record} must map one id to its conversation, but has "
                f"{len(fields.values)} ids."
            )

        (context_id,) = fields.values
        if context_id in contexts:
            raise UserError(
                f"{path}: {fields.record}: conversation {quoted(context_id)} occurs twice."
            )

        messages = fields.objects(context_id, f"{fields.record}[{{}}]")
        contexts[context_id] = tuple(map(_message, messages))

    if not contexts:
        raise UserError(f"{path} contains no conversations.")

    return contexts


def _message(fields: Fields) -> Message:
    return fields.one_of("role", ROLES), fields.text("content")


def read_sessions(messages: Sequence[Message], *, persona: bool) -> tuple[Session, ...]:
    """The sessions of a conversation or its beginning; each `system` message starts a session.

    Without `persona`, the system messages, which describe the user, are left out. The file has no
    times.
    """
    blocks: list[list[Message]] = []
    for message in messages:
        # A system message describes the user. The official runner sends it to the model, too.
        is_system = message[0] == "system"
        if is_system or not blocks:
            blocks.append([])

        if persona or not is_system:
            blocks[-1].append(message)

    kept = list(filter(None, blocks))
    return tuple(Session.of(f"s{number}", block) for number, block in enumerate(kept, start=1))
