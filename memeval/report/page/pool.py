"""The texts of a page: each is there once, however many cells and questions show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memeval.results import RetrievedChunk, Texts
from memeval.results.texts import Joined

_DEEPEST = 8
"""Levels of joined texts within joined texts."""


class TextPool:
    """Texts and chunks of one block, by their positions in it.

    A joined text, such as a context, is stored as what it is joined of: a context of ten chunks
    takes ten numbers.
    """

    def __init__(self) -> None:
        self.texts: list[str | Mapping[str, Any]] = []
        self.chunks: list[list[Any]] = []
        self._text_at: dict[str, int] = {}
        self._chunk_at: dict[tuple[str | None, tuple[str, ...]], int] = {}

    def put(self, texts: Texts | None, ref: str | None, depth: int = 0) -> int | None:
        """Position of a text; None if it is missing or damaged."""
        if texts is None or ref is None or depth > _DEEPEST:
            return None
        if ref in self._text_at:
            return self._text_at[ref]

        stored = texts.stored(ref)
        if not isinstance(stored, Joined):
            return None if stored is None else self._add(ref, stored)

        positions = [self.put(texts, part, depth + 1) for part in stored.parts]
        # A context with a gap would be shown as if the reader had seen it so.
        if None in positions:
            return None

        return self._add(ref, {"join": stored.separator, "of": positions})

    def put_chunk(self, texts: Texts | None, chunk: RetrievedChunk) -> int:
        """Position of a chunk: its text, and the ids of its turns."""
        key = (chunk.text, chunk.turn_ids)
        if key not in self._chunk_at:
            self._chunk_at[key] = len(self.chunks)
            self.chunks.append([self.put(texts, chunk.text), list(chunk.turn_ids)])

        return self._chunk_at[key]

    def _add(self, ref: str, text: str | Mapping[str, Any]) -> int:
        self._text_at[ref] = len(self.texts)
        self.texts.append(text)
        return self._text_at[ref]
