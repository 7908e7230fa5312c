"""The control with perfect retrieval: the reader's score if memory never failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    MemoryChunk,
    OracleForgetRequest,
    OracleQuery,
    Query,
    Retrieved,
)
from memeval.systems.base import MemorySystem, SystemContext, SystemSettings
from memeval.systems.chunk_file import read_chunks, write_chunks
from memeval.systems.forgetting import corrected, count_changed


class Oracle(MemorySystem):
    """Shows exactly the chunks with evidence, a ceiling without `top_k`."""

    in_thread = False
    wants_evidence = True

    def __init__(self, settings: SystemSettings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self._chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def forget(self, request: ForgetRequest) -> int:
        """Cuts the values out of its chunks, and leaves what else they say."""
        if not isinstance(request, OracleForgetRequest):
            raise TypeError("the oracle forgets by an OracleForgetRequest (`wants_evidence`)")

        before = self._chunks
        for value in request.values:
            self._chunks = corrected(self._chunks, CorrectRequest(words="", old=value, new=""))

        return count_changed(before, self._chunks)

    def correct(self, request: CorrectRequest) -> int:
        before = self._chunks
        self._chunks = corrected(before, request)
        return count_changed(before, self._chunks)

    def probe(self, query: Query, depth: int) -> Sequence[Retrieved]:
        """Nothing: only a question's evidence is ever shown."""
        return ()

    async def answer(self, query: Query) -> Answer:
        if not isinstance(query, OracleQuery):
            raise TypeError(
                "the oracle answers an OracleQuery; the engine gives it one (`wants_evidence`)"
            )

        evidence = set(query.evidence)
        # In order of time and without a limit: what is measured is the reader, and not a ranking.
        shown = tuple(
            Retrieved(text=chunk.text, turn_ids=chunk.turn_ids, time=chunk.time)
            for chunk in self._chunks
            if evidence & set(chunk.turn_ids)
        )
        reply = await self.parts.reader.answer(query, [chunk.text for chunk in shown])
        return Answer(
            text=reply.text,
            raw=reply.raw,
            retrieved=shown,
            ranking=tuple(chunk.turn_ids for chunk in shown),
            context_tokens=reply.context_tokens,
        )

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)

    def load(self, folder: Path) -> None:
        self._chunks = read_chunks(folder)
