"""The tool calls of a chat completion, as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memeval.llm.contract import ToolCall
from memeval.llm.reply.text import without_controls


def read_tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of a message in order; odd members are read as empty, and not refused here."""
    calls = message.get("tool_calls")
    if isinstance(calls, dict):
        calls = [calls]
    if isinstance(calls, list):
        return tuple(_tool_call(call.get("id"), call.get("function")) for call in _objects(calls))

    # OpenAI's protocol before tools; some servers still reply in it.
    function = message.get("function_call")
    return (_tool_call(None, function),) if isinstance(function, dict) else ()


def _objects(values: list[Any]) -> list[Mapping[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _tool_call(call_id: object, function: object) -> ToolCall:
    named = function if isinstance(function, dict) else {}
    name, arguments = named.get("name"), named.get("arguments")
    # Some servers send the arguments as an object, and none as null.
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)

    return ToolCall(
        call_id=_clean(call_id),
        name=_clean(name),
        arguments=_clean(arguments) or "{}",
    )


def _clean(value: object) -> str:
    """A string without what no request or file can hold; empty for anything else."""
    return without_controls(value)[0].strip() if isinstance(value, str) else ""
