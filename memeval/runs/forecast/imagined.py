"""Imagined endpoints and caches: requests are counted and answered here, and nothing is stored.

The code of a run composes each request, so that a plan counts what a run would send. A model's
replies can't be known: they are made up, in the form that each prompt asks for.
"""

import asyncio
import dataclasses
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.config.paths import cache_dir
from memeval.config.roles import BUILT_IN_MODELS, settings_of_role
from memeval.config.schema import ReaderConfig, WriterConfig
from memeval.llm.cache import Cache
from memeval.llm.cache_contract import CachedEntry, ReplyCache
from memeval.llm.cache_file import connect_to_read
from memeval.llm.contract import Completion, Prompt
from memeval.llm.endpoint import MAX_BYTES, Endpoint, EndpointReply, EndpointSettings
from memeval.llm.metering import Ledger, current_ledger
from memeval.llm.model import LanguageModel, MeteredModel
from memeval.llm.openai import OpenAIModel
from memeval.llm.reply.chat import read_chat
from memeval.llm.tokens import count_tokens
from memeval.pipeline.execute.case_work import CaseWork
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.memory_build import memory_path
from memeval.pipeline.execute.source import CaseAnswers
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections
from memeval.pipeline.open.models import Models, sampling_of
from memeval.records import EvalCase, Role
from memeval.results import VerdictRow
from memeval.results.prices import provider_of
from memeval.runs.forecast.made_up import made_up_message, made_up_vector

T = TypeVar("T")

VECTOR_WIDTH = 64
"""Dimensions of a made-up vector."""
_role: ContextVar[Role] = ContextVar("memeval_imagined_role", default=Role.EMBED)
"""Role of the call under way; embedders and rerankers do not state one."""
_prompt: ContextVar[Prompt] = ContextVar("memeval_imagined_prompt")
"""Prompt of the call under way, if it is one to a model."""


class ExpectedCall(Struct, frozen=True):
    """A request that a run would send."""

    role: Role
    model: str
    provider: str
    address: str
    slots: int
    """Maximum number of requests under way at this endpoint."""
    prompt_tokens: int
    completion_tokens: int
    """Tokens of the made-up reply."""
    most_completion_tokens: int
    """The limit that the request contains."""
    known: bool
    """Whether a run would send exactly this request: it does not depend on a made-up reply."""
    most_calls: int = 1
    """Requests that this one may turn into: for the first request of a tool loop, all that the loop
    allows; for a later one, none.
    """
    most_prompt_tokens: int | None = None
    """Prompt tokens of all of them; None if each is as long as this one."""


class Tally(Struct):
    """Counted requests, and the work that depends on made-up replies."""

    calls: list[ExpectedCall] = field(default_factory=list)
    repeated: Counter[Role] = field(default_factory=Counter)
    """Requests that equal a counted one, whose reply is known."""
    built: set[Path] = field(default_factory=set)
    """Folders of the memories that were built so far."""
    made_up_case: bool = False
    """Whether the memory of the current case depends on a made-up reply."""
    loops: Mapping[Role, ReaderConfig | WriterConfig] = field(default_factory=dict)
    """The limits of the tool loops of the current cell."""
    stored_answers: frozenset[str] = frozenset()
    """Ids of the questions with stored answers, on which the judge's requests depend."""
    made_up: int = 0
    """Number of uses of made-up replies."""
    # The ledgers are kept, and not only their ids: Python reuses the id of a dead object.
    _ledgers: dict[int, Ledger] = field(default_factory=dict)

    def note_made_up(self) -> None:
        """Notes that the current work continues with a made-up reply."""
        ledger = current_ledger()
        self._ledgers[id(ledger)] = ledger
        self.made_up += 1

    def is_known(self, role: Role) -> bool:
        """Whether the current request depends on no made-up reply."""
        ledger = current_ledger()
        if role is Role.JUDGE:
            return ledger.scope in self.stored_answers

        return not self.made_up_case and id(ledger) not in self._ledgers

    def begin_case(self) -> None:
        """Forgets the requests of the previous case."""
        self._ledgers.clear()
        self.made_up_case = False


class ImaginedEndpoint(Endpoint):
    """Counts each request, and makes up its reply."""

    def __init__(self, settings: EndpointSettings, tally: Tally) -> None:
        super().__init__(settings)
        self._tally = tally

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], T],
        *,
        most_bytes: int = MAX_BYTES,
        explain: object = None,
    ) -> EndpointReply[T]:
        role = Role.EMBED
        if path == "/chat/completions":
            role = _role.get()
            payload = _completion(await made_up_message(_prompt.get(), role))
            usage = read_chat(payload, body["messages"], tools="tools" in body).usage
            tokens = usage["prompt_tokens"], usage["completion_tokens"]
        elif path == "/embeddings":
            payload, tokens = _vectors(body)
        else:
            payload, tokens = _ranking(body)

        call = ExpectedCall(
            role=role,
            model=str(body.get("model", "")),
            provider=provider_of(self.settings.base_url),
            address=self.settings.base_url,
            slots=self.settings.max_concurrency,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            most_completion_tokens=max(
                body.get("max_tokens") or 0, body.get("max_completion_tokens") or 0
            ),
            known=self._tally.is_known(role),
        )
        self._tally.calls.append(_in_loop(call, body, self._tally.loops.get(role)))
        # Concurrent requests are all counted before any of them gets its reply.
        await asyncio.sleep(0)
        return EndpointReply(read(payload), latency_s=0.0, wait_s=0.0)


def _in_loop(
    call: ExpectedCall, body: Mapping[str, Any], limits: ReaderConfig | WriterConfig | None
) -> ExpectedCall:
    """The call with the upper bounds of its tool loop; unchanged if it is not in a loop."""
    says = {message["role"] for message in body.get("messages", ())}
    if limits is None or not ("tools" in body or "tool" in says):
        return call
    if "assistant" in says:
        return replace(call, most_calls=0, most_prompt_tokens=0)

    # At worst, the first step gets all results that are allowed, and each later one sends them on.
    steps, results = limits.max_steps, limits.max_tool_calls * limits.max_result_tokens
    replies = call.most_completion_tokens * steps * (steps - 1) // 2
    sent = steps * call.prompt_tokens + (steps - 1) * results + replies
    return replace(call, most_calls=steps, most_prompt_tokens=sent)


def _completion(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def _vectors(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[int, int]]:
    texts = list(body["input"])
    width = body.get("dimensions") or VECTOR_WIDTH
    vectors = [made_up_vector(text, width) for text in texts]
    rows = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return {"data": rows}, (sum(map(count_tokens, texts)), 0)


def _ranking(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[int, int]]:
    documents = body["documents"]
    tokens = sum(count_tokens(body["query"]) + count_tokens(text) for text in documents)
    numbers = range(len(documents))
    rows = [{"index": number, "relevance_score": 1.0 / (1 + number)} for number in numbers]
    return {"results": rows}, (tokens, 0)


class OverlaidCache(Cache):
    """A cache of this home, opened only for reading, and above it the replies that were made up."""

    def __init__(self, path: Path, name: str, tally: Tally) -> None:
        """The folder of `path` is for the locks of requests under way."""
        # Without calling the constructor of `Cache`, which creates a file.
        self.path, self._tally = path, tally
        self._made_up: dict[str, CachedEntry] = {}
        self._is_of_vectors = name == "embeddings"
        self._lock = threading.Lock()
        self._connection = _open_to_read(cache_dir() / f"{name}.sqlite")

    def get_all(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        entries, others = {}, []
        for key in keys:
            if key in self._made_up:
                entries[key] = self._made_up[key]
            else:
                others.append(key)

        if entries:
            self._tally.note_made_up()
            role = Role.EMBED if self._is_of_vectors else _role.get()
            self._tally.repeated[role] += len(entries)

        return entries | super().get_all(others)

    def _select(self, keys: list[str]) -> list[tuple[Any, ...]]:
        try:
            return super()._select(keys)
        except sqlite3.Error:  # a run will repair and report it
            return []

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return work(self._connection)

    def _reopen_moved(self) -> bool:
        return False

    def put_all(
        self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int] | None = None
    ) -> None:
        for key, value in values.items():
            part = tokens.get(key) if tokens else None
            self._made_up[key] = CachedEntry(value, origin, part)

        self._tally.note_made_up()

    def delete(self, key: str) -> None:
        self._made_up.pop(key, None)

    forget = delete

    def note_unsound(self, key: str) -> None:
        """Does nothing: a run drops the entry, and reports it."""

    _drop = note_unsound

    def close(self) -> None:
        self._connection.close()


def _open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing; to an empty database if the file can't be opened."""
    try:
        return connect_to_read(path)
    except sqlite3.Error:
        return sqlite3.connect(":memory:")


class ImaginedConnections(Connections):
    """Connections that send nothing."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        """`folder` is for the locks, and is temporary."""
        super().__init__()
        self._folder, self._tally = folder, tally

    def endpoint(self, settings: EndpointSettings) -> Endpoint:
        return ImaginedEndpoint(settings, self._tally)

    def cache(self, name: str) -> ReplyCache:
        if name not in self._caches:
            path = self._folder / f"{name}.sqlite"
            self._caches[name] = OverlaidCache(path, name, self._tally)

        return self._caches[name]


class _CallRecorder(MeteredModel):
    """A model that also records the role and the prompt of each call."""

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        of_role, of_prompt = _role.set(role), _prompt.set(prompt)
        try:
            return await super().complete(prompt, role=role, seed=seed)
        finally:
            _prompt.reset(of_prompt)
            _role.reset(of_role)


class ImaginedModels(Models):
    """A cell's models, which record the role and the prompt of each call."""

    meter = _CallRecorder

    def _unmetered(self, role: str) -> LanguageModel:
        settings = settings_of_role(self._config.llm, role)
        if settings.name in BUILT_IN_MODELS:
            return super()._unmetered(role)

        # A package's model would really be called: an imagined endpoint stands in for it.
        address = f"llm={settings.name}"
        called = dataclasses.replace(
            settings, model=settings.model or settings.name, base_url=address
        )
        endpoint = self.endpoint(
            EndpointSettings(
                base_url=address,
                api_key="",
                max_concurrency=settings.max_concurrency,
                timeout_s=settings.timeout_s,
                patience_s=settings.patience_s,
            )
        )
        # A cache of the cell's own: cells do not share the replies of such a model.
        cache = self.cache(f"{settings.name}-{self.origin}")
        return OpenAIModel(endpoint, sampling_of(called, role), cache, self.origin)


class ImaginedWork(CaseWork):
    """Work that continues even if a made-up reply is invalid."""

    # A run stops after many unreadable verdicts. Here a made-up reply may be invalid.
    def check_readable(self, row: VerdictRow) -> None: ...


class ImaginedSource(MemorySource):
    """Memories that are built and not saved."""

    def __init__(self, cell: Cell, models: Models, tally: Tally) -> None:
        super().__init__(cell, models, saves=False)
        self._tally = tally

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        tally, folder = self._tally, memory_path(self._cell, case.case_id, seed)
        tally.begin_case()
        made_up, repeated = tally.made_up, tally.repeated.copy()
        answers = await super().open(case, seed)
        tally.made_up_case = tally.made_up > made_up
        if folder in tally.built:  # a run would load it
            tally.repeated = repeated

        tally.built.add(folder)
        return answers
