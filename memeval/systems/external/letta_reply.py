"""An agent's searches and answer, read from the events of a Letta server's reply."""

import ast
import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from memeval.errors import ModelError
from memeval.records import Retrieved
from memeval.text.shown import one_line

SEARCH = "archival_memory_search"
"""The name of the tool with which an agent searches its archive."""


class LettaReply(Struct):
    """An agent's reply to one message, and its steps."""

    text: str = ""
    """The agent's last message."""
    stop_reason: str = ""
    queries: list[str] = field(default_factory=list)
    """The queries of its searches in the archive."""
    hits: list[Retrieved] | None = field(default_factory=list)
    """The results of its searches, each best first; None if one could not be read. Their turns are
    not known here. Letta calls them passages.
    """
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0
    steps: int = 1


def read_reply(events: Sequence[Any]) -> LettaReply:
    """Reads a reply from the events of a stream.

    Raises `ModelError` if the server reports a failure, or if the agent sent no message.
    """
    # Texts arrive in pieces, which are joined by the id of their message.
    reply, called, texts = LettaReply(), dict[str, str](), dict[str, str]()
    for event in events:
        match event.message_type:
            case "error_message":
                raise ModelError(f"the Letta server failed: {one_line(event.message)}")
            case "tool_call_message":
                called |= _searches(event)
                reply.queries = list(called.values())
            case "tool_return_message" if event.tool_call_id in called or event.name == SEARCH:
                if event.status == "success" and reply.hits is not None:
                    hits = hits_of(event.tool_return)
                    # One unreadable result makes the whole ranking unknown.
                    reply.hits = None if hits is None else reply.hits + hits
            case "assistant_message":
                content = event.content
                if not isinstance(content, str):
                    content = "".join(part.text for part in content)

                texts[event.id] = texts.get(event.id, "") + content
            case "stop_reason":
                reply.stop_reason = str(event.stop_reason)
            case "usage_statistics":
                reply.prompt_tokens = event.prompt_tokens
                reply.completion_tokens = event.completion_tokens
                reply.cached_tokens = event.cached_input_tokens or 0
                reply.steps = event.step_count or 1

    # An agent may speak before it searches; its last message is the answer.
    for text in texts.values():
        reply.text = text.strip() or reply.text
    if not reply.text:
        raise ModelError(f"the agent did not answer (stop_reason: {reply.stop_reason or 'none'})")

    return reply


def _searches(event: Any) -> dict[str, str]:
    """Queries of the search calls in an event, by the call's id."""
    # Releases differ in whether an event contains one call or a list of them.
    calls = event.tool_calls
    if not isinstance(calls, list) or not calls:
        calls = [event.tool_call]

    queries = {}
    for call in calls:
        if call.name == SEARCH:
            try:
                queries[call.tool_call_id] = str(json.loads(call.arguments).get("query", ""))
            except (ValueError, AttributeError):
                # The model writes the arguments, so they may be invalid JSON. The search is known
                # nevertheless, and its result belongs to the ranking.
                queries[call.tool_call_id] = ""

    return queries


def hits_of(returned: str) -> list[Retrieved] | None:
    """The chunks in the result of the search tool; None if it can't be read."""
    # The server writes a list of `{timestamp, content, tags, relevance}` as Python or as JSON, in
    # some releases inside `{message}` or `{results}`. It truncates long ones.
    for read in (json.loads, ast.literal_eval):
        try:
            return _hits(read(returned))
        except (ValueError, SyntaxError, TypeError, LookupError, AttributeError):
            continue

    return None


def _hits(value: Any) -> list[Retrieved] | None:
    if value is None:
        return []
    if isinstance(value, str):
        return hits_of(value)
    if isinstance(value, dict):
        member = "results" if "results" in value else "message"
        return _hits(value[member])
    if isinstance(value, tuple):  # (results, count)
        return _hits(value[0])

    hits = []
    for row in value:
        score = (row.get("relevance") or {}).get("rrf_score")
        hits.append(Retrieved(text=str(row["content"]), turn_ids=(), score=score))

    return hits
