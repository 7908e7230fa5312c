"""Questions about past incidents, by template. Gold and evidence are computed from the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import TypeVar

from memeval.datasets.incidents.schema import Incident
from memeval.datasets.incidents.text import Past, moment, named
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.chance import draw, pick
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, amount, counted, day, minute

K = TypeVar("K")

LONGEST_LIST = 6
"""Items that an answer may name at most."""

CLOCK = "Answer as HH:MM."
UP_TO_FIVE = "Name up to five components, the likeliest first."

OFFERED = 40
"""Questions that one template makes at most, before they are chosen from."""


@dataclass(frozen=True)
class History:
    """What a case's questions are made from."""

    rng: Random
    past: Sequence[Past]
    """What memory holds, in order of time."""
    later: Sequence[Incident]
    """What came after it, in order of time; never empty."""
    elsewhere: tuple[frozenset[str], frozenset[str]]
    """Components and faults of the table's other systems."""

    @cached_property
    def components(self) -> dict[str, list[Past]]:
        """Incidents by component."""
        return _grouped((name, one) for one in self.past for name in one.incident.components)

    @cached_property
    def faults(self) -> dict[str, list[Past]]:
        """Incidents by fault, those without one left out."""
        return _grouped((one.incident.fault, one) for one in self.past if one.incident.fault)

    @cached_property
    def minutes(self) -> Counter[datetime]:
        """Incidents by the minute: the narratives give times to the minute."""
        return Counter(_clock(one) for one in self.past)

    @cached_property
    def disputed(self) -> dict[tuple[tuple[str, ...], datetime], list[Past]]:
        """Records that say different things of the same components and minute: nobody can tell
        whether they count once or twice.
        """
        groups = _grouped(
            ((one.incident.components, _clock(one)), one) for one in self.past if one.incident.fault
        )
        return {key: records for key, records in groups.items() if len(_faults(records)) > 1}

    def certain(self, groups: Mapping[str, list[Past]]) -> Iterator[tuple[str, list[Past]]]:
        """The groups in which no record is disputed."""
        doubtful = {one.turn_id for found in self.disputed.values() for one in found}
        return (
            (name, records)
            for name, records in groups.items()
            if doubtful.isdisjoint(record.turn_id for record in records)
        )

    @property
    def now(self) -> datetime:
        """When questions about the past are asked: as the first later incident begins."""
        return self.later[0].time

    def alone(self, one: Past) -> bool:
        """Whether no other incident began in the same minute."""
        return self.minutes[_clock(one)] == 1

    def offered(self, items: Sequence[Past]) -> list[Past]:
        return draw(self.rng, items, OFFERED)

    def ask(
        self,
        ability: str,
        task: str,
        text: str,
        gold: tuple[str, ...],
        *evidence: Past,
        at: datetime | None = None,
        form: str = "",
    ) -> Draft:
        ids = tuple(
            dict.fromkeys(
                one.turn_id
                for one in sorted(evidence, key=lambda one: int(one.turn_id[1:].split("t")[0]))
            )
        )
        return Draft(
            ability=ability,
            task=task,
            text=text,
            gold=gold,
            evidence=ids,
            asked_at=at or self.now,
            instruction=form,
        )


def drafts(history: History) -> Iterator[Draft]:
    """Every template's questions, those for root causes aside."""
    for template in TEMPLATES:
        yield from template(history)


def names_of(incident: Incident) -> tuple[str, ...]:
    """Gold of a question for an incident's components."""
    return (", ".join(incident.components),)


def fault_at(history: History) -> Iterator[Draft]:
    for one in history.offered(
        [one for one in history.past if one.incident.fault and history.alone(one)]
    ):
        text = f"Which fault did {named(one.incident)} have at {moment(one.incident)}?"
        yield history.ask("IE", "fault", text, (one.incident.fault,), one)


def component_at(history: History) -> Iterator[Draft]:
    for one in history.offered([one for one in history.past if history.alone(one)]):
        what = f"had fault {one.incident.fault}" if one.incident.fault else "failed"
        yield history.ask(
            "IE",
            "component",
            f"Which component {what} at {moment(one.incident)}?",
            names_of(one.incident),
            one,
        )


def duration_of(history: History) -> Iterator[Draft]:
    for one in history.offered([one for one in history.past if one.over_id and history.alone(one)]):
        text = (
            f"How long did the incident of {named(one.incident)} last that began at "
            f"{moment(one.incident)}?"
        )
        gold = (amount(one.incident.duration_s or 0, "second"),)
        yield Draft(
            ability="IE",
            task="duration",
            text=text,
            gold=gold,
            evidence=(one.over_id or "",),
            asked_at=history.now,
            instruction="Answer in seconds.",
        )


def incident_count(history: History) -> Iterator[Draft]:
    for name, found in history.certain(history.components):
        if len(found) > 1:
            text = f"How many incidents did component {name} have?"
            yield history.ask(
                "MR", "count", text, counted(len(found), "incident"), *found, form=IN_WORDS
            )


def fault_count(history: History) -> Iterator[Draft]:
    for name, found in history.certain(history.components):
        for fault, count in Counter(
            one.incident.fault for one in found if one.incident.fault
        ).items():
            if count > 1:
                text = f"How many times did component {name} have fault {fault}?"
                own = [one for one in found if one.incident.fault == fault]
                yield history.ask("MR", "count", text, counted(count, "time"), *own, form=IN_WORDS)


def components_with(history: History) -> Iterator[Draft]:
    for fault, found in history.certain(history.faults):
        names = dict.fromkeys(name for one in found for name in one.incident.components)
        if 2 <= len(names) <= LONGEST_LIST:
            text = f"Which components had fault {fault}?"
            yield history.ask("MR", "list", text, (", ".join(names),), *found, form=ALL_OF_THEM)


def faults_of(history: History) -> Iterator[Draft]:
    for name, found in history.certain(history.components):
        faults = dict.fromkeys(one.incident.fault for one in found if one.incident.fault)
        if 2 <= len(faults) <= LONGEST_LIST:
            text = f"Which faults did component {name} have?"
            yield history.ask("MR", "list", text, (", ".join(faults),), *found, form=ALL_OF_THEM)


def commonest_fault(history: History) -> Iterator[Draft]:
    for name, found in history.certain(history.components):
        ranked = Counter(one.incident.fault for one in found if one.incident.fault).most_common(2)
        if len(ranked) == 2 and ranked[0][1] > ranked[1][1]:
            yield history.ask(
                "MR",
                "commonest",
                f"Which fault did component {name} have most often?",
                (ranked[0][0],),
                *found,
            )


def similar_incident(history: History) -> Iterator[Draft]:
    for later in draw(history.rng, history.later, OFFERED):
        alike = [
            one for one in history.faults.get(later.fault, []) if one.incident.level == later.level
        ]
        if alike and history.alone(alike[-1]):
            level = f" and level {later.level}" if later.level else ""
            text = (
                f"An incident with fault {later.fault}{level} began at {moment(later)}. "
                "Which component had the latest incident of the same "
                f"fault{' and level' if later.level else ''} in the records?"
            )
            yield history.ask(
                "MR",
                "similar_incident",
                text,
                names_of(alike[-1].incident),
                alike[-1],
                at=later.time,
            )


def root_causes(history: History) -> Iterator[Draft]:
    """Asked where every root cause failed before, as no memory can name another, and time and
    symptom are those of one incident.
    """
    alike = Counter(_symptom(later) for later in history.later)
    for later in history.later:
        if not set(later.components) <= history.components.keys() or alike[_symptom(later)] > 1:
            continue

        symptom = f" with symptom {later.fault}" if later.fault else ""
        level = f" at level {later.level}" if later.level else ""
        text = (
            f"Which components are the likeliest root causes of the incident{symptom}{level} that "
            f"began at {moment(later)}?"
        )
        before = [one for name in later.components for one in history.components[name]]
        like = [one for one in before if one.incident.fault == later.fault]
        yield history.ask(
            "MR",
            "root_cause",
            text,
            names_of(later),
            *(like or before),
            at=later.time,
            form=UP_TO_FIVE,
        )


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


def unknown_component(history: History) -> Iterator[Draft]:
    later = {name for one in history.later for name in one.components}
    for name in draw(
        history.rng, sorted((later | history.elsewhere[0]) - history.components.keys()), OFFERED
    ):
        yield history.ask(
            "ABS", "unknown_component", f"Which fault did component {name} have most recently?", ()
        )


def unknown_fault(history: History) -> Iterator[Draft]:
    later = {one.fault for one in history.later if one.fault}
    for fault in draw(
        history.rng, sorted((later | history.elsewhere[1]) - history.faults.keys()), OFFERED
    ):
        yield history.ask(
            "ABS", "unknown_fault", f"Which component had fault {fault} most recently?", ()
        )


def unknown_pair(history: History) -> Iterator[Draft]:
    """A component and a fault that are both known, and never came together."""
    met = {(name, one.incident.fault) for one in history.past for name in one.incident.components}
    pairs = [
        (name, fault)
        for name in history.components
        for fault in history.faults
        if (name, fault) not in met
    ]
    for name, fault in draw(history.rng, pairs, OFFERED):
        yield history.ask(
            "ABS",
            "unknown_pair",
            f"At what time of day did component {name} first have fault {fault}?",
            (),
            form=CLOCK,
        )


TEMPLATES: Sequence[Callable[[History], Iterator[Draft]]] = (
    *(fault_at, component_at, duration_of),
    *(incident_count, fault_count, components_with, faults_of, commonest_fault, similar_incident),
    *(failed_first, first_with, next_after, clock_time, days_between, days_since),
    *(latest_fault, latest_component, latest_time),
    contradiction,
    *(unknown_component, unknown_fault, unknown_pair),
)


def _symptom(later: Incident) -> tuple[datetime, str, str]:
    return later.time.replace(second=0), later.fault, later.level


def _clock(one: Past) -> datetime:
    return one.incident.time.replace(second=0)


def _faults(records: Sequence[Past]) -> set[str]:
    return {record.incident.fault for record in records}


def _grouped(pairs: Iterator[tuple[K, Past]]) -> dict[K, list[Past]]:
    groups: dict[K, list[Past]] = {}
    for key, one in pairs:
        groups.setdefault(key, []).append(one)

    return groups
