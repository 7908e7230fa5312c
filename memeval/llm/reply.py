"""What an endpoint's reply holds, checked where it enters: pure functions from JSON to sound values.

Raises `UnsoundReplyError` for a reply that does not hold what was asked for; it may be asked for again.
Whatever is odd beside the text (a usage that is not a count, thinking, control characters) is mended by
a stated rule, and named in `notes`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memeval.errors import ModelError
from memeval.llm.tokens import count_tokens
from memeval.shown import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

MOST_TOKENS = 10_000_000
"""More tokens than this in one call are not a count: no window is larger."""
MOST_SECONDS = 1e7
LARGEST_NUMBER = 1e6
"""Numbers of an embedding are far below: models give vectors of length 1, or of a few hundred."""
SHORTEST_VECTOR = 1e-6
"""A vector that is shorter says nothing."""

ODD_USAGE, THINKING, CHARACTERS, PARTS = "odd_usage", "thinking", "control_characters", "odd_parts"
NOTES = {
    ODD_USAGE: "the endpoint reported a usage that is not a count of tokens: it was counted here",
    THINKING: "thinking that the model wrote into its reply (<think> and the like) is not part of the answer",
    CHARACTERS: "control characters and halves of characters were taken out of replies",
    PARTS: "parts of a reply that are not text were left out",
}
"""What a reader is told of each mend."""


class UnsoundReplyError(ModelError):
    """A reply under status 200 that does not hold what was asked for."""


class CutReplyError(ModelError):
    """The limit of tokens was reached before the reply began."""


class FilteredReplyError(ModelError):
    """The provider's filter withheld the reply."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The sound part of a chat completion."""

    text: str
    """Never empty; without thinking and control characters."""
    raw: str | None
    """The whole reply where it holds thinking beside the text."""
    finish_reason: str | None
    usage: Mapping[str, Any]
    """`prompt_tokens`, `completion_tokens`, `cached_tokens`, `estimated`."""
    notes: tuple[str, ...] = ()
    """Keys of `NOTES`."""


@dataclass(frozen=True, slots=True)
class VectorsReply:
    """The sound part of a reply of embeddings."""

    vectors: Matrix
    """A row of length 1 for each text, in the order sent."""
    tokens: int | None
    """None where the endpoint did not say."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankingReply:
    """The sound part of a reply of a reranker."""

    scores: tuple[float, ...]
    """A score for each document, in the order sent."""
    tokens: int | None
    notes: tuple[str, ...] = ()


# JSON


def parse(content: bytes, content_type: str = "") -> Mapping[str, Any]:
    """The JSON object that a body holds. Raises `UnsoundReplyError`."""
    try:
        parsed = _loads(content)
    except (ValueError, RecursionError) as error:
        raise UnsoundReplyError(_not_json(content, content_type)) from error
    if not isinstance(parsed, dict):
        raise UnsoundReplyError("the reply is not a JSON object")
    return parsed


def _loads(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        # An integer of thousands of digits is no reason to lose the rest: it reads as infinite.
        return json.loads(
            content, parse_int=lambda digits: int(digits) if len(digits) < 400 else math.inf
        )


def _not_json(content: bytes, content_type: str) -> str:
    start = content[:512].lstrip().lower()
    if (
        start.startswith((b"<!doctype", b"<html", b"<head", b"<body"))
        or "html" in content_type.lower()
    ):
        return "the reply is an HTML page instead of JSON: is the address that of an API?"
    if not content.strip():
        return "the reply is empty: a body without a byte"
    if start.startswith((b"data:", b"event:")):
        return "the reply is not JSON but a stream of events"
    return "the reply is not JSON"


def count_of(value: object) -> int | None:
    """A count of tokens; None for whatever is not one (text, a negative, a boolean, a fraction, far too much)."""
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if sound and isinstance(value, int) else None


def seconds_of(value: object) -> float | None:
    """A duration; None for whatever is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST_SECONDS else None


# Chat


def read_chat(reply: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]) -> ChatReply:
    """The reply to the messages `asked`.

    Raises `UnsoundReplyError` where there is no text and no reason for it, `CutReplyError` where the limit of tokens
    left none, and `FilteredReplyError` where a filter did.
    """
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnsoundReplyError(f"the reply has no choices{_error_within(reply)}")
    choice = choices[0]
    finish = finish_reason(choice.get("finish_reason"))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnsoundReplyError("the reply has no message")
    whole, part_notes = _content(message)
    clean, odd_characters = without_controls(whole)
    text, thought = without_thinking(clean)
    if finish == "error":
        raise UnsoundReplyError(
            f"the reply ended by an error{_error_within(choice) or _error_within(reply)}"
        )
    if not text:
        raise _empty(finish, thought, choice, message)
    usage, usage_notes = usage_of(reply.get("usage"), asked, whole)
    odd = {THINKING: thought, CHARACTERS: odd_characters}
    notes = (*part_notes, *(name for name, is_so in odd.items() if is_so), *usage_notes)
    return ChatReply(text, clean if thought else None, finish, usage, notes)


def _content(message: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The text of a message, whether it comes as a string, as a list of parts, or as a refusal."""
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        return content, ()
    if isinstance(content, list):
        texts = [text for part in content if (text := _text_of(part)) is not None]
        joined = "".join(texts)
        if joined.strip():
            return joined, () if len(texts) == len(content) else (PARTS,)
    elif content is not None and not isinstance(content, str):
        raise UnsoundReplyError("the reply's content is not text")
    refusal = message.get("refusal")
    return (refusal, ()) if isinstance(refusal, str) else ("", ())


def _text_of(part: object) -> str | None:
    """The text of one part of a content; None where it holds none, thinking among them."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in (
        "text",
        "output_text",
        "refusal",
    ):
        return None
    text = part.get("text", part.get("refusal"))
    if isinstance(text, dict):  # as the assistants' API writes it
        text = text.get("value")
    return text if isinstance(text, str) else None


def _empty(
    finish: str | None, thought: bool, choice: Mapping[str, Any], message: Mapping[str, Any]
) -> ModelError:
    if finish == "length":
        return CutReplyError(
            "the limit of tokens was reached before the reply held a word of text (finish_reason: length)"
        )
    if finish == "content_filter":
        return FilteredReplyError(
            "the provider's filter withheld the reply (finish_reason: content_filter)"
        )
    if thought:
        return UnsoundReplyError("the reply holds nothing but thinking")
    if message.get("tool_calls") or message.get("function_call"):
        return UnsoundReplyError("the reply calls a tool instead of answering")
    return UnsoundReplyError(
        f"the reply is empty (finish_reason: {one_line(choice.get('finish_reason'), 40)})"
    )


def _error_within(reply: Mapping[str, Any]) -> str:
    """What a gateway says of an error that it sent under status 200."""
    error = reply.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    return f": {one_line(said)}" if isinstance(said, str) and said.strip() else ""


_FINISHES = {
    "length": "length max_tokens max_output_tokens max_length max_completion_tokens max_tokens_exceeded model_length token_limit"
    " length_limit model_context_window_exceeded",
    "content_filter": "content_filter content_filtered contentfilter filter safety recitation blocklist prohibited_content spii"
    " image_safety sensitive guardrail_intervened refusal content_moderation moderation data_inspection_failed",
    "stop": "stop eos eos_token end_turn stop_sequence completed complete end finish_reason_stop",
    "error": "error abort aborted insufficient_system_resource network_error failed cancelled malformed_response",
}
_NORMAL = {word: name for name, words in _FINISHES.items() for word in words.split()}


def finish_reason(value: object) -> str | None:
    """Why a model stopped, in OpenAI's words where another provider's mean the same; None for what is not text."""
    if not isinstance(value, str) or not value.strip():
        return None
    word = value.strip().lower().replace("-", "_").replace(" ", "_")
    return _NORMAL.get(word.removeprefix("finish_reason_"), one_line(word, 40))


def usage_of(
    value: object, asked: Sequence[Mapping[str, Any]], text: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Tokens as the endpoint reports them; what it does not say, or says in a way that is not a count, is counted here."""
    reported = value if isinstance(value, dict) else {}
    prompt, completion = (
        count_of(reported.get("prompt_tokens")),
        count_of(reported.get("completion_tokens")),
    )
    cached, sound = _cached_of(reported)
    if prompt is not None and cached > prompt:
        cached, sound = 0, False
    estimated = prompt is None or completion is None
    said_nothing = value is None or value == {}
    odd = not sound or (estimated and not said_nothing)
    counts = {
        "prompt_tokens": sum(count_tokens(str(message.get("content") or "")) for message in asked)
        if prompt is None
        else prompt,
        "completion_tokens": count_tokens(text) if completion is None else completion,
        "cached_tokens": 0 if prompt is None else cached,
        "estimated": estimated,
    }
    return counts, (ODD_USAGE,) if odd else ()


def _cached_of(reported: Mapping[str, Any]) -> tuple[int, bool]:
    """Tokens that the provider read from its own cache, and whether it said so soundly."""
    details = reported.get("prompt_tokens_details")
    if details is not None and not isinstance(details, dict):
        return 0, False
    value = (details or {}).get("cached_tokens")
    if value is None:
        value = reported.get("prompt_cache_hit_tokens")  # as DeepSeek says it
    count = count_of(0 if value is None else value)
    return (0, False) if count is None else (count, True)


# Text

# What a reader, a terminal or a database can't hold: control characters but for tab and line ends, and halves of characters.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_BREAKS = re.compile(r"[\x85\u2028\u2029]")  # what splits lines in some readers only
_HALVES = re.compile(r"[\ud800-\udfff]")


def without_controls(text: str) -> tuple[str, bool]:
    """`text` without control characters, odd line ends as `\\n`, halves of characters as U+FFFD; and whether any were there.

    Two halves that make one character are joined.
    """
    if text.isprintable():
        return text, False
    whole = text
    if _HALVES.search(text):
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        whole = _HALVES.sub("\ufffd", whole)
    clean = _CONTROLS.sub("", whole)
    clean = _BREAKS.sub("\n", clean)
    return clean, clean != text


_TAGS = "think|thinking|thought|thoughts|reasoning|antthinking|seed:think"
_OPEN = rf"<(?:{_TAGS})(?:\s[^<>]{{0,80}})?>|<\|begin_of_thought\|>|<\|(?:start_)?thinking\|>|\[think\]|◁think▷|<unused94>"
_CLOSE = rf"</(?:{_TAGS})\s?>|<\|end_of_thought\|>|<\|(?:end_|/)thinking\|>|\[/think\]|◁/think▷|<unused95>"
_MARKS = re.compile(rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
_SOLUTION = re.compile(r"<\|(?:begin|end)_of_solution\|>", re.IGNORECASE)
_HARMONY = re.compile(r"<\|channel\|>\s?final\s?<\|message\|>")
_HARMONY_END = re.compile(r"<\|(?:end|return)\|>")


def without_thinking(text: str) -> tuple[str, bool]:
    """`text` without the thinking that a model wrote into it, stripped; and whether there was any.

    Taken out are a marked block, wherever it stands; all before a closing mark that nothing opened (the prompt did);
    and all from an opening mark on that nothing closes, where the mark begins a line.
    """
    harmony = list(_HARMONY.finditer(text))
    if harmony:
        return _HARMONY_END.split(text[harmony[-1].end() :], maxsplit=1)[0].strip(), True
    if not (marks := list(_MARKS.finditer(text))):
        return text.strip(), False

    kept: list[str] = []
    start = depth = 0
    last_open: re.Match[str] | None = None
    changed = False
    for mark in marks:
        if mark["open"] is not None:
            if depth == 0:
                kept.append(text[start : mark.start()])
                start, last_open = mark.start(), mark
            depth += 1
        else:
            if depth == 0:
                kept.clear()
            depth = max(0, depth - 1)
            if depth == 0:
                start, changed = mark.end(), True
    if depth and last_open is not None:
        opened = text[: last_open.start()]
        if not opened.strip() or opened.rstrip(" \t").endswith("\n"):
            start, changed = len(text), True
    kept.append(text[start:])
    joined = "".join(kept)
    return _SOLUTION.sub("", joined).strip(), changed


# Embeddings


def read_vectors(reply: Mapping[str, Any], count: int, width: int | None) -> VectorsReply:
    """The vectors of `count` texts, of `width` numbers where the model's width is known. Raises `UnsoundReplyError`."""
    import numpy as np

    rows = _in_order(reply.get("data"), count, "vector", "text")
    numbers = _numbers([row.get("embedding") for row in rows])
    if width and numbers.shape[1] != width:
        raise UnsoundReplyError(
            f"the vectors have {numbers.shape[1]} numbers, where this model's have {width}"
        )
    if not np.isfinite(numbers).all():
        raise UnsoundReplyError("a vector holds numbers that are not finite")
    if np.abs(numbers).max() > LARGEST_NUMBER:
        raise UnsoundReplyError(f"a vector holds numbers beyond {LARGEST_NUMBER:g}")
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    if lengths.min() < SHORTEST_VECTOR:
        raise UnsoundReplyError("a vector is all zeros")
    tokens, notes = _batch_tokens(reply.get("usage"), "prompt_tokens")
    return VectorsReply((numbers / lengths).astype(np.float32), tokens, notes)


def _in_order(rows: object, count: int, what: str, of_what: str) -> list[Mapping[str, Any]]:
    """Rows by their `index`, each index from 0 on once; as they came where none has one."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnsoundReplyError(f"the reply holds no list of {what}s")
    if len(rows) != count:
        raise UnsoundReplyError(f"the reply holds {len(rows)} {what}s for {count} {of_what}s")
    indices = [row.get("index") for row in rows]
    if all(index is None for index in indices):
        return rows
    if any(isinstance(index, bool) or not isinstance(index, int) for index in indices):
        raise UnsoundReplyError(f"a {what} of the reply has no sound index")
    if set(indices) != set(range(count)):
        raise UnsoundReplyError(f"the indices of the reply are not those of {count} {of_what}s")
    return sorted(rows, key=lambda row: int(row["index"]))


def _numbers(embeddings: Sequence[object]) -> NDArray[np.float64]:
    import numpy as np

    rows = [_decoded(value) if isinstance(value, str) else value for value in embeddings]
    if not all(isinstance(row, list | np.ndarray) and len(row) for row in rows):
        raise UnsoundReplyError("a vector is not a list of numbers")
    try:
        numbers = np.array(rows)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnsoundReplyError("the vectors are not lists of numbers of one length") from error
    if numbers.dtype.kind not in "fiu" or numbers.ndim != 2:
        raise UnsoundReplyError("the vectors are not lists of numbers of one length")
    return numbers.astype(np.float64)


def _decoded(text: str) -> NDArray[np.float32]:
    """A vector in base64: float32, the lowest byte first."""
    import numpy as np

    try:
        packed = base64.b64decode(text, validate=True)
        return np.frombuffer(packed, dtype="<f4")
    except (binascii.Error, ValueError) as error:
        raise UnsoundReplyError("a vector is neither a list of numbers nor base64") from error


def sound_vector(packed: bytes, width: int | None) -> bool:
    """Whether a stored vector is one that was stored: whole, finite, of length 1, of the model's width where it is known."""
    import numpy as np

    if (
        not isinstance(packed, bytes)
        or not packed
        or len(packed) % 4
        or (width and len(packed) != 4 * width)
    ):
        return False
    vector = np.frombuffer(packed, dtype=np.float32)
    with np.errstate(all="ignore"):
        length = float(np.dot(vector, vector))
    return abs(length - 1.0) < 1e-3  # False for NaN, too


def _batch_tokens(usage: object, *names: str) -> tuple[int | None, tuple[str, ...]]:
    """The first of the counts of that name that a usage holds."""
    if usage is None or usage == {}:
        return None, ()
    if not isinstance(usage, dict):
        return None, (ODD_USAGE,)
    value = next((usage[name] for name in names if usage.get(name) is not None), None)
    count = count_of(value)
    return count, (ODD_USAGE,) if count is None else ()


# Rankings


def read_ranking(reply: Mapping[str, Any], documents: int) -> RankingReply:
    """The score of each document, in the order sent. Raises `UnsoundReplyError` where any has none."""
    rows = _in_order(reply.get("results"), documents, "score", "document")
    if any("index" not in row for row in rows):
        raise UnsoundReplyError("a score of the reply has no sound index")
    scores = [row.get("relevance_score") for row in rows]
    if not all(is_score(score) for score in scores):
        raise UnsoundReplyError("a score of the reply is not a finite number")
    tokens, notes = _batch_tokens(reply.get("usage"), "total_tokens", "prompt_tokens")
    return RankingReply(tuple(float(score) for score in scores if score is not None), tokens, notes)


def is_score(value: object) -> bool:
    """Whether a reranker's score is a number that sorts."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300  # False for NaN and the infinite


# What was stored


def stored_chat(value: bytes) -> dict[str, Any] | None:
    """An entry of the response cache; None for one that is damaged, was edited, or holds what no reply may: it is asked again."""
    entry = _stored(value)
    if entry is None or not isinstance(entry.get("text"), str) or not entry["text"].strip():
        return None
    raw, finish, notes = entry.get("raw"), entry.get("finish_reason"), entry.get("notes", [])
    sound = sound_usage(entry.get("usage")) and _is_text(raw) and _is_text(finish)
    if (
        not sound
        or not isinstance(notes, list)
        or not all(isinstance(note, str) and note in NOTES for note in notes)
    ):
        return None
    clean, odd_characters = without_controls(
        entry["text"]
    )  # an earlier release kept replies as they came
    text, thought = without_thinking(clean)
    if not text:
        return None
    odd = {THINKING: thought, CHARACTERS: odd_characters}
    notes = list(dict.fromkeys([*notes, *(name for name, is_so in odd.items() if is_so)]))
    return {
        **entry,
        "text": text,
        "raw": clean if thought else raw,
        "finish_reason": finish,
        "notes": notes,
    }


def stored_ranking(value: bytes, documents: int) -> dict[str, Any] | None:
    """An entry of the response cache that a reranker wrote; None for an unsound one."""
    entry = _stored(value)
    if (
        entry is None
        or count_of(entry.get("tokens")) is None
        or not isinstance(entry.get("estimated"), bool)
    ):
        return None
    scores = entry.get("scores")
    sound = (
        isinstance(scores, list)
        and len(scores) == documents
        and all(is_score(score) for score in scores)
    )
    return entry if sound else None


def _stored(value: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return None
    if (
        not isinstance(entry, dict)
        or seconds_of(entry.get("latency_s")) is None
        or seconds_of(entry.get("wait_s")) is None
    ):
        return None
    return entry


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def sound_usage(usage: object) -> bool:
    """Whether a stored usage holds counts, and nothing else."""
    if not isinstance(usage, dict) or set(usage) != {
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "estimated",
    }:
        return False
    counts = (
        count_of(usage[name]) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    )
    return all(count is not None for count in counts) and isinstance(usage["estimated"], bool)
