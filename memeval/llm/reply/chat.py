"""The reply of a chat completion."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memeval.errors import ModelError
from memeval.llm.contract import ToolCall
from memeval.llm.reply.body import (
    ODD_USAGE,
    PARTS,
    CutReplyError,
    FilteredReplyError,
    UnsoundReplyError,
    count_of,
    odd_notes,
)
from memeval.llm.reply.text import without_controls, without_thinking
from memeval.llm.tokens import count_tokens
from memeval.text.shown import one_line

LONGEST_NAME = 200
"""Longest name of a model in characters; the rest is cut."""


class ChatReply(Struct, frozen=True):
    """The sound part of a chat completion."""

    text: str
    """Without thinking and control characters. Empty only if tools were offered."""
    raw: str | None
    """The whole reply if it contains thinking in addition to the text."""
    finish_reason: str | None
    usage: Mapping[str, Any]
    """`prompt_tokens`, `completion_tokens`, `cached_tokens`, `estimated`."""
    notes: tuple[str, ...] = ()
    """Keys of `NOTES`."""
    tool_calls: tuple[ToolCall, ...] = ()
    model: str = ""
    """The model that the reply names; empty if it names none."""


def read_chat(
    reply: Mapping[str, Any], asked: Sequence[Mapping[str, Any]], *, tools: bool = False
) -> ChatReply:
    """The reply to the messages `asked`; with `tools` its text may be empty.

    Raises `CutReplyError` if the token limit left no text, `FilteredReplyError` if a filter left
    none, and `UnsoundReplyError` if there is none for another reason, or the reply is malformed.
    """
    match reply:
        case {"choices": [{"message": dict(message)} as choice, *_]}:
            finish = finish_reason(choice.get("finish_reason"))
        case _:
            raise UnsoundReplyError(f"the reply has no message{_error_within(reply)}")

    full_content, part_notes = _content(message)
    clean, odd_characters = without_controls(full_content)
    text, thought = without_thinking(clean)
    # The text before an error is not a reply, regardless of its length.
    if finish == "error":
        raise UnsoundReplyError(
            f"the reply ended with an error{_error_within(choice) or _error_within(reply)}"
        )

    calls = _tool_calls(message) if tools else ()
    # The whole reply is billed, including its thinking.
    sent = "\n".join([full_content, *(f"{call.name} {call.arguments}" for call in calls)])
    usage, usage_notes = usage_of(reply.get("usage"), asked, sent)

    ends_normally = finish not in ("length", "content_filter")
    if not text and not calls and not (tools and ends_normally):
        has_reasoning = thought or _has_reasoning(message, reply.get("usage"))
        raise _empty_reply_error(finish, has_reasoning, choice, message, usage)

    notes = (*part_notes, *odd_notes(thought, odd_characters), *usage_notes)
    return ChatReply(
        text=text,
        raw=clean if thought else None,
        finish_reason=finish,
        usage=usage,
        notes=notes,
        tool_calls=calls,
        model=one_line(_clean(reply.get("model")), LONGEST_NAME),
    )


def _content(message: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The text of a message, whether it is a string, a list of parts, or a refusal."""
    content = message.get("content")
    if not isinstance(content, str | list | None):
        raise UnsoundReplyError("the reply's content is not text")

    parts = content if isinstance(content, list) else [content]
    texts = [text for part in parts if (text := _text_of(part)) is not None]
    joined = "".join(texts)
    if joined.strip():
        return joined, (PARTS,) if len(texts) < len(parts) else ()

    # OpenAI's models put a refusal into a separate field. It is the reply.
    refusal = message.get("refusal")
    return (refusal if isinstance(refusal, str) else ""), ()


def _text_of(part: object) -> str | None:
    """The text of one content part; None for a part without text, such as thinking."""
    match part:
        case str():
            return part
        case {"type": kind} if kind not in ("text", "output_text", "refusal"):
            return None
        # The second is the form of the assistants' API.
        case {"text": str(text)} | {"text": {"value": str(text)}} | {"refusal": str(text)}:
            return text

    return None


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of a message in order; malformed fields are read as empty, not refused here."""
    calls: list[Any] = []
    match message:
        case {"tool_calls": list(several)}:
            calls = several
        case {"tool_calls": dict(call)}:
            calls = [call]
        # OpenAI's protocol before tool calls; some servers still reply in it.
        case {"function_call": dict(function)}:
            calls = [{"function": function}]

    objects = [call for call in calls if isinstance(call, dict)]
    return tuple(_tool_call(call.get("id"), call.get("function")) for call in objects)


def _tool_call(call_id: object, function: object) -> ToolCall:
    fields = function if isinstance(function, dict) else {}
    name, arguments = fields.get("name"), fields.get("arguments")
    # Some servers send arguments as an object, or null if there are none.
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)

    return ToolCall(call_id=_clean(call_id), name=_clean(name), arguments=_clean(arguments) or "{}")


def _clean(value: object) -> str:
    """A string without characters that no request or file can contain; empty for anything else."""
    return without_controls(value)[0].strip() if isinstance(value, str) else ""


def _has_reasoning(message: Mapping[str, Any], usage: object) -> bool:
    """Whether a message or its usage shows reasoning outside of the content."""
    match usage:
        case {"completion_tokens_details": {"reasoning_tokens": int(tokens)}} if tokens > 0:
            return True

    # The first is DeepSeek's name for it; OpenRouter and Ollama use the second.
    return bool(message.get("reasoning_content") or message.get("reasoning"))


def _empty_reply_error(
    finish: str | None,
    has_reasoning: bool,
    choice: Mapping[str, Any],
    message: Mapping[str, Any],
    usage: Mapping[str, Any],
) -> ModelError:
    if finish == "length":
        problem = "the reply reached the token limit before its first word"
        if has_reasoning:
            problem = "the model used all tokens of its limit for reasoning, and wrote no answer"

        return CutReplyError(f"{problem} (finish_reason: length)", usage)

    if finish == "content_filter":
        return FilteredReplyError(
            "the provider's filter withheld the reply (finish_reason: content_filter)", usage
        )

    if message.get("tool_calls") or message.get("function_call"):
        return UnsoundReplyError("the reply calls a tool instead of answering")

    end = f"(finish_reason: {one_line(choice.get('finish_reason'), 40)})"
    if has_reasoning:
        return UnsoundReplyError(
            f"the reply contains only reasoning and no answer {end}: use less reasoning_effort or "
            "more max_tokens, or check the server's parser of reasoning"
        )

    return UnsoundReplyError(f"the reply is empty {end}")


def _error_within(reply: Mapping[str, Any]) -> str:
    """The message of an error that a gateway sent under status 200."""
    match reply.get("error"):
        case str(message) | {"message": str(message)} if message.strip():
            return f": {one_line(message)}"

    return ""


_FINISHES = {
    "length": """
        length max_tokens max_output_tokens max_length max_completion_tokens max_tokens_exceeded
        model_length token_limit length_limit model_context_window_exceeded
    """,
    "content_filter": """
        content_filter content_filtered contentfilter filter safety recitation blocklist
        prohibited_content spii image_safety sensitive guardrail_intervened refusal
        content_moderation moderation data_inspection_failed
    """,
    "stop": "stop eos eos_token end_turn stop_sequence completed complete end finish_reason_stop",
    "error": """
        error abort aborted insufficient_system_resource network_error failed cancelled
        malformed_response
    """,
}
_NORMAL = {word: name for name, words in _FINISHES.items() for word in words.split()}


def finish_reason(value: object) -> str | None:
    """A finish reason in OpenAI's terms; None for a value that is not a string."""
    if not isinstance(value, str) or not value.strip():
        return None

    word = value.strip().lower().replace("-", "_").replace(" ", "_")
    return _NORMAL.get(word.removeprefix("finish_reason_"), one_line(word, 40))


def usage_of(
    value: object, asked: Sequence[Mapping[str, Any]], text: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Tokens as the endpoint reports them; missing or odd counts are replaced by memeval's own."""
    reported = value if isinstance(value, dict) else {}
    # Servers that don't count tokens report 0, which is never right for a prompt or for text.
    prompt = count_of(reported.get("prompt_tokens")) or None
    completion = count_of(reported.get("completion_tokens"))
    if text:
        completion = completion or None

    cached, sound = _cached_of(reported)
    estimated = prompt is None or completion is None
    if completion is None:
        completion = count_tokens(text)

    # xAI and Gemini count thinking only in the total. It is billed like the rest of the reply.
    if prompt is not None:
        completion = max(completion, (count_of(reported.get("total_tokens")) or 0) - prompt)

    if prompt is None:
        prompt = sum(count_tokens(str(message.get("content") or "")) for message in asked)
        cached = 0
    elif cached > prompt:
        # A part can't be larger than the whole, so the number of cached tokens is unknown.
        cached, sound = 0, False

    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cached_tokens": cached,
        "estimated": estimated,
    }
    reports_nothing = value is None or value == {}
    if not sound or (estimated and not reports_nothing):
        return counts, (ODD_USAGE,)

    return counts, ()


def _cached_of(reported: Mapping[str, Any]) -> tuple[int, bool]:
    """Tokens that the provider read from its own cache, and whether their number is valid."""
    details = reported.get("prompt_tokens_details")
    if not isinstance(details, dict | None):
        return 0, False

    # The last two are DeepSeek's name for it, and Kimi's.
    names = ("prompt_cache_hit_tokens", "cached_tokens")
    given = [(details or {}).get("cached_tokens"), *map(reported.get, names)]
    value = next((value for value in given if value is not None), 0)
    count = count_of(value)
    return count or 0, count is not None
