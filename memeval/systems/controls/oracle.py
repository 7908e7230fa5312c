"""The control with perfect retrieval: the reader's score if memory never failed."""

from collections.abc import Sequence

from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    OracleForgetRequest,
    OracleQuery,
    Query,
    Retrieved,
)
from memeval.systems.chunk_file import ChunkSystem, as_retrieved
from memeval.systems.forgetting import corrected, count_changed, without


class Oracle(ChunkSystem):
    """Shows exactly the chunks with evidence, a ceiling that `top_k` does not limit."""

    wants_evidence = True

    def forget(self, request: ForgetRequest) -> int:
        """Cuts the values out of its chunks and keeps the rest of the text; without values, removes
        chunks by the simple rule.
        """
        if not isinstance(request, OracleForgetRequest):
            raise TypeError("the oracle forgets by an OracleForgetRequest (`wants_evidence`)")

        before = self._chunks
        if not request.values:
            self._chunks = without(before, request)
            return len(before) - len(self._chunks)

        for value in request.values:
            self._chunks = corrected(self._chunks, CorrectRequest(words="", old=value, new=""))

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
        # In chronological order and without a limit: this measures the reader, not a ranking.
        shown = [chunk for chunk in self._chunks if not evidence.isdisjoint(chunk.turn_ids)]
        reply = await self.parts.reader.answer(query, [chunk.text for chunk in shown])
        ranking = tuple(chunk.turn_ids for chunk in shown)
        return reply.as_answer(retrieved=tuple(map(as_retrieved, shown)), ranking=ranking)
