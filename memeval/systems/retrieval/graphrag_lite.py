"""A graph of entities mentioned together, searched from the question's entities one hop out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from memeval.llm.contract import Completion
from memeval.llm.memory_prompts import EntitiesPrompt
from memeval.llm.metering import current_ledger
from memeval.llm.prompts import load_builtin
from memeval.records import MemoryChunk, Query
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.entities import content_words, entities, named_entities
from memeval.retrieval.entity_graph import EntityGraph
from memeval.systems.asking import ask_for
from memeval.systems.base import ANSWER, INGEST, DumpItem, SystemSettings
from memeval.systems.chunk_file import read_state, write_state
from memeval.systems.cogcanvas.reply import read_reply, text_of
from memeval.systems.indexed import IndexedSystem, Ranked

TEMPLATE = "entities"
NAMES_FILE = "entities.json"

SIMILAR = 0.3
"""Minimum cosine for an entity to replace one that the graph does not have."""
STAND_INS = 3
"""Number of the most similar entities used for a question without known entities."""


@dataclass(frozen=True)
class GraphRagSettings(SystemSettings):
    show_window: bool = field(default=False, metadata=ANSWER)
    """Whether to also show the agent's window, which is everything before any compression."""
    entities: Literal["rules", "model"] | None = field(default=None, metadata=INGEST)
    """Source of a turn's entities: `rules`, or a `model` (one call each); None: a model if any."""

    @property
    def uses_model(self) -> bool:
        """Whether a model names the entities."""
        return self.entities == "model"


class GraphRagLite(IndexedSystem[DenseIndex]):
    """Ranks chunks by the entities that they contain (`EntityGraph`).

    The question's entities count fully, those that co-occur with them in part. A question's entity
    is matched by its name, else by the most similar name under the cell's embedder; the index
    contains these names. A model names the entities of each turn, as published, or rules find them
    (`memeval.retrieval.entities`). Those of a question are found by rules either way.

    Compressions remove no chunks.
    """

    settings_type = GraphRagSettings
    settings: GraphRagSettings
    keeps_window = True
    _graph: EntityGraph
    _lost: int

    @classmethod
    def resolve_settings(
        cls, settings: GraphRagSettings, *, has_language_model: bool
    ) -> GraphRagSettings:
        """Decides whether a model or rules name the entities."""
        if settings.entities is not None:
            return settings

        named_by: Literal["rules", "model"] = "model" if has_language_model else "rules"
        return replace(settings, entities=named_by)

    @classmethod
    def flags(cls, settings: Any) -> tuple[str, ...]:
        """`entities by rules` if no model names them, as one does in the published system."""
        return () if settings.uses_model else ("entities by rules",)

    @classmethod
    def needs_language_model(cls, settings: Any) -> bool:
        return bool(settings.uses_model)

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE,) if settings.uses_model else ()

    def reset(self) -> None:
        super().reset()
        self._graph = EntityGraph(())
        self._names: dict[str, list[str]] = {}
        self._lost = 0

    async def ingest(self, chunk: MemoryChunk) -> None:
        super().ingest(chunk)
        if not self.settings.uses_model:
            return

        read = [await self._ask(line) for line in chunk.content.split("\n") if line.strip()]
        self._lost += not all(read)

    async def _ask(self, line: str) -> bool:
        """Has the model name a line's entities, and keeps them; returns whether it did."""
        template = load_builtin(TEMPLATE)
        prompt = EntitiesPrompt(text=line, system_text=template.system, user_template=template.user)
        names = await ask_for(self.parts.model, prompt, seed=self.parts.seed, read=_names)
        self._names[line] = names or []
        return names is not None

    def texts(self) -> list[str]:
        return list(self._graph.names.values())

    async def build(self, saved: Path | None) -> DenseIndex:
        contents = [chunk.content for chunk in self.chunks]
        read = self._entities_of if self.settings.uses_model else entities
        self._graph = await current_ledger().own_work.in_worker(EntityGraph, contents, read)
        return await DenseIndex.open(self.parts.embedder, self.texts(), saved, self.index)

    def _entities_of(self, line: str) -> Mapping[str, str]:
        return named_entities(self._names.get(line, ()))

    def save(self, folder: Path) -> None:
        super().save(folder)
        if self.settings.uses_model:
            write_state(folder / NAMES_FILE, self._names)

    async def load(self, folder: Path) -> None:
        if self.settings.uses_model:
            self._names = read_state(folder / NAMES_FILE)

        await super().load(folder)

    def dump(self) -> list[DumpItem]:
        """The entities, each with the turns of the chunks that contain it."""
        items: list[DumpItem] = []
        for key, positions in self._graph.holders().items():
            turn_ids: list[str] = []
            for position in positions:
                turn_ids += self.chunks[position].turn_ids

            items.append({"kind": "entity", "text": self._graph.names[key], "turn_ids": turn_ids})

        return items

    async def rank(self, index: DenseIndex, query: Query, depth: int) -> Ranked:
        weights = self._graph.one_hop(await self._seeds(index, query.text))
        return self._graph.ranking(weights)[:depth]

    async def _seeds(self, index: DenseIndex, question: str) -> dict[str, float]:
        """Weights of the question's entities: 1 if matched by name, the cosine if by similarity."""
        known = self._graph.names
        mentioned = entities(question)
        seeds = {key: 1.0 for key in mentioned | content_words(question) if key in known}

        for key, name in mentioned.items():
            if key not in known:
                # The right side wins: a name that matched keeps its weight of 1.
                seeds = await self._similar(index, name, 1, SIMILAR) | seeds

        # A question without any known entity still gets a ranking.
        return seeds or await self._similar(index, question, STAND_INS, 0.0)

    async def _similar(
        self, index: DenseIndex, text: str, count: int, least: float
    ) -> dict[str, float]:
        if not text.strip():
            return {}

        keys = list(self._graph.names)
        nearest = await index.search(text, count)
        return {keys[position]: cosine for position, cosine in nearest if cosine > least}


def _names(completion: Completion) -> list[str] | None:
    """The names in a reply; None if it contains no complete JSON list."""
    reply = read_reply(completion.text)
    if reply is None or not reply.closed:
        return None

    return list(filter(None, map(text_of, reply.items)))
