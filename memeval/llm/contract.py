"""Requests to a model and its replies: a typed `Prompt` goes in, a `Completion` comes out.

`prompt.messages()` is sent to an endpoint. The offline reader answers the typed request itself;
this is its only difference from a model.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memeval.records import ChoiceLabels, Session, Usage, format_time, labelled
from memeval.text.names import text_digest

SHOWN_OF_TURN = 1_500
"""Maximum characters of a turn shown to a drafter; the result of a tool may be very long."""
Message = Mapping[str, Any]
"""A chat message: `role` and `content`, and the members that tool calls add."""


@dataclass(frozen=True, slots=True)
class FixedSampling:
    """Sampling that a protocol fixes; None leaves it to the config."""

    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt(ABC):
    """One typed request to a model."""

    limit_factor: int = field(default=1, kw_only=True)
    """Factor on the token limit: 1, or 2 after a truncated reply."""

    @abstractmethod
    def messages(self) -> list[Message]:
        """The request as chat messages."""

    def limits(self) -> FixedSampling:
        """The sampling that a published protocol fixes; it takes precedence over the config's."""
        return FixedSampling()

    @property
    def bounded(self) -> bool:
        """Whether a reply ending at the token limit is complete: the protocol sets it that low."""
        return False


@dataclass(frozen=True, slots=True)
class TemplatePrompt(Prompt):
    """A request from a prompt template."""

    system_text: str = field(default="", kw_only=True)
    """The template's instructions, resolved by the cell's prompt."""
    user_template: str = field(default="", kw_only=True)
    """The template's user message, with names of `values` in braces."""

    @abstractmethod
    def values(self) -> dict[str, str]:
        """The text that replaces each name in braces."""

    def messages(self) -> list[Message]:
        texts, values = {"system": self.system_text, "user": self.user_template}, self.values()
        # An empty one is not sent.
        return [
            {"role": role, "content": fill(text, values)} for role, text in texts.items() if text
        ]


@dataclass(frozen=True, slots=True)
class AnswerPrompt(TemplatePrompt):
    """Answer a question from a context; the answer follows the last `Answer:` of the reply."""

    question: str
    context: tuple[str, ...]
    """Chunks as shown to the reader, in that order."""
    asked_at: datetime | None = None
    style: str = "short"
    """Name of the template: `short` or `cot`."""
    instruction: str = ""
    """The data set's task instruction, below the question; the offline reader ignores it."""

    def values(self) -> dict[str, str]:
        question = self.question
        if self.instruction:
            question = f"{question}\n{self.instruction}"

        return {
            "asked_at": asked_line(self.asked_at),
            "question": question,
            "context": "\n".join(self.context) or "(nothing)",
        }


@dataclass(frozen=True, slots=True)
class NotePrompt(TemplatePrompt):
    """Asks what a chunk says about a question; the reply is only the notes."""

    question: str
    text: str
    """The chunk, as shown to the reader."""
    asked_at: datetime | None

    def values(self) -> dict[str, str]:
        return {"text": self.text, "question": self.question, "asked_at": asked_line(self.asked_at)}


@dataclass(frozen=True, slots=True)
class ChoosePrompt(TemplatePrompt):
    """Choose among labelled answers; the reply is one label, or several with `multi_select`."""

    question: str
    context: tuple[str, ...]
    choices: tuple[str, ...]
    labels: ChoiceLabels = ChoiceLabels.DIGITS
    multi_select: bool = False
    asked_at: datetime | None = None
    max_tokens: int = 16

    def values(self) -> dict[str, str]:
        first, last = self.labels.label(0), self.labels.label(len(self.choices) - 1)
        how = f"the label of the one right choice, {first} to {last}"
        if self.multi_select:
            how = f"the labels of all right choices, {first} to {last}, joined by commas"

        return {
            "asked_at": asked_line(self.asked_at),
            "question": self.question,
            "context": "\n".join(self.context) or "(nothing)",
            "choices": "\n".join(labelled(self.choices, self.labels)),
            "how": how,
        }

    def limits(self) -> FixedSampling:
        # LoCoMo-MC10's protocol: only the label, at temperature 0, for any sampling of the cell.
        return FixedSampling(temperature=0.0, max_tokens=self.max_tokens)

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
class JudgePrompt(TemplatePrompt):
    """Judge an answer against gold."""

    question: str
    gold: tuple[str, ...]
    answer: str
    max_tokens: int | None = None
    """The protocol's token limit for the reply; None leaves it to the config."""
    fence: str = ""
    """Suffix of the tag names around the data (`memeval.judges.model`); empty for no tags."""
    words: tuple[str, str] = ("yes", "no")
    """The words requested instead of yes and no."""

    def values(self) -> dict[str, str]:
        return {
            "question": self._marked("question", self.question),
            "gold": self._marked("reference", self.reference),
            "answer": self._marked("answer", self.answer, "\n"),
        }

    def _marked(self, name: str, text: str, line_end: str = "") -> str:
        if not self.fence:
            return text

        return f"<{name}-{self.fence}>{line_end}{text}{line_end}</{name}-{self.fence}>"

    @property
    def reference(self) -> str:
        """The gold as the model sees it."""
        return " / ".join(self.gold)

    @property
    def quotable(self) -> tuple[str, str]:
        """The data besides the answer that a reply may quote."""
        return self.question, self.reference

    @property
    def template(self) -> str:
        return f"{self.system_text}\n{self.user_template}"

    def limits(self) -> FixedSampling:
        return FixedSampling(max_tokens=self.max_tokens)


@dataclass(frozen=True, slots=True)
class DraftPrompt(TemplatePrompt):
    """Propose one question about turns of a conversation. The reply is one JSON object."""

    kind: str
    """Kind of question wanted: `single_hop`, `update` …"""
    sessions: tuple[Session, ...]
    """Parts of sessions, in chronological order."""
    about: str
    """Id of the turn that the question must be about."""

    def values(self) -> dict[str, str]:
        lines = []
        for session in self.sessions:
            heading = "--- from the session"
            if session.started_at:
                heading += f" of {format_time(session.started_at)}"

            lines.append(heading)
            for turn in session.turns:
                text = " ".join(turn.text.split())
                if len(text) > SHOWN_OF_TURN:
                    text = f"{text[:SHOWN_OF_TURN]} …"

                lines.append(f"[{turn.turn_id}] {turn.speaker}: {text}")

        return {"kind": self.kind, "turns": fenced("\n".join(lines), "turns"), "about": self.about}


@dataclass(frozen=True, slots=True)
class SessionPrompt(TemplatePrompt):
    """Asks for the parts of a session that later questions may need. Only within a `ToolPrompt`."""

    context: tuple[str, ...]
    """The chunks of the session, in order."""

    def values(self) -> dict[str, str]:
        return {"session": fenced("\n".join(self.context), "session")}


@dataclass(frozen=True, slots=True)
class ToolPrompt(Prompt):
    """Answer a question, or record a session, with a memory's tools: call some, or reply."""

    asked: AnswerPrompt | ChoosePrompt | SessionPrompt
    """The question with the context shown initially, or a session to be recorded."""
    instructions: str
    """Text before the template's own instructions; may be empty."""
    tools: tuple[Mapping[str, Any], ...]
    """Name, description and parameters of each tool, as in OpenAI's protocol."""
    exchange: tuple[Message, ...] = ()
    """Messages since the question: the model's calls, and their results."""
    seen: tuple[str, ...] = ()
    """The texts shown initially and the entries of all results so far, without duplicates. The
    offline reader answers from them.
    """
    last: bool = False
    """Whether the model must answer now."""

    @property
    def context(self) -> tuple[str, ...]:
        """Texts on which the answer can be based."""
        return self.seen

    def messages(self) -> list[Message]:
        messages = list(map(dict, self.asked.messages()))
        for message in messages:
            if message["role"] == "system":
                message["content"] = f"{self.instructions}\n\n{message['content']}".strip()
                break
        else:
            if self.instructions:
                messages.insert(0, {"role": "system", "content": self.instructions})

        return [*messages, *self.exchange]

    def limits(self) -> FixedSampling:
        # A protocol's few tokens for a label would leave no room for a call.
        return FixedSampling(temperature=self.asked.limits().temperature)

    def options(self) -> dict[str, Any]:
        """Further parameters of the request."""
        functions = [{"type": "function", "function": dict(tool)} for tool in self.tools]
        # The tools stay in the last request: some endpoints refuse calls in messages without them.
        options: dict[str, Any] = {"tools": functions}
        if self.last:
            options["tool_choice"] = "none"

        return options


def fenced(text: str, name: str) -> str:
    """Untrusted text between tags that it can't contain: their name ends in a digest of it."""
    mark = f"{name}-{text_digest(text)[:8]}"
    return f"<{mark}>\n{text}\n</{mark}>"


def asked_line(asked_at: datetime | None) -> str:
    """The line with the time at which a question is asked; empty if the data set has none."""
    return f"The question is asked at {format_time(asked_at)}.\n" if asked_at else ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as a model wrote it."""

    call_id: str
    """Empty if the model gave none."""
    name: str
    arguments: str
    """JSON, if the model followed the protocol."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply."""

    text: str
    """Empty only in a reply to a `ToolPrompt`."""
    usage: Usage
    latency_s: float
    """Wall time of the call that was paid for, without waits between retries."""
    finish_reason: str | None = None
    """OpenAI's finish reason, such as `stop` or `length`; None if not reported."""
    raw: str | None = None
    """The whole reply, if `text` is the reply without the model's thinking; otherwise None."""
    notes: tuple[str, ...] = ()
    """Repairs of the reply: keys of `memeval.llm.reply.body.NOTES`."""
    key: str = ""
    """The key under which the reply is cached; empty if it is not cached."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Only in a reply to a `ToolPrompt`."""

    @property
    def whole(self) -> str:
        """The reply with the model's thinking."""
        return self.raw or self.text

    @property
    def cut(self) -> bool:
        """Whether the reply ended at its token limit."""
        return self.finish_reason == "length"


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with each `{name}` replaced by its value."""
    # In one pass, so that a `{name}` inside a value is not replaced.
    pattern = "|".join(re.escape("{" + name + "}") for name in values)
    return re.sub(pattern, lambda match: values[match.group()[1:-1]], template)
