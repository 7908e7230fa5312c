"""Builds one synthetic case: plants its facts at their depths, fills the rest with talk, and
computes the golds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from random import Random

from memeval.datasets.synthetic.plan import Planner
from memeval.datasets.synthetic.plant import ABS, Plant, Statement
from memeval.datasets.synthetic.talk import Talk
from memeval.datasets.synthetic.words import WORDS
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase, EvalQuestion, Session, Turn, format_time

ACQUAINTANCES = 24
"""People that the speakers know."""
DAYS_BETWEEN, LONGEST_YEARS = 2.5, 3
"""Days from session to session, and years over which a conversation stretches at most: longer ones
have their sessions closer.
"""
TOKENS_A_TURN = 24
"""Tokens of an average turn, only for the calendar."""

BUCKETS = 5
"""Parts of the haystack by which depths are distinguished."""
OVERHEAD = 2
"""Tokens of a speaker's name and the colon."""
SHORTEST = 4
"""Tokens of the shortest turn."""
PIECE = re.compile(r"\w+|[^\w\s]")
"""A token of the offline count."""
Place = tuple[int, int]
"""Which plant a statement belongs to, and which of its statements it is."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a case, and its content."""

    tokens: int
    """Of all turns as they are ingested, `speaker: text`, by the offline count."""
    questions: int
    turns_per_session: int
    distractors: float
    """Share of the talk's turns, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Said:
    """Turn, time and position of a statement."""

    turn_id: str
    time: datetime
    position: int
    """Tokens before it."""


def make_case(number: int, seed: int, size: Size) -> EvalCase:
    """The case of a number, from 1, under a seed.

    The same arguments give the same case in any process.
    """
    case_id, rng = f"synthetic-{number}", Random(f"{seed}/{number}")
    speakers = (rng.choice(WORDS.speakers[::2]), rng.choice(WORDS.speakers[1::2]))
    planner = Planner(
        rng=rng,
        speakers=speakers,
        people=tuple(rng.sample(WORDS.people, ACQUAINTANCES)),
        number=number,
    )
    plants = planner.plants(
        size.questions, size.tokens, lambda statement: tokens_of_statement(speakers, statement)
    )
    talk = Talk(rng, planner.people, planner.taken, planner.values, size.distractors)
    haystack = Haystack(rng=rng, speakers=speakers, size=size, talk=talk)
    due = []
    for index, plant in enumerate(plants):
        due += [(statement, (index, nth)) for nth, statement in enumerate(plant.statements)]

    said = haystack.build(due)

    questions = []
    for index, plant in enumerate(plants):
        question = complete_question(
            plant=plant,
            said=[said[index, nth] for nth in range(len(plant.statements))],
            question_id=f"{case_id}/q{index}",
            total=haystack.position,
        )
        questions.append(question)

    return EvalCase(
        case_id=case_id,
        sessions=tuple(haystack.sessions),
        questions=tuple(questions),
        speakers=speakers,
    )


@dataclass
class Haystack:
    """The sessions of a case under way."""

    rng: Random
    speakers: tuple[str, str]
    size: Size
    talk: Talk
    sessions: list[Session] = field(default_factory=list)
    position: int = 0
    """Tokens so far."""
    _waiting: list[tuple[Statement, Place]] = field(default_factory=list)
    """Statements that are not made yet, the next one last."""
    _owed: int = 0
    """Tokens that they will take."""
    _said: dict[Place, Said] = field(default_factory=dict)

    def build(self, due: Iterable[tuple[Statement, Place]]) -> Mapping[Place, Said]:
        """Fills the sessions, and returns the place of each statement.

        A statement is made at its depth, or sooner if the remaining statements would not fit
        otherwise; the talk is cut to the size.
        """
        # Descending, because the next statement is popped from the end.
        self._waiting = sorted(due, key=lambda item: (item[0].depth, item[1]), reverse=True)
        for statement, _ in self._waiting:
            self._owed += tokens_of_statement(self.speakers, statement)

        speaker, clock = 0, self._clock()
        while self._unfinished:
            started_at, turns = next(clock), list[Turn]()
            while self._unfinished and len(turns) < self.size.turns_per_session:
                turn_id = f"D{len(self.sessions) + 1}:{len(turns) + 1}"
                speaker, text = self._next(speaker, turn_id, started_at)
                name = self.speakers[speaker]
                turns.append(Turn(turn_id=turn_id, speaker=name, text=text, time=started_at))
                speaker = 1 - speaker

            session_id = f"s{len(self.sessions) + 1}"
            session = Session(session_id=session_id, started_at=started_at, turns=tuple(turns))
            self.sessions.append(session)

        return self._said

    @property
    def _unfinished(self) -> bool:
        """Whether there is something left to say, or room for a turn."""
        return bool(self._waiting) or self.size.tokens - self.position >= SHORTEST

    def _next(self, speaker: int, turn_id: str, time: datetime) -> tuple[int, str]:
        """Speaker and text of the next sentence: the statement that is due, else talk."""
        due = bool(self._waiting) and self._waiting[-1][0].depth * self.size.tokens <= self.position
        text = "" if due else self.talk.turn()
        cost, room = OVERHEAD + count_tokens(text), self.size.tokens - self.position - self._owed
        if due or (self._waiting and cost > room):
            statement, place = self._waiting.pop()
            speaker, text = statement.speaker, statement.text
            cost = tokens_of_statement(self.speakers, statement)
            self._owed -= cost
            self._said[place] = Said(turn_id=turn_id, time=time, position=self.position)
        elif cost > room:
            text, cost = cut(text, room - OVERHEAD), room

        self.position += cost
        return speaker, text

    def _clock(self) -> Iterator[datetime]:
        """When each session starts, in ascending order."""
        expected = max(1.0, self.size.tokens / TOKENS_A_TURN / self.size.turns_per_session)
        minutes = min(DAYS_BETWEEN, LONGEST_YEARS * 365 / expected) * 24 * 60
        time = datetime(2023, 1, 1, 9) + timedelta(minutes=int(self.rng.random() * 100 * 24 * 60))
        while True:
            yield time
            time += timedelta(minutes=max(1, int(minutes * (0.4 + 1.2 * self.rng.random()))))


def complete_question(
    plant: Plant, said: Sequence[Said], question_id: str, total: int
) -> EvalQuestion:
    """The question of a plant, once the places and times of its statements are known; `total` is
    the number of the haystack's tokens.
    """
    text, gold, evidence = plant.question, plant.gold, plant.evidence
    days = [
        (turn.time - timedelta(days=statement.days_ago)).date()
        for turn, statement in zip(said, plant.statements, strict=True)
    ]
    # Which of the two came first is only known here: the days depend on the sessions' dates.
    if plant.rivals and days[0] != days[1]:
        gold = plant.rivals[days.index(min(days))]
    elif plant.rivals:
        text, evidence = plant.else_asked, (1,)

    if days and not gold:
        gold = write_day(days[-1])

    chosen = [said[index] for index in evidence]
    return EvalQuestion(
        question_id=question_id,
        text=text,
        category=plant.ability,
        gold=gold,
        evidence=tuple(turn.turn_id for turn in chosen),
        answerable=plant.ability != ABS,
        facets={"depth": bucket(max(turn.position for turn in chosen), total)} if chosen else {},
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
    end = next(
        match.end() for index, match in enumerate(PIECE.finditer(text), start=1) if index == tokens
    )
    return text[:end]
