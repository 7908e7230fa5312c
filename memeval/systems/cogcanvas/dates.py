"""Dates of artifacts: what a quote says of time, resolved against the date on which it was said.

No clock is read.
"""

from __future__ import annotations

from datetime import date, datetime

from memeval.llm.extractive.dates import day_text, moments
from memeval.llm.extractive.events import approximate_day


def resolved(quote: str, said: datetime | None, claimed: str) -> tuple[str, ...]:
    """The quote's when-expressions, resolved.

    Where it has none, the date that the model claims, if that is a day or a month.
    """
    day = said.date() if said else None
    expressions = tuple(dict.fromkeys(moment.text for moment in moments(quote, day)))
    return expressions or _claimed(claimed)


def _claimed(text: str) -> tuple[str, ...]:
    try:
        return (day_text(date.fromisoformat(text.strip())),)
    except ValueError:
        return (text.strip(),) if approximate_day(text) else ()


def day_of(dates: tuple[str, ...], said: datetime | None) -> date | None:
    """The day by which an artifact is ordered.

    Its first date that names one, else the day on which it was said.
    """
    days = (approximate_day(text) for text in dates)
    return next((day for day in days if day), said.date() if said else None)
