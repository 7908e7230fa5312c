"""Whether work grows in proportion to its input, told from the machine's noise."""

from __future__ import annotations

import time
from collections.abc import Callable

FAST_S = 0.05
"""Processor time within which growth is not looked at."""
TRIES = 3


def grows_too_fast(work: Callable[[int], object], size: int, times: int = 16) -> bool:
    """Whether `work(size)` costs far more than `times` as much as `work(size // times)`.

    The bound lies midway between growth in proportion and with the square: a factor of the square
    root of `times` on both sides, for the noise of a busy machine. One try below it is enough.
    """
    small = None
    for _ in range(TRIES):
        large = processor_s(work, size)
        if large <= FAST_S:
            return False

        small = small or min(processor_s(work, size // times) for _ in range(TRIES))
        if large < small * times**1.5:
            return False

    return True


def processor_s(work: Callable[[int], object], size: int) -> float:
    started = time.process_time()
    work(size)
    return time.process_time() - started
