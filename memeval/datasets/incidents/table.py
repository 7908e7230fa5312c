"""A table of incidents: its rows, their names as they are shown, and the normalized schema."""

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from memeval.datasets.io.fields import quoted
from memeval.datasets.netops.words import one_word
from memeval.errors import UserError

NORMALIZED = (
    "dataset",
    "timestamp",
    "datetime_local",
    "component",
    "level",
    "fault_type",
    "duration_s",
)


class Incident(Struct, frozen=True):
    """A row of a table."""

    system: str
    """System in which it happened; one system is one case."""
    time: datetime
    """Local time, without a zone: as the table gives it."""
    components: tuple[str, ...]
    """Root causes, usually one; shown as single words."""
    level: str = ""
    """Kind of the component (`pod`, `node`, `service`); empty if unknown."""
    fault: str = ""
    """Name of the fault; empty if unknown."""
    duration_s: int | None = None
    """Duration in whole seconds; None if unknown."""


class SourceTable(Struct, frozen=True):
    incidents: tuple[Incident, ...]
    """In the table's order, without duplicates."""
    sha256: str
    """Of the file, or of the names and contents of the folder's files together."""
    notes: tuple[str, ...]


def write_normalized(file: IO[str], incidents: Sequence[Incident]) -> int:
    """Writes incidents in the normalized schema; returns their number.

    The schema has one root cause per incident, so incidents with several are left out.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(NORMALIZED)
    written = 0
    for incident in incidents:
        if len(incident.components) != 1:
            continue

        row = [incident.system, "", incident.time.isoformat(sep=" "), *incident.components]
        writer.writerow([*row, incident.level, incident.fault, incident.duration_s])
        written += 1

    return written


def check_names(path: Path, incidents: list[Incident]) -> None:
    """Raises `UserError` if two names of one system would look the same. Case is ignored, as by
    judges.
    """
    spelt: dict[tuple[str, str, str], str] = {}
    for row in incidents:
        named = [("component", name) for name in row.components]
        if row.fault:
            named.append(("fault", row.fault))

        for kind, name in named:
            shown = one_word(name)
            if not shown:
                raise UserError(
                    f"{path}: the name {quoted(name)} contains neither letters nor digits."
                )

            first = spelt.setdefault((row.system, kind, shown.lower()), name)
            if first != name:
                raise UserError(
                    f"{path}: the names {quoted(first)} and {quoted(name)} would both be shown as "
                    f"{quoted(shown)}."
                )


def as_shown(row: Incident) -> Incident:
    components = tuple(map(one_word, row.components))
    return replace(row, components=components, level=one_word(row.level), fault=one_word(row.fault))
