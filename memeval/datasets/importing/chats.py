"""Reads chats: Claude's export, messages with roles, ShareGPT, and sessions of coding agents."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from memeval.datasets.importing.message import (
    ASSISTANT,
    SPEAKERS,
    TOOL,
    USER,
    ImportLog,
    Message,
    as_dict,
    as_list,
    key_of,
    scalars,
    with_metadata,
)
from memeval.datasets.importing.times import read_time

ROLES: Mapping[str, str] = {
    "user": USER,
    "human": USER,
    "assistant": ASSISTANT,
    "gpt": ASSISTANT,
    "chatgpt": ASSISTANT,
    "bot": ASSISTANT,
    "ai": ASSISTANT,
    "model": ASSISTANT,
    "tool": TOOL,
    "function": TOOL,
    "observation": TOOL,
    "function_call": TOOL,
    "tool_call": TOOL,
    "tool_response": TOOL,
}
TEXT_FIELDS = ("content", "parts", "value", "text")
"""Fields that may contain a message's text."""
IGNORED_ROLES = ("system", "developer")
UNKNOWN_ROLE = "messages without a known role (call a speaker user or assistant)"
TIMES = ("timestamp", "created_at", "create_time", "created", "time", "date")
CONVERSATION_IDS = ("conversation_id", "session_id", "chat_id", "thread_id", "uuid", "id")
USERS = ("user_id", "user")
OWN_KEYS = ("user", "channel", "thread")
"""Keys whose value in a message overrides that of its conversation."""


def is_chat(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("messages"), list) or (
        "role" in record and bool({"content", "parts", "tool_calls"} & set(record))
    )


def is_sharegpt(record: Mapping[str, Any]) -> bool:
    return isinstance(_sharegpt_turns(record), list)


def _sharegpt_turns(record: Mapping[str, Any]) -> Any:
    return record.get("conversations", record.get("conversation"))


def is_agent(record: Mapping[str, Any]) -> bool:
    return "type" in record and (isinstance(record.get("message"), dict) or "sessionId" in record)


def read_claude(records: Sequence[Any], location: str, log: ImportLog) -> Iterator[Message]:
    """Reads Claude's export. Of attachments, only the names are kept."""
    for number, record in enumerate(_objects(records, log)):
        yield from _conversation(record, record.get("chat_messages"), f"{location} {number}", log)


def read_chat(records: Sequence[Any], location: str, log: ImportLog) -> Iterator[Message]:
    """Messages with `role` and `content`: from a record's `messages`, a list, or one per record."""
    bare = []
    logged: dict[str, tuple[str, list[Any]]] = {}
    for number, record in enumerate(records):
        session = f"{location} {number}"
        if isinstance(record, list):
            yield from _conversation({}, record, session, log)
        elif isinstance(record, dict) and "messages" in record:
            session, messages = _new_messages(record, session, logged, log)
            yield from _conversation(record, messages, session, log)
        else:
            bare.append(record)

    by_conversation: dict[str, list[Any]] = {}
    for record in bare:
        name = _first(scalars(as_dict(record)), CONVERSATION_IDS[:-2])
        by_conversation.setdefault(name, []).append(record)

    for name, messages in by_conversation.items():
        yield from _conversation({"conversation_id": name}, messages, name or location, log)


def _new_messages(
    record: Mapping[str, Any],
    session: str,
    logged: dict[str, tuple[str, list[Any]]],
    log: ImportLog,
) -> tuple[str, Any]:
    """Session and messages of a record. A logged call repeats its conversation so far: `logged` has
    the session of each conversation, and what was said in it.
    """
    name, messages = _first(scalars(record), CONVERSATION_IDS), as_list(record["messages"])
    says = list(map(_said, messages))
    begun, said = logged.get(name, ("", []))
    if not name or not said or len(says) <= len(said) or says[: len(said)] != said:
        logged[name] = session, says
        return session, record["messages"]

    logged[name] = begun, says
    log.note_conversion("calls without the repeated beginning of their conversation")
    return begun, messages[len(said) :]


def _said(message: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Role and texts of a message. A reply has more fields, which the next call does not repeat."""
    fields = as_dict(message)
    return fields.get("role"), _turn_texts(fields, USER, ImportLog())


def read_sharegpt(records: Sequence[Any], location: str, log: ImportLog) -> Iterator[Message]:
    """Reads ShareGPT's format: messages with `from` and `value`."""
    for number, record in enumerate(_objects(records, log)):
        yield from _conversation(record, _sharegpt_turns(record), f"{location} {number}", log)


def read_agent(records: Sequence[Any], location: str, log: ImportLog) -> Iterator[Message]:
    """Reads sessions of a coding agent. Tool calls and their results are turns of `tool`."""
    for record in _objects(records, log):
        kind = record.get("type")
        message = record.get("message")
        if kind not in SPEAKERS or not isinstance(message, dict):
            log.leave_out("events other than messages")
            continue
        if record.get("isMeta") or record.get("isSidechain"):
            log.leave_out("messages of sub-agents, or hidden")
            continue

        session = key_of(record.get("sessionId")) or location
        outer = dict(record)
        del outer["message"]
        keys = scalars(outer) | {"conversation": session}
        whole = {**message, "role": message.get("role") or kind}
        whole |= {"timestamp": record.get("timestamp"), "id": record.get("uuid")}
        yield from _turns(whole, session, keys, None, log)


def _objects(records: Sequence[Any], log: ImportLog) -> Iterator[dict[str, Any]]:
    for record in records:
        if isinstance(record, dict):
            yield record
        else:
            log.leave_out("records other than objects")


def _conversation(
    record: Mapping[str, Any], messages: Any, session: str, log: ImportLog
) -> Iterator[Message]:
    if not isinstance(messages, list):
        log.leave_out("conversations without a list of messages")
        return

    fields = scalars(record)
    keys = dict(fields)
    keys.pop("id", None)
    keys["conversation"] = _first(fields, CONVERSATION_IDS) or session
    if user := _first(fields, USERS):
        keys["user"] = user

    title = log.clean(record.get("title") or record.get("name")) or None
    started = _own_time(record, messages, log)
    kept = 0
    for message in messages:
        if not isinstance(message, dict):
            log.leave_out("messages other than objects")
            continue

        for turn in _turns(message, session, keys, title, log):
            kept += 1
            yield replace(turn, time=started) if started and kept == 1 else turn

    if not kept:
        log.leave_out("conversations without text")


def _own_time(
    record: Mapping[str, Any], messages: Sequence[Any], log: ImportLog
) -> datetime | None:
    """The time of a conversation whose messages have none; it becomes that of its first turn."""
    if any(_first_time(as_dict(message)) is not None for message in messages):
        return None

    time = read_time(_first_time(record), log)
    log.note_conversion(
        "conversations dated as a whole, because no message has a time", time is not None
    )
    return time


def _turns(
    message: Mapping[str, Any],
    session: str,
    keys: Mapping[str, str],
    title: str | None,
    log: ImportLog,
) -> Iterator[Message]:
    """The turns of a message: its text, and each tool call and tool result."""
    named = message.get("role") or message.get("sender") or message.get("from")
    role = str(named or "").strip().lower()
    if role in IGNORED_ROLES:
        log.leave_out("messages of the system")
        return
    if role not in ROLES:
        log.leave_out(UNKNOWN_ROLE)
        return

    turns = _turn_texts(message, ROLES[role], log)
    if not turns:
        log.leave_out("messages without text")

    fields = scalars({name: value for name, value in message.items() if name not in TEXT_FIELDS})
    own_keys = {name: fields[name] for name in OWN_KEYS if name in fields}
    given_id = key_of(message.get("uuid")) or key_of(message.get("id"))
    time = read_time(_first_time(message), log)
    for number, (speaker, text) in enumerate(turns):
        message_id = f"{given_id}/{number}" if given_id and number else given_id
        yield Message(
            speaker=speaker,
            text=text,
            session=session,
            keys={**fields, **keys, **own_keys},
            time=time,
            message_id=message_id or None,
            title=title,
        )


def _turn_texts(message: Mapping[str, Any], role: str, log: ImportLog) -> list[tuple[str, str]]:
    """Speaker and text of each turn in a message."""
    content = next(filter(None, map(message.get, TEXT_FIELDS)), "")
    texts: list[str] = []
    tools: list[str] = []
    add_parts(content, texts, tools, log)

    # Older exports of Claude leave the parts empty and have the text next to them.
    if not texts and not tools:
        texts = [log.clean(message.get("text"))]

    for file in _files(message):
        texts.append(f"[file: {file}]")

    tools += _calls(message, log)
    kept = list(filter(None, map(log.clean, tools)))
    log.leave_out("results of tools without text", len(tools) - len(kept))
    turns = [(TOOL, tool) for tool in kept]
    text = "\n".join(filter(None, texts))
    return [(role, text), *turns] if text else turns


def text_of(content: Any, log: ImportLog) -> str:
    """The text of a message's content, and of its tools."""
    texts: list[str] = []
    add_parts(content or "", texts, texts, log)
    return "\n".join(filter(None, texts))


def add_parts(content: Any, texts: list[str], tools: list[str], log: ImportLog) -> None:
    """Adds the text of a message's parts to `texts`, and tool activity to `tools`."""
    # Some exporters write a single part without a list.
    for part in content if isinstance(content, list) else [content]:
        kind = str(as_dict(part).get("type", "text"))
        if isinstance(part, str):
            texts.append(log.clean(part))
        elif not isinstance(part, dict):
            log.leave_out("parts without text")
        # Server tools and other tools have different types with the same ending.
        elif kind.endswith("tool_use"):
            tools.append(_call_text(part.get("name"), part.get("input")))
        elif kind.endswith("tool_result"):
            tools.append(text_of(part.get("content"), log))
        elif isinstance(part.get("text"), str) and kind in ("text", "input_text", "output_text"):
            texts.append(log.clean(part["text"]))
        elif "think" in kind:
            log.leave_out("thoughts of the model")
        else:
            log.leave_out("parts with a picture or a file")


def _calls(message: Mapping[str, Any], log: ImportLog) -> Iterator[str]:
    """The calls outside the content; older messages have a single one."""
    calls = _objects(as_list(message.get("tool_calls")), log)
    for function in [*(call.get("function") for call in calls), message.get("function_call")]:
        if isinstance(function, dict):
            yield _call_text(function.get("name"), function.get("arguments"))


def _call_text(name: Any, arguments: Any) -> str:
    """A call as text: the tool's name and its arguments as JSON."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)

    return f"{key_of(name) or 'tool'}({arguments})".strip()


def _files(message: Mapping[str, Any]) -> list[str]:
    """Names of attached files. Claude's `attachments` and `files` may both name the same file."""
    names: dict[str, None] = {}
    for field in ("attachments", "files"):
        for value in as_list(message.get(field)):
            if name := key_of(as_dict(value).get("file_name")):
                names[name] = None

    return list(names)


def _first(fields: Mapping[str, str], names: Sequence[str]) -> str:
    """The first of the fields that exists; empty if none does."""
    return next(filter(None, map(fields.get, names)), "")


def _first_time(record: Mapping[str, Any]) -> Any:
    fields = with_metadata(record)
    return next((fields[name] for name in TIMES if fields.get(name) is not None), None)
