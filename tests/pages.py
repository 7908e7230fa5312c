"""Helpers for the tests of pages."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors of a page's headings, by GitHub's rule."""
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    bare = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles)
    return frozenset(re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in bare)


def without_times(printed: str) -> list[list[str]]:
    """The words of each line, without the milliseconds of a retrieval and the padding they
    cause.
    """
    masked = re.sub(r"[\d.]+ / [\d.]+", "TIMES", printed.strip("\n"))
    return [line.split() for line in masked.splitlines()]
