"""LoCoMo-MC10's schema: one JSON line per question, each with its whole haystack.

The lines of one conversation become one case.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter

from msgspec import structs

from memeval.datasets.io.fields import SHOWN, Fields, quoted
from memeval.datasets.locomo.names import ADVERSARIAL, LOCOMO_NAMES
from memeval.datasets.longmemeval.schema import haystack
from memeval.records import CategoryId, EvalCase, EvalQuestion, Session
from memeval.text.shown import one_line

TYPES: Mapping[str, CategoryId] = {
    name: category for category, name in LOCOMO_NAMES["mc10"].items()
}
"""LoCoMo's category by the file's `question_type`, which follows one of the wrong namings."""

MAX_CHOICES = 10
"""Limited because a reply names a choice by one digit."""

SUMMARIES = "haystack_session_summaries"
# The summaries need not be equal: those of a conversation's first line are used.
DATES = "haystack_session_datetimes"
HAYSTACK = ("haystack_session_ids", DATES, "haystack_sessions")
ROLES = ("user", "assistant")

_ID = re.compile(r"(?P<conversation>.+)_q[0-9]{1,6}")
_SESSION = re.compile(r"session_([1-9][0-9]{0,5})")
_SPEAKER = re.compile(r"\[([^\[\]\n]{1,80})\]: ?")


def read_cases(objects: Iterable[Fields]) -> Iterator[EvalCase]:
    """One case per conversation, as soon as its lines end; only one haystack is in memory at a
    time.

    Raises `UserError` for a line that does not parse, for a question that occurs twice, and for a
    conversation whose lines are not consecutive or have different haystacks.
    """
    ended: set[str] = set()
    # 1,986 rows, but ten conversations: each is ingested once.
    for conversation, group in groupby(map(_by_conversation, objects), key=itemgetter(0)):
        rows = (row for _, row in group)
        first = next(rows)
        if conversation in ended:
            raise first.wrong(
                "question_id",
                f"returns to {quoted(conversation)}: the lines of a conversation must follow one "
                "another",
            )

        ended.add(conversation)
        yield _case(conversation, first, rows)


def _by_conversation(fields: Fields) -> tuple[str, Fields]:
    """The conversation of a line, and the line, whose errors now name the question."""
    question_id = fields.text("question_id")
    match = _ID.fullmatch(question_id)
    if match is None:
        raise fields.wrong("question_id", f"is {quoted(question_id)}, not an id such as conv-26_q0")

    return match["conversation"], structs.replace(fields, record=f"{fields.record}, {question_id}")


def _case(conversation: str, first: Fields, others: Iterable[Fields]) -> EvalCase:
    sessions = tuple(_sessions(first))
    speakers: dict[str, None] = {}
    for session in sessions:
        speakers.update(dict.fromkeys(turn.speaker for turn in session.turns))

    seen: set[str] = set()
    questions: list[EvalQuestion] = []
    for row in chain([first], others):
        row.check_new("question_id", row.text("question_id"), seen)
        for name in HAYSTACK:
            if row.items(name) != first.values[name]:
                raise row.wrong(
                    name,
                    f"differs from that of {one_line(questions[0].question_id, SHOWN)}: all "
                    "questions of a conversation share one haystack",
                )

        questions.append(_question(row))

    return EvalCase(
        case_id=conversation,
        sessions=sessions,
        questions=tuple(questions),
        speakers=tuple(speakers),
    )


def _sessions(row: Fields) -> Iterator[Session]:
    numbers = [_number(row, session_id) for session_id in row.texts("haystack_session_ids")]
    if not numbers:
        raise row.wrong("haystack_session_ids", "is empty")
    if numbers != sorted(set(numbers)):
        raise row.wrong("haystack_session_ids", "must be sorted by number, without duplicates")

    summaries = _summaries(row, len(numbers))
    dated = haystack(row, DATES, datetime.fromisoformat, "2023-05-08T13:56:00")
    for number, summary, (_, time, turns) in zip(numbers, summaries, dated, strict=True):
        # LoCoMo's own turn ids, so that its evidence can be joined.
        spoken = map(_split_speaker, turns)
        session = Session.of(f"s{number}", spoken, time=time, ids=f"D{number}:")
        yield replace(session, summary=summary.strip())


def _summaries(row: Fields, count: int) -> list[str]:
    """The summary of each session; empty strings if the file does not have exactly one for each."""
    texts = [""] * count
    summaries = row.values.get(SUMMARIES)
    # Most runs need no summaries: a wrong number of them is no reason to refuse the file.
    if isinstance(summaries, list) and len(summaries) == count:
        for position, summary in enumerate(summaries):
            if isinstance(summary, str):
                texts[position] = summary

    return texts


def _number(row: Fields, session_id: str) -> int:
    match = _SESSION.fullmatch(session_id)
    if match is None:
        raise row.wrong(
            "haystack_session_ids",
            f"contains {quoted(session_id)}, which is not an id such as session_1",
        )

    return int(match[1])


def _split_speaker(turn: Fields) -> tuple[str, str]:
    """Speaker and text: `[CAROLINE]: Hi!` is said by Caroline; in a turn without such a name, the
    role is the speaker.
    """
    speaker, text = turn.one_of("role", ROLES), turn.text("content")
    match = _SPEAKER.match(text)
    if match:
        speaker, text = match[1].title(), text[match.end() :]

    return speaker, text


def _question(fields: Fields) -> EvalQuestion:
    category = TYPES[fields.one_of("question_type", TYPES)]
    choices = fields.texts("choices")
    right = fields.integer("correct_choice_index")
    answer = fields.answer("answer")
    if not 2 <= len(choices) <= MAX_CHOICES:
        raise fields.wrong("choices", f"has {len(choices)} entries, not 2 to {MAX_CHOICES}")
    if not all(map(str.strip, choices)):
        raise fields.wrong("choices", "contains an empty choice")

    sessions = fields.items("haystack_session_ids")
    for name, counted in (("num_choices", len(choices)), ("num_sessions", len(sessions))):
        stated = fields.integer(name)
        if stated != counted:
            raise fields.wrong(name, f"is {stated}, but there are {counted}")

    if not 0 <= right < len(choices):
        raise fields.wrong(
            "correct_choice_index", f"is {right}, but there are {len(choices)} choices"
        )

    if choices[right] != answer:
        raise fields.wrong(
            "answer",
            f"is {quoted(answer)}, but correct_choice_index={right} points at "
            f"{quoted(choices[right])}",
        )

    answerable = category != ADVERSARIAL
    return EvalQuestion(
        question_id=fields.filled("question_id"),
        text=fields.filled("question"),
        category=category,
        gold=(answer,) if answerable else (),
        choices=tuple(choices),
        right_choices=(right,),
        answerable=answerable,
    )


def shuffle_choices(question: EvalQuestion, seed: int) -> EvalQuestion:
    """The question with its choices in an order that depends only on the seed and on its id."""
    order = list(range(len(question.choices)))
    random.Random(f"{seed} {question.question_id}").shuffle(order)
    return replace(
        question,
        choices=tuple(question.choices[position] for position in order),
        right_choices=tuple(sorted(map(order.index, question.right_choices))),
    )
