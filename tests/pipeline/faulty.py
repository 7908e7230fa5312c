"""Memory systems that misbehave, each in one way: `faulty:<Name>`.

They are created from the tables `METHODS` and `ANSWERS`.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memeval.records import Answer, MemoryChunk, Query, Retrieved
from memeval.systems.base import MemorySystem, RecallSystem

NEVER = threading.Event()
CALLED = "faulty: called"


def say_called() -> None:
    """Reports on standard error that the hanging method was reached."""
    sys.stderr.write(CALLED + "\n")
    sys.stderr.flush()


class Recalls(RecallSystem):
    """Shows the reader its last chunk."""

    def reset(self) -> None:
        self.chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        last = self.chunks[-1]
        return [Retrieved(last.text, last.turn_ids)]


class RanksSome(Recalls):
    """Knows the ranking of every second question only."""

    known = False

    async def answer(self, query: Query) -> Answer:
        answer = await super().answer(query)
        self.known = not self.known
        return answer if self.known else replace(answer, ranking=None)


class Sound(MemorySystem):
    """A system without faults; it always gives the same answer."""

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> Any:
        self.chunks.append(chunk)

    def answer(self, query: Query) -> Any:
        return Answer("7 May 2023")

    def save(self, folder: Path) -> Any:
        (folder / "n").write_text(str(len(self.chunks)), encoding="utf-8")

    def load(self, folder: Path) -> Any:
        self.reset()


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Colour(Enum):
    RED = "red"


class Odd:
    def __repr__(self) -> str:
        raise ValueError("no repr")


def raises(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    def fault(*arguments: Any) -> Any:
        raise error

    return fault


def recurse(*arguments: Any) -> Any:
    return recurse(*arguments)


def hang(*arguments: Any) -> None:
    say_called()
    NEVER.wait()


async def hang_async(*arguments: Any) -> None:
    await asyncio.Event().wait()


async def hang_stubbornly(*arguments: Any) -> None:
    for _ in range(3):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def cancel_itself(*arguments: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def stop_the_loop(*arguments: Any) -> Any:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return Answer("7 May 2023")


async def close_the_loop(*arguments: Any) -> Any:
    asyncio.get_running_loop().close()


def generator(*arguments: Any) -> Iterator[Any]:
    yield Answer("7 May 2023")


async def async_generator(*arguments: Any) -> Any:
    yield Answer("7 May 2023")


def cyclic() -> dict[str, Any]:
    notes: dict[str, Any] = {"name": "loop"}
    notes["self"] = notes
    return notes


def deep() -> dict[str, Any]:
    notes: dict[str, Any] = {}
    for _ in range(3000):
        notes = {"deeper": notes}
    return notes


def changes(action: Callable[[], Any]) -> Callable[..., Any]:
    """A method that changes its process and answers correctly."""

    def fault(*arguments: Any) -> Any:
        action()
        return Answer("7 May 2023")

    return fault


def thread_left_behind() -> None:
    threading.Thread(target=NEVER.wait, daemon=True).start()


def swapped_variables() -> None:
    os.environ.pop("UNRELATED", None)
    os.environ["MEMEVAL_ADDED"] = "1"


def junk_on_stdout() -> None:
    sys.stdout.write("\x1b[2J\x00\x07")


def other_stdout() -> None:
    sys.stdout = None  # type: ignore[assignment]


METHODS: dict[str, tuple[str, Any, str]] = {}
"""Name -> method, what it does, the resulting status of the questions."""

for method, outcome in (
    ("__init__", "ingest_failed"),
    ("reset", "ingest_failed"),
    ("ingest", "ingest_failed"),
    ("consolidate", "ingest_failed"),
):
    for error in (
        ValueError("no"),
        SystemExit(0),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        MemoryError(),
    ):
        METHODS[f"{method.strip('_').title()}Raises{type(error).__name__}"] = (
            method,
            raises(error),
            outcome,
        )
for error in (
    ValueError("no"), SystemExit(0), SystemExit("text"), KeyboardInterrupt(), GeneratorExit(),
    asyncio.CancelledError(), MemoryError(), StopIteration(), StopAsyncIteration(),
    UnspeakableError(), BaseExceptionGroup("g", [SystemExit(1)]), UnicodeError("\ud800\0"),
    OSError(28, "No space left on device"), NotImplementedError(), AssertionError(),
):  # fmt: skip
    METHODS[f"AnswerRaises{type(error).__name__}{len(METHODS)}"] = (
        "answer",
        raises(error),
        "answer_failed",
    )
for error in (
    ValueError("no"),
    SystemExit(0),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
):
    METHODS[f"CloseRaises{type(error).__name__}"] = ("close", raises(error), "ok")
    METHODS[f"SaveRaises{type(error).__name__}"] = ("save", raises(error), "ok")
    METHODS[f"LoadRaises{type(error).__name__}"] = ("load", raises(error), "ok")
METHODS |= {
    "CompressRaises": ("compress", raises(ValueError("no")), "ingest_failed"),
    "HealthRaises": ("health", raises(ValueError("no")), "ingest_failed"),
    "HealthOdd": ("health", lambda self: 7, "ingest_failed"),
    "AnswerRecurses": ("answer", recurse, "answer_failed"),
    "IngestRecurses": ("ingest", recurse, "ingest_failed"),
    "IngestHangs": ("ingest", hang, "ingest_failed"),
    "AnswerHangs": ("answer", hang, "answer_failed"),
    "CloseHangs": ("close", hang, "ok"),
    "SaveHangs": ("save", hang, "ok"),
    "IngestHangsAsync": ("ingest", hang_async, "ingest_failed"),
    "AnswerHangsAsync": ("answer", hang_async, "answer_failed"),
    "AnswerHangsStubbornly": ("answer", hang_stubbornly, "answer_failed"),
    "AnswerCancelsItself": ("answer", cancel_itself, "answer_failed"),
    "AnswerStopsTheLoop": ("answer", stop_the_loop, "ok"),
    "AnswerClosesTheLoop": ("answer", close_the_loop, "answer_failed"),
    "AnswerYields": ("answer", generator, "answer_failed"),
    "AnswerYieldsAsync": ("answer", async_generator, "answer_failed"),
    "IngestYields": ("ingest", generator, "ingest_failed"),
    "IngestYieldsAsync": ("ingest", async_generator, "ingest_failed"),
    "IngestTakesNothing": ("ingest", lambda self: None, "ingest_failed"),
    "AnswerTakesNothing": ("answer", lambda self: None, "answer_failed"),
    "MutatesTheChunk": (
        "ingest",
        lambda self, chunk: object.__setattr__(chunk, "turn_ids", 5),
        "ok",
    ),
    "ChangesFolder": ("answer", changes(lambda: os.chdir("/")), "ok"),
    "ChangesHome": (
        "answer",
        changes(lambda: os.environ.update(HOME="/nowhere", MEMEVAL_HOME="/nowhere")),
        "ok",
    ),
    "DeletesHome": ("answer", changes(lambda: os.environ.pop("MEMEVAL_HOME", None)), "ok"),
    "SwapsVariables": ("answer", changes(swapped_variables), "ok"),
    "ChangesSeeds": ("answer", changes(lambda: (random.seed(0), np.random.seed(0))), "ok"),
    "IgnoresSignals": (
        "ingest",
        lambda self, chunk: signal.signal(signal.SIGINT, signal.SIG_IGN),
        "ingest_failed",
    ),
    "LeavesThreads": ("answer", changes(thread_left_behind), "ok"),
    "PrintsJunk": ("answer", changes(junk_on_stdout), "ok"),
    "DropsStdout": ("answer", changes(other_stdout), "ok"),
    "Warns": ("answer", changes(lambda: warnings.warn("careful", stacklevel=1)), "answer_failed"),
}


async def exit_in_a_task(*arguments: Any) -> Any:
    async def leave() -> None:
        sys.exit(0)

    task = asyncio.create_task(leave())
    await asyncio.wait({task})
    assert isinstance(task.exception(), SystemExit)
    return Answer("7 May 2023")


async def exit_in_a_group(*arguments: Any) -> Any:
    async def leave() -> None:
        sys.exit(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(leave())


METHODS |= {
    "ExitsInATask": ("answer", exit_in_a_task, "ok"),
    "ExitsInAGroup": ("answer", exit_in_a_group, "answer_failed"),
    "AnswerIsNoMethod": ("answer", 5, "answer_failed"),
    "AnswerCannotBeLookedUp": ("answer", property(raises(ValueError("no"))), "answer_failed"),
    "ThreadsCannotBeLookedUp": ("in_thread", property(raises(ValueError("no"))), "ingest_failed"),
}


class Text(str):
    """A subclass of str."""


@dataclass(frozen=True)
class Hit(Retrieved):
    """A subclass with a field of any kind."""

    node: Any = None


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def unit(text: Any = "t", turns: Any = (), score: Any = None, time: Any = None) -> Answer:
    return Answer("7 May 2023", retrieved=(Retrieved(text, turns, score, time=time),))


def noted(**notes: Any) -> Answer:
    return Answer("7 May 2023", notes=notes)


ANSWERS: dict[str, tuple[Callable[[], Any], str]] = {
    "None": (lambda: None, "answer_failed"),
    "Str": (lambda: "7 May 2023", "answer_failed"),
    "Int": (lambda: 7, "answer_failed"),
    "Dict": (lambda: {"text": "7 May 2023"}, "answer_failed"),
    "List": (lambda: [Answer("x")], "answer_failed"),
    "Class": (lambda: Answer, "answer_failed"),
    "TextNone": (lambda: Answer(None), "answer_failed"),
    "TextInt": (lambda: Answer(7), "answer_failed"),
    "TextBytes": (lambda: Answer(b"7 May 2023"), "answer_failed"),
    "TextDecimal": (lambda: Answer(Decimal(7)), "answer_failed"),
    "TextEmpty": (lambda: Answer(""), "answer_failed"),
    "TextBlank": (lambda: Answer(" \n\t"), "answer_failed"),
    "TextHuge": (lambda: Answer("x" * 50_000_000), "answer_failed"),
    "ChunkHuge": (lambda: Answer("x", retrieved=(Retrieved("x" * 2_000_000, ()),)), "ok"),
    "TextNumpy": (lambda: Answer(np.str_("7 May 2023")), "ok"),
    "TextSubclass": (lambda: Answer(Text("7 May 2023")), "ok"),
    "TextSurrogate": (lambda: Answer("7 May\ud800 2023"), "ok"),
    "TextNul": (lambda: Answer("7 May\0 2023"), "ok"),
    "RawInt": (lambda: Answer("x", raw=5), "answer_failed"),
    "RawSurrogate": (lambda: Answer("x", raw="\udfff"), "ok"),
    "TokensText": (lambda: Answer("x", context_tokens="12"), "answer_failed"),
    "TokensNegative": (lambda: Answer("x", context_tokens=-1), "answer_failed"),
    "TokensNaN": (lambda: Answer("x", context_tokens=float("nan")), "answer_failed"),
    "TokensBool": (lambda: Answer("x", context_tokens=True), "answer_failed"),
    "TokensHuge": (lambda: Answer("x", context_tokens=10**400), "answer_failed"),
    "TokensFraction": (lambda: Answer("x", context_tokens=1.5), "answer_failed"),
    "TokensNumpy": (lambda: Answer("x", context_tokens=np.int64(12)), "ok"),
    "TokensFloat": (lambda: Answer("x", context_tokens=12.0), "ok"),
    "RetrievedTexts": (lambda: Answer("x", retrieved=["a", "b"]), "answer_failed"),
    "RetrievedDicts": (lambda: Answer("x", retrieved=[{"text": "a"}]), "answer_failed"),
    "RetrievedText": (lambda: Answer("x", retrieved="abc"), "answer_failed"),
    "RetrievedInt": (lambda: Answer("x", retrieved=3), "answer_failed"),
    "RetrievedList": (lambda: Answer("x", retrieved=[Retrieved("t", [])]), "ok"),
    "TurnsUnknown": (lambda: unit(turns=("nowhere",)), "answer_failed"),
    "TurnsInts": (lambda: unit(turns=(1, 2)), "answer_failed"),
    "TurnsText": (lambda: unit(turns="D1:1"), "answer_failed"),
    "TurnsNone": (lambda: unit(turns=None), "answer_failed"),
    "UnitTextNone": (lambda: unit(text=None), "answer_failed"),
    "ScoreNaN": (lambda: unit(score=float("nan")), "answer_failed"),
    "ScoreInf": (lambda: unit(score=float("inf")), "answer_failed"),
    "ScoreText": (lambda: unit(score="high"), "answer_failed"),
    "ScoreHuge": (lambda: unit(score=10**400), "answer_failed"),
    "ScoreNumpy": (lambda: unit(score=np.float32(0.5)), "ok"),
    "TimePandas": (lambda: unit(time=pd.Timestamp("2023-05-07", tz="Asia/Kolkata")), "ok"),
    "TimeMissing": (lambda: unit(time=pd.NaT), "ok"),
    "TimeText": (lambda: unit(time="7 May 2023"), "answer_failed"),
    "RankingNumpy": (lambda: Answer("x", ranking=((np.str_("D1:1"),),)), "ok"),
    "ChunkDict": (
        lambda: Answer("x", retrieved=[{"text": "t", "turn_ids": ()}]),
        "answer_failed",
    ),
    "ChunkSubclass": (lambda: Answer("x", retrieved=[Hit("t", (), node=NEVER)]), "ok"),
    "ChunksDeque": (lambda: Answer("x", retrieved=deque([Retrieved("t", deque())])), "ok"),
    "TurnsItself": (lambda: unit(turns=ENDLESS), "answer_failed"),
    "RankingTexts": (lambda: Answer("x", ranking=("a", "b")), "answer_failed"),
    "RankingInts": (lambda: Answer("x", ranking=((1,),)), "answer_failed"),
    "RankingLists": (lambda: Answer("x", ranking=((["D1:1"],),)), "answer_failed"),
    "RankingInt": (lambda: Answer("x", ranking=5), "answer_failed"),
    "RankingSet": (lambda: Answer("x", ranking={("D1:1",)}), "answer_failed"),
    "RankingGenerator": (lambda: Answer("x", ranking=(x for x in "a")), "answer_failed"),
    "RankingUnknown": (lambda: Answer("x", ranking=(("nowhere",),)), "answer_failed"),
    "NotesList": (lambda: Answer("x", notes=[1]), "answer_failed"),
    "NotesNone": (lambda: Answer("x", notes=None), "ok"),
    "NotesNumpy": (
        lambda: noted(a=np.int64(1), b=np.float32(0.5), c=np.arange(3), d=np.bool_(True)),
        "ok",
    ),
    "NotesTimes": (lambda: noted(at=datetime(2023, 5, 7), day=datetime(2023, 5, 7).date()), "ok"),
    "NotesSets": (
        lambda: noted(
            some={3, 1, 2}, frozen=frozenset({"a"}), colour=Colour.RED, path=Path("/x")
        ),
        "ok",
    ),
    "NotesObjects": (
        lambda: noted(thing=object(), odd=Odd(), error=ValueError("x"), function=unit),
        "ok",
    ),
    "NotesCyclic": (lambda: Answer("x", notes=cyclic()), "ok"),
    "NotesDeep": (lambda: Answer("x", notes=deep()), "ok"),
    "NotesHuge": (lambda: noted(big="x" * 10_000_000, many=list(range(1_000_000))), "ok"),
    "NotesNumbers": (lambda: noted(nan=float("nan"), inf=float("inf"), huge=10**400), "ok"),
    "NotesSurrogates": (lambda: noted(**{"\ud800": "\udfff\0"}), "ok"),
    "NotesKeys": (lambda: Answer("x", notes={1: "a", (1, 2): "b", None: "c", Odd(): "d"}), "ok"),
    "NotesBytes": (lambda: noted(raw=b"\xff\x00"), "ok"),
}  # fmt: skip


def made(name: str, method: str, function: Any) -> type[Sound]:
    return type(name, (Sound,), {method: function, "__module__": __name__})


def answering(answer: Callable[[], Any]) -> Callable[[Any, Query], Any]:
    return lambda self, query: answer()


for name, (method, function, _) in METHODS.items():
    globals()[name] = made(name, method, function)
for name, (answer, _) in ANSWERS.items():
    globals()[f"Answers{name}"] = made(f"Answers{name}", "answer", answering(answer))


class OnLoop(Sound):
    """Like `Sound`, but on the event loop."""

    in_thread = False


class BlocksTheLoop(OnLoop):
    def ingest(self, chunk: MemoryChunk) -> None:
        say_called()
        time.sleep(1e6)


class SpinsOnTheLoop(OnLoop):
    def answer(self, query: Query) -> Any:
        say_called()
        while True:
            pass


class BlocksInAsync(OnLoop):
    async def answer(self, query: Query) -> Any:
        await asyncio.sleep(0)
        time.sleep(1e6)  # noqa: ASYNC251 - that is what is wrong with it


class SwallowsEverything(OnLoop):
    def answer(self, query: Query) -> Any:
        say_called()
        for _ in range(2):
            with suppress(BaseException):
                time.sleep(1e6)
        time.sleep(1e6)


class ChangesHandlers(OnLoop):
    def answer(self, query: Query) -> Any:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return Answer("7 May 2023")


LOOP = {
    "BlocksTheLoop": "ingest_failed",
    "SpinsOnTheLoop": "answer_failed",
    "BlocksInAsync": "answer_failed",
    "SwallowsEverything": "answer_failed",
    "ChangesHandlers": "ok",
}


class CancelsEverything(Sound):
    async def answer(self, query: Query) -> Any:
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0)


class LeavesAbstract(MemorySystem):
    def reset(self) -> None: ...


class TakesNoParts(Sound):
    def __init__(self) -> None: ...


class SettingsNoClass(Sound):
    settings_type = 5  # type: ignore[assignment]


class SettingsPlain(Sound):
    settings_type = dict  # type: ignore[assignment]


@dataclass(frozen=True)
class OwnSettings:
    last: int = 5


class SettingsOwn(Sound):
    settings_type = OwnSettings  # type: ignore[assignment]


class StyleUnknown(Sound):
    @classmethod
    def answer_style(cls, settings: Any) -> Any:
        return "baroque"


class StyleRaises(Sound):
    @classmethod
    def answer_style(cls, settings: Any) -> Any:
        raise KeyError("style")


class WordingsUnknown(Sound):
    @classmethod
    def ingest_templates(cls, settings: Any) -> Any:
        return ("nothing_such",)


class WordingsText(Sound):
    @classmethod
    def ingest_templates(cls, settings: Any) -> Any:
        return "extract"


class ThinksRaises(Sound):
    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> Any:
        sys.exit(0)


not_a_class = 5
