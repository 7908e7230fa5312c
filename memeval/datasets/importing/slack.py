"""Reads an export of Slack: a folder per channel, with a file per day."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from memeval.datasets.importing.message import ImportLog, Message, as_dict, as_list, key_of
from memeval.datasets.importing.times import read_time

DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
MENTION = re.compile(r"<@(\w{1,40})(?:\|[^<>]{0,200})?>")
MESSAGE_SUBTYPES = (
    None,
    "bot_message",
    "me_message",
    "thread_broadcast",
    "file_share",
    "file_comment",
)
"""Subtypes of messages with content; others report joins, renames and the like."""


def is_slack(record: Mapping[str, Any]) -> bool:
    return "ts" in record and bool({"user", "text", "bot_id", "subtype"} & set(record))


def is_slack_file(name: str) -> bool:
    """Whether a file of this name contains one day's messages of a channel."""
    path = PurePosixPath(name)
    return bool(DAY.fullmatch(path.stem)) and path.suffix == ".json" and bool(path.parent.name)


def read_names(users: Sequence[Any], log: ImportLog) -> dict[str, str]:
    """Names by user id, from `users.json`."""
    names = {}
    for user in users:
        if not isinstance(user, dict) or not key_of(user.get("id")):
            log.leave_out("users without an id")
            continue

        profile = as_dict(user.get("profile"))
        given = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"))
        user_names = filter(None, map(key_of, (*given, user.get("name"))))
        names[key_of(user["id"])] = next(user_names, key_of(user["id"]))

    # Two people with the same name stay distinct.
    shared = Counter(names.values())
    for user_id, name in names.items():
        if shared[name] > 1:
            names[user_id] = f"{name} ({user_id})"

    return names


def read_slack(
    records: Sequence[Any], channel: str, day: str, names: Mapping[str, str], log: ImportLog
) -> Iterator[Message]:
    """A channel's messages of one day. Each thread is a session, and so is the rest of the day."""
    for record in records:
        if not isinstance(record, dict):
            log.leave_out("messages other than objects")
            continue
        if record.get("subtype") not in MESSAGE_SUBTYPES or record.get("hidden"):
            log.leave_out("messages of the system")
            continue

        text = _text(record, names, log)
        if not text:
            log.leave_out("messages without text")
            continue

        user = key_of(record.get("user"))
        speaker = names.get(user, user) or key_of(record.get("username")) or "bot"
        thread = key_of(record.get("thread_ts"))
        session = f"{channel}/{thread or day}"
        stamp = key_of(record.get("ts"))
        yield Message(
            speaker=speaker,
            text=text,
            session=session,
            keys={"channel": channel, "thread": session, "user": speaker},
            time=read_time(stamp, log),
            message_id=f"{channel}/{stamp}" if stamp else None,
        )


def _text(record: Mapping[str, Any], names: Mapping[str, str], log: ImportLog) -> str:
    written = MENTION.sub(
        lambda match: f"@{names.get(match[1], match[1])}", log.clean(record.get("text"))
    )
    parts = []
    if written:
        parts.append(html.unescape(written))

    for file in as_list(record.get("files")):
        name = key_of(as_dict(file).get("name"))
        if name:
            parts.append(f"[file: {name}]")

    return "\n".join(parts)
