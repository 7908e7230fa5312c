"""Asking a model while memory is built: a reply of no use is asked for once more, and never kept in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memeval.llm.contract import Completion, LanguageModel, Prompt
from memeval.records import Role

T = TypeVar("T")

TRIES = 2


async def asked(
    model: LanguageModel, prompt: Prompt, *, seed: int, read: Callable[[Completion], T | None]
) -> T | None:
    """What `read` makes of the model's reply; where that is None, of a second one; None where neither is of any use.

    A model that always says the same is asked once. Raises `ModelError` where a call failed for good.
    """
    for _ in range(1 if model.deterministic else TRIES):
        completion = await model.complete(prompt, role=Role.INGEST, seed=seed)
        found = read(completion)
        if found is not None:
            return found
        model.forget(completion)
    return None
