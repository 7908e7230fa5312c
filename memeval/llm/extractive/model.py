"""The offline reader as a language model."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memeval.errors import ModelError
from memeval.llm.contract import (
    AnswerPrompt,
    ChoosePrompt,
    Completion,
    DraftPrompt,
    Prompt,
    SessionPrompt,
    ToolPrompt,
    asked_line,
    fill,
)
from memeval.llm.extractive.answers import SpanAnswer, read
from memeval.llm.extractive.artifacts import extract
from memeval.llm.extractive.choosing import choose
from memeval.llm.extractive.drafting import propose
from memeval.llm.extractive.summaries import bears_on, summarise, take_notes
from memeval.llm.extractive.tools import DONE, next_calls
from memeval.llm.extractive.working_memory import fill_form
from memeval.llm.memory_prompts import (
    ExtractPrompt,
    NotesPrompt,
    RelevancePrompt,
    SummarisePrompt,
    WorkingMemoryPrompt,
)
from memeval.llm.model import LanguageModel
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage, format_time, labelled

_REPLIERS: dict[type[Prompt], Callable[[Any], str]] = {
    DraftPrompt: propose,
    ExtractPrompt: extract,
    NotesPrompt: take_notes,
    RelevancePrompt: bears_on,
    SummarisePrompt: summarise,
    WorkingMemoryPrompt: fill_form,
}
"""Functions that reply to the prompts of systems, and of `data draft`."""


class ExtractiveModel(LanguageModel):
    """Answers from the typed fields of a prompt, not its template: no weights, no network."""

    name = "extractive"
    deterministic = True
    sends_messages = False

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        start = time.perf_counter()
        if isinstance(prompt, ToolPrompt):
            calls = next_calls(prompt)
            asked = prompt.asked
            if isinstance(asked, SessionPrompt):
                text = "" if calls else DONE
                shown = sum(map(count_tokens, (asked.system_text, *asked.context)))
            elif calls:
                text, shown = "", _prompt_tokens(replace(asked, context=prompt.seen))
            else:
                answered = replace(asked, context=prompt.seen)
                return await self.complete(answered, role=role, seed=seed)

            call_texts = [f"{call.name} {call.arguments}" for call in calls]
            usage = self._usage(role, shown, "\n".join([*call_texts, text]).strip())
            latency = time.perf_counter() - start
            return Completion(text, usage, latency_s=latency, tool_calls=calls)

        if isinstance(prompt, AnswerPrompt):
            reading = read(prompt.question, prompt.context, prompt.asked_at)
            text = _reply(reading, prompt.style)
            prompt_tokens = _prompt_tokens(prompt, prompt.instruction)
        elif isinstance(prompt, ChoosePrompt):
            text = choose(prompt)
            prompt_tokens = _prompt_tokens(prompt, *labelled(prompt.choices, prompt.labels))
        elif reply := _REPLIERS.get(type(prompt)):
            text = reply(prompt)
            prompt_tokens = sum(count_tokens(message["content"]) for message in prompt.messages())
        else:
            raise ModelError(
                f"the offline reader (llm=extractive) does not support {type(prompt).__name__}: "
                "it only answers and chooses from a context; use llm=openai"
            )

        usage = self._usage(role, prompt_tokens, text)
        return Completion(text, usage, latency_s=time.perf_counter() - start)

    def _usage(self, role: Role, prompt_tokens: int, reply: str) -> Usage:
        return Usage(
            role=role,
            model=self.name,
            provider="offline",
            prompt_tokens=prompt_tokens,
            completion_tokens=count_tokens(reply),
            estimated=True,
        )


def _reply(reading: SpanAnswer, style: str) -> str:
    if style != "cot":
        return reading.answer
    if reading.support is None:
        return f"Nothing in the context bears on the question.\nAnswer: {reading.answer}"

    source = reading.support.speaker.title() or "the context"
    if reading.support.time:
        source += f" at {format_time(reading.support.time)}"

    return (
        f"The sentence that bears most on the question is from {source}: "
        f'"{reading.support.text.strip()}"\nAnswer: {reading.answer}'
    )


def _prompt_tokens(prompt: AnswerPrompt | ChoosePrompt, *shown: str) -> int:
    """Tokens of the prompt's parts, counted separately so that counts of chunks can be cached."""
    left_out = dict.fromkeys(("context", "question", "choices", "how"), "")
    template = fill(prompt.user_template, {**left_out, "asked_at": asked_line(prompt.asked_at)})
    return sum(
        map(count_tokens, (prompt.system_text, template, prompt.question, *shown, *prompt.context))
    )
