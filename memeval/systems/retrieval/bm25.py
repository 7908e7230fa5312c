"""BM25 over the chunks as they were ingested."""

from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from memeval.records import Query
from memeval.retrieval.bm25 import Bm25Index, Ties, Tokens
from memeval.systems.base import ANSWER, INGEST
from memeval.systems.fact_keys import FactKeyedSystem, FactKeySettings
from memeval.systems.indexed import Ranked

MAX_RANKED = 10_000
"""Chunks in a ranking. LoCoMo and LongMemEval have fewer; the whole ranking of a million chunks
would take megabytes per question.
"""


@dataclass(frozen=True)
class Bm25Settings(FactKeySettings):
    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are indexed; if not, ranks are those of rank_bm25 over `speaker: text`."""
    tokens: Tokens = field(default="alnum", metadata=ANSWER)
    """`alnum`: runs of lower-cased letters and digits; `space`: text between spaces."""
    ties: Ties = field(default="position", metadata=ANSWER)
    """Order of equal scores: `position`, or `reversed` as LongMemEval's code sorts."""


class Bm25(FactKeyedSystem[Bm25Index]):
    """Ranks the chunks by rank-bm25's BM25Okapi over `speaker: text`."""

    settings_type = Bm25Settings
    settings: Bm25Settings

    async def build(self, saved: Path | None) -> Bm25Index:
        return Bm25Index(self.texts(), self.settings.tokens)

    async def rank(self, index: Bm25Index, query: Query, depth: int) -> Ranked:
        """The ranking for the metrics. Chunks below `depth` have no score."""
        order, scores = index.ranking(
            query.text, self.settings.ties, scored=depth, most=max(depth, MAX_RANKED)
        )
        return list(zip_longest(order, scores))
