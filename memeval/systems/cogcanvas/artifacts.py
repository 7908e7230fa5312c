"""Typed artifacts of a conversation, each with the words that support it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memeval.records import MemoryChunk, format_time
from memeval.systems.chunk_file import iso_time, read_state, write_state
from memeval.text.typed import convert
from memeval.text.words import search_terms

KINDS = (
    "decision",
    "todo",
    "key_fact",
    "reminder",
    "insight",
    "person_attribute",
    "event",
    "relationship",
)
"""The types of artifacts."""

ARTIFACTS_FILE = "artifacts.json"


class Artifact(Struct, frozen=True, dict=True):
    """One thing worth remembering."""

    kind: str
    """One of `KINDS`."""
    content: str
    """The fact to remember, in one complete sentence."""
    quote: str
    """The words that support it, found verbatim in the turn."""
    speaker: str
    """Speaker of the turns; empty if the chunk does not name one."""
    turn_ids: tuple[str, ...]
    """The turn that holds the quote; all turns of the chunk if its lines don't match them."""
    time: datetime | None
    """When the chunk was said."""
    dates: tuple[str, ...]
    """The quote's expressions of time, resolved: `7 May 2023`, `June 2023`."""
    people: tuple[str, ...]
    """People that it is about, other than the speaker."""
    chunk_index: int
    """Position of its chunk in the conversation."""
    start: int
    """Start of the quote in the chunk's content."""
    batch: int
    """Number of the extraction batch that read its chunk, from 0."""

    # These texts are made once, because several indexes read them.
    @cached_property
    def gist(self) -> str:
        """The content, if it says more than the quote and the speaker; else empty."""
        terms = set(search_terms(f"{self.speaker} {self.quote}"))
        if terms.issuperset(search_terms(self.content)):
            return ""

        return self.content

    @property
    def text(self) -> str:
        """`[1:56 pm on 8 May 2023] event told by Ann: <quote> (7 May 2023: <gist>)`."""
        text = self.kind.replace("_", " ")
        if self.time:
            text = f"[{format_time(self.time)}] {text}"
        if self.speaker:
            text += f" told by {self.speaker}"

        text += f": {self.quote}"
        if note := ": ".join(filter(None, ("; ".join(self.dates), self.gist))):
            text += f" ({note})"

        return text

    @property
    def compact_text(self) -> str:
        """As the published system shows it: `[E] **7 May 2023**: <content>`."""
        # The published context has neither the quote nor the session's date. An event's resolved
        # time is the only date in it.
        initial = f"[{self.kind[0].upper()}]"
        if not self.dates:
            return f"{initial} {self.content}"

        return f"{initial} **{'; '.join(self.dates)}**: {self.content}"

    @property
    def content_quote(self) -> str:
        """The text that the published system embeds and indexes."""
        return f"{self.content} {self.quote}"

    @cached_property
    def full_text(self) -> str:
        """The speaker, the quote, the gist and the dates, one to a line."""
        # The chunk's time is left out: no system searches by the date of ingestion.
        quote = f"{self.speaker}: {self.quote}" if self.speaker else self.quote
        return "\n".join(filter(None, (quote, self.gist, *self.dates)))

    @property
    def row(self) -> dict[str, Any]:
        """Row of a dump: the text that a reader sees, and the fields as JSON."""
        fields = _fields(self)
        # Bookkeeping of the extraction, which says nothing to a reader of the dump.
        del fields["chunk_index"], fields["start"], fields["batch"]
        return {"kind": fields.pop("kind"), "text": self.text, **fields}


Batch = Sequence[tuple[int, MemoryChunk]]
"""Chunks that one call reads, with their positions in the conversation."""


def _fields(artifact: Artifact) -> dict[str, Any]:
    row: dict[str, Any] = asdict(artifact)
    for name in ("turn_ids", "dates", "people"):
        row[name] = list(row[name])

    row["time"] = iso_time(artifact.time)
    return row


def write_artifacts(folder: Path, artifacts: Sequence[Artifact], counts: Mapping[str, int]) -> None:
    """Writes the artifacts in order, and the counts of their extraction."""
    rows = list(map(_fields, artifacts))
    write_state(folder / ARTIFACTS_FILE, {"artifacts": rows, "counts": dict(counts)})


def read_artifacts(folder: Path) -> tuple[list[Artifact], dict[str, int]]:
    """Reads what `write_artifacts` wrote. Raises `OSError`, or a parse error if it is damaged."""
    state = read_state(folder / ARTIFACTS_FILE)
    return convert(state["artifacts"], list[Artifact]), state["counts"]
