"""A stand-in for a language model, to try a set-up for free; its figures mean nothing."""

from __future__ import annotations

import json
import time

from memeval.llm.contract import ChatPrompt, Completion, JudgePrompt, Prompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.model import LanguageModel
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage


class MockModel(LanguageModel):
    """Replies in the form that each prompt asks for: like the offline reader, and as a judge by
    whether a gold occurs in the answer.

    A judge with a token limit is one that is asked for yes or no. Messages that a third-party
    system wrote itself get an empty object.
    """

    name = "mock"
    deterministic = True

    def __init__(self) -> None:
        self._reader = ExtractiveModel()

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        if not isinstance(prompt, ChatPrompt | JudgePrompt):
            return await self._reader.complete(prompt, role=role, seed=seed)

        start = time.perf_counter()
        text = "{}" if isinstance(prompt, ChatPrompt) else _judgement(prompt)
        asked = sum(count_tokens(message["content"]) for message in prompt.messages())
        usage = Usage(role, self.name, "offline", asked, count_tokens(text), estimated=True)

        return Completion(text, usage, latency_s=time.perf_counter() - start)


def _judgement(prompt: JudgePrompt) -> str:
    right = any(gold.casefold() in prompt.answer.casefold() for gold in prompt.gold)
    if prompt.max_tokens is not None:
        return "yes" if right else "no"

    reason = "the mock model compares letters"
    if '"score"' in prompt.system_text:
        return json.dumps({"reason": reason, "score": float(right)})

    return json.dumps({"reason": reason, "label": "CORRECT" if right else "WRONG"})
