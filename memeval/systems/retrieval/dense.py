"""Dense retrieval over the chunks as they were ingested: it neither reranks nor cuts them again."""

from dataclasses import dataclass, field
from pathlib import Path

from memeval.records import Query
from memeval.retrieval.dense import DenseIndex
from memeval.systems.base import INGEST
from memeval.systems.fact_keys import FactKeyedSystem, FactKeySettings
from memeval.systems.indexed import Ranked


@dataclass(frozen=True)
class DenseSettings(FactKeySettings):
    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are embedded with the chunks; they are shown either way."""


class Dense(FactKeyedSystem[DenseIndex]):
    """The nearest chunks under the cell's embedder."""

    settings_type = DenseSettings
    settings: DenseSettings

    async def build(self, saved: Path | None) -> DenseIndex:
        return await DenseIndex.open(self.parts.embedder, self.texts(), saved, self.index)

    async def rank(self, index: DenseIndex, query: Query, depth: int) -> Ranked:
        return await index.search(query.text, depth)
