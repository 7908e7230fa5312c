"""Asking a model while memory is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from memeval.llm.contract import Completion, LanguageModel, Prompt
from memeval.llm.metering import current_ledger
from memeval.llm.reply import CutReplyError
from memeval.records import Role

T = TypeVar("T")

TRIES = 2
ROOM = 2
"""Times the tokens that a request gets after a reply that was cut."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What came of a request."""

    value: T | None
    """What was read from the reply; None where no reply was of use."""
    cut: bool
    """Whether the last reply ended at its limit of tokens, with more room as well."""


async def ask_for(
    model: LanguageModel,
    prompt: Prompt,
    *,
    seed: int,
    read: Callable[[Completion], T | None],
    holds_enough: Callable[[Completion], bool] = lambda _: False,
) -> T | None:
    """What `read` makes of the model's reply; None where no reply is of use. See `ask`."""
    asked = await ask(model, prompt, seed=seed, read=read, holds_enough=holds_enough)
    return asked.value


async def ask(
    model: LanguageModel,
    prompt: Prompt,
    *,
    seed: int,
    read: Callable[[Completion], T | None],
    holds_enough: Callable[[Completion], bool] = lambda _: False,
) -> Asked[T]:
    """What `read` makes of the model's reply, and whether the reply was cut.

    A cut reply is not read: the model is asked again with twice the room. What is cut then is read
    as far as it goes. `holds_enough` says of a cut reply that nothing more is wanted.

    Where `read` makes nothing of a whole reply, it is dropped from the cache and the model is asked
    a second time, unless it always replies the same. Raises `ModelError` where a call failed for
    good.
    """
    for _ in range(1 if model.deterministic else TRIES):
        completion = await _complete(model, prompt, seed)
        if _is_cut(completion, holds_enough) and prompt.room < ROOM:
            current_ledger().drop_cut(Role.INGEST)
            prompt = replace(prompt, room=ROOM)
            completion = await _complete(model, prompt, seed)

        if completion is None:
            return Asked(None, cut=True)

        cut = _is_cut(completion, holds_enough)
        if completion.cut and not cut:
            current_ledger().drop_cut(Role.INGEST)

        value = read(completion)
        if value is not None:
            return Asked(value, cut)

        model.forget(completion)
        if cut:  # the same request would be cut again
            return Asked(None, cut)

    return Asked(None, cut=False)


async def _complete(model: LanguageModel, prompt: Prompt, seed: int) -> Completion | None:
    """The model's reply; None for one that was cut before its first word."""
    try:
        return await model.complete(prompt, role=Role.INGEST, seed=seed)
    except CutReplyError:
        return None


def _is_cut(completion: Completion | None, holds_enough: Callable[[Completion], bool]) -> bool:
    return completion is None or (completion.cut and not holds_enough(completion))


def halves(text: str) -> tuple[str, ...]:
    """The two halves of a text, cut at the end of a line; none of a text of one line."""
    lines = text.splitlines(keepends=True)
    middle = len(lines) // 2
    if not middle:
        return ()

    return "".join(lines[:middle]), "".join(lines[middle:])
