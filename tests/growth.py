"""Whether work grows linearly with its input, despite the noise of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

FAST_S = 0.05
"""Processor time below which growth is not checked."""
TRIES = 3


def grows_too_fast(work: Callable[[int], object], size: int, times: int = 16) -> bool:
    """Whether `work(size)` costs far more than `times` as much as `work(size // times)`.

    The bound lies midway between linear and quadratic growth: a factor of the square root of
    `times` on both sides, for the noise of a busy machine. One try below the bound is enough.
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
