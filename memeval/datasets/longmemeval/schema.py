"""LongMemEval's JSON schema: one item of the file becomes one case with one question.

Systems see nothing about evidence: cases, sessions and turns get ids by position.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from memeval.datasets.io.fields import Fields, kind_of
from memeval.records import EvalCase, EvalQuestion, Session, Turn

DATE = re.compile(
    r"\s*([0-9]{4})/([0-9]{1,2})/([0-9]{1,2}) \([A-Za-z]{3}\) ([0-9]{1,2}):([0-9]{2})\s*"
)
EXAMPLE = "2023/05/30 (Tue) 23:40"
ABSTENTION = "_abs"
"""Part of the id of a question that the history does not answer."""
PREFERENCE = "single-session-preference"
"""The type of questions that ask for a recommendation."""
ABILITIES = {
    "single-session-user": "IE",
    "single-session-assistant": "IE",
    PREFERENCE: "IE",
    "multi-session": "MR",
    "temporal-reasoning": "TR",
    "knowledge-update": "KU",
}
"""Ability by question type; a question that the history does not answer counts as ABS instead,
regardless of its type.
"""

Roles = Literal["all", "user"]


class _DatedSession(Struct, frozen=True):
    """A session, with its turns of the chosen roles."""

    started_at: datetime
    turns: tuple[tuple[int, Fields], ...]
    """Each turn with its position in the whole session, starting at 1."""


def read_item(item: Fields, index: int, roles: Roles) -> tuple[EvalCase, dict[str, int]]:
    """The case of the item at `index`, and its oddities: whether its question is asked `early`,
    before a session; whether its history `repeats` a session; how many sessions are `silent`,
    without a turn of the chosen roles. Raises `UserError` naming record and field.
    """
    question_id = item.filled("question_id")
    item = Fields(path=item.path, record=f"record {index} ({question_id})", values=item.values)
    # As in the published code: no field says so. This applies to 30 of the 500 questions.
    answerable = ABSTENTION not in question_id
    dated = _sessions(item, roles)
    if not dated and answerable:
        raise item.wrong("haystack_sessions", "is empty, but the question has an answer")

    # The file is sorted by day, but not always within a day.
    ordered = sorted(dated, key=lambda session: session.started_at)
    sessions = tuple(_session(number, session) for number, session in enumerate(ordered, start=1))
    question = _question(
        item=item, question_id=question_id, answerable=answerable, evidence=_evidence(ordered)
    )
    case = EvalCase(
        # By position: the official ids of evidence sessions contain the word "answer", and those of
        # unanswerable questions "_abs".
        case_id=f"h{index}",
        sessions=sessions,
        questions=(question,),
        speakers=("user", "assistant"),
    )
    ids = item.texts("haystack_session_ids")
    asked_at = question.asked_at
    irregularities = {
        "early": int(asked_at is not None and bool(dated) and ordered[-1].started_at > asked_at),
        # One item of the published file repeats a session; ids by position keep the two apart.
        "repeats": int(len(set(ids)) < len(ids)),
        "silent": sum(not session.turns for session in dated),
    }
    return case, irregularities


def parse_date(text: str) -> datetime | None:
    """`2023/05/30 (Tue) 23:40` as a time; None if it is not such a date.

    The day of the week is ignored.
    """
    match = DATE.fullmatch(text)
    if match is None:
        return None

    year, month, day, hour, minute = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute)
    except ValueError:
        return None


def haystack(
    row: Fields, dates_name: str, parse: Callable[[str], datetime | None], example: str
) -> Iterator[tuple[str, datetime, list[Fields]]]:
    """The id, the time and the turns of each session in a row, in the file's order.

    `parse` and `example` are as in `Fields.time`. Raises `UserError` naming record and field.
    """
    ids, dates = row.texts("haystack_session_ids"), row.texts(dates_name)
    talks = row.items("haystack_sessions")
    for name, items in ((dates_name, dates), ("haystack_sessions", talks)):
        if len(items) != len(ids):
            raise row.wrong(
                name, f"has {len(items)} entries, but haystack_session_ids has {len(ids)}"
            )

    for number, turns in enumerate(talks):
        time = row.time(f"{dates_name}[{number}]", parse, example, text=dates[number])
        name, fields = f"haystack_sessions[{number}]", []
        if not isinstance(turns, list):
            raise row.wrong(name, f"is {kind_of(turns)}, not a list")

        for position, turn in enumerate(turns):
            fields.append(Fields.of(row.path, f"{row.record} {name}[{position}]", turn))

        yield ids[number], time, fields


def _sessions(item: Fields, roles: Roles) -> list[_DatedSession]:
    """The sessions in the file's order."""
    # Only checked: the evidence is the turns' own flags, which are finer than sessions.
    item.texts("answer_session_ids")
    sessions = []
    for _, started_at, turns in haystack(item, "haystack_dates", parse_date, EXAMPLE):
        kept = []
        # The official turn ids count all turns, even if only the user's are indexed.
        for position, turn in enumerate(turns, start=1):
            if roles == "all" or turn.text("role") == roles:
                kept.append((position, turn))

        sessions.append(_DatedSession(started_at, tuple(kept)))

    return sessions


def _session(number: int, dated: _DatedSession) -> Session:
    turns = []
    for position, turn in dated.turns:
        speaker, text = turn.text("role"), turn.text("content")
        turns.append(Turn(f"s{number}:{position}", speaker, text, time=dated.started_at))

    return Session(session_id=f"s{number}", started_at=dated.started_at, turns=tuple(turns))


def _evidence(ordered: Sequence[_DatedSession]) -> tuple[str, ...]:
    """Ids of the turns that are flagged as containing the answer."""
    flagged = []
    for number, dated in enumerate(ordered, start=1):
        for position, turn in dated.turns:
            flag = turn.values.get("has_answer")
            if not isinstance(flag, bool | None):
                raise turn.wrong("has_answer", f"is {kind_of(flag)}, not a boolean")
            if flag:
                flagged.append(f"s{number}:{position}")

    return tuple(flagged)


def _question(
    item: Fields, question_id: str, answerable: bool, evidence: tuple[str, ...]
) -> EvalQuestion:
    kind = item.one_of("question_type", ABILITIES)
    asked_at = None
    # The whole files never say null.
    if item.values.get("question_date", "") is not None:
        asked_at = item.time("question_date", parse_date, EXAMPLE)

    return EvalQuestion(
        question_id=question_id,
        text=item.filled("question"),
        category=kind,
        whole_answer=kind == PREFERENCE,
        # Some golds are integers. For an unanswerable question, the gold is an explanation, which
        # the judge is shown.
        gold=(item.answer("answer"),),
        evidence=evidence,
        asked_at=asked_at,
        answerable=answerable,
        facets={"ability": ABILITIES[kind] if answerable else "ABS"},
    )
