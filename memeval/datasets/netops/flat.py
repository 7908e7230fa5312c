"""Converts records `{content, timestamp, metadata, source}`, as operations software exports them,
to the generic schema: each record is a chunk, and objects with a `question` ask about them.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

UNNAMED_CASE = "records"
"""The case of records that name no case."""
OWN_FIELDS = ("content", "timestamp", "metadata")
_IN_MILLISECONDS = 1e11
"""Unix times of this size or more are milliseconds: as seconds they would be in the year 5138."""
_PLACES = ("case_id", "id", "session")
"""Metadata fields that say where a record belongs; all others are shown with the content."""


def is_record(value: Any) -> bool:
    """Whether a value is a record, or a question about records."""
    return isinstance(value, dict) and bool({"content", "question"} & value.keys())


def as_cases(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The cases of a file of records, each with the place of its first one."""
    cases: dict[Any, tuple[str, dict[str, Any]]] = {}
    for location, value in values:
        name = _case_of(value)
        _, case = cases.setdefault(
            name, (location, {"case_id": name, "chunks": [], "questions": []})
        )
        if isinstance(value, dict) and "question" in value:
            asked = {field: given for field, given in value.items() if field != "case_id"}
            case["questions"].append(asked)
        else:
            case["chunks"].append(value)

    return iter(cases.values())


def as_chunk(value: Any) -> Any:
    """A string or a record as a chunk of the generic schema; anything else as it is."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict) or "content" not in value:
        return value

    chunk = {field: given for field, given in value.items() if field not in OWN_FIELDS}
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        # Left in, so that the chunk's mistake is named.
        return chunk | {"text": value["content"], "metadata": metadata}

    metadata = metadata or {}
    places = {name: metadata[name] for name in ("id", "session") if name in metadata}
    if isinstance(places.get("id"), int):
        places["id"] = str(places["id"])

    text = value["content"]
    if isinstance(text, str) and text.strip():
        text = _with_metadata(text.strip(), metadata)

    return places | chunk | {"text": text, "time": _time(value.get("timestamp"))}


def _case_of(value: Any) -> Any:
    if not isinstance(value, dict):
        return UNNAMED_CASE

    metadata = value.get("metadata")
    named = metadata.get("case_id") if isinstance(metadata, dict) else None
    name = value.get("case_id", named)
    return name if isinstance(name, str | int) else UNNAMED_CASE


def _with_metadata(text: str, metadata: Mapping[str, Any]) -> str:
    """The content with its metadata, which could not be found otherwise: `Link down [device: sw2,
    severity: major]`.
    """
    parts = []
    for name, value in metadata.items():
        if name in _PLACES or value in (None, "", [], {}):
            continue

        values = value if isinstance(value, list) else [value]
        parts.append(f"{name}: {', '.join(map(str, values))}")

    if not parts:
        return text

    return f"{text} [{'; '.join(parts)}]"


def _time(value: Any) -> Any:
    """A Unix time in ISO 8601; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value

    try:
        seconds = value / 1000 if abs(value) >= _IN_MILLISECONDS else value
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return str(value)
