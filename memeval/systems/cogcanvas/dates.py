"""Dates of artifacts: a quote's time expressions, resolved relative to when it was said; and events
for time expressions that no artifact quotes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta

from memeval.llm.extractive.dates import WEEKDAYS, day_text, moments
from memeval.llm.extractive.events import approximate_day
from memeval.records import MemoryChunk
from memeval.systems.cogcanvas.artifacts import Artifact, Batch
from memeval.systems.cogcanvas.quotes import ChunkLine, lines

DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
"""Days per unit of a point date, as in the published system."""
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = rf"(?:{'|'.join(WEEKDAYS)})"
# Only digits count as numbers here, as published: the published system has no rule for "two days
# ago", "last night", "next Friday" or "in 2 weeks".
_RELATIVE = re.compile(
    rf"\b(?:(?P<day>yesterday|today|tomorrow)|(?P<side>last|next) (?P<unit>week|month|year)|"
    rf"last (?P<weekday>{_WEEKDAY})|(?P<count>\d+) (?P<units>day|week|month|year)s? ago)\b",
    re.IGNORECASE,
)
"""The relative expressions for which the published system has a rule."""
# The published patterns, in their order. A comma after the month is allowed only if the month comes
# first, so only the year of "8 May, 2023" is found.
_EXPRESSION = re.compile(
    rf"\bthe (?:{_WEEKDAY}|day|week|weekend|month) (?:before|after|of) \d{{1,2}} {_MONTH} \d{{4}}\b"
    rf"|\b\d{{1,2}} {_MONTH} \d{{4}}\b"
    rf"|\b{_MONTH} \d{{1,2}},? \d{{4}}\b"
    rf"|\b{_MONTH} \d{{4}}\b"
    r"|\b(?:a few|\d+|one|two|three|four|five|six|seven|eight|nine|ten) "
    r"(?:day|week|month|year)s? ago\b"
    rf"|\b(?:last|next) (?:week(?:end)?|month|year|night|summer|winter|spring|fall|{_WEEKDAY})\b"
    r"|\b(?:yesterday|today|tomorrow)\b"
    r"|\b(?:19|20)\d{2}\b",
    re.IGNORECASE,
)
"""The longest form of each expression comes first."""


def resolve_dates(quote: str, said_at: datetime | None, claimed: str) -> tuple[str, ...]:
    """The quote's time expressions, resolved; else a day or month that the model claims."""
    day = said_at.date() if said_at else None
    expressions = tuple(dict.fromkeys(moment.text for moment in moments(quote, day)))
    if expressions:
        return expressions

    try:
        return (day_text(date.fromisoformat(claimed.strip())),)
    except ValueError:
        return (claimed.strip(),) if approximate_day(claimed) else ()


def point_dates(quote: str, said_at: datetime | None) -> tuple[str, ...]:
    """Relative expressions as single days, as published: months of 30 days, years of 365."""
    if said_at is None:
        return ()

    dates: dict[str, None] = {}
    for match in _RELATIVE.finditer(quote):
        if day := _point(match, said_at.date()):
            dates[day_text(day)] = None

    return tuple(dates)


def _point(match: re.Match[str], said_at: date) -> date | None:
    """The day of an expression; None if it is outside Python's calendar."""
    if match["weekday"]:
        # "last Monday", said on a Monday, is a week ago.
        back = (said_at.weekday() - WEEKDAYS.index(match["weekday"].lower())) % 7
        offset = -(back or 7)
    elif match["day"]:
        offset = {"yesterday": -1, "today": 0, "tomorrow": 1}[match["day"].lower()]
    elif match["side"]:
        sign = -1 if match["side"].lower() == "last" else 1
        offset = sign * DAYS[match["unit"].lower()]
    else:
        # Six digits already exceed the calendar; `int()` would refuse thousands of digits.
        offset = -int(match["count"][:6]) * DAYS[match["units"].lower()]

    try:
        return said_at + timedelta(days=offset)
    except OverflowError:
        return None


def time_expressions(text: str) -> list[tuple[int, str]]:
    """Every time expression in a text with its start; the longest one at each position."""
    return [(match.start(), match.group()) for match in _EXPRESSION.finditer(text)]


def day_of(dates: tuple[str, ...], said_at: datetime | None) -> date | None:
    """The day by which an artifact is ordered: one of its dates, or when it was said."""
    for text in dates:
        if day := approximate_day(text):
            return day

    return said_at.date() if said_at else None


# As published.
AROUND = 100
"""Characters that an event keeps on each side of its time expression."""

Dates = Callable[[str, MemoryChunk, str], tuple[str, ...]]
"""Resolves the dates in a chunk's quote; the third argument is the date that a model claims."""


def events_of_times(
    cut: Sequence[Batch], artifacts: Sequence[Artifact], dates_of: Dates
) -> list[Artifact]:
    """One event per time expression that no artifact of its chunk quotes."""
    events = []
    for batch_number, batch in enumerate(cut):
        for chunk_index, chunk in batch:
            # The parts of the chunk's content that its artifacts quote.
            quoted = [
                range(artifact.start, artifact.start + len(artifact.quote))
                for artifact in artifacts
                if artifact.chunk_index == chunk_index
            ]
            for line, start, expression in _find_unquoted(chunk, quoted):
                dates = dates_of(expression, chunk, "")
                moment = next(iter(dates), expression)
                around = line.text[max(0, start - AROUND) : start + len(expression) + AROUND]
                event = Artifact(
                    kind="event",
                    content=f"TIME: {moment} (originally: {expression}) - {around}",
                    quote=expression,
                    speaker=line.speaker,
                    turn_ids=line.turn_ids,
                    time=chunk.time,
                    dates=dates,
                    people=(),
                    chunk_index=chunk_index,
                    start=line.start + start,
                    batch=batch_number,
                )
                events.append(event)

    return events


def _find_unquoted(
    chunk: MemoryChunk, quoted: Sequence[range]
) -> Iterator[tuple[ChunkLine, int, str]]:
    """Each time expression outside all quotes: its line, its start in the line, its text."""
    # Lines come from the content, without the date that memeval puts before a chunk, so that date
    # never becomes an event. In the published code it does: on LoCoMo, that alone creates 3,094
    # artifacts from 2,938 turns, without a single model reply.
    for line in lines(chunk):
        for start, expression in time_expressions(line.text):
            if not any(line.start + start in part for part in quoted):
                yield line, start, expression
