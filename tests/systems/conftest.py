"""A stub reader, a small conversation, and a driver that calls systems as the engine does."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memeval.config.settings import read_settings
from memeval.llm.contract import Completion, Prompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.model import LanguageModel
from memeval.records import Answer, MemoryChunk, Query, Role, Usage
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.systems.base import MemorySystem, ReaderReply, SystemContext
from memeval.systems.registry import system_class

DATES = [datetime(2023, 5, 8, 13, 56), datetime(2023, 6, 20, 9, 5)]
SESSIONS = [
    [
        ("Ann", "I adopted a puppy called Biscuit yesterday"),
        ("Bob", "Wow, congratulations! I went hiking in Norway last week"),
        ("Ann", "Norway must be lovely, I have only been to Portugal"),
        ("Bob", "My sister Clara is a violinist in Lisbon"),
        ("Ann", "Bye!"),
    ],
    [
        ("Bob", "I quit my job at the bank to open a bakery"),
        ("Ann", "What will the bakery sell besides sourdough bread?"),
        ("Bob", "Cinnamon rolls, and a cake for Biscuit's birthday"),
        ("Ann", "Bye!"),
    ],
]


def conversation() -> list[MemoryChunk]:
    """One chunk per turn, two sessions, and one text that occurs twice."""
    return [
        MemoryChunk(
            f"D{s}:{t}",
            f"{speaker}: {text}",
            DATES[s - 1],
            f"session_{s}",
            (f"D{s}:{t}",),
            (speaker,),
        )
        for s, turns in enumerate(SESSIONS, 1)
        for t, (speaker, text) in enumerate(turns, 1)
    ]


def by_session(chunks: Sequence[MemoryChunk]) -> list[MemoryChunk]:
    """The same conversation with granularity `session`."""
    joined = []
    for name in dict.fromkeys(chunk.session_id for chunk in chunks):
        members = [chunk for chunk in chunks if chunk.session_id == name]
        content = "\n".join(member.content for member in members)
        turns = tuple(turn for member in members for turn in member.turn_ids)
        joined.append(MemoryChunk(name, content, members[0].time, name, turns, ("Ann", "Bob")))
    return joined


class StubReader:
    """Answers with the context itself, and remembers every context and its order."""

    def __init__(self) -> None:
        self.contexts: list[list[str]] = []
        self.orders: list[list[int]] = []

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        self.contexts.append(list(context))
        self.orders.append(list(order))
        return ReaderReply(
            text=" | ".join(context),
            raw=None,
            context_tokens=sum(len(unit.split()) for unit in context),
        )


class ScriptedModel(LanguageModel):
    """Computes replies from the prompt's messages, and remembers every prompt."""

    name = "scripted"

    def __init__(self, reply: Callable[[list[dict[str, str]]], str]) -> None:
        self.reply = reply
        self.calls: list[tuple[Prompt, Role, int]] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        self.calls.append((prompt, role, seed))
        text = self.reply([dict(message) for message in prompt.messages()])
        return Completion(text, Usage(role, self.name, "offline", 1, 1), latency_s=0.0)


class Driver:
    """Calls a system's methods as the engine does.

    Synchronous methods run in a thread if the system sets `in_thread`, otherwise on the event loop.
    """

    def __init__(self, runner: asyncio.Runner, system: MemorySystem, reader: StubReader) -> None:
        self._runner = runner
        self.system = system
        self.reader = reader

    def call(self, name: str, *args: Any) -> Any:
        return self._runner.run(self._call(getattr(self.system, name), *args))

    async def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        if self.system.in_thread and not inspect.iscoroutinefunction(method):
            return await asyncio.to_thread(method, *args)
        result = method(*args)
        return await result if inspect.isawaitable(result) else result

    def remember(
        self, chunks: Sequence[MemoryChunk], compress_after: int | None = None, retain: int = 2
    ) -> None:
        self.call("reset")
        for number, chunk in enumerate(chunks, 1):
            self.call("ingest", chunk)
            if number == compress_after:
                self.call("compress", chunks[max(0, number - retain) : number])
        self.call("consolidate")

    def ask(self, query: Query) -> Answer:
        answer: Answer = self.call("answer", query)
        return answer

    def ask_at_once(self, queries: Sequence[Query]) -> list[Answer]:
        async def all_of_them() -> list[Answer]:
            return list(
                await asyncio.gather(*(self._call(self.system.answer, query) for query in queries))
            )

        return self._runner.run(all_of_them())


def offline_model(name: str, settings: Mapping[str, Any]) -> LanguageModel:
    """The offline model if the system calls a model at ingest, otherwise a model that fails the
    test.
    """
    kind = system_class(name)
    if kind.uses_llm_at_ingest(read_settings(kind.settings_type, settings)):
        return ExtractiveModel()
    return ScriptedModel(lambda messages: pytest.fail("no model should be asked"))


Builder = Callable[..., Driver]


@pytest.fixture
def build() -> Iterator[Builder]:
    """Builds drivers over one event loop, and closes their systems afterwards."""
    built: list[Driver] = []
    with asyncio.Runner() as runner:

        def run_sync(awaitable: Awaitable[Any]) -> Any:
            async def wait() -> Any:
                return await awaitable

            return asyncio.run_coroutine_threadsafe(wait(), runner.get_loop()).result()

        def make(
            name: str,
            given: Mapping[str, Any] | None = None,
            *,
            top_k: int = 3,
            case_id: str = "conv 26",
            model: LanguageModel | None = None,
            **settings: Any,
        ) -> Driver:
            settings = {**(given or {}), **settings}
            reader = StubReader()
            parts = SystemContext(
                reader=reader,
                model=model or offline_model(name, settings),
                embedder=CharTfidfEmbedder(width=512),
                top_k=top_k,
                seed=7,
                case_id=case_id,
                run_sync=run_sync,
            )
            system = system_class(name)
            own = read_settings(system.settings_type, settings)
            built.append(Driver(runner, system(own, parts), reader))
            return built[-1]

        yield make
        for driver in built:
            driver.system.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "memory"
    place.mkdir()
    return place
