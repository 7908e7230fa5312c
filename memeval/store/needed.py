"""Which rows and memories the finished runs of a home rest on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memeval.results.summary import RunSummary
from memeval.store.inventory import Item, Kind

_STAGES = {
    Kind.ANSWERS: "answer",
    Kind.TEXTS: "answer",
    Kind.VERDICTS: "judge",
    Kind.MEMORIES: "prepare",
}


@dataclass(frozen=True, slots=True)
class Needed:
    """The keys that run folders name."""

    keys: frozenset[tuple[str, str]]
    """Stage and key."""
    unknown: tuple[Path, ...]
    """Run folders that can't be read, or name no keys: their needs are unknown."""

    def needs(self, item: Item) -> bool:
        """Whether a run rests on an item. True for what has no key."""
        stage = _STAGES.get(item.kind)
        return stage is None or (stage, item.key) in self.keys


def read_needed(runs: Iterable[Path]) -> Needed:
    """Stored items that the runs in these folders need."""
    keys: set[tuple[str, str]] = set()
    unknown: list[Path] = []
    for folder in runs:
        try:
            keys |= _keys_of(folder)
        except (OSError, ValueError, KeyError, TypeError):
            # Not the same as needing nothing: what this run rests on must not be removed.
            unknown.append(folder)

    return Needed(frozenset(keys), tuple(unknown))


def _keys_of(folder: Path) -> set[tuple[str, str]]:
    """Stage and key of all that a run depends on. Raises what an unreadable `run.json` raises."""
    repeats = RunSummary.read(folder).identity["keys"]
    keys = {
        (stage, str(repeat[stage]))
        for repeat in repeats
        for stage in ("prepare", "answer", "judge")
    }
    if not keys:
        raise ValueError("no keys")

    return keys
