"""Asking a model while memory is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memeval.llm.contract import Completion, LanguageModel, Prompt
from memeval.records import Role

T = TypeVar("T")

TRIES = 2


async def ask_for(
    model: LanguageModel, prompt: Prompt, *, seed: int, read: Callable[[Completion], T | None]
) -> T | None:
    """What `read` makes of the model's reply.

    Where that is None, the reply is dropped from the cache and the model is asked a second time,
    unless it always replies the same. None where no reply is of use. Raises `ModelError` where a
    call failed for good.
    """
    for _ in range(1 if model.deterministic else TRIES):
        completion = await model.complete(prompt, role=Role.INGEST, seed=seed)
        value = read(completion)
        if value is not None:
            return value

        model.forget(completion)

    return None
