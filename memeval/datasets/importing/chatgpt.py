"""Reads the conversations of an export of ChatGPT.

Each conversation is a tree (`mapping`): a regenerated answer is another branch. The branch that the
user saw last is the path from `current_node` up to the root.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memeval.datasets.importing.chats import text_of
from memeval.datasets.importing.message import (
    SPEAKERS,
    ImportLog,
    Message,
    as_dict,
    as_list,
    key_of,
)
from memeval.datasets.importing.times import read_time

TEXTS = ("text", "multimodal_text")
"""The types of content that hold text."""


def read_chatgpt(records: Sequence[Any], location: str, log: ImportLog) -> Iterator[Message]:
    """The texts of user and assistant on the path to the current node of each conversation."""
    for number, record in enumerate(records):
        mapping = as_dict(record).get("mapping")
        if not isinstance(mapping, dict):
            log.leave_out("conversations without a mapping")
            continue

        path = _path(record, mapping, log)
        if path is None:
            log.leave_out("conversations whose tree has a cycle")
            continue

        yield from _messages(record, mapping, path, f"{location} {number}", log)


def _messages(
    record: Mapping[str, Any],
    mapping: Mapping[str, Any],
    path: Sequence[str],
    session: str,
    log: ImportLog,
) -> Iterator[Message]:
    given_id = key_of(record.get("conversation_id")) or key_of(record.get("id"))
    keys = {"conversation": given_id or session}
    title = log.clean(record.get("title")) or None
    on_path = set(path)
    for name, node in mapping.items():
        if name not in on_path and _message(node).get("content"):
            log.leave_out("messages of other branches")

    kept = False
    for name in path:
        message = _message(mapping[name])
        if not message:
            continue

        reason, text = _judge(message, log)
        if reason:
            log.leave_out(reason)
            continue

        kept = True
        yield Message(
            speaker=message["author"]["role"],
            text=text,
            session=session,
            keys=keys,
            time=read_time(message.get("create_time"), log),
            message_id=key_of(message.get("id")) or key_of(name),
            title=title,
        )

    if not kept:
        log.leave_out("conversations without text")


def _message(node: Any) -> dict[str, Any]:
    return as_dict(as_dict(node).get("message"))


def _judge(message: Mapping[str, Any], log: ImportLog) -> tuple[str, str]:
    """The reason to leave a message out (empty if it is kept), and its text."""
    metadata = as_dict(message.get("metadata"))
    # Texts that the user never saw have a weight of 0.
    if metadata.get("is_visually_hidden_from_conversation") or message.get("weight") == 0:
        return "messages marked as hidden", ""

    role = as_dict(message.get("author")).get("role")
    if role == "tool":
        return "messages of tools", ""
    if role not in SPEAKERS:
        return "messages of the system or of no author", ""
    if message.get("recipient") not in (None, "all"):
        return "calls to tools", ""

    content = as_dict(message.get("content"))
    if content.get("content_type") in TEXTS and (text := text_of(content.get("parts"), log)):
        return "", text

    return "messages without text", ""


def _path(
    record: Mapping[str, Any], mapping: Mapping[str, Any], log: ImportLog
) -> list[str] | None:
    """Names of the nodes from the root to the current one; None if they form a cycle."""
    name: Any = record.get("current_node")
    if not isinstance(name, str) or name not in mapping:
        name = _newest(mapping)
        known = name is not None
        log.note_conversion(
            "conversations up to the newest message, because none is marked as current", known
        )

    # The parent of a deleted node still lists it.
    parents: dict[Any, str] = {}
    for parent, node in mapping.items():
        for child in as_list(as_dict(node).get("children")):
            if isinstance(child, str):
                parents[child] = parent

    # A tree may have tens of thousands of nodes: names are looked up in a dictionary, not a list.
    path: dict[str, None] = {}
    while isinstance(name, str):
        if name in path:
            return None

        path[name] = None
        name = as_dict(mapping.get(name)).get("parent", parents.get(name))

    names = [name for name in reversed(path) if isinstance(mapping.get(name), dict)]
    log.note_conversion(
        "conversations starting after a deleted message", bool(names) and names[0] != [*path][-1]
    )
    return names


def _newest(mapping: Mapping[str, Any]) -> str | None:
    """The node of the newest message; of several, the last in the file."""
    newest, latest = None, float("-inf")
    for name, node in mapping.items():
        time = _message(node).get("create_time")
        # An integer may be too large for a float, so it is not converted.
        seconds = time if isinstance(time, int | float) else float("-inf")
        if isinstance(node, dict) and seconds >= latest:
            newest, latest = name, seconds

    return newest
