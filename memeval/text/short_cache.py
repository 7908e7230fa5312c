"""Caches results of reading short texts, such as golds, with which every answer is compared."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

MOST = 8_192
"""Maximum number of cached texts per function."""
LONGEST = 400
"""Maximum characters of a cached text; a longer one is read each time, to save memory."""

Read = TypeVar("Read")


def cache_short(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """Makes a function of one text run once per short text; its result must not be modified."""
    cached = lru_cache(maxsize=MOST)(read)

    @wraps(read)
    def cached_read(text: str) -> Read:
        return cached(text) if len(text) <= LONGEST else read(text)

    return cached_read
