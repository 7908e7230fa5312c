"""Questions about order and time, about what was latest, and where records contradict each other.
Gold and evidence are computed from the table.
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
    for one in history.offered(list(history.past)):
        name = pick(history.rng, one.incident.components)
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
    for fault, found in history.faults.items():
        if len(found) > 1 and history.alone(found[0]):
            yield history.ask(
                "TR",
                "first",
                f"Which component was the first to have fault {fault}?",
                names_of(found[0].incident),
                found[0],
            )


def next_after(history: History) -> Iterator[Draft]:
    pairs = [
        (one, after)
        for one, after in pairwise(history.past)
        if history.alone(one) and history.alone(after)
    ]
    for one, after in draw(history.rng, pairs, OFFERED):
        if not set(one.incident.components) & set(after.incident.components):
            text = (
                f"Which component had the next incident after the one of {named(one.incident)} at "
                f"{moment(one.incident)}?"
            )
            yield history.ask("TR", "next", text, names_of(after.incident), one, after)


def clock_time(history: History) -> Iterator[Draft]:
    days = Counter(
        (one.incident.components, one.incident.fault, one.incident.time.date())
        for one in history.past
    )
    for one in history.offered(list(history.past)):
        if days[one.incident.components, one.incident.fault, one.incident.time.date()] == 1:
            what = f"have fault {one.incident.fault}" if one.incident.fault else "fail"
            text = (
                f"At what time of day did {named(one.incident)} {what} on {day(one.incident.time)}?"
            )
            yield history.ask("TR", "time", text, (minute(one.incident.time),), one, form=CLOCK)


def days_between(history: History) -> Iterator[Draft]:
    for name, found in history.components.items():
        days = (found[-1].incident.time.date() - found[0].incident.time.date()).days
        if days > 1:
            text = (
                "How many days lie between the dates of the first and the latest incident of "
                f"component {name}?"
            )
            yield history.ask(
                "TR", "distance", text, counted(days, "day"), found[0], found[-1], form=IN_WORDS
            )


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
            yield history.ask(
                "TR", "since", text, counted(days, "day"), last, at=later.time, form=IN_WORDS
            )


def latest_fault(history: History) -> Iterator[Draft]:
    """Where a component's faults changed at least once."""
    for name, found in history.components.items():
        if (
            found[-1].incident.fault
            and len({one.incident.fault for one in found}) > 1
            and history.alone(found[-1])
        ):
            text = f"Which fault did component {name} have most recently?"
            yield history.ask("KU", "latest_fault", text, (found[-1].incident.fault,), found[-1])


def latest_component(history: History) -> Iterator[Draft]:
    for fault, found in history.faults.items():
        if len({one.incident.components for one in found}) > 1 and history.alone(found[-1]):
            text = f"Which component had fault {fault} most recently?"
            yield history.ask(
                "KU", "latest_component", text, names_of(found[-1].incident), found[-1]
            )


def latest_time(history: History) -> Iterator[Draft]:
    for name, found in history.components.items():
        if len(found) > 1:
            text = f"At what time of day did the latest incident of component {name} begin?"
            yield history.ask(
                "KU", "latest_time", text, (minute(found[-1].incident.time),), found[-1], form=CLOCK
            )


def contradiction(history: History) -> Iterator[Draft]:
    """Where two records of a component and minute differ: the one entered last holds."""
    for found in history.disputed.values():
        text = (
            f"The records contradict each other on the fault of {named(found[-1].incident)} at "
            f"{moment(found[-1].incident)}. "
            "Which one does the record entered last name?"
        )
        yield history.ask("CR", "contradiction", text, (found[-1].incident.fault,), *found)
