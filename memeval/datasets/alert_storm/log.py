"""Alert lines of a log in Loghub's structured form."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from memeval.datasets.alert_storm.generate import Alert
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.tables import read_table
from memeval.datasets.netops.words import one_word
from memeval.errors import UserError

COLUMNS = ("LineId", "Label", "Node", "Time", "Level", "Content")
TIME = "%Y-%m-%d-%H.%M.%S.%f"
NO_ALERT = "-"


def read_log(content: bytes, path: Path) -> tuple[tuple[Alert, ...], int]:
    """The alerts, whose label is not `-`, in order of time, and how many lines there are in all.

    Raises `UserError` naming file, line and column if a row can't be read, and if no line is
    an alert.
    """
    rows = read_table(content, path, COLUMNS)
    numbers: dict[str, str] = {}
    for row in rows:
        number = row.answer("LineId")
        if number in numbers:
            raise row.wrong("LineId", f"is {number}, as on {numbers[number]}")

        numbers[number] = row.record

    alerts = [_alert(row) for row in rows if row.answer("Label") != NO_ALERT]
    if not alerts:
        raise UserError(f"{path} holds no alert: every line has the label '{NO_ALERT}'.")

    return tuple(sorted(alerts, key=lambda alert: alert.time)), len(rows)


def _alert(row: Fields) -> Alert:
    """Device and kind are the columns Node and Label, as single words."""
    time = row.time("Time", _parse_time, "2005-06-03-15.42.50.675872", noun="time")
    message = re.sub(r"\s+", " ", row.answer("Content")).strip()
    return Alert(
        time=time,
        device=_word(row, "Node"),
        severity=row.answer("Level").strip().lower(),
        kind=_word(row, "Label"),
        port="",
        message=message,
    )


def _parse_time(text: str) -> datetime:
    return datetime.strptime(text.strip(), TIME)


def _word(row: Fields, name: str) -> str:
    word = one_word(row.answer(name))
    if not word:
        raise row.wrong(name, "holds neither letters nor digits")

    return word
