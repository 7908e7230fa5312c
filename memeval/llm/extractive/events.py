"""Events by their dates: their order, and the time between them or since."""

import re
from datetime import date, datetime, timedelta

from memeval.llm.extractive.dates import WEEKDAYS, moments
from memeval.llm.extractive.questions import analyse
from memeval.llm.extractive.ranking import ContextIndex, rank
from memeval.llm.extractive.words import NUMBERS
from memeval.records import MONTHS

_UNIT = r"how many (?P<unit>day|week|month|year)s"
_SINCE = re.compile(
    rf"{_UNIT} (?:ago (?:did|was|were|do)|(?:have|had)? ?(?:passed|it been|been) since|has it "
    r"been since) (?P<event>[^?]+)"
)
_BETWEEN = re.compile(
    rf"{_UNIT} (?:\w+ )?(?:passed |lapsed |elapsed |were there |are there )?between (?P<one>.+?) "
    r"and (?P<other>[^?]+)"
)
_AROUND = re.compile(rf"{_UNIT} (?:before|after) (?P<one>.+?) did (?P<other>[^?]+)")
_DAYS = {"day": 1.0, "week": 7.0, "month": 30.44, "year": 365.25}
_DATED = re.compile(rf"(?:(\d{{1,2}}) )?({'|'.join(MONTHS)}) (\d{{4}})$")
_BEFORE = re.compile(r"^(?:The )?(\w+?)(?: (week|weekend)s?)? (before|after|of) ")


def elapsed_time(question: str, asked_at: datetime | None, context: ContextIndex) -> str | None:
    """Time between the two events of a lower-cased question, or since its one event."""
    if match := _SINCE.search(question):
        first, second = event_day(match["event"], context), asked_at and asked_at.date()
    elif match := _BETWEEN.search(question) or _AROUND.search(question):
        first, second = event_day(match["one"], context), event_day(match["other"], context)
    else:
        return None

    if first is None or second is None or first == second:
        return None

    unit = match["unit"]
    number = round(abs((second - first).days) / _DAYS[unit])
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def event_day(event: str, context: ContextIndex) -> date | None:
    """The day of an event: a date in the nearest sentence, else the day on which it was said."""
    ranking = rank(analyse(event), context, depth=1)
    if not ranking.best:
        return None

    sentence = context.sentences[ranking.best[0]]
    for moment in moments(sentence.text, sentence.said_on):
        if day := approximate_day(moment.text):
            return day

    return sentence.said_on


def approximate_day(text: str) -> date | None:
    """A single day for an answer of `dates`: the middle of a month; None for a bare year."""
    match = _DATED.search(text)
    if match is None:
        return None

    try:
        day = date(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1] or 15))
        if relation := _BEFORE.match(text):
            day += _shift(relation[1].lower(), relation[3], day)

        return day
    except (ValueError, OverflowError):
        return None


def _shift(word: str, relation: str, day: date) -> timedelta:
    if relation == "of":
        return timedelta()

    sign = -1 if relation == "before" else 1
    if word in WEEKDAYS:
        return timedelta(days=sign * ((sign * (WEEKDAYS.index(word) - day.weekday()) - 1) % 7 + 1))

    return timedelta(weeks=sign * NUMBERS.get(word, 1))
