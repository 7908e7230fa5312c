"""Faults of a custom `recall` are reported with their location, although memeval's `answer` calls
it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memeval.errors import SystemFaultError
from memeval.pipeline.execute.builder import Bridge
from memeval.pipeline.execute.question import _check_answer
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.isolate.watch import Watched
from memeval.records import Answer, EvalCase, MemoryChunk, Query, Retrieved
from memeval.systems.base import ReaderReply, RecallSystem, SystemContext

PLACE = r"^test_place_of_recall\.py:\d+ in recall: "
GOOD = Retrieved(text="Quill", turn_ids=())
QUERY = Query("What is the puppy called?")


class SilentReader:
    async def answer(self, query: Query, context: Any, *, order: Any = ()) -> ReaderReply:
        return ReaderReply(text="Quill", raw=None, context_tokens=1)


PARTS = SystemContext(SilentReader(), None, None, 2, 0, "case", None)  # type: ignore[arg-type]


class Returning(RecallSystem):
    """A system whose recall calls a given function."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__(None, PARTS)
        self.do = do

    def reset(self) -> None: ...

    def ingest(self, chunk: MemoryChunk) -> None: ...

    def recall(self, query: Query, depth: int) -> Any:
        return self.do()


def watched(do: Callable[[], Any], timeout_s: float | None = None) -> Watched:
    return Watched(Returning(do), timeout_s=timeout_s)


def refused(
    message: str, do: Callable[[], Any], *call: Any, timeout_s: float | None = None
) -> None:
    with pytest.raises(SystemFaultError, match=PLACE + message):
        asyncio.run(watched(do, timeout_s).call(*call))


@pytest.mark.parametrize("call", [("answer", QUERY), ("probe", QUERY, 2)], ids=["answer", "probe"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "TypeError: it must return a list of Retrieved, but returned None$"),
        ((GOOD for _ in "a"), "TypeError: it must return a list of Retrieved, but returned gene"),
        ({GOOD.text}, "TypeError: it must return a list of Retrieved, but returned set"),
        ({"a": GOOD}, "TypeError: it must return a list of Retrieved, but returned dict"),
        ("Quill", "TypeError: it must return a list of Retrieved, but returned str"),
        (["Quill"], "TypeError: its list must contain Retrieved only, but contains str$"),
        ([GOOD, ("Quill", ())], "TypeError: its list must contain .* but contains tuple$"),
    ],
    ids=["none", "generator", "set", "dict", "str", "strs", "tuples"],
)
def test_recall_that_returns_no_list_is_refused_with_its_location(
    value: object, message: str, call: tuple[Any, ...]
) -> None:
    refused(message, lambda: value, *call)


@pytest.mark.parametrize("value", [(), [GOOD], (GOOD, GOOD), np.array([GOOD], dtype=object)])
def test_recall_may_return_a_list_tuple_or_array(value: object) -> None:
    answer = asyncio.run(watched(lambda: value).call("answer", QUERY))
    assert answer.text == "Quill"


def test_class_may_have_a_helper_of_any_name() -> None:
    class Ranking(Returning):
        def recall(self, query: Query, depth: int) -> Any:
            return self._rank("Quill")

        def _rank(self, word: str) -> list[Retrieved]:
            return [Retrieved(text=word, turn_ids=())]

    answer = asyncio.run(Watched(Ranking(list), timeout_s=None).call("answer", QUERY))
    assert answer.retrieved == (GOOD,)


def test_slow_recall_is_reported_with_its_location() -> None:
    message = r"did not finish within 0\.05 s \(system\.timeout_s\)"
    refused(message, lambda: time.sleep(1), "answer", QUERY, timeout_s=0.05)


@pytest.mark.parametrize(
    ("score", "expected"),
    [("high", "expected `float"), (math.nan, "a finite number$"), (-math.inf, "a finite number$")],
)
def test_invalid_score_is_reported_with_the_location_of_recall(score: Any, expected: str) -> None:
    answer = Answer(text="x", retrieved=(Retrieved("x", (), score),))
    turns = CaseTurns.of(EvalCase("c", (), ()))
    message = PLACE + r"Answer\.retrieved\[0\]\.score: .*" + expected
    with pytest.raises(SystemFaultError, match=message):
        _check_answer(answer, watched(lambda: None), turns)


def test_fault_of_recall_in_the_search_tool_has_its_location() -> None:
    async def search() -> Any:
        own = watched(lambda: None)
        (tool,) = await own.call("tools")
        return await own.use(tool, {"query": "puppy"})

    with pytest.raises(SystemFaultError, match=PLACE + "TypeError"):
        asyncio.run(search())


def test_run_sync_in_a_plain_recall_is_refused_with_the_way_out() -> None:
    async def ask() -> None:
        run_sync, part = Bridge().run_sync, asyncio.get_running_loop().create_future()
        await watched(lambda: run_sync(part)).call("answer", QUERY)

    message = "RuntimeError: run_sync was called on the event loop, where a plain recall.. runs"
    with pytest.raises(
        SystemFaultError, match=f"in answer: {message}.*: await the part in an async"
    ):
        asyncio.run(ask())
