"""Reads exports of messengers: Telegram's JSON, and WhatsApp's text."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memeval.datasets.importing.message import ImportLog, Message, as_dict, as_list, key_of
from memeval.datasets.importing.table import RawTable
from memeval.datasets.importing.times import read_time

TELEGRAM_CHATS = re.compile(
    r"(personal|bot)_chat|(private|public)_(group|supergroup|channel)|saved_messages|replies"
)
"""Types of chats in an export of Telegram."""
MARK = "\u200e"
"""WhatsApp on an iPhone puts it before placeholders such as `image omitted`, and their lines."""
NO_TEXT = re.compile(rf"^({MARK}.*|<[^<>]*>)$")
"""WhatsApp's placeholders and notices in place of a text."""
LEVEL = re.compile(r"trace|debug|info|notice|warn(ing)?|error|critical|fatal", re.IGNORECASE)
"""Levels in a program's log, in the place of a speaker."""
AFTERNOON = ("p", "P", "م", "下午", "오후")
FIRST_LINE = re.compile(
    r"[\u200e\u200f\ufeff]*\[?(?P<date>\d{1,4}\u200f?([./-]) ?\d{1,2}\u200f?\2 ?\d{1,4})\.?[,،]? "
    r"((?P<before>[上下]午|오[전후]) ?|\w{1,3} )?(?P<clock>\d{1,2}([:.])\d\d(\6\d\d)?)"
    r"(\s?(?P<half>[apصم])\.?(\s?m\.?)?)?(\]| -) ((?P<speaker>[^:\"“]{1,100}): )?(?P<text>.*)",
    re.IGNORECASE,
)
"""The first line of a message in an export of WhatsApp, in the order and with the digits of the
telephone's language: `1.2.2024 klo 14.05 - Aino: …`. A notice may quote a name with a colon.
"""


def is_telegram(record: Mapping[str, Any]) -> bool:
    is_chat = TELEGRAM_CHATS.fullmatch(str(record.get("type"))) is not None
    return is_chat and isinstance(record.get("messages"), list)


def read_telegram(records: Sequence[Any], location: str, log: ImportLog) -> Iterator[Message]:
    """Chats of Telegram. Each day of a chat is a session."""
    names = Counter(key_of(as_dict(record).get("name")) for record in records)
    for chat in map(as_dict, records):
        name = key_of(chat.get("name"))
        # Two chats with the same name stay distinct.
        if not name or names[name] > 1:
            name = f"{name or location} ({key_of(chat.get('id'))})"

        for message in map(as_dict, as_list(chat.get("messages"))):
            text = _telegram_text(message, log)
            if message.get("type") != "message":
                log.leave_out("messages of the system")
            elif not text:
                log.leave_out("messages without text")
            else:
                speaker = key_of(message.get("from")) or key_of(message.get("from_id")) or "unknown"
                # The time zone of the date is unknown.
                time = read_time(message.get("date_unixtime") or message.get("date"), log)
                number = key_of(message.get("id"))
                yield Message(
                    speaker=speaker,
                    text=text,
                    session=f"{name}/{key_of(message.get('date'))[:10]}",
                    keys={"conversation": name, "user": speaker},
                    time=time,
                    message_id=f"{name}/{number}" if number else None,
                )


def _telegram_text(message: Mapping[str, Any], log: ImportLog) -> str:
    """The text, whose links and formatted parts are objects, and the name of a file."""
    content, texts = message.get("text"), []
    for part in content if isinstance(content, list) else [content]:
        text = as_dict(part).get("text", part)
        texts.append(text if isinstance(text, str) else "")

    file = key_of(message.get("file_name"))
    lines = (log.clean("".join(texts)), file and f"[file: {file}]")
    return "\n".join(filter(None, lines))


def whatsapp_table(text: str, conversation: str, path: Path) -> RawTable | None:
    """The messages of an export of WhatsApp, each day a session; None for any other text."""
    messages: list[tuple[re.Match[str], list[str]]] = []
    for line in text.splitlines():
        first = FIRST_LINE.fullmatch(line)
        if first is not None and LEVEL.fullmatch(first["speaker"] or ""):
            return None
        if first is not None:
            messages.append((first, [NO_TEXT.sub("", first["text"])]))
        elif messages:
            messages[-1][1].append(line)
        elif line.strip():
            return None

    rows = (
        (number, [*_whatsapp_cells(first), "\n".join(lines), conversation])
        for number, (first, lines) in enumerate(messages, start=1)
    )
    names = ("time", "session", "speaker", "text", "conversation")
    return RawTable(names, rows, path) if messages else None


def _whatsapp_cells(first: re.Match[str]) -> list[str]:
    """Time, day and speaker of a message, from its first line."""
    day = re.sub("[\u200f ]", "", first["date"])
    hour, *minutes = re.split("[:.]", first["clock"])
    if half := first["before"] or first["half"]:
        hour = f"{int(hour) % 12 + 12 * (half in AFTERNOON):02}"

    # A tilde precedes the names of strangers.
    speaker = (first["speaker"] or "").strip(f"~{MARK}\u200f\u202a\u202c\u202f ")
    time = re.sub(r"\d", lambda digit: str(int(digit[0])), f"{day} {':'.join([hour, *minutes])}")
    return [time, time.partition(" ")[0], speaker]
