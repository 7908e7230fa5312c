"""Questions about single incidents, and about several of them. Gold and evidence are computed from
the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from memeval.datasets.incidents.history import OFFERED, History, names_of
from memeval.datasets.incidents.table import Incident
from memeval.datasets.incidents.text import moment, named
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.chance import draw
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, amount, counted

LONGEST_LIST = 6
"""Items that an answer may name at most."""

UP_TO_FIVE = "Name up to five components, the likeliest first."


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


def _symptom(later: Incident) -> tuple[datetime, str, str]:
    return later.time.replace(second=0), later.fault, later.level
