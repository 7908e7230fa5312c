"""Graphiti, with its graph in Kuzu in memory, behind the addresses of `system=http`:
`python server.py PORT`. The endpoint is that of OPENAI_BASE_URL and OPENAI_API_KEY.
"""

from __future__ import annotations

import os
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"

from graphiti_core import Graphiti
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType

sys.path.append(str(Path(__file__).parents[1]))
from serving import Meter, serve

MODEL = os.environ.get("GRAPHITI_MODEL", "gpt-4o-mini")
EMBEDDING = os.environ.get("GRAPHITI_EMBEDDING", "text-embedding-3-small")
UNTIMED = datetime(1970, 1, 1, tzinfo=UTC)
"""When a chunk without a time was said, as Graphiti needs one. It is not shown."""


class Graph:
    """The graph of one case, in a database of its own: each chunk is an episode."""

    def __init__(self, meter: Meter) -> None:
        self._client = meter.client
        self._episodes: dict[str, dict[str, Any]] = {}  # chunks by the ids of their episodes
        self._stored: set[str] = set()
        self._library: Graphiti | None = None

    async def _open(self) -> Graphiti:
        if self._library is None:
            driver = KuzuDriver()
            for index in get_fulltext_indices(driver.provider):  # the driver makes none
                await driver.execute_query(index)

            settings = LLMConfig(api_key="in the client", model=MODEL, small_model=MODEL)
            vectors = OpenAIEmbedderConfig(embedding_model=EMBEDDING)
            self._library = Graphiti(
                graph_driver=driver,
                llm_client=OpenAIGenericClient(settings, client=self._client),
                embedder=OpenAIEmbedder(vectors, client=self._client),
            )

        return self._library

    async def ingest(self, chunks: list[dict[str, Any]]) -> int:
        library = await self._open()
        for chunk in chunks:
            if chunk["id"] in self._stored:
                continue

            added = await library.add_episode(
                name=chunk["id"],
                episode_body=chunk["content"],
                source=EpisodeType.message,
                source_description="a conversation",
                reference_time=_moment(chunk["time"]),
            )
            self._episodes[added.episode.uuid] = chunk
            self._stored.add(chunk["id"])

        return 0

    async def search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        if not self._stored:
            return []

        library = await self._open()
        facts = await library.search(body["query"], num_results=body["top_k"])
        return [self._result(fact) for fact in facts]

    def _result(self, fact: EntityEdge) -> dict[str, Any]:
        """A fact with the time of the first chunk that it rests on."""
        chunks = [self._episodes[one] for one in fact.episodes if one in self._episodes]
        time = chunks[0]["time"] if chunks else None
        dates = [time and f"said {time}", fact.invalid_at and f"until {fact.invalid_at:%Y-%m-%d}"]
        shown = ", ".join(date for date in dates if date)
        turns = dict.fromkeys(turn for chunk in chunks for turn in chunk["turn_ids"])
        text = f"{fact.fact} ({shown})" if shown else fact.fact
        return {"text": text, "turn_ids": list(turns), "time": time}

    async def close(self) -> None:
        if self._library is not None:
            self._library.driver.db.close()


def _moment(time: str | None) -> datetime:
    if time is None:
        return UNTIMED

    moment = datetime.fromisoformat(time)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


if __name__ == "__main__":
    # Kuzu is the only graph store that Graphiti embeds, and Graphiti calls it deprecated.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    serve(Graph)
