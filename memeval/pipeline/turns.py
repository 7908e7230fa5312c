"""The turns of a case, by id and by position: rows keep rankings as positions, which take a
fraction of the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memeval.records import EvalCase


@dataclass(frozen=True)
class CaseTurns:
    """What a ranking of a case's turns is written and read with."""

    ids: tuple[str, ...]
    """Ids of the turns, in the order in which they were said."""
    session_of: Mapping[str, str]
    """The session of each turn."""
    position_of: Mapping[str, int]

    @classmethod
    def of(cls, case: EvalCase) -> CaseTurns:
        """The turns of a case with its sessions."""
        session_of = {
            turn.turn_id: session.session_id for session in case.sessions for turn in session.turns
        }
        ids = tuple(session_of)
        positions = {turn_id: position for position, turn_id in enumerate(ids)}
        return cls(ids=ids, session_of=session_of, position_of=positions)

    def positions(self, ranking: Iterable[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
        """A ranking of turn ids as one of positions.

        Raises `KeyError` for a turn that the case does not hold.
        """
        # Positions are short: ids would make up most of a file of rows.
        return tuple(tuple(map(self.position_of.__getitem__, chunk)) for chunk in ranking)

    def ranking(self, positions: Iterable[Sequence[int]]) -> tuple[tuple[str, ...], ...]:
        """A ranking of positions as one of turn ids.

        Raises `IndexError` for a position that the case does not have.
        """
        return tuple(tuple(map(self.ids.__getitem__, chunk)) for chunk in positions)

    def hold(self, positions: Iterable[Sequence[int]]) -> bool:
        """Whether the case has a turn at each of the positions."""
        return all(position < len(self.ids) for chunk in positions for position in chunk)
