"""A count returned by a custom method is one that rows can store, or an error in one line about
that method.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from memeval.errors import SystemFaultError
from memeval.llm.metering import Ledger
from memeval.pipeline.execute.ingest import health_of_ingest
from memeval.pipeline.execute.timeline import operate
from memeval.pipeline.isolate.watch import Watched
from memeval.records import (
    Answer,
    CorrectRequest,
    EvalOperation,
    ForgetRequest,
    IngestHealth,
    MemoryChunk,
    OperationKind,
    Query,
)
from memeval.systems.base import MemorySystem

FORGET = EvalOperation(
    kind=OperationKind.FORGET, after="s1", forget=ForgetRequest(words="forget it", about="it")
)
CORRECT = EvalOperation(
    kind=OperationKind.CORRECT, after="s1", correct=CorrectRequest(words="no", old="a", new="b")
)
ODD = [-3, -1.0, 10**30, 10**20, "two", "2", 2.7, float("nan"), float("inf"), True, ["a"], 1j]


class Returning(MemorySystem):
    """A system whose counts are a given value."""

    in_thread = False

    def __init__(self, value: Any) -> None:
        self.value = value

    def reset(self) -> None: ...

    def ingest(self, chunk: MemoryChunk) -> None: ...

    def answer(self, query: Query) -> Answer:
        raise NotImplementedError

    def forget(self, request: ForgetRequest) -> Any:
        return self.value

    def correct(self, request: CorrectRequest) -> Any:
        return self.value

    def health(self) -> Any:
        return self.value


def watched(value: Any) -> Watched:
    return Watched(Returning(value))


@pytest.mark.parametrize("operation", [FORGET, CORRECT], ids=["forget", "correct"])
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_invalid_number_of_items_is_refused_with_the_location(
    operation: EvalOperation, value: object
) -> None:
    with pytest.raises(SystemFaultError) as caught:
        asyncio.run(operate(watched(value), operation, ()))

    message = str(caught.value)
    assert message.startswith("test_returned_counts.py:")
    assert f" in {operation.kind.value}: the returned value must be a whole number" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("value", "items"), [(0, 0), (3, 3), (np.int64(2), 2), (2.0, 2), (None, None)]
)
def test_valid_counts_are_stored_as_plain_ints(value: object, items: int | None) -> None:
    done = asyncio.run(operate(watched(value), FORGET, ()))
    assert done.items == items
    assert type(done.items) is type(items)


@pytest.mark.parametrize(
    "counts", [(10**20, 10**20, 0), (5, 7, -2), (5.0, 5.0, 0.0), (None, None, None)]
)
def test_health_with_invalid_counts_is_refused(counts: tuple[Any, Any, Any]) -> None:
    health = IngestHealth(*counts)
    with pytest.raises(SystemFaultError, match=r"\.py:\d+ in health: asked, stored and lost must"):
        asyncio.run(health_of_ingest(watched(health), 5, Ledger()))
