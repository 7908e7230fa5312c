"""Selects items that may be removed from a home, and removes them unless a process holds them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from msgspec import Struct

from memeval.errors import StorageError
from memeval.process.leftovers import remove, temporary_name
from memeval.results.private import FILE_MODE
from memeval.results.summary import RunSummary
from memeval.store.inventory import Home, StoredItem, StoredKind, row_locks

_STAGES = {
    StoredKind.ANSWERS: "answer",
    StoredKind.TEXTS: "answer",
    StoredKind.VERDICTS: "judge",
    StoredKind.MEMORIES: "prepare",
}


class Needed(Struct, frozen=True):
    """The keys that run folders name."""

    keys: frozenset[tuple[str, str]]
    """Stage and key."""
    unknown: tuple[Path, ...]
    """Run folders that can't be read, or name no keys: their needs are unknown."""

    def needs(self, item: StoredItem) -> bool:
        """Whether a run depends on an item. True for items without a key."""
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
            # Its needs are unknown, not empty: the items that it depends on must stay.
            unknown.append(folder)

    return Needed(frozenset(keys), tuple(unknown))


def _keys_of(folder: Path) -> set[tuple[str, str]]:
    """Stage and key of all that a run depends on. Raises the errors of an unreadable `run.json`."""
    repeats = RunSummary.read(folder).identity["keys"]
    keys = set()
    for repeat in repeats:
        for stage in ("prepare", "answer", "judge"):
            keys.add((stage, str(repeat[stage])))

    if not keys:
        raise ValueError("no keys")

    return keys


DAY_S = 24 * 3600.0
LEFT, DAMAGED, UNNEEDED, OLD = (
    "left by a killed process",
    "its intact entries were copied",
    "no run needs it",
    "an old memory",
)


class Rules(Struct, frozen=True):
    """Which items are removed."""

    unneeded_s: float
    """Age in seconds at which an unneeded item is removed: an unfinished run has no folder yet."""
    memories_s: float | None = None
    """Memories older than this many seconds are removed, needed or not; None keeps them."""


class Removal(Struct, frozen=True):
    """An item that may be removed, and the rule."""

    item: StoredItem
    reason: str


def choose_removals(
    items: Iterable[StoredItem], needed: Needed, rules: Rules, now: float
) -> list[Removal]:
    """Items to remove; if a run's needs are unknown, everything with a key stays."""
    removals = []
    for item in items:
        reason = _reason(item, needed, rules, now - item.changed)
        if reason is not None:
            removals.append(Removal(item, reason))

    return removals


def _reason(item: StoredItem, needed: Needed, rules: Rules, age_s: float) -> str | None:
    if item.kind is StoredKind.LEFTOVERS:
        # Of the leftovers, only damaged caches have a lock. A user may want to inspect a new one.
        if not item.locks:
            return LEFT

        return DAMAGED if age_s >= rules.unneeded_s else None

    if (
        item.kind is StoredKind.MEMORIES
        and rules.memories_s is not None
        and age_s >= rules.memories_s
    ):
        return OLD
    if not needed.unknown and not needed.needs(item) and age_s >= rules.unneeded_s:
        return UNNEEDED

    return None


def is_held(lock: Path) -> bool:
    """Whether a running process holds a lock file. Raises `StorageError` if it can't be opened."""
    if not lock.exists():
        return False

    try:
        with hold_locks([lock]):
            return False
    except Timeout:
        return True
    except OSError as error:
        raise StorageError(f"{lock} can't be opened: {error.strerror or error}") from error


def cell_under_way(home: Home) -> bool:
    """Whether a cell is running in this home: it holds the lock of its rows."""
    return any(map(is_held, row_locks(home)))


def remove_item(item: StoredItem, home: Home) -> bool:
    """Removes an item as a whole; False if a process holds it. Raises `OSError`."""
    # A cell reads a memory in place, and holds only the locks of its rows.
    if item.kind is StoredKind.MEMORIES and cell_under_way(home):
        return False

    try:
        with hold_locks(item.locks):
            for path in item.paths:
                _remove(path)
    except Timeout:
        return False

    return True


def _remove(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return

    # Renamed first: a half-deleted folder would look like a damaged memory.
    aside = temporary_name(path, "removed")
    path.rename(aside)
    remove(aside)


@contextmanager
def hold_locks(locks: Iterable[Path]) -> Iterator[None]:
    """Holds lock files, which are not deleted. Raises `Timeout` if another process holds one."""
    with ExitStack() as stack:
        for lock in locks:
            held = FileLock(lock, mode=FILE_MODE, thread_local=False, is_singleton=False)
            held.acquire(timeout=0)
            stack.callback(held.release)

        yield
