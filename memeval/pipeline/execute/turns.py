"""The turns of a case by id and by position, which rows store."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct

from memeval.metrics.quotation import Quotations
from memeval.records import EvalCase, Session
from memeval.results.rows import Ranking


class CaseTurns(Struct, frozen=True, dict=True):
    """Converts rankings between ids and positions of a case's turns."""

    ids: tuple[str, ...]
    """Ids of the turns, in the order in which they were said."""
    session_of: Mapping[str, str]
    position_of: Mapping[str, int]
    sessions: tuple[Session, ...]

    @classmethod
    def of(cls, case: EvalCase) -> CaseTurns:
        session_of = {}
        for session in case.sessions:
            for turn in session.turns:
                session_of[turn.turn_id] = session.session_id

        ids = tuple(session_of)
        return cls(
            ids=ids,
            session_of=session_of,
            position_of={turn_id: position for position, turn_id in enumerate(ids)},
            sessions=case.sessions,
        )

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
            # `zip` makes tuples of one id each, in C.
            return tuple(zip(map(turn_id, positions)))

        return tuple(
            (turn_id(chunk),) if isinstance(chunk, int) else tuple(map(turn_id, chunk))
            for chunk in positions
        )

    def has_positions(self, positions: Ranking) -> bool:
        """Whether the case has a turn at each of the positions."""
        try:
            self.ranking(positions)
        except IndexError:
            return False

        return True
