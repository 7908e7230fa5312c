"""Keeps the garbage collector from repeatedly scanning all objects of a run."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RARE = (50_000, 20, 20)
"""Thresholds of the three generations. Python's own, 700, 10 and 10, took a fifth of a run's
processor time; without any collection, cycles left behind by libraries would fill the memory.
"""

_lock = threading.Lock()
_users = 0
_before = gc.get_threshold()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collects rarely inside the block, and never objects from before it.

    Blocks may be nested, and may overlap in several threads: the last one restores everything.
    """
    global _users, _before  # noqa: PLW0603 - there is one collector in a process
    with _lock:
        _users += 1
        if _users == 1:
            _before = gc.get_threshold()
            gc.freeze()
            gc.set_threshold(*RARE)

    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                gc.set_threshold(*_before)
                gc.unfreeze()
