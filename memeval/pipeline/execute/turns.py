"""The turns of a case by id and by position, which rows store."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Self

from msgspec import Struct

from memeval.metrics.quotation import Quotations
from memeval.metrics.retrieval import EvidenceRanks, ranks_of
from memeval.records import EvalCase, Session
from memeval.results.rows import Ranking


class CaseTurns(Struct, frozen=True, dict=True):
    """Converts rankings between ids and positions of a case's turns."""

    ids: tuple[str, ...]
    """Ids of the turns, in the order in which they were said."""
    position_of: Mapping[str, int]
    session_at: Sequence[int]
    """For each position, a number of the turn's session."""
    sessions: tuple[Session, ...]

    @classmethod
    def of(cls, case: EvalCase) -> Self:
        # Ids may be repeated in a data set of one's own: equal ids are one turn, or one session.
        numbers: dict[str, int] = {}
        session_of: dict[str, int] = {}
        for session in case.sessions:
            number = numbers.setdefault(session.session_id, len(numbers))
            for turn in session.turns:
                session_of[turn.turn_id] = number

        ids = tuple(session_of)
        return cls(
            ids=ids,
            position_of=dict(zip(ids, range(len(ids)), strict=True)),
            session_at=array("I", session_of.values()),
            sessions=case.sessions,
        )

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The id of each turn's session. Made on demand: it is large, and few data sets ask."""
        session_of = {}
        for session in self.sessions:
            for turn in session.turns:
                session_of[turn.turn_id] = session.session_id

        return session_of

    @cached_property
    def quotations(self) -> Quotations[str]:
        """Finds the turns that text quotes."""
        texts = {}
        for session in self.sessions:
            for turn in session.turns:
                texts[turn.turn_id] = turn.text

        return Quotations(texts)

    def positions(self, ranking: Iterable[Sequence[str]]) -> Ranking:
        """Turn ids as positions. Raises `KeyError` for an unknown turn."""
        position = self.position_of.__getitem__
        chunks = tuple(ranking)
        # A ranking has hundreds of chunks, mostly of one turn each.
        if set(map(len, chunks)) <= {1}:
            return array("I", map(position, chain.from_iterable(chunks)))

        return tuple(
            position(chunk[0]) if len(chunk) == 1 else tuple(map(position, chunk))
            for chunk in chunks
        )

    def ranking(self, positions: Ranking) -> tuple[tuple[str, ...], ...]:
        """Positions as turn ids. Raises `IndexError` for an unknown position."""
        turn_id = self.ids.__getitem__
        if isinstance(positions, array):
            return tuple(zip(map(turn_id, positions)))

        return tuple(tuple(map(turn_id, chunk)) for chunk in _chunks(positions))

    def evidence_ranks(self, ranking: Ranking, evidence: Sequence[str]) -> EvidenceRanks:
        """Ranks of the evidence turns in a ranking, and of their sessions.

        Raises `KeyError` for unknown evidence and `IndexError` for an unknown position.
        """
        turns = [self.position_of[turn_id] for turn_id in evidence]
        return ranks_of(_chunks(ranking), turns, self.session_at.__getitem__)

    def has_positions(self, positions: Ranking) -> bool:
        """Whether the case has a turn at each of the positions."""
        return max(chain.from_iterable(_chunks(positions)), default=-1) < len(self.ids)


def _chunks(ranking: Ranking) -> tuple[tuple[int, ...], ...]:
    """The positions of each chunk's turns."""
    if isinstance(ranking, array):
        # Makes tuples of one position each, in C.
        return tuple(zip(ranking))

    return tuple((chunk,) if isinstance(chunk, int) else chunk for chunk in ranking)
