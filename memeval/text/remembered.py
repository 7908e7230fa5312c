"""Remembers results read from short texts, such as golds, which every answer is compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

MOST = 8_192
"""Texts per function."""
LONGEST = 400
"""Characters; a longer text is read each time, so that the memory stays small."""

Read = TypeVar("Read")


def remember_short(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """A function of one text that is called once per short text; its result must not be changed."""
    kept = lru_cache(maxsize=MOST)(read)

    @wraps(read)
    def remembered(text: str) -> Read:
        return kept(text) if len(text) <= LONGEST else read(text)

    return remembered
