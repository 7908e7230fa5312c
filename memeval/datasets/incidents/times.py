"""Questions about order and time, about the latest incidents, and about contradictions. Gold and
evidence are computed from the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from memeval.datasets.incidents.history import CLOCK, OFFERED, History, names_of
from memeval.datasets.incidents.text import moment, named
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.chance import draw, pick
from memeval.datasets.netops.words import IN_WORDS, counted, day, minute


def failed_first(history: History) -> Iterator[Draft]:
    """Which of two components had its first incident earlier."""
    for past in history.offered(list(history.past)):
        name = pick(history.rng, past.incident.components)
        other = pick(history.rng, list(history.components))
        first, second = history.components[name][0], history.components[other][0]
        if name != other and history.alone(first) and history.alone(second):
            earlier = name if first.incident.time < second.incident.time else other
            text = (
                f"Which of the two had its first incident earlier: component {name} or component "
                f"{other}?"
            )
            yield history.ask("TR", "order", text, (earlier,), first, second)


def first_with(history: History) -> Iterator[Draft]:
    for fault, records in history.faults.items():
        if len(records) > 1 and history.alone(records[0]):
            text = f"Which component was the first to have fault {fault}?"
            yield history.ask("TR", "first", text, names_of(records[0].incident), records[0])


def next_after(history: History) -> Iterator[Draft]:
    pairs = [pair for pair in pairwise(history.past) if all(map(history.alone, pair))]
    for past, after in draw(history.rng, pairs, OFFERED):
        # The question names the first incident's components, which must not give the answer away.
        if not set(past.incident.components) & set(after.incident.components):
            text = (
                f"Which component had the next incident after the one of {named(past.incident)} at "
                f"{moment(past.incident)}?"
            )
            yield history.ask("TR", "next", text, names_of(after.incident), past, after)


def clock_time(history: History) -> Iterator[Draft]:
    days = Counter(
        (past.incident.components, past.incident.fault, past.incident.time.date())
        for past in history.past
    )
    for past in history.offered(list(history.past)):
        if days[past.incident.components, past.incident.fault, past.incident.time.date()] == 1:
            what = f"have fault {past.incident.fault}" if past.incident.fault else "fail"
            when = day(past.incident.time)
            text = f"At what time of day did {named(past.incident)} {what} on {when}?"
            yield history.ask("TR", "time", text, (minute(past.incident.time),), past, form=CLOCK)


def days_between(history: History) -> Iterator[Draft]:
    for name, records in history.components.items():
        days = (records[-1].incident.time.date() - records[0].incident.time.date()).days
        if days > 1:
            text = (
                "How many days lie between the dates of the first and the latest incident of "
                f"component {name}?"
            )
            ends, gold = (records[0], records[-1]), counted(days, "day")
            yield history.ask("TR", "distance", text, gold, *ends, form=IN_WORDS)


def days_since(history: History) -> Iterator[Draft]:
    """Up to a later incident's date."""
    for later in draw(history.rng, history.later, OFFERED):
        name = pick(history.rng, list(history.components))
        last = history.components[name][-1]
        days = (later.time.date() - last.incident.time.date()).days
        if days > 1:
            text = (
                f"It is {day(later.time)}. By the records, how many days ago did component {name} "
                "last fail?"
            )
            gold = counted(days, "day")
            yield history.ask("TR", "since", text, gold, last, at=later.time, form=IN_WORDS)


def latest_fault(history: History) -> Iterator[Draft]:
    """Asks for the latest fault of components whose fault changed at least once."""
    for name, records in history.components.items():
        latest = records[-1]
        faults = {past.incident.fault for past in records}
        if latest.incident.fault and len(faults) > 1 and history.alone(latest):
            text = f"Which fault did component {name} have most recently?"
            yield history.ask("KU", "latest_fault", text, (latest.incident.fault,), latest)


def latest_component(history: History) -> Iterator[Draft]:
    for fault, records in history.faults.items():
        latest = records[-1]
        if len({past.incident.components for past in records}) > 1 and history.alone(latest):
            text = f"Which component had fault {fault} most recently?"
            yield history.ask("KU", "latest_component", text, names_of(latest.incident), latest)


def latest_time(history: History) -> Iterator[Draft]:
    for name, records in history.components.items():
        if len(records) > 1:
            text = f"At what time of day did the latest incident of component {name} begin?"
            gold = (minute(records[-1].incident.time),)
            yield history.ask("KU", "latest_time", text, gold, records[-1], form=CLOCK)


def contradiction(history: History) -> Iterator[Draft]:
    """Asks for the fault if two records of a component and minute differ: the last counts."""
    for records in history.disputed.values():
        text = (
            f"The records contradict each other on the fault of {named(records[-1].incident)} at "
            f"{moment(records[-1].incident)}. "
            "Which one does the record entered last name?"
        )
        yield history.ask("CR", "contradiction", text, (records[-1].incident.fault,), *records)


TIME_TEMPLATES = (
    *(failed_first, first_with, next_after, clock_time, days_between, days_since),
    *(latest_fault, latest_component, latest_time),
    contradiction,
)
"""In the order in which they are drafted."""
