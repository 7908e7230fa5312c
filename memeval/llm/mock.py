"""A mock language model, to try a set-up for free; its figures are meaningless."""

import json
import re
import time

from memeval.llm.contract import ChatPrompt, Completion, JudgePrompt, NotePrompt, Prompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.memory_prompts import EntitiesPrompt
from memeval.llm.model import LanguageModel
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage

_NEW_MESSAGES = re.compile(r"^## New Messages\n(.*?)\n\n## ", re.MULTILINE | re.DOTALL)
"""The messages in mem0's prompt for extracting memories: one line each, after its role."""


class MockModel(LanguageModel):
    """Replies in the form that each prompt asks for: as the offline reader does, and as a judge by
    whether a gold occurs in the answer.

    A judge prompt with a token limit asks for yes or no, or for two other words. Messages that a
    third-party system wrote itself get an empty object; for mem0, each new message is a memory. The
    offline reader does not support prompts for entities or for notes on a chunk. Here, the
    capitalised words of a turn are its entities, and a chunk is its own note.
    """

    name = "mock"
    deterministic = True

    def __init__(self) -> None:
        self._reader = ExtractiveModel()

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        if not isinstance(prompt, ChatPrompt | EntitiesPrompt | JudgePrompt | NotePrompt):
            return await self._reader.complete(prompt, role=role, seed=seed)

        start = time.perf_counter()
        text = _reply(prompt)
        asked = sum(
            count_tokens(str(message.get("content") or "")) for message in prompt.messages()
        )
        usage = Usage(role, self.name, "offline", asked, count_tokens(text), estimated=True)

        return Completion(text, usage, latency_s=time.perf_counter() - start)


def _reply(prompt: ChatPrompt | EntitiesPrompt | JudgePrompt | NotePrompt) -> str:
    if isinstance(prompt, ChatPrompt):
        return _extraction(prompt)
    if isinstance(prompt, NotePrompt):
        return prompt.text
    if isinstance(prompt, EntitiesPrompt):
        words = re.findall(r"\w+", prompt.text)
        return json.dumps([word for word in words if word[0].isupper()])

    return _judgement(prompt)


def _extraction(prompt: ChatPrompt) -> str:
    # mem0's system message explains the section; the last message contains it.
    section = _NEW_MESSAGES.search(str(prompt.messages()[-1].get("content") or ""))
    if section is None:
        return "{}"

    texts = (line.partition(": ")[2] for line in section[1].splitlines())
    return json.dumps({"memory": [{"text": text} for text in texts if text]})


def _judgement(prompt: JudgePrompt) -> str:
    right = any(gold.casefold() in prompt.answer.casefold() for gold in prompt.gold)
    if prompt.max_tokens is not None:
        yes, no = prompt.words
        return yes if right else no

    verdict: dict[str, object]
    if '"fluency"' in prompt.system_text:
        verdict = dict.fromkeys(("fluency", "accuracy", "evidence"), 3 * right)
    elif '"conveyed"' in prompt.system_text:
        verdict = {"fluent": 1, "conveyed": int(right), "points": 1}
        verdict |= {"supported": int(right), "sentences": 1}
    else:
        verdict = {"reason": "the mock model compares letters"}
        if '"score"' in prompt.system_text:
            verdict["score"] = float(right)
        else:
            verdict["label"] = "CORRECT" if right else "WRONG"

    return json.dumps(verdict)
