"""Requests to a model while a system builds a memory, mainly for notes on the conversation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from msgspec import Struct

from memeval.llm.breaker import note_reading
from memeval.llm.contract import Completion, Prompt
from memeval.llm.memory_prompts import NotesPrompt
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import load_builtin
from memeval.llm.reply.body import CutReplyError
from memeval.llm.tokens import count_tokens, shorten
from memeval.records import Role
from memeval.systems.base import SystemContext

T = TypeVar("T")

TRIES = 2
"""Attempts to get a reply that can be read."""
ROOM = 2
"""Factor on the token limit after a reply that was cut."""


class RequestOutcome(Struct, Generic[T], frozen=True):
    value: T | None
    """The result of `read`; None if no reply was usable."""
    cut: bool
    """Whether the reply was cut even at the larger token limit."""


async def ask_for(
    model: LanguageModel,
    prompt: Prompt,
    *,
    seed: int,
    read: Callable[[Completion], T | None],
    holds_enough: Callable[[Completion], bool] = lambda _: False,
) -> T | None:
    """The result of `read` on the model's reply; None if no reply is usable. See `ask`."""
    outcome = await ask(model, prompt, seed=seed, read=read, holds_enough=holds_enough)
    if outcome.value is None and outcome.cut:
        note_reading(readable=False, cut=True)

    return outcome.value


async def ask(
    model: LanguageModel,
    prompt: Prompt,
    *,
    seed: int,
    read: Callable[[Completion], T | None],
    holds_enough: Callable[[Completion], bool] = lambda _: False,
) -> RequestOutcome[T]:
    """The result of `read` on the model's reply, and whether the reply was cut.

    After a cut reply the model is asked again with twice the token limit, unless `holds_enough`
    says that the reply is sufficient. The second reply is read as far as possible.

    If `read` returns None for a complete reply, the reply is dropped from the cache and the model
    is asked a second time. The caller handles a cut reply, for example by asking for less at a
    time. Raises `ModelError` if a call failed.
    """
    # A deterministic model would only repeat itself.
    tries = 1 if model.deterministic else TRIES
    for _ in range(tries):
        completion = await _complete(model, prompt, seed)
        # The engine counts a lost chunk for each cut reply in the ledger. A reply that is requested
        # again with more room, or that is sufficient, must not count.
        if _is_cut(completion, holds_enough) and prompt.limit_factor < ROOM:
            current_ledger().drop_cut(Role.INGEST)
            prompt = replace(prompt, limit_factor=ROOM)
            completion = await _complete(model, prompt, seed)

        if completion is None:
            return RequestOutcome(None, cut=True)

        cut = _is_cut(completion, holds_enough)
        if completion.cut and not cut:
            current_ledger().drop_cut(Role.INGEST)

        value = read(completion)
        if value is not None:
            note_reading(readable=True)
            return RequestOutcome(value, cut)

        # An unusable reply must leave the cache. Otherwise the second request and the next run
        # would get it again.
        model.forget(completion)
        # The reply to the same request would be cut again.
        if cut:
            return RequestOutcome(None, cut)

        note_reading(readable=False)

    return RequestOutcome(None, cut=False)


async def _complete(model: LanguageModel, prompt: Prompt, seed: int) -> Completion | None:
    """The model's reply; None if it was cut before its first word."""
    try:
        return await model.complete(prompt, role=Role.INGEST, seed=seed)
    except CutReplyError:
        return None


def _is_cut(completion: Completion | None, holds_enough: Callable[[Completion], bool]) -> bool:
    return completion is None or (completion.cut and not holds_enough(completion))


def halves(text: str) -> tuple[str, ...]:
    """The two halves of a text, cut at the end of a line; empty for a text of one line."""
    lines = text.splitlines(keepends=True)
    middle = len(lines) // 2
    if not middle:
        return ()

    return "".join(lines[:middle]), "".join(lines[middle:])


NOTHING = "(nothing)"
"""The reply that the templates request if there is nothing to note."""


async def take_notes(
    parts: SystemContext, template_name: str, *, before: str, said: tuple[str, ...], budget: int
) -> str | None:
    """The model's notes (at most `budget` tokens, may be empty); None if no reply is usable."""
    template = load_builtin(template_name)
    prompt = NotesPrompt(
        before=before,
        said=said,
        budget_tokens=budget,
        system_text=template.system,
        user_template=template.user,
    )
    deterministic = parts.model.deterministic

    def read(completion: Completion) -> str | None:
        text = completion.text.strip()
        # The offline reader can't write NOTHING: its reply is empty instead.
        if text == NOTHING or (deterministic and not text):
            return ""

        return shorten(text, budget) or None

    return await ask_for(
        parts.model,
        prompt,
        seed=parts.seed,
        read=read,
        holds_enough=lambda completion: count_tokens(completion.text.strip()) >= budget,
    )
