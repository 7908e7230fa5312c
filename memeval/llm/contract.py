"""The model contract: a typed `Prompt` goes in, a `Completion` comes out.

`prompt.messages()` is sent to an endpoint. The offline reader answers the typed request itself; it
differs from a model only there.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from memeval.records import ChoiceLabels, Role, Usage, format_time, labelled

if TYPE_CHECKING:
    from memeval.config.schema import LlmConfig
    from memeval.llm.network import Network

Message = Mapping[str, str]
"""A chat message: `role` and `content`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sampling that a protocol fixes; None leaves it to the config."""

    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt(ABC):
    """One typed request to a model."""

    room: int = field(default=1, kw_only=True)
    """Factor on the limit of tokens: 1, or 2 after a reply that was cut."""

    @abstractmethod
    def messages(self) -> list[Message]:
        """The request as chat messages."""

    def limits(self) -> Limits:
        """What a published protocol fixes about the call, over the config's sampling."""
        return Limits()

    @property
    def bounded(self) -> bool:
        """Whether the protocol sets so low a limit that a reply which ends at it is still whole."""
        return False


@dataclass(frozen=True, slots=True)
class AnswerPrompt(Prompt):
    """Answer a question from a context.

    The reply's final answer is what follows the last `Answer:`, else the whole reply.
    """

    question: str
    context: tuple[str, ...]
    """Chunks of memory as shown to the reader (`MemoryChunk.text` or what a system made of it), in
    the order in which they are shown.
    """
    asked_at: datetime | None = None
    style: str = "short"
    """Name of the template: `short` or `cot`."""
    system_text: str = ""
    """The template's instructions, resolved by the cell's prompt."""
    user_template: str = ""
    """The template's user message with `{context}`, `{question}` and `{asked_at}`."""
    instruction: str = ""
    """What the data set's task asks for, shown below the question.

    The offline reader ignores it, as it ignores the template.
    """

    def messages(self) -> list[Message]:
        question = self.question
        if self.instruction:
            question = f"{question}\n{self.instruction}"

        values = {
            "asked_at": asked_line(self.asked_at),
            "question": question,
            "context": "\n".join(self.context) or "(nothing)",
        }
        return [
            {"role": "system", "content": self.system_text},
            {"role": "user", "content": fill(self.user_template, values)},
        ]


@dataclass(frozen=True, slots=True)
class NotePrompt(Prompt):
    """Note what a chunk says on a question; the reply is only the notes."""

    question: str
    text: str
    """The chunk, as shown to the reader."""
    asked_at: datetime | None
    system_text: str
    user_template: str
    """With `{text}`, `{question}` and `{asked_at}`."""

    def messages(self) -> list[Message]:
        values = {
            "text": self.text,
            "question": self.question,
            "asked_at": asked_line(self.asked_at),
        }
        return [
            {"role": "system", "content": self.system_text},
            {"role": "user", "content": fill(self.user_template, values)},
        ]


@dataclass(frozen=True, slots=True)
class ChoosePrompt(Prompt):
    """Choose among labelled answers, from a context.

    The reply is only the label, or several labels with `multi_select`.
    """

    question: str
    context: tuple[str, ...]
    choices: tuple[str, ...]
    labels: ChoiceLabels = ChoiceLabels.DIGITS
    multi_select: bool = False
    asked_at: datetime | None = None
    max_tokens: int = 16
    system_text: str = ""
    user_template: str = ""
    """With `{context}`, `{question}`, `{asked_at}`, `{choices}`, and `{how}`: what a reply looks
    like.
    """

    def messages(self) -> list[Message]:
        first, last = self.labels.label(0), self.labels.label(len(self.choices) - 1)
        one = f"the label of the one right choice, {first} to {last}"
        many = f"the labels of all right choices, {first} to {last}, joined by commas"
        values = {
            "asked_at": asked_line(self.asked_at),
            "question": self.question,
            "context": "\n".join(self.context) or "(nothing)",
            "choices": "\n".join(labelled(self.choices, self.labels)),
            "how": many if self.multi_select else one,
        }
        system, user = fill(self.system_text, values), fill(self.user_template, values)

        return [{"role": "system", "content": system}, {"role": "user", "content": user}]

    def limits(self) -> Limits:
        # LoCoMo-MC10's protocol: the label only, at temperature 0, whatever the cell samples with.
        return Limits(temperature=0.0, max_tokens=self.max_tokens)

    @property
    def bounded(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ChatPrompt(Prompt):
    """Messages that a third-party library wrote. The offline reader refuses them."""

    chat: tuple[Message, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of the request, such as `response_format`."""

    def messages(self) -> list[Message]:
        return list(self.chat)


@dataclass(frozen=True, slots=True)
class JudgePrompt(Prompt):
    """Judge an answer against gold."""

    question: str
    gold: tuple[str, ...]
    answer: str
    system_text: str
    user_template: str
    """With `{question}`, `{gold}` and `{answer}`."""
    max_tokens: int | None = None
    """The protocol's limit of tokens for the reply; None leaves it to the config."""
    fence: str = ""
    """End of the names of the marks around question, gold and answer, see `memeval.judges.fence`;
    empty for no marks.
    """
    words: tuple[str, str] = ("yes", "no")
    """The words that are asked for in place of yes and no."""

    def messages(self) -> list[Message]:
        values = {
            "question": self._marked("question", self.question),
            "gold": self._marked("reference", self.reference),
            "answer": self._marked("answer", self.answer, "\n"),
        }
        user = fill(self.user_template, values)
        if self.words != ("yes", "no"):
            yes, no = self.words
            user += f'\nWrite "{yes}" for yes and "{no}" for no: one word.'

        system = [{"role": "system", "content": self.system_text}] if self.system_text else []
        return [*system, {"role": "user", "content": user}]

    def _marked(self, name: str, text: str, line_end: str = "") -> str:
        if not self.fence:
            return text

        return f"<{name}-{self.fence}>{line_end}{text}{line_end}</{name}-{self.fence}>"

    @property
    def reference(self) -> str:
        """The gold as the model sees it."""
        return " / ".join(self.gold)

    @property
    def beside(self) -> tuple[str, str]:
        """The data beside the answer that a reply may quote."""
        return self.question, self.reference

    @property
    def template(self) -> str:
        """The text of the template."""
        return f"{self.system_text}\n{self.user_template}"

    def limits(self) -> Limits:
        return Limits(max_tokens=self.max_tokens)


def asked_line(asked_at: datetime | None) -> str:
    """The line that says when a question is asked; empty where the data set does not say."""
    return f"The question is asked at {format_time(asked_at)}.\n" if asked_at else ""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply."""

    text: str
    usage: Usage
    latency_s: float
    """Wall time of the call that made the reply, waits between retries left out; kept with the
    reply in the cache.
    """
    retry_wait_s: float = 0.0
    """Time spent waiting for the endpoint between retries."""
    finish_reason: str | None = None
    """Why the model stopped, in OpenAI's words: `stop`, `length`, `content_filter` …; None where
    the endpoint does not say, and offline.
    """
    raw: str | None = None
    """The whole reply where `text` is only a part of it, without the model's thinking."""
    notes: tuple[str, ...] = ()
    """Repairs of the reply: keys of `memeval.llm.reply.NOTES`."""
    key: str = ""
    """The key under which the reply is cached; empty where it is not cached."""

    @property
    def whole(self) -> str:
        """The reply with the model's thinking."""
        return self.raw or self.text

    @property
    def cut(self) -> bool:
        """Whether the reply ended at its limit of tokens."""
        return self.finish_reason == "length"


class LanguageModel(ABC):
    """A model that completes typed prompts. Raises `ModelError` where a call failed for good."""

    name: str
    """As reports show it."""
    deterministic: bool = False
    """True where equal prompts give equal replies under every seed."""
    sends_messages: bool = True
    """False where the typed prompt is read, and its messages are never sent: the offline reader."""

    @classmethod
    def from_settings(cls, settings: LlmConfig, role: str, network: Network) -> Self:
        """The model under the settings of a role: `llm`, `llm.ingest` or `llm.judge`.

        Called for the models of packages. `network` has the run's endpoints and caches. Raises
        `UserError` for unusable settings. Default: built without arguments.
        """
        return cls()

    @abstractmethod
    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        """One reply to `prompt`.

        `role` says what the call is metered as, `seed` tells repeats apart.
        """

    def forget(self, completion: Completion) -> None:
        """Drops a useless reply from the cache, so that the next call with this prompt asks again.

        The default does nothing.
        """

    async def aclose(self) -> None:
        """Gives connections back."""


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with each `{name}` replaced by its value."""
    # In one pass, so that a `{name}` inside a value is not replaced.
    pattern = "|".join(re.escape("{" + name + "}") for name in values)
    return re.sub(pattern, lambda match: values[match.group()[1:-1]], template)
