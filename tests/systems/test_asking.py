"""Calling a model at ingest: a cut reply is requested again with a larger limit, then read as far
as it goes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from memeval.llm.breaker import Breaker
from memeval.llm.contract import Completion, Prompt
from memeval.llm.memory_prompts import ExtractPrompt, SummarisePrompt
from memeval.llm.metering import Ledger, metered
from memeval.llm.model import LanguageModel, MeteredModel
from memeval.llm.reply.body import CutReplyError
from memeval.records import MemoryChunk, Role, Usage
from memeval.systems.asking import RequestOutcome, ask, halves
from memeval.systems.cogcanvas.artifacts import Artifact
from memeval.systems.cogcanvas.extraction import Extractor
from memeval.systems.cogcanvas.settings import CogCanvasSettings

PROMPT = ExtractPrompt(("a", "b"), (), user_template="{chunks}")


class Limited(LanguageModel):
    """Cuts replies that have more words than the limit."""

    name = "limited"

    def __init__(self, reply: Callable[[Prompt], str], limit: int) -> None:
        self._reply, self._limit = reply, limit
        self.rooms: list[int] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        self.rooms.append(prompt.limit_factor)
        words = self._reply(prompt).split()
        limit = self._limit * prompt.limit_factor
        if not limit:
            raise CutReplyError("cut before its first word")

        reason = "length" if len(words) > limit else "stop"
        usage = Usage(role, self.name, "offline", 1, 1)
        return Completion(" ".join(words[:limit]), usage, latency_s=0.0, finish_reason=reason)


def asked(
    model: LanguageModel, ledger: Ledger | None = None, **more: Callable[[Completion], bool]
) -> tuple[RequestOutcome[str], Ledger]:
    async def run() -> RequestOutcome[str]:
        return await ask(
            MeteredModel(model), PROMPT, seed=0, read=lambda reply: reply.text or None, **more
        )

    with metered(ledger or Ledger()) as own:
        return asyncio.run(run()), own


def test_whole_reply_leaves_the_count_of_other_cut_replies() -> None:
    ledger = Ledger()
    ledger.note_end(Role.INGEST, "length")
    assert asked(Limited(lambda prompt: "one two", 4), ledger)[1].cut_calls == 1


@pytest.mark.parametrize(
    ("limit", "rooms", "value", "cut"),
    [
        (4, [1], "one two three four", 0),
        (2, [1, 2], "one two three four", 0),
        (1, [1, 2], "one two", 1),
        (0, [1, 2], None, 1),
    ],
)
def test_cut_reply_is_requested_again_once_with_twice_the_limit(
    limit: int, rooms: list[int], value: str | None, cut: int
) -> None:
    model = Limited(lambda prompt: "one two three four", limit)
    outcome, ledger = asked(model)
    assert outcome == RequestOutcome(value, cut=bool(cut))
    assert (model.rooms, ledger.cut_calls, ledger.calls) == (rooms, cut, len(rooms))


def test_cut_reply_with_enough_content_is_not_requested_again() -> None:
    model = Limited(lambda prompt: "one two three four", 2)
    outcome, ledger = asked(model, holds_enough=lambda reply: True)
    assert outcome == RequestOutcome("one two", cut=False)
    assert (model.rooms, ledger.cut_calls) == ([1], 0)


def test_summary_request_has_a_margin_above_its_budget() -> None:
    assert SummarisePrompt("", ("a",), 512).limits().max_tokens == 512 + 256 + 64


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", ()), ("one", ()), ("one\ntwo", ("one\n", "two")), ("1\n2\n3", ("1\n", "2\n3"))],
)
def test_a_text_is_halved_at_a_line(text: str, parts: tuple[str, ...]) -> None:
    assert halves(text) == parts


def said(lines: list[str], session: str = "s") -> MemoryChunk:
    content = "\n".join(f"Ann: {line}" for line in lines)
    return MemoryChunk(session, content, None, session, (session,), ("Ann",))


def quoting(prompt: Prompt) -> str:
    """Quotes every line of every chunk, one word per artifact."""
    assert isinstance(prompt, ExtractPrompt)
    items = [
        {"type": "key_fact", "quote": line.removeprefix("Ann: "), "chunk": number}
        for number, text in enumerate(prompt.chunks, start=1)
        for line in text.splitlines()
        if line.startswith("Ann: ")
    ]
    return " ".join(json.dumps(items, separators=(",", ":")).replace("},{", "}, {").split())


class Rambling(LanguageModel):
    """Fills its limit with prose if asked for more than one line."""

    name = "rambling"

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        assert isinstance(prompt, ExtractPrompt)
        await asyncio.sleep(0)
        lines = sum(len(text.splitlines()) for text in prompt.chunks)
        text, reason = ("Let me see", "length") if lines > 1 else (quoting(prompt), "stop")
        return Completion(
            text, Usage(role, self.name, "offline", 1, 1), latency_s=0.0, finish_reason=reason
        )


def extracted(
    chunks: list[MemoryChunk], model: LanguageModel, most_failures: int | None = None
) -> tuple[list[Artifact], Extractor, Ledger]:
    extractor = Extractor(
        model=MeteredModel(model),
        seed=0,
        settings=CogCanvasSettings(gleaning=False),
    )
    with metered(Ledger()) as ledger:
        extraction = extractor.extract([list(enumerate(chunks))])
        artifacts = asyncio.run(Breaker().run(extraction, {}, most_failures))

    return artifacts, extractor, ledger


LINES = [f"line{number}" for number in range(8)]


@pytest.mark.parametrize("limit", [16, 8, 4, 2, 1])
def test_cut_extraction_is_split_until_replies_fit(limit: int) -> None:
    artifacts, extractor, ledger = extracted([said(LINES)], Limited(quoting, limit))
    assert sorted(artifact.quote for artifact in artifacts) == LINES
    assert extractor.lost == set() and ledger.cut_calls == 0


def test_split_extraction_does_not_stop_the_run() -> None:
    artifacts, extractor, _ = extracted([said(LINES)], Rambling(), most_failures=1)
    assert sorted(artifact.quote for artifact in artifacts) == LINES
    assert extractor.lost == set()


def test_chunk_that_cannot_be_split_further_is_lost_and_counted() -> None:
    artifacts, extractor, ledger = extracted(
        [said(["one"], "a"), said(["two"], "b")], Limited(quoting, 0)
    )
    assert artifacts == [] and extractor.lost == {0, 1}
    assert ledger.cut_calls == 2
