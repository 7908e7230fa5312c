"""A message of an export that becomes part of a case, and the log of omissions and conversions."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from memeval.records import TOOL_SPEAKER
from memeval.results.files import without_halves

USER, ASSISTANT, TOOL = "user", "assistant", TOOL_SPEAKER
SPEAKERS = (USER, ASSISTANT)
PLURAL = re.compile(r"^(\w+)s ")
LONGEST_KEY = 200
"""Maximum length of a name by which messages are grouped."""


class Message(Struct, frozen=True, kw_only=True):
    """One message: it becomes a turn."""

    speaker: str
    text: str
    session: str
    """Names the session within the import."""
    keys: Mapping[str, str]
    """Values to group it into cases, by key: conversation, thread, user, channel, any column."""
    time: datetime | None = None
    """With a time zone if the export names one."""
    message_id: str | None = None
    title: str | None = None
    """Title of its session."""


class ImportLog(Struct):
    """Counts of omissions and conversions."""

    left_out: Counter[str] = field(default_factory=Counter)
    conversions: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """The first example of each kind that was left out."""

    def leave_out(self, kind: str, count: int = 1, *, example: str = "") -> None:
        self.left_out[kind] += count
        if example:
            self.examples.setdefault(kind, f", such as {example}")

    def note_conversion(self, kind: str, count: int = 1) -> None:
        self.conversions[kind] += count

    def clean(self, value: Any) -> str:
        """The string without white space around it; empty for a value that is not a string."""
        if not isinstance(value, str):
            return ""

        text = without_halves(value)
        if text != value:
            self.note_conversion("texts with lone surrogates, which became U+FFFD")

        return text.strip()

    def lines(self) -> list[str]:
        """The log for the user, one line for each kind."""
        lines = []
        for verb, counts in (("read", self.conversions), ("left out", self.left_out)):
            for kind, count in sorted(counts.items()):
                if count:
                    name = PLURAL.sub(r"\1 ", kind) if count == 1 else kind
                    lines.append(f"{verb}: {count:,} {name}{self.examples.get(kind, '')}")

        return lines


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def key_of(value: Any) -> str:
    """A value as a one-line name to group by; empty if it can't be one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""

    return without_halves(" ".join(str(value).split()))[:LONGEST_KEY]


def scalars(record: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a record that are strings or numbers, including those of its `metadata`."""
    keys = {}
    for name, value in with_metadata(record).items():
        key = key_of(value)
        if key:
            keys[name] = key

    return keys


def with_metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record and of its `metadata`; the record's own take precedence."""
    return {**as_dict(record.get("metadata")), **record}
