"""Reads four published schemas of incident tables, recognised by the file or folder, into one kind
of row.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from memeval.datasets.contract import DatasetInfo
from memeval.datasets.incidents.table import (
    NORMALIZED,
    Incident,
    SourceTable,
    as_shown,
    check_names,
)
from memeval.datasets.io.fields import Fields, parse_json, quoted
from memeval.datasets.io.tables import header, read_table
from memeval.datasets.locate import digest_of, missing, read_file
from memeval.errors import UserError
from memeval.text.shown import counted

DEJAVU = ("timestamp", "root_cause_node")
OPENRCA = ("groundtruth",)
Gaps = dict[str, Counter[float]]
"""Distances in seconds of local times from time stamps, by system."""
NEZHA_FILES, OPENRCA_FILES = "*-fault_list.json", "agent-*.csv"

POD = re.compile(r"(.+?)-[0-9a-f]{6,10}-[a-z0-9]{5}")
"""A pod's name: the service, and the suffixes that Kubernetes appends for the replica set and the
pod.
"""


def read_source(info: DatasetInfo, path: Path) -> SourceTable:
    """The incidents of a file or folder.

    Raises `UserError` naming file, record and field if something can't be read.
    """
    if not path.exists():
        raise missing(info, path)

    files = [path]
    if path.is_dir():
        files = sorted(path.rglob(NEZHA_FILES)) or sorted(path.glob(OPENRCA_FILES))
        if not files:
            raise UserError(
                f"{path} contains neither {NEZHA_FILES} (Nezha) nor {OPENRCA_FILES} (OpenRCA)."
            )

    contents = {file: read_file(info, file) for file in files}
    rows: list[Incident] = []
    gaps: Gaps = {}
    for file, content in contents.items():
        rows += _incidents(file, content, gaps)

    check_names(path, rows)
    # Compared as shown, because two rows that look the same in the memory are one incident.
    once = tuple(dict.fromkeys(map(as_shown, rows)))
    notes = list(_clock_notes(gaps))
    if len(once) < len(rows):
        notes.append(
            f"incidents: {len(rows) - len(once)} of {len(rows)} rows repeat another one and are "
            "left out"
        )

    return SourceTable(incidents=once, sha256=_digest(path, contents), notes=tuple(notes))


def _digest(path: Path, contents: Mapping[Path, bytes]) -> str:
    if not path.is_dir():
        return digest_of(contents[path])

    lines = []
    for file, content in contents.items():
        lines.append(f"{file.relative_to(path).as_posix()} {digest_of(content)}\n")

    return digest_of("".join(lines).encode())


def _incidents(path: Path, content: bytes, gaps: Gaps) -> Iterator[Incident]:
    """The rows of a file. A JSON file is Nezha's; a table is recognised by its columns."""
    if path.suffix == ".json":
        return _nezha(path, content)

    names = header(content, path)
    if set(DEJAVU) <= set(names):
        return map(_dejavu, read_table(content, path, DEJAVU))
    if set(OPENRCA) <= set(names):
        return map(_openrca, read_table(content, path, OPENRCA))

    return (_normalized(row, gaps) for row in read_table(content, path, NORMALIZED))


def _normalized(row: Fields, gaps: Gaps) -> Incident:
    system, time = row.answer("dataset"), _time(row, "datetime_local")
    if row.text("timestamp").strip():
        gaps.setdefault(system, Counter())[(time - _epoch(row)).total_seconds()] += 1

    return Incident(
        system=system,
        # The local time, not the time stamp: in 18 rows of Nezha they contradict each other, and
        # GAIA has no time stamps.
        time=time,
        components=(row.answer("component"),),
        level=row.text("level"),
        fault=row.text("fault_type"),
        duration_s=_seconds(row, "duration_s"),
    )


def _dejavu(row: Fields) -> Incident:
    """Reads level, fault and duration if the table has such columns; times are UTC."""
    names = map(str.strip, row.answer("root_cause_node").split(";"))
    nodes = tuple(dict.fromkeys(filter(None, names)))
    if not nodes:
        raise row.wrong("root_cause_node", "names no node")

    row = replace(row, values={"level": "", "fault_type": "", "duration_s": "", **row.values})
    return Incident(
        # The table itself does not name the system.
        system=row.path.parent.name or "dejavu",
        time=_epoch(row),
        components=nodes,
        level=row.text("level"),
        fault=row.text("fault_type"),
        duration_s=_seconds(row, "duration_s"),
    )


def _openrca(row: Fields) -> Incident:
    """From the lines `component: …`, `level: …`, `reason: …`, `datetime: …` of the ground truth."""
    # Only the true failure: the table may also contain what a model predicted.
    values: dict[str, str] = {}
    for line in row.text("groundtruth").splitlines():
        if line.strip():
            name, _, value = line.partition(":")
            values[name.strip()] = value.strip()

    truth = Fields(path=row.path, record=f"{row.record} groundtruth", values=values)
    return Incident(
        system=f"openrca-{row.path.stem.removeprefix('agent-')}",
        time=_time(truth, "datetime"),
        components=(truth.answer("component"),),
        level=truth.text("level"),
        fault=truth.answer("reason"),
    )


def _nezha(path: Path, content: bytes) -> Iterator[Incident]:
    hours = Fields.of(path, "the file", parse_json(content, path))
    for hour in hours.values:
        for fault in hours.objects(hour, f"{hour}[{{}}]"):
            pod = POD.fullmatch(fault.answer("inject_pod"))
            if pod is None:
                raise fault.wrong(
                    "inject_pod", "is not a pod name such as frontend-579b9bff58-t2dbm"
                )

            system = f"nezha-{path.name.removesuffix('-fault_list.json')}"
            yield Incident(
                system=system,
                time=_time(fault, "inject_time"),
                components=(pod[1],),
                level="pod",
                fault=fault.answer("inject_type"),
            )


def _time(row: Fields, name: str) -> datetime:
    example = "2021-03-04 14:57:00"
    return row.time(name, _local_time, example, noun="local time").replace(microsecond=0)


def _local_time(text: str) -> datetime | None:
    """None for a time with a zone, and for a date alone."""
    plain = text.strip()
    time = datetime.fromisoformat(plain)
    return time if time.tzinfo is None and len(plain) >= len("2021-03-04 14:57") else None


def _epoch(row: Fields) -> datetime:
    text = row.text("timestamp").strip()
    try:
        return datetime.fromtimestamp(int(float(text)), UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise row.wrong("timestamp", f"is {quoted(text)}, not seconds since 1970") from None


def _seconds(row: Fields, name: str) -> int | None:
    """Whole seconds, at least one; None if the field is empty."""
    text = row.text(name).strip()
    if not text:
        return None

    try:
        seconds = float(text)
    except ValueError:
        raise row.wrong(name, f"is {quoted(text)}, not a number of seconds") from None

    if not math.isfinite(seconds) or not 0 <= seconds < 1e10:
        raise row.wrong(name, f"is {quoted(text)}, not a duration")

    return max(1, round(seconds))


def _clock_notes(gaps: Gaps) -> Iterator[str]:
    """A note on the local times of normalized tables whose distance from their time stamps is not
    that of most rows of their system.
    """
    odd = sum(counts.total() - max(counts.values()) for counts in gaps.values())
    if odd:
        yield (
            f"clock: the time stamps of {counted(odd, 'row')} contradict their local times; "
            "the local times are used"
        )
