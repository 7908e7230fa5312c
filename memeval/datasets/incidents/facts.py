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
from memeval.datasets.netops.base import Draft, group
from memeval.datasets.netops.chance import draw
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, amount, counted

LONGEST_LIST = 6
"""Items that an answer may name at most."""

UP_TO_FIVE = "Name up to five components, the likeliest first."


def fault_at(history: History) -> Iterator[Draft]:
    known = [past for past in history.past if past.incident.fault and history.alone(past)]
    for past in history.offered(known):
        text = f"Which fault did {named(past.incident)} have at {moment(past.incident)}?"
        yield history.ask("IE", "fault", text, (past.incident.fault,), past)


def component_at(history: History) -> Iterator[Draft]:
    for past in history.offered([past for past in history.past if history.alone(past)]):
        what = f"had fault {past.incident.fault}" if past.incident.fault else "failed"
        text = f"Which component {what} at {moment(past.incident)}?"
        yield history.ask("IE", "component", text, names_of(past.incident), past)


def duration_of(history: History) -> Iterator[Draft]:
    known = [past for past in history.past if past.over_id and history.alone(past)]
    for past in history.offered(known):
        text = (
            f"How long did the incident of {named(past.incident)} last that began at "
            f"{moment(past.incident)}?"
        )
        gold = (amount(past.incident.duration_s or 0, "second"),)
        form = "Answer in seconds."
        yield history.ask("IE", "duration", text, gold, turn_id=past.over_id, form=form)


def incident_count(history: History) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        if len(records) > 1:
            text = f"How many incidents did component {name} have?"
            gold = counted(len(records), "incident")
            yield history.ask("MR", "count", text, gold, *records, form=IN_WORDS)


def fault_count(history: History) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        by_fault = group((past.incident.fault, past) for past in records if past.incident.fault)
        for fault, own in by_fault.items():
            # A count of one would need no more than one session.
            if len(own) > 1:
                text = f"How many times did component {name} have fault {fault}?"
                gold = counted(len(own), "time")
                yield history.ask("MR", "count", text, gold, *own, form=IN_WORDS)


def components_with(history: History) -> Iterator[Draft]:
    for fault, records in history.certain(history.faults):
        names = dict.fromkeys(name for past in records for name in past.incident.components)
        if 2 <= len(names) <= LONGEST_LIST:
            text = f"Which components had fault {fault}?"
            yield history.ask("MR", "list", text, (", ".join(names),), *records, form=ALL_OF_THEM)


def faults_of(history: History) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        faults = dict.fromkeys(past.incident.fault for past in records if past.incident.fault)
        if 2 <= len(faults) <= LONGEST_LIST:
            text = f"Which faults did component {name} have?"
            yield history.ask("MR", "list", text, (", ".join(faults),), *records, form=ALL_OF_THEM)


def commonest_fault(history: History) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        faults = Counter(past.incident.fault for past in records if past.incident.fault)
        ranked = faults.most_common(2)
        # A tie has no right answer, and a single fault leaves nothing to compare.
        if len(ranked) == 2 and ranked[0][1] > ranked[1][1]:
            text = f"Which fault did component {name} have most often?"
            yield history.ask("MR", "commonest", text, (ranked[0][0],), *records)


def similar_incident(history: History) -> Iterator[Draft]:
    for later in draw(history.rng, history.later, OFFERED):
        same_fault = history.faults.get(later.fault, [])
        alike = [past for past in same_fault if past.incident.level == later.level]
        if alike and history.alone(alike[-1]):
            latest = alike[-1]
            given, same = f"fault {later.fault}", "fault"
            if later.level:
                given, same = f"{given} and level {later.level}", "fault and level"

            text = (
                f"An incident with {given} began at {moment(later)}. Which component had the "
                f"latest incident of the same {same} in the records?"
            )
            gold = names_of(latest.incident)
            yield history.ask("MR", "similar_incident", text, gold, latest, at=later.time)


def root_causes(history: History) -> Iterator[Draft]:
    """Asks only if every root cause has failed before, because no memory can name another, and
    if a single incident has this time and symptom.
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
        before = [past for name in later.components for past in history.components[name]]
        like = [past for past in before if past.incident.fault == later.fault]
        # Incidents of the same fault are the better evidence; without any, all incidents of the
        # component are.
        best, gold = like or before, names_of(later)
        yield history.ask("MR", "root_cause", text, gold, *best, at=later.time, form=UP_TO_FIVE)


def _symptom(later: Incident) -> tuple[datetime, str, str]:
    return later.time.replace(second=0), later.fault, later.level


FACT_TEMPLATES = (
    *(fault_at, component_at, duration_of),
    *(incident_count, fault_count, components_with, faults_of, commonest_fault, similar_incident),
)
"""In the order in which they are drafted."""
