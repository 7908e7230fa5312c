from memeval.records import MemoryChunk, Query, Retrieved
from memeval.systems.base import RecallSystem


class Overlap(RecallSystem):
    """Ranks chunks by how many words of the question they hold; the oldest of equals is first."""

    def reset(self) -> None:
        self.chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        words = set(query.text.lower().split())
        ranked = sorted(
            self.chunks,
            key=lambda chunk: len(words & set(chunk.content.lower().split())),
            reverse=True,
        )
        return [Retrieved(chunk.text, chunk.turn_ids) for chunk in ranked[:depth]]
