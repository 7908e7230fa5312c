"""Invented tables of incidents."""

from __future__ import annotations

from pathlib import Path

HEADER = "dataset,timestamp,datetime_local,component,level,fault_type,duration_s"

ROWS = [
    "north,,2024-03-01 08:00:10,gate-1,node,disk full,600",
    "north,,2024-03-01 09:30:00,gate-2,node,disk full,",
    "north,,2024-03-02 10:00:00,store,pod,slow queries,2.6",
    "north,,2024-03-04 11:00:00,gate-1,node,clock drift,30",
    "north,,2024-03-05 12:00:00,store,pod,memory leak,",
    "north,,2024-03-05 12:00:00,store,pod,slow queries,",
    "north,,2024-03-07 13:45:59,gate-1,node,disk full,45",
    "north,,2024-03-09 14:00:00,gate-2,node,disk full,",
    "north,,2024-03-10 15:00:00,gate-1,node,clock drift,",
    "north,,2024-03-11 16:00:00,spare,pod,memory leak,",
    "south,,2024-04-01 08:00:00,pump,pod,expired key,",
    "south,,2024-04-02 08:00:00,pump,pod,restart loop,",
    "south,,2024-04-03 08:00:00,valve,pod,expired key,",
    "south,,2024-04-04 08:00:00,pump,pod,expired key,",
]


def write_table(
    folder: Path, rows: list[str] | None = None, header: str = HEADER, name: str = "table.csv"
) -> Path:
    path = folder / name
    path.write_text("\n".join([header, *(ROWS if rows is None else rows)]) + "\n", encoding="utf-8")
    return path
