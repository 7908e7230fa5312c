"""The agent's window, and how much of it a reader is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.records import MemoryChunk


class Window:
    """What is before the agent: everything, until a compression cuts it down to what is retained; later units join it."""

    def __init__(self, units: Sequence[MemoryChunk] = ()) -> None:
        self.units = list(units)

    def add(self, unit: MemoryChunk) -> None:
        self.units.append(unit)

    def cut(self, retained: Sequence[MemoryChunk]) -> list[MemoryChunk]:
        """Keeps the retained units, which are the newest ones, and returns those that leave."""
        dropped = self.units[: max(0, len(self.units) - len(retained))]
        self.units = list(retained)
        return dropped


def newest(
    units: Sequence[MemoryChunk], tokens: int
) -> tuple[Sequence[MemoryChunk], dict[str, Any]]:
    """The newest units that fit into so many tokens, in order of time, and the note that an answer carries where older ones were cut."""
    sizes = [count_tokens(unit.text) for unit in units]
    first, room = len(units), tokens
    while first and sizes[first - 1] <= room:
        first -= 1
        room -= sizes[first]
    return units[first:], {"cut_chunks": first, "cut_tokens": sum(sizes[:first])} if first else {}


def check_positive(**settings: int) -> None:
    """Raises `UserError` for a setting that is not above 0."""
    for name, value in settings.items():
        if value <= 0:
            raise UserError(f"system.{name} must be positive, but is {value}")
