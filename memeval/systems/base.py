"""The contract of a memory system, and the parts that it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from memeval.embedding.contract import Embedder
from memeval.llm.contract import LanguageModel
from memeval.records import Answer, MemoryChunk, Query, Retrieved

INGEST = {"stage": "prepare"}
"""Metadata of a setting that changes what is stored: another value ingests again."""
ANSWER = {"stage": "answer"}
"""Metadata of a setting that only changes how stored memory is used."""
RUNTIME = {"stage": "runtime"}
"""Metadata of a setting that changes nothing that is stored, such as the name of the variable that holds a key."""


@dataclass(frozen=True)
class SystemSettings:
    """Base of a system's settings; each field's metadata is `INGEST` or `ANSWER`. Subclasses are built from the YAML of `system=`."""


class Reader(Protocol):
    """Answers a query from units of context under the cell's one answer prompt, so that all systems answer under the same words."""

    async def answer(self, query: Query, context: Sequence[str]) -> ReaderReply:
        """Raises `ModelError` where the model's call failed for good."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderReply:
    """What the reader made of a context."""

    text: str
    """The final answer."""
    raw: str | None
    """The whole reply where it is more than the final answer."""
    context_tokens: int
    """Tokens of the context, counted offline."""


@dataclass(frozen=True)
class SystemContext:
    """What a system is built from. The parts do the metering, caching and retrying: no system counts tokens itself."""

    reader: Reader
    """Answers under the cell's one template, or under the style that the system's `answer_style` names."""
    model: LanguageModel
    """The cell's model, for systems that think at ingest."""
    embedder: Embedder
    top_k: int
    """Units that may be put before the reader."""
    seed: int
    """Seed of this repeat."""
    case_id: str
    """Names the case, for systems that keep one store for several; carries nothing about its questions."""
    run_sync: Callable[[Awaitable[Any]], Any]
    """Waits for an async part from a worker thread: the bridge for third-party systems that call synchronously."""
    extra: Mapping[str, Any] = field(default_factory=dict)


class MemorySystem(ABC):
    """One memory of one case. `reset`, `ingest`, `consolidate`, `compress`, `answer`, `save` and `load` may be plain or `async` methods;
    plain ones run in a worker thread when `in_thread` is set, else on the event loop.

    A failure is an exception: the engine makes it a status of the records that it hits.
    """

    settings_type: ClassVar[type[SystemSettings]] = SystemSettings
    in_thread: ClassVar[bool] = True
    """False for systems whose plain methods are quick and hold no lock."""
    wants_evidence: ClassVar[bool] = False
    """True for the `oracle` control alone: it gets an `OracleQuery`."""

    own_prompt: ClassVar[bool] = False
    """True for a system that answers under words wholly of its own and not through the reader; every table tells so."""

    def __init__(self, settings: Any, parts: SystemContext) -> None:
        self.settings = settings
        self.parts = parts

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        """Whether a model is called while memory is built: the model and the seed are then part of the memory's identity."""
        return True

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        """Names of the templates (`memeval.prompts`) under which it thinks while it ingests; their text is part of its identity."""
        return ()

    @classmethod
    def answer_style(cls, settings: Any) -> str | None:
        """The style (`short`, `cot`) in which it answers whatever the cell says; every table tells so. None keeps to the cell."""
        return None

    @classmethod
    def needs_language_model(cls, settings: Any) -> bool:
        """Whether it asks the cell's model in words of its own, which the offline reader can't answer."""
        return False

    @abstractmethod
    def reset(self) -> Any:
        """Forgets everything."""

    @abstractmethod
    def ingest(self, chunk: MemoryChunk) -> Any:
        """Takes one unit in; units come in order of time."""

    def consolidate(self) -> Any:
        """Called once after the last unit and before the first question."""

    def compress(self, retained: Sequence[MemoryChunk]) -> Any:
        """Called when the compression turn is reached: the agent's window is cut down to `retained`. Default: nothing is lost."""

    def health(self) -> Any:
        """The `IngestHealth` of what was ingested, for a system that can lose units and go on; asked after `consolidate`.

        None (the default): the engine counts the units, and takes a model's call that failed or a reply that was cut for a unit lost.
        """
        return None

    @abstractmethod
    def answer(self, query: Query) -> Any:
        """Returns an `Answer`, or an awaitable of one."""

    def save(self, folder: Path) -> Any:
        """Writes the memory into the existing empty `folder`, so that `load` in another process answers identically.

        Raises `NotImplementedError` (the default) where the memory can't be saved; it is then built again.
        """
        raise NotImplementedError

    def load(self, folder: Path) -> Any:
        """Reads what `save` wrote into a fresh instance. Raises any error where the folder is damaged: the memory is then built again."""
        raise NotImplementedError

    def close(self) -> Any:
        """Gives back files, collections, connections."""


class RecallSystem(MemorySystem):
    """A system that only chooses what to put before the reader: it ranks, the base cuts at top_k and asks the reader."""

    ranking_depth: ClassVar[int] = 20
    """Units that `recall` is asked for at least, so that recall@20 can be told at any top_k."""

    @abstractmethod
    def recall(self, query: Query, depth: int) -> Any:
        """Units for the query, best first, at most `depth` (all of them where the ranking is cheap); or an awaitable of them."""

    def window(self) -> Sequence[MemoryChunk]:
        """Units that are always before the reader besides the recalled ones; after a compression, its window."""
        return ()

    async def answer(self, query: Query) -> Answer:
        ranked = self.recall(query, max(self.parts.top_k, self.ranking_depth))
        units: Sequence[Retrieved] = await ranked if isinstance(ranked, Awaitable) else ranked
        chosen = tuple(units[: self.parts.top_k])
        shown = [unit.text for unit in chosen]
        shown += [chunk.text for chunk in self.window() if chunk.text not in shown]
        reply = await self.parts.reader.answer(query, shown)
        return Answer(
            text=reply.text,
            raw=reply.raw,
            retrieved=chosen,
            ranking=tuple(unit.turn_ids for unit in units),
            context_tokens=reply.context_tokens,
        )
