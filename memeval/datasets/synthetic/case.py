"""Builds one synthetic case: plants its facts at their depths, fills the rest with talk, and
computes the golds.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any

from msgspec import Struct, field

from memeval.config.schema import PREPARE, at
from memeval.datasets.settings import DatasetSettings
from memeval.datasets.synthetic.plan import Planner
from memeval.datasets.synthetic.plant import ABS, Plant, Statement
from memeval.datasets.synthetic.talk import Talk
from memeval.datasets.synthetic.words import WORDS
from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase, EvalQuestion, Session, Turn, format_time

ACQUAINTANCES = 24
"""People that the speakers know."""
DAYS_BETWEEN, LONGEST_YEARS = 2.5, 3
"""Average days between sessions, and maximum years that a conversation spans: longer conversations
have their sessions closer together.
"""
TOKENS_PER_TURN = 24
"""Tokens of an average turn, only for the calendar."""

BUCKETS = 5
"""Parts of the haystack by which depths are distinguished."""
OVERHEAD = 2
"""Tokens of a speaker's name and the colon."""
SHORTEST = 4
"""Tokens of the shortest turn."""
PIECE = re.compile(r"\w+|[^\w\s]")
"""A token of the offline count."""
StatementKey = tuple[int, int]
"""Index of the plant that a statement belongs to, and index of the statement in the plant."""


@dataclass(frozen=True)
class SyntheticSettings(DatasetSettings):
    tokens: int = at(PREPARE, 20_000, least=10, most=10_000_000)
    """Size of each haystack, 10 to 10 million, by the offline count of `speaker: text` over its
    turns.
    """
    n_cases: int = at(PREPARE, 4, least=1)
    questions_per_case: int = at(PREPARE, 30, least=1, most=200)
    """Maximum questions per case, 1 to 200; a haystack too small for all of the facts has fewer."""
    turns_per_session: int = at(PREPARE, 20, least=1)
    distractors: float = at(PREPARE, 0.1, least=0, most=0.5)
    """Share of the chat's turns that say something like a planted fact about other people, or
    mention a subject of the questions; 0 to 0.5.
    """
    seed: int = at(PREPARE, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.generating.items():
            if self.path and value != DEFAULTS[name]:
                raise UserError(
                    f"dataset.{name} sets what is generated, but dataset.path={self.path} reads a "
                    "file.",
                    "leave one of them out",
                )

    @property
    def generating(self) -> dict[str, Any]:
        """The settings that affect the generation."""
        return {name: getattr(self, name) for name in DEFAULTS}


_SHARED = {field.name for field in fields(DatasetSettings)}
DEFAULTS: Mapping[str, Any] = {
    field.name: field.default for field in fields(SyntheticSettings) if field.name not in _SHARED
}
"""The default of each setting that affects the generation."""


class StatementPosition(Struct, frozen=True):
    turn_id: str
    time: datetime
    position: int
    """Tokens before it."""


def make_case(number: int, settings: SyntheticSettings) -> EvalCase:
    """The case with a number from 1. The same arguments give the same case in any process."""
    case_id, rng = f"synthetic-{number}", Random(f"{settings.seed}/{number}")
    speakers = (rng.choice(WORDS.speakers[::2]), rng.choice(WORDS.speakers[1::2]))
    people = tuple(rng.sample(WORDS.people, ACQUAINTANCES))
    planner = Planner(rng=rng, speakers=speakers, people=people, number=number)
    plants = planner.plants(
        settings.questions_per_case,
        settings.tokens,
        lambda statement: tokens_of_statement(speakers, statement),
    )
    talk = Talk(rng, planner.people, planner.claimed, planner.values, settings.distractors)
    haystack = Haystack(rng=rng, speakers=speakers, settings=settings, talk=talk)
    due = []
    for index, plant in enumerate(plants):
        for nth, statement in enumerate(plant.statements):
            due.append((statement, (index, nth)))

    positions = haystack.build(due)
    questions = []
    for index, plant in enumerate(plants):
        plant_positions = [positions[index, nth] for nth in range(len(plant.statements))]
        question_id = f"{case_id}/q{index}"
        questions.append(complete_question(plant, plant_positions, question_id, haystack.position))

    return EvalCase(
        case_id=case_id,
        sessions=tuple(haystack.sessions),
        questions=tuple(questions),
        speakers=speakers,
    )


class Haystack(Struct):
    """The sessions of a case under construction."""

    rng: Random
    speakers: tuple[str, str]
    settings: SyntheticSettings
    talk: Talk
    sessions: list[Session] = field(default_factory=list)
    position: int = 0
    """Tokens so far."""
    _waiting: list[tuple[Statement, StatementKey]] = field(default_factory=list)
    """Statements that are not placed yet, the next one last."""
    _reserved_tokens: int = 0
    """Tokens that the waiting statements will take."""
    _positions: dict[StatementKey, StatementPosition] = field(default_factory=dict)

    def build(
        self, due: Iterable[tuple[Statement, StatementKey]]
    ) -> Mapping[StatementKey, StatementPosition]:
        """Fills the sessions, and returns the turn, time and position of each statement.

        A statement is placed at its depth, or sooner if the remaining statements would not fit
        otherwise; the talk is cut to the remaining size.
        """
        # Descending, because the next statement is popped from the end.
        self._waiting = sorted(due, key=lambda item: (item[0].depth, item[1]), reverse=True)
        for statement, _ in self._waiting:
            self._reserved_tokens += tokens_of_statement(self.speakers, statement)

        speaker, clock = 0, self._session_starts()
        while self._unfinished:
            started_at, turns = next(clock), list[Turn]()
            while self._unfinished and len(turns) < self.settings.turns_per_session:
                turn_id = f"D{len(self.sessions) + 1}:{len(turns) + 1}"
                speaker, text = self._next(speaker, turn_id, started_at)
                name = self.speakers[speaker]
                turns.append(Turn(turn_id=turn_id, speaker=name, text=text, time=started_at))
                speaker = 1 - speaker

            session_id = f"s{len(self.sessions) + 1}"
            session = Session(session_id=session_id, started_at=started_at, turns=tuple(turns))
            self.sessions.append(session)

        return self._positions

    @property
    def _unfinished(self) -> bool:
        """Whether statements are waiting, or there is room for another turn."""
        return bool(self._waiting) or self.settings.tokens - self.position >= SHORTEST

    def _next(self, speaker: int, turn_id: str, time: datetime) -> tuple[int, str]:
        """Speaker and text of the next turn: the statement that is due, else talk."""
        size = self.settings.tokens
        due = bool(self._waiting) and self._waiting[-1][0].depth * size <= self.position
        text = "" if due else self.talk.turn()
        cost, room = OVERHEAD + count_tokens(text), size - self.position - self._reserved_tokens
        if due or (self._waiting and cost > room):
            statement, key = self._waiting.pop()
            speaker, text = statement.speaker, statement.text
            cost = tokens_of_statement(self.speakers, statement)
            self._reserved_tokens -= cost
            self._positions[key] = StatementPosition(
                turn_id=turn_id, time=time, position=self.position
            )
        elif cost > room:
            text, cost = cut(text, room - OVERHEAD), room

        self.position += cost
        return speaker, text

    def _session_starts(self) -> Iterator[datetime]:
        turns = self.settings.tokens / TOKENS_PER_TURN
        expected = max(1.0, turns / self.settings.turns_per_session)
        minutes = min(DAYS_BETWEEN, LONGEST_YEARS * 365 / expected) * 24 * 60
        time = datetime(2023, 1, 1, 9) + timedelta(minutes=int(self.rng.random() * 100 * 24 * 60))
        while True:
            yield time
            time += timedelta(minutes=max(1, int(minutes * (0.4 + 1.2 * self.rng.random()))))


def complete_question(
    plant: Plant, positions: Sequence[StatementPosition], question_id: str, total: int
) -> EvalQuestion:
    """The question of a plant, once the positions and times of its statements are known; `total` is
    the number of tokens of the haystack.
    """
    text, gold, evidence = plant.question, plant.gold, plant.evidence
    days = []
    for turn, statement in zip(positions, plant.statements, strict=True):
        days.append((turn.time - timedelta(days=statement.days_ago)).date())

    # Which of the two came first is only known here: the days depend on the sessions' dates.
    if plant.rivals and days[0] != days[1]:
        gold = plant.rivals[days.index(min(days))]
    elif plant.rivals:
        text, evidence = plant.fallback_question, (1,)

    if days and not gold:
        gold = write_day(days[-1])

    chosen = [positions[index] for index in evidence]
    facets = {}
    if chosen:
        facets["depth"] = bucket(max(turn.position for turn in chosen), total)

    return EvalQuestion(
        question_id=question_id,
        text=text,
        category=plant.ability,
        gold=gold,
        evidence=tuple(turn.turn_id for turn in chosen),
        answerable=plant.ability != ABS,
        facets=facets,
    )


def bucket(position: int, total: int) -> str:
    """The fifth of the haystack that contains a position: `0-20%`."""
    fifth = min(BUCKETS - 1, BUCKETS * position // total)
    return f"{100 * fifth // BUCKETS}-{100 * (fifth + 1) // BUCKETS}%"


def write_day(day: date) -> tuple[str, ...]:
    """A day as answers may write it: `8 May 2023`, `May 8, 2023`, `2023-05-08`."""
    plain = format_time(datetime(day.year, day.month, day.day)).partition(" on ")[2]
    number, month, year = plain.split()
    return plain, f"{month} {number}, {year}", day.isoformat()


def tokens_of_statement(speakers: Sequence[str], statement: Statement) -> int:
    return count_tokens(f"{speakers[statement.speaker]}: {statement.text}")


def cut(text: str, tokens: int) -> str:
    last = next(islice(PIECE.finditer(text), tokens - 1, None))
    return text[: last.end()]
