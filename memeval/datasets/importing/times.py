"""Reads the times of exports: ISO 8601, counts since 1970, and dates in a stated format."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from memeval.datasets.importing.message import ImportLog
from memeval.datasets.io.entries import parse_iso
from memeval.datasets.io.fields import quoted
from memeval.errors import UserError

UNITS = ((1e11, 1.0, "seconds"), (1e14, 1e3, "milliseconds"), (1e17, 1e6, "microseconds"))
"""Units of a count since 1970, each with upper bound and divisor: 1e11 seconds is the year 5138."""
NANOSECONDS = 1e9
UNREADABLE = "times that could not be read (their messages are kept)"
BY_FORMAT = "timestamps as {}"
EARLIEST, LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
MIN_YEAR = 1000
"""Earlier years have fewer digits and are typing errors."""
NUMBER = re.compile(r"\d{9,19}(?:\.\d+)?")
YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:[ T]+(\d{1,2})(?=:)|(?!\d))")
"""A date and the hour of its time, if any: spreadsheets write 2024/5/6 9:30."""
DAY_AND_MONTH = re.compile(
    r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?:,?[ T]+\d{1,2}:\d{2}(:\d{2})?( ?[AaPp][Mm])?)?"
)


def read_time(value: Any, log: ImportLog, date_format: str | None = None) -> datetime | None:
    """The time in a field; None for null, and for an unreadable value, which is counted."""
    if value is None or value == "":
        return None

    time = _by_format(value, date_format) if date_format else _plain(value, log)
    if time is None:
        log.leave_out(UNREADABLE, example=f"{quoted(value)}; for tables, use --date-format")
    elif date_format:
        log.note_conversion(BY_FORMAT.format(date_format))

    return time


def format_of(values: Iterable[str], location: str, date_format: str | None = None) -> str | None:
    """The format of a column of dates: the given one, or one detected from dates with day and month
    in figures. None for other columns, such as those in ISO 8601.

    Raises `UserError` if the given format fits no other date, or if day and month can't be told
    apart.
    """
    texts = list(filter(None, map(str.strip, values)))
    if date_format is not None:
        if any(_by_format(text, date_format) for text in texts):
            return date_format
        # Messages and questions may have different forms: only one of them needs the given one.
        if all(map(iso_time, texts)):
            return None

        raise UserError(
            f"{location}: no time matches --date-format; one is {quoted(texts[0])}",
            "give the format of the whole time, such as '%d/%m/%Y %H:%M'",
        )

    dates = list(filter(None, map(DAY_AND_MONTH.fullmatch, texts)))
    if not dates or 2 * len(dates) < len(texts):
        return None

    day_first = any(int(date[1]) > 12 for date in dates)
    month_first = any(int(date[3]) > 12 for date in dates)
    first = dates[0]
    forms = [_format(first, "%d", "%m"), _format(first, "%m", "%d")]
    if day_first == month_first:
        raise UserError(
            f"{location}: day and month can't be told apart in '{first[0]}'",
            f"use:  --date-format '{forms[0]}'  or  --date-format '{forms[1]}'",
        )

    return forms[0] if day_first else forms[1]


def _format(date: re.Match[str], first: str, second: str) -> str:
    year, hours, seconds, half = "%y", "%H:%M", "", ""
    if len(date[4]) == 4:
        year = "%Y"
    if date[5]:
        seconds = ":%S"
    if date[6]:
        hours, half = "%I:%M", f"{date[6][:-2]}%p"

    days = date[2].join([first, second, year])
    rest = date[0][date.end(4) :]
    if not rest:
        return days

    before = rest[: len(rest) - len(rest.lstrip(", T"))]
    return f"{days}{before}{hours}{seconds}{half}"


def _by_format(value: Any, date_format: str) -> datetime | None:
    try:
        time = datetime.strptime(str(value).strip(), date_format)
    except (ValueError, re.error):
        return None

    return time if time.year >= MIN_YEAR else None


def _plain(value: Any, log: ImportLog) -> datetime | None:
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        value = float(value)

    if isinstance(value, int | float) and not isinstance(value, bool):
        return _since_1970(value, log)

    return iso_time(value) if isinstance(value, str) else None


def _since_1970(value: float, log: ImportLog) -> datetime | None:
    divisor, unit = NANOSECONDS, "nanoseconds"
    for below, by, name in UNITS:
        if value < below:
            divisor, unit = by, name
            break

    try:
        time = datetime.fromtimestamp(value / divisor, UTC)
    except (OverflowError, ValueError, OSError):
        return None

    if not EARLIEST <= time < LATEST:
        return None

    log.note_conversion(f"timestamps as {unit} since 1970")
    return time


def iso_text(text: str) -> str:
    """A time with the year first, rewritten in ISO 8601; any other string stripped."""
    plain = text.strip()
    if plain.endswith(" UTC"):
        plain = plain.removesuffix(" UTC") + "+00:00"

    if (date := YEAR_FIRST.match(plain)) is None:
        return plain

    hour = "" if date[5] is None else f"T{date[5]:0>2}"
    return f"{date[1]}-{date[3]:0>2}-{date[4]:0>2}{hour}{plain[date.end() :]}"


def iso_time(text: str) -> datetime | None:
    """A time as `iso_text` writes it, with its zone if it has one; None for anything else."""
    time = parse_iso(iso_text(text))
    return None if time is None or time.year < MIN_YEAR else time
