"""The results of tools as texts for the model, cut to a token limit."""

import json
from dataclasses import replace
from typing import Any

from memeval.llm.tokens import start_of_token
from memeval.records import Retrieved
from memeval.systems.external.server_replies import reports_no_results
from memeval.systems.tools import ToolResult
from memeval.text.redaction import strings_in

NO_RESULT = "(no result)"
CHARACTERS_PER_TOKEN = 20
"""A result is also cut after this many characters per token: a long run of letters is one token."""


def as_result(value: Any) -> ToolResult:
    """Converts a tool's return value. Raises `TypeError` or `ValueError` if it can't be shown."""
    if isinstance(value, ToolResult):
        chunks = value.retrieved
        if chunks is not None:
            chunks = tuple(chunks)
        if not isinstance(value.text, str):
            raise TypeError("the text of a ToolResult must be a string")
        if not all(map(_is_sound, chunks or ())):
            raise TypeError(
                "`retrieved` of a ToolResult must contain Retrieved, each with a text and a tuple "
                "of turn_ids"
            )

        if not value.text.strip():
            return replace(value, text=NO_RESULT, retrieved=())

        return replace(value, retrieved=chunks)

    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value is None or (isinstance(value, str) and not value.strip()):
        return ToolResult(NO_RESULT, retrieved=())

    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=_show)

    retrieved = () if reports_no_results(value) else None
    return ToolResult(value, retrieved=retrieved)


def _is_sound(chunk: Any) -> bool:
    return (
        isinstance(chunk, Retrieved)
        and isinstance(chunk.text, str)
        and isinstance(chunk.turn_ids, tuple | list)
        and all(isinstance(turn, str) for turn in chunk.turn_ids)
    )


def _show(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        raise TypeError(f"an object of {type(value).__name__} can't be shown") from error


def cut_result(text: str, tokens: int) -> tuple[str, bool]:
    """At most `tokens` tokens of a text, and whether it was cut; its last line then says so."""
    short = text[: tokens * CHARACTERS_PER_TOKEN]
    short = short[: start_of_token(short, tokens)]
    if short.strip() == text.strip():
        return text, False

    return f"{short.rstrip()}\n[cut: only the first {tokens:,} tokens of the result]", True


def entries_of(result: str) -> list[str]:
    """The lines of a result, or the strings in it if it is JSON."""
    try:
        texts = list(strings_in(json.loads(result)))
    except (ValueError, RecursionError):
        texts = result.splitlines()

    return [text for text in texts if text.strip()]
