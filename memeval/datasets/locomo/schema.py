"""LoCoMo's JSON schema: one record of the file becomes one case; and the corrections of its
ground-truth audit (github.com/dial481/locomo-audit).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.datasets.grouping import repeated
from memeval.datasets.io.fields import SHOWN, Fields, quoted, read_records
from memeval.datasets.locomo.names import ADVERSARIAL
from memeval.errors import UserError
from memeval.records import MONTHS, EvalCase, EvalQuestion, Observation, Session, Turn
from memeval.text.shown import one_line

CATEGORIES = (1, 2, 3, 4, 5)
WRONG_CITATION = "WRONG_CITATION"
"""The audit's name for a question whose evidence alone is wrong."""

SESSION = re.compile(r"session_([0-9]{1,6})")
AUDITED = re.compile(r"locomo_([0-9]{1,6})_qa([0-9]{1,6})")
# 9 of the file's 2,815 strings are not turn ids: `D8:6; D9:17`, `D:11:26`, `D30:05` and others. 6
# can be repaired.
EVIDENCE = re.compile(r"D:?([0-9]+):([0-9]+)")
# Parsed by hand, not by `strptime`, whose month names depend on the locale.
DATE = re.compile(
    r"\s*([0-9]{1,2}):([0-9]{2}) ([ap]m) on ([0-9]{1,2}) ([a-z]+),? ([0-9]{4})\s*", re.IGNORECASE
)


def read_case(sample: Fields, *, captions: bool) -> EvalCase:
    case_id = sample.filled("sample_id")
    shown = one_line(case_id, SHOWN)
    talk = sample.member("conversation", f"{shown} conversation")
    sessions = []
    turn_ids = Counter[str]()
    for session in _sessions(talk, case_id, captions):
        sessions.append(_with_notes(sample, session))
        turn_ids.update(turn.turn_id for turn in session.turns)

    # Evidence names turns by these ids.
    for turn_id, count in repeated(turn_ids):
        raise talk.wrong(
            "dia_id",
            f"{quoted(turn_id)} occurs {count} times; it must be unique within the conversation",
        )

    questions = []
    for index, qa in enumerate(sample.objects("qa", f"{shown} qa[{{}}]")):
        questions.append(_question(qa, f"{case_id}/q{index}", turn_ids))

    return EvalCase(
        case_id=case_id,
        sessions=tuple(sessions),
        questions=tuple(questions),
        speakers=(talk.text("speaker_a"), talk.text("speaker_b")),
    )


def repair_evidence(strings: Sequence[str], turns: Collection[str]) -> tuple[str, ...]:
    """The ids of existing turns that the strings name in any spelling, each once, in order."""
    turn_ids: dict[str, None] = {}
    for session, turn in chain.from_iterable(map(EVIDENCE.findall, strings)):
        if len(session + turn) < 20:
            turn_id = f"D{int(session)}:{int(turn)}"
            if turn_id in turns:
                turn_ids[turn_id] = None

    return tuple(turn_ids)


def parse_date(text: str) -> datetime | None:
    """`1:56 pm on 8 May, 2023` as a time, in any locale; None if it is not such a date."""
    match = DATE.fullmatch(text)
    if not match:
        return None

    hour, minute, half, day, month, year = match.groups()
    if not 1 <= int(hour) <= 12 or month.capitalize() not in MONTHS:
        return None

    in_24 = int(hour) % 12 + 12 * (half.lower() == "pm")
    try:
        return datetime(
            int(year), MONTHS.index(month.capitalize()) + 1, int(day), in_24, int(minute)
        )
    except ValueError:
        return None


def _sessions(talk: Fields, case_id: str, captions: bool) -> Iterator[Session]:
    """The sessions that exist, by number; a date without a session is ignored."""
    # Taken from the sessions, not from their dates: conv-26 has `session_20_date_time` to
    # `session_35_date_time` without sessions.
    keys = {key: int(match[1]) for key in talk.values if (match := SESSION.fullmatch(key))}
    if not keys:
        raise UserError(f"{talk.path}: {talk.record} contains no sessions.")

    # Sorted by number, because session_10 comes before session_2 as a string.
    for key, number in sorted(keys.items(), key=lambda item: item[1]):
        if key != f"session_{number}":
            raise talk.wrong(key, f"must be written session_{number}")

        started_at = talk.time(f"{key}_date_time", parse_date, "1:56 pm on 8 May, 2023")
        own_turns = talk.objects(key, f"{one_line(case_id, SHOWN)} {key}[{{}}]")
        turns = tuple(_turn(turn, started_at, captions) for turn in own_turns)
        if turns:
            yield Session(session_id=f"s{number}", started_at=started_at, turns=turns)


def _with_notes(sample: Fields, session: Session) -> Session:
    """The session with the file's own summary and observations, if it has them."""
    key = f"session_{session.session_id.removeprefix('s')}"
    summary = _notes_field(sample, "session_summary").get(f"{key}_summary")
    if summary is not None and not isinstance(summary, str):
        raise sample.wrong("session_summary", f"has no string under {key}_summary")

    return replace(
        session,
        summary=(summary or "").strip(),
        observations=_observations(sample, session, f"{key}_observation"),
    )


def _notes_field(sample: Fields, name: str) -> Mapping[str, Any]:
    """A field of notes by session; empty if the file does not have it."""
    value = sample.values.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise sample.wrong(name, "is not an object")

    return value


def _observations(sample: Fields, session: Session, key: str) -> tuple[Observation, ...]:
    """The observations of a session, in the order of the first turn that each rests on."""
    by_speaker = _notes_field(sample, "observation").get(key) or {}
    places = {turn.turn_id: number for number, turn in enumerate(session.turns)}
    observations = []
    try:
        for speaker, notes in by_speaker.items():
            for text, cited in notes:
                strings = [cited] if isinstance(cited, str) else list(cited)
                turn_ids = repair_evidence(strings, places)
                observations.append(Observation(speaker, text.strip(), turn_ids))
    except (AttributeError, TypeError, ValueError):
        raise sample.wrong(
            "observation", f"must map speakers to lists of [text, turn id] under {key}"
        ) from None

    # A few are based only on turns of another session: they come last.
    def first_turn(observation: Observation) -> int:
        return min((places[name] for name in observation.turn_ids), default=len(places))

    return tuple(sorted(observations, key=first_turn))


def _turn(turn: Fields, time: datetime, captions: bool) -> Turn:
    caption = None
    if turn.values.get("blip_caption") is not None:
        caption = turn.text("blip_caption") or None

    return Turn(
        turn_id=turn.text("dia_id"),
        speaker=turn.text("speaker"),
        text=turn.text("text"),
        time=time,
        # 1,226 turns share an image. The words of the image search (`query`) are not shown,
        # although some golds occur nowhere else.
        caption=caption if captions else None,
    )


def _question(qa: Fields, question_id: str, turns: Collection[str]) -> EvalQuestion:
    category = qa.integer("category")
    if category not in CATEGORIES:
        raise qa.wrong("category", f"is {category}, not one of {list(CATEGORIES)}")

    answerable = category != ADVERSARIAL
    return EvalQuestion(
        question_id=question_id,
        text=qa.filled("question"),
        category=category,
        # Six golds are numbers. In category 5 the answer is missing, except for two questions.
        gold=(qa.answer("answer"),) if answerable else (),
        evidence=repair_evidence(qa.texts("evidence"), turns),
        answerable=answerable,
    )


class Correction(Struct, frozen=True):
    """Finding of the audit on one question."""

    corrupts_score: bool
    """False if only the evidence is wrong."""
    answer: str
    evidence: tuple[str, ...]


def read_corrections(
    content: bytes, path: Path, questions: Sequence[Sequence[Any]]
) -> Mapping[int, Mapping[int, Correction]]:
    """Corrections by position of the conversation and of the question in it.

    `questions` are the data file's own lists: each correction must quote the question at its
    position.
    """
    corrections: dict[int, dict[int, Correction]] = defaultdict(dict)
    for item in read_records(content, path, "correction"):
        match = AUDITED.fullmatch(item.text("question_id"))
        if not match:
            raise item.wrong("question_id", "must be locomo_<conversation>_qa<index>")

        case, position = int(match[1]), int(match[2])
        if (
            case >= len(questions)
            or position >= len(questions[case])
            or questions[case][position]["question"] != item.text("question")
        ):
            raise item.wrong("question", f"is not the question at {match[0]} of the data file")

        corrections[case][position] = Correction(
            corrupts_score=item.text("error_type") != WRONG_CITATION,
            answer=item.answer("correct_answer"),
            evidence=tuple(item.texts("correct_evidence")),
        )

    return corrections
