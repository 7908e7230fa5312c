"""Source of each drafted question: its case, its kind, and the parts of its sessions."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from random import Random

from msgspec import Struct

from memeval.errors import UserError, unknown
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase, Session

KINDS = ("single_hop", "multi_hop", "temporal", "update", "preference", "assistant", "unanswerable")
PART_TOKENS = 800
"""Maximum tokens of the turns in one part of a session; a longer turn is a separate part."""
THIRDS = 3
IS_DRAFTED = re.compile(r"/draft-\d+$")
"""The end of a drafted question's id: see `QuestionSlot.name`."""


class QuestionSlot(Struct, frozen=True):
    """A slot for one question. Its request depends only on the file and its kind."""

    case: int
    """Position among the cases."""
    round: int
    """Number of earlier slots of the case."""
    kind: str

    @property
    def name(self) -> str:
        """The id of its question in the file."""
        return f"draft-{self.round}"


def parse_kinds(text: str | None) -> dict[str, float]:
    """Each kind's share, as in `single_hop=2,update=1`; a kind without a number counts once.

    None gives all kinds equal shares. Raises `UserError` for unknown kinds and invalid numbers.
    """
    if text is None:
        return dict.fromkeys(KINDS, 1 / len(KINDS))

    weights: dict[str, float] = {}
    for word in text.split(","):
        name, equals, number = word.strip().partition("=")
        if name not in KINDS:
            raise unknown("kind in --kinds", name, KINDS)
        try:
            weights[name] = float(number) if equals else 1.0
        except ValueError:
            weights[name] = -1.0

        if not 0 < weights[name] < float("inf"):
            raise UserError(
                f"--kinds {word.strip()}: a share must be a number above 0, such as update=2."
            )

    whole = sum(weights.values())
    return {name: weight / whole for name, weight in weights.items()}


def slots(cases: int, shares: Mapping[str, float], given: Counter[str]) -> Iterator[QuestionSlot]:
    """All slots: each round covers all cases, and kinds come in their shares.

    `given` counts the slots of each kind; a kind whose count is reduced comes again.
    """
    for number in count():
        # In another order in each round: otherwise a case would get the same kind again and again.
        order = Random(f"round {number}").sample(range(cases), cases)
        for case in order:
            due = given.total() + 1
            kind = max(shares, key=lambda name: shares[name] * due - given[name])
            given[kind] += 1
            yield QuestionSlot(case=case, round=number, kind=kind)


def parts_of(case: EvalCase) -> list[Session]:
    """The sessions of a case, long ones cut between turns."""
    parts = []
    for session in case.sessions:
        start = tokens = 0
        for position, turn in enumerate(session.turns):
            more = count_tokens(turn.text)
            if position > start and tokens + more > PART_TOKENS:
                parts.append(replace(session, turns=session.turns[start:position]))
                start, tokens = position, 0

            tokens += more

        parts.append(replace(session, turns=session.turns[start:]))

    return parts


def choose_parts(
    slot: QuestionSlot, case_id: str, parts: Sequence[Session]
) -> tuple[list[Session], str]:
    """The parts that a drafter is shown, in order of time, and the id of the turn to begin from.

    The part to begin from is early, in the middle and late in turn. The other part is alternately
    its neighbour and one far away, so that both distances of evidence occur equally often.
    """
    draw = Random(f"{case_id} {slot.round}")
    third, total = slot.round % THIRDS, len(parts)
    first, end = third * total // THIRDS, (third + 1) * total // THIRDS
    start = draw.choice(range(first, end) or range(total))

    is_near = (slot.round // THIRDS) % 2 == 0
    others = []
    for position in range(total):
        distance = abs(position - start)
        is_wanted = distance == 1 if is_near else distance * THIRDS >= total
        if distance and is_wanted:
            others.append(position)

    positions = {start}
    if others:
        positions.add(draw.choice(others))

    about = draw.choice(parts[start].turns)
    return [parts[position] for position in sorted(positions)], about.turn_id
