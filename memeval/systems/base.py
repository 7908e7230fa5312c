"""The contract of a memory system, and the parts that it gets from the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Protocol

from memeval.config.settings import check_fields
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    IngestHealth,
    MemoryChunk,
    Query,
    Retrieved,
)
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.rerank import Reranker, build_named
from memeval.systems.tools import Tool, search_tool

INGEST = {"stage": "prepare"}
"""Metadata of a setting that changes what is stored: a new value requires a new ingest."""
ANSWER = {"stage": "answer"}
"""Metadata of a setting that only changes how stored memory is used."""
RUNTIME = {"stage": "runtime"}
"""Metadata of a setting without effect on memory or answers, such as a key's variable."""
POSITIVE, NOT_NEGATIVE, SHARE = {"above": 0}, {"least": 0}, {"above": 0, "most": 1}
"""Further metadata of a setting: its bounds."""

RANKING_DEPTH = 20
"""Minimum chunks that are ranked, so that `ranking_recall_at_20` is known at any `top_k`."""

MORE_THAN_ASKED, TRIED_AGAIN, NOISE = "more_than_asked", "requests_tried_again", "noise"
"""Remarks on a served memory: a search returned more results than requested; requests failed and
were repeated; a program wrote lines that are not replies.
"""

IS_ESTIMATE = "imagined"
"""Key of `SystemContext.extra` whose value is true in an estimate."""
LINES = "lines"
"""Key of `SystemContext.extra`: a function that reads the turns of all cases of the data set, if
that is quick. Systems use it to recognise another case's content; they must not store the turns.
"""

DumpItem = Mapping[str, Any]
"""An item that a system extracted or wrote, as JSON with at least `kind` and `text`."""


@dataclass(frozen=True)
class SystemSettings:
    """Base of a system's settings. Subclasses are built from the YAML of `system=`.

    The metadata of each field is `INGEST`, `ANSWER` or `RUNTIME`, and may have bounds.
    """

    is_served: ClassVar[bool] = False
    """Whether the memory is another program or service: memeval can't see its code or calls."""

    def __post_init__(self) -> None:
        check_fields(self, "system")

    @property
    def max_shown(self) -> int | None:
        """Maximum chunks shown, overriding the run's `top_k`; None uses the run's."""
        return None

    @property
    def own_prompt(self) -> bool:
        """Whether the system answers with its own prompt under these settings."""
        return False

    @property
    def own_server(self) -> bool:
        """Whether the system's own server calls models, which memeval can't limit or predict."""
        return False


NOTHING_FITS = "nothing_fits"
"""Remark: the best text was larger than the whole budget."""


class Reader(Protocol):
    """Answers a query from a context under the run's prompt template, which all systems share."""

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        """The reply from the texts of a context, in the order shown.

        `order` lists the positions of the texts, the most important first: if they exceed
        `context_tokens`, the last ones are left out. Empty means that the texts are in this order.

        Raises `ModelError` if the model's call failed.
        """
        ...


def latest_first(count: int, *, after: int = 0) -> list[int]:
    """The order of `count` texts: the first `after` texts, then the others, latest first."""
    return [*range(after), *reversed(range(after, count))]


@dataclass(frozen=True, slots=True)
class ReaderReply:
    """The reader's reply to a query."""

    text: str
    """The final answer."""
    raw: str | None
    """The whole reply if it contains more than the final answer."""
    context_tokens: int
    """Tokens of the context, counted offline."""

    def as_answer(
        self,
        *,
        retrieved: tuple[Retrieved, ...] | None = None,
        ranking: tuple[tuple[str, ...], ...] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> Answer:
        """A system's answer, built from this reply."""
        return Answer(
            text=self.text,
            raw=self.raw,
            retrieved=retrieved,
            ranking=ranking,
            context_tokens=self.context_tokens,
            notes=notes or {},
        )


@dataclass(frozen=True)
class SystemContext:
    """The parts that a system gets from the engine. They meter, cache and retry calls, so a system
    does not count tokens itself.
    """

    reader: Reader
    """Answers under the run's template, or in the style that `answer_style` names."""
    model: LanguageModel
    """The model in the role `llm.ingest`, for systems that call one while they ingest; answers come
    from the reader.
    """
    embedder: Embedder
    """The run's embedder."""
    top_k: int
    """Maximum chunks for the reader."""
    seed: int
    """Seed of this repeat."""
    case_id: str
    """Name of the case, for systems that keep one store for several cases. It differs at each
    checkpoint and reveals nothing about the questions.
    """
    run_sync: Callable[[Awaitable[Any]], Any]
    """Waits for an awaitable from a worker thread, for libraries with synchronous callbacks."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other values: `origin` names the run; `imagined` is true for an estimate (no requests)."""
    reranker: Callable[[str], Reranker | None] = build_named
    """Builds the run's reranker; returns None if nothing is reranked.

    Its argument is the system's own reranker setting, which applies under `reranker=default`. In a
    run, a reranker at an endpoint shares the endpoint's limit with the models. The default builds
    only rerankers without an endpoint.
    """


class MemorySystem(ABC):
    """One memory of one case.

    Every method below `needs_language_model` may be plain or `async`. Plain methods run in a worker
    thread if `in_thread` is set, else on the event loop, as a plain `recall` does.

    A failure is an exception: the engine turns it into the status of the affected records.
    """

    settings_type: ClassVar[type[SystemSettings]] = SystemSettings
    in_thread: ClassVar[bool] = True
    """False for systems whose plain methods are quick and take no lock."""
    wants_evidence: ClassVar[bool] = False
    """True only for the `oracle` control: it gets an `OracleQuery`."""
    ranks_part: ClassVar[bool] = False
    """True if the ranking omits a part of the memory that the reader still sees. Its recall can't
    be compared with that of a system that ranks everything, and every table says so.
    """
    own_prompt: ClassVar[bool] = False
    """True for a system that answers with its own prompt, not the reader's. Every table says so."""

    def __init__(self, settings: Any, parts: SystemContext) -> None:
        self.settings = settings
        self.parts = parts

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        """Whether a model is called while memory is built.

        The model and the seed are then part of the memory's identity.
        """
        return True

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        """Names of the prompt templates (`memeval.llm.prompts`) that are used during the ingest.

        Their text is part of the memory's identity.
        """
        return ()

    @classmethod
    def answer_style(cls, settings: Any) -> str | None:
        """The answer style (`short`, `cot`) that replaces the style of the run's prompt.

        None, the default, keeps the run's style. Every table shows a system's own style.
        """
        return None

    @classmethod
    def resolve_settings(cls, settings: Any, *, has_language_model: bool) -> Any:
        """The settings, with a value for each setting that depends on the run's model.

        Called once, before anything else reads the settings. The default changes nothing. Raises
        `UserError` for settings that can't be met on this machine.
        """
        return settings

    @classmethod
    def check_use(cls, settings: Any, *, reader: str, writer: str) -> None:
        """Raises `UserError` for settings that are incompatible with the run's reader or writer.

        `reader` is `direct` or `tools`, `writer` is `chunks` or `tools`. The default allows all.
        """

    @classmethod
    def knows_users(cls, settings: Any) -> bool:
        """Whether the system keeps several users in one store, and separates them by the `user` of
        chunks, queries and requests.

        Under `system.tenants=shared`, a built-in system without this support gets one instance per
        user.
        """
        return False

    @classmethod
    def flags(cls, settings: Any) -> tuple[str, ...]:
        """Words for the column `flags` of every table: caveats for comparisons, by the settings."""
        return ()

    @classmethod
    def needs_language_model(cls, settings: Any) -> bool:
        """Whether the system sends its own prompts to the model.

        The offline reader can't answer them.
        """
        return False

    @classmethod
    def files(cls, settings: Any) -> tuple[Path, ...]:
        """Files whose content is part of the memory's identity, in addition to the class's code."""
        return ()

    @abstractmethod
    def reset(self) -> Awaitable[None] | None:
        """Forgets everything."""

    @abstractmethod
    def ingest(self, chunk: MemoryChunk) -> Awaitable[None] | None:
        """Stores one chunk. Chunks come in order of time."""

    def consolidate(self) -> Awaitable[None] | None:
        """Called after the last chunk and before the first question.

        In a case with checkpoints, chunks may follow, and then it is called again.
        """
        return None

    def await_ready(self) -> Awaitable[None] | None:
        """Waits until everything ingested can be found, for memories that index in the background.

        Called once, after `consolidate`. Its time is reported next to the ingest time.
        """
        return None

    def compress(self, retained: Sequence[MemoryChunk]) -> Awaitable[None] | None:
        """Called when the compression turn is reached: the agent's window is cut to `retained`.

        `retained` contains chunks as they were ingested, even if something was forgotten or
        corrected since. Default: nothing is lost.
        """
        return None

    def health(self) -> IngestHealth | Awaitable[IngestHealth | None] | None:
        """Numbers of stored and lost chunks, for a system that can lose some and continue.

        Called after `consolidate`. After a `load`, only chunks ingested since then count. With
        None, the default, the engine counts the chunks, and counts one as lost for each model call
        that failed or whose reply was cut.
        """
        return None

    def dump(self) -> Iterable[DumpItem] | Awaitable[Iterable[DumpItem] | None] | None:
        """The facts, summaries or entities that the system extracted or wrote, for people to read.

        Each item is plain JSON with at least `kind` and `text`, and with `turn_ids` and `time` if
        they are known. Called after `consolidate` or `load`, with the same result. None, the
        default, means that the system keeps only the chunks.
        """
        return None

    def forget(self, request: ForgetRequest) -> int | Awaitable[int | None] | None:
        """Removes what a request names, immediately; returns how many items it removed.

        None, the default, means that the system can't forget, which the run reports.
        """
        return None

    def correct(self, request: CorrectRequest) -> int | Awaitable[int | None] | None:
        """Replaces the old value with the new one; returns how many items it changed.

        None, the default, means that the system can't correct, which the run reports.
        """
        return None

    def probe(
        self, query: Query, depth: int
    ) -> Sequence[Retrieved] | Awaitable[Sequence[Retrieved] | None] | None:
        """The first `depth` results for a query, without an answer, to check whether something is
        gone.

        None, the default, means that the system can't be searched.
        """
        return None

    @abstractmethod
    def answer(self, query: Query) -> Answer | Awaitable[Answer]:
        """Answers one question. Questions of a case may overlap."""

    def tools(self) -> Sequence[Tool] | Awaitable[Sequence[Tool]]:
        """Tools that a model may call: under `reader=tools` in place of `answer`, and under
        `writer=tools` in place of `ingest`.

        Called before the first question, and before the first session is written. By default there
        are none: `reader=tools` and `writer=tools` then reject the system. Without a tool that
        writes, the writer gets one that stores a note through `ingest`.
        """
        return ()

    def save(self, folder: Path) -> Awaitable[None] | None:
        """Writes the memory into the existing empty `folder`.

        After `load` in another process, the memory must answer identically. Raises
        `NotImplementedError`, the default, if the memory can't be saved: it is then built again.
        """
        raise NotImplementedError

    def load(self, folder: Path) -> Awaitable[None] | None:
        """Reads what `save` wrote into a fresh instance.

        Raises any error if the folder is damaged: the memory is then built again.
        """
        raise NotImplementedError("it can be saved, but has no load()")

    def close(self) -> Awaitable[None] | None:
        """Releases files, collections and connections."""
        return None


class QuickSystem(MemorySystem):
    """A system in this process that starts empty. It uses a model at ingest only if it has prompts.

    Its methods are quick: they run on the event loop.
    """

    in_thread = False

    def __init__(self, settings: Any, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return bool(cls.ingest_templates(settings))


class RecallSystem(MemorySystem):
    """A system that only chooses what the reader is shown.

    The subclass ranks; this class cuts the ranking at `top_k` and asks the reader.
    """

    ranking_depth: ClassVar[int] = RANKING_DEPTH
    """Minimum depth that `recall` is called with."""

    @abstractmethod
    def recall(
        self, query: Query, depth: int
    ) -> Sequence[Retrieved] | Awaitable[Sequence[Retrieved]]:
        """Chunks for the query, best first: at most `depth`, or all if ranking is cheap."""

    async def probe(self, query: Query, depth: int) -> Sequence[Retrieved] | None:
        """The first results, and the chunks that the reader always sees in addition."""
        ranked = await _recalled(self, query, depth)
        always = [Retrieved(text=chunk.text, turn_ids=chunk.turn_ids) for chunk in self.window()]
        return [*ranked[:depth], *always]

    def window(self) -> Sequence[MemoryChunk]:
        """Chunks that the reader always sees in addition to the recalled ones.

        After a compression, that is the agent's window.
        """
        return ()

    def tools(self) -> Sequence[Tool] | Awaitable[Sequence[Tool]]:
        return (search_tool(self.recall, self.parts.top_k),)

    async def answer(self, query: Query) -> Answer:
        ranked = await _recalled(self, query, max(self.parts.top_k, self.ranking_depth))
        return await self.answer_from(query, ranked)

    async def answer_from(self, query: Query, ranked: Sequence[Retrieved]) -> Answer:
        """The reader's answer from the first `top_k` of a ranking."""
        # From here on the reader works, not the system.
        with current_ledger().own_work.excluded():
            chosen = tuple(ranked[: self.parts.top_k])

            shown = [chunk.text for chunk in chosen]
            shown += [chunk.text for chunk in self.window() if chunk.text not in shown]
            order: Sequence[int] = ()
            # Recalled chunks alone are in the order of the ranking anyway.
            if len(shown) > len(chosen):
                order = latest_first(len(shown), after=len(chosen))

            reply = await self.parts.reader.answer(query, shown, order=order)

            ranking = tuple(map(attrgetter("turn_ids"), ranked))
            return reply.as_answer(retrieved=chosen, ranking=ranking)


async def _recalled(system: RecallSystem, query: Query, depth: int) -> Sequence[Retrieved]:
    """The result of `recall`. Raises `TypeError` if it is not a list of `Retrieved`."""
    # Not a method: a class of one's own may well have a helper of the same name.
    ranked = system.recall(query, depth)
    if isinstance(ranked, Awaitable):
        ranked = await ranked
    # Not an `isinstance` check for `Sequence`: an array can be sliced, too.
    if isinstance(ranked, str | Mapping) or not hasattr(ranked, "__getitem__"):
        name = "None" if ranked is None else type(ranked).__name__
        raise TypeError(f"it must return a list of Retrieved, but returned {name}")

    for kind in set(map(type, ranked)):
        if not issubclass(kind, Retrieved):
            raise TypeError(f"its list must contain Retrieved only, but contains {kind.__name__}")

    return ranked
