"""Groups messages into cases, which `dataset=json` reads. The case is the unit of independence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from memeval.datasets.grouping import group
from memeval.datasets.importing.message import ImportLog, Message
from memeval.datasets.importing.times import iso_time
from memeval.datasets.io.questions import in_utc
from memeval.errors import UserError
from memeval.text.shown import one_line

MIN_GLOBAL = 16
"""Minimum length of an id that is assumed to be unique across conversations."""
SCOPES = ("conversation", "session", "thread")
"""Keys of the messages among which a shorter id is unique."""
ALL = "all"
"""Value of `by` that groups everything into one case."""
NO_ZONE = "times without a zone as UTC, because others in the case have one"


def cut_by_key(messages: Sequence[Message], by: str, log: ImportLog) -> dict[str, list[Message]]:
    """The messages of each case, by case id in order of first appearance.

    Raises `UserError` listing the possible groupings if no message can be grouped this way.
    """
    if by == ALL:
        return {ALL: list(messages)}

    groups: dict[str, list[Message]] = {}
    for message in messages:
        case_id = _key_value(message.keys, by)
        if case_id:
            groups.setdefault(case_id, []).append(message)
        else:
            log.leave_out(f"messages without a {one_line(by, 40)}")

    if not groups:
        names = Counter(chain.from_iterable(message.keys for message in messages))
        shown = ", ".join(one_line(name, 40) for name, _ in names.most_common(20))
        raise UserError(
            f"--case: no message has the field '{one_line(by, 60)}'; the fields are {shown}."
        )

    return groups


def cut_windows(
    messages: Sequence[Message], count: int, log: ImportLog
) -> dict[str, list[Message]]:
    """Disjoint time spans with about equal numbers of messages, by id.

    Raises `UserError` if `count` is not between 1 and the number of messages.
    """
    if not 1 <= count <= len(messages):
        raise UserError(
            f"--windows must be from 1 to {len(messages):,}, the number of messages, not {count:,}"
        )

    timed = _with_session_times(messages)
    if all(time == datetime.min for time, _ in timed):
        log.note_conversion(
            "messages in the order of the file, because no time is known", len(messages)
        )

    timed.sort(key=itemgetter(0))
    windows: dict[str, list[Message]] = {}
    for position, (_, message) in enumerate(timed):
        number = position * count // len(timed) + 1
        windows.setdefault(f"window {number:0{len(str(count))}}", []).append(message)

    return windows


def sorted_by_time(messages: Sequence[Message], log: ImportLog) -> list[Message]:
    """The messages, each session in order of time, for formats without a defined order.

    A message without a time follows the message before it.
    """
    ordered = list(messages)
    positions = group((message.session, position) for position, message in enumerate(messages))
    for session_positions in positions.values():
        timed = _with_times(messages[position] for position in session_positions)
        by_time = sorted(timed, key=itemgetter(0))
        if by_time == timed:
            continue

        # Many exports start with the newest message: then messages of equal time are also reversed.
        if timed == sorted(timed, key=itemgetter(0), reverse=True):
            by_time = timed[::-1]

        log.note_conversion("sessions sorted by time")
        for position, (_, message) in zip(session_positions, by_time, strict=True):
            ordered[position] = message

    return ordered


def case_of(
    case_id: str,
    messages: Sequence[Message],
    questions: Sequence[Mapping[str, Any]],
    log: ImportLog,
) -> dict[str, Any]:
    """A case in the schema of `dataset=json`, with sessions in order of their starts."""
    asked = [iso_time(str(question.get("time", ""))) for question in questions]
    times = filter(None, chain((message.time for message in messages), asked))
    by_zone = Counter(time.tzinfo is not None for time in times)
    has_zone = by_zone[True] > 0
    if has_zone and by_zone[False]:
        log.note_conversion(NO_ZONE, by_zone[False])

    sessions = _sessions(messages, log)
    starts = _with_times(map(_first_timed, sessions))
    ordered = sorted(zip(starts, sessions, strict=True), key=lambda pair: pair[0][0])
    writer = _TurnWriter(has_zone=has_zone, log=log)
    written = [writer.session(session) for _, session in ordered]
    dated: list[Mapping[str, Any]] = []
    for question, time in zip(questions, asked, strict=True):
        if has_zone and time is not None and time.tzinfo is None:
            dated.append({**question, "time": f"{time.isoformat()}Z"})
        else:
            dated.append(question)

    return {"case_id": case_id, "sessions": written, "questions": dated}


class _TurnWriter:
    """Writes the sessions of a case, the earliest first."""

    def __init__(self, *, has_zone: bool, log: ImportLog) -> None:
        self.ids: set[str] = set()
        self.sessions = 0
        self.time_form = "%Y-%m-%dT%H:%M:%SZ" if has_zone else "%Y-%m-%dT%H:%M:%S"
        self.log = log

    def session(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A session; times out of order within it are left out."""
        self.sessions += 1
        turns = []
        latest = datetime.min
        for number, message in enumerate(messages, start=1):
            turn_id = self._id(message, number)
            turn = {"id": turn_id, "speaker": message.speaker, "text": message.text}
            turns.append(turn)
            if message.time is None:
                continue

            time = in_utc(message.time).replace(microsecond=0)
            if time < latest:
                self.log.leave_out("times out of order (their messages are kept)")
                continue

            latest = time
            turn["time"] = time.strftime(self.time_form)

        title = messages[0].title
        return {"turns": turns} if title is None else {"meta": {"title": title}, "turns": turns}

    def _id(self, message: Message, number: int) -> str:
        if message.message_id and message.message_id not in self.ids:
            self.ids.add(message.message_id)
            return message.message_id
        if message.message_id:
            self.log.note_conversion("ids already taken by another message, under new ids")

        turn_id = f"s{self.sessions}t{number}"
        while turn_id in self.ids:
            turn_id += "~"

        self.ids.add(turn_id)
        return turn_id


def _key_value(keys: Mapping[str, str], by: str) -> str:
    """The value of a key, whose name may differ in upper and lower case; empty if there is none."""
    if by in keys:
        return keys[by]

    for name, value in keys.items():
        if name.lower() == by.lower():
            return value

    return ""


def _with_times(messages: Iterable[Message]) -> list[tuple[datetime, Message]]:
    """Each message with its time in UTC; one without a time takes that of the message before."""
    timed, latest = [], datetime.min
    for message in messages:
        if message.time is not None:
            latest = in_utc(message.time).replace(microsecond=0)

        timed.append((latest, message))

    return timed


def _with_session_times(messages: Sequence[Message]) -> list[tuple[datetime, Message]]:
    """Like `_with_times`, but a first message of a session without a time takes the first time
    of its session instead of that of a message of another session.
    """
    starts: dict[str, datetime] = {}
    for message in messages:
        if message.time is not None:
            starts.setdefault(message.session, message.time)

    dated = []
    for message in messages:
        start = starts.pop(message.session, None)
        dated.append(message if message.time is not None else replace(message, time=start))

    times = _with_times(dated)
    return [(time, message) for (time, _), message in zip(times, messages, strict=True)]


def _first_timed(session: Sequence[Message]) -> Message:
    """The first message of a session that has a time, else the first."""
    return next((message for message in session if message.time is not None), session[0])


def _sessions(messages: Sequence[Message], log: ImportLog) -> list[list[Message]]:
    """The sessions, without messages that repeat id, speaker and text of an earlier one."""
    seen: set[tuple[str, ...]] = set()
    sessions: dict[str, list[Message]] = {}
    for message in messages:
        given = message.message_id or ""
        # A short id such as 1 is unique only within its conversation, or only within its session.
        scope: tuple[str, ...] = ()
        if len(given) < MIN_GLOBAL:
            scope = tuple(message.keys.get(name, "") for name in SCOPES)

        known = (*scope, given, message.speaker, message.text)
        if given and known in seen:
            log.leave_out("messages seen before")
            continue

        seen.add(known)
        sessions.setdefault(message.session, []).append(message)

    return list(sessions.values())
