"""Templates of the questions about past incidents: single and several incidents, order and time,
the latest incidents, and contradictions. Gold and evidence are computed from the table.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from itertools import pairwise, product

from memeval.datasets.chance import draw, pick
from memeval.datasets.grouping import group
from memeval.datasets.incidents.history import CLOCK, MAX_PER_TEMPLATE, IncidentHistory, names_of
from memeval.datasets.incidents.table import Incident
from memeval.datasets.incidents.text import PastIncident, components_text, known_faults, moment
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, amount, count_golds, day, minute

LONGEST_LIST = 6
"""Maximum number of items in an answer."""

UP_TO_FIVE = "Name up to five components, the likeliest first."


def fault_at(history: IncidentHistory) -> Iterator[Draft]:
    known = [past for past in history.past if past.incident.fault and history.alone(past)]
    for past in history.draw_incidents(known):
        text = f"Which fault did {components_text(past.incident)} have at {moment(past.incident)}?"
        yield history.ask("IE", "fault", text, (past.incident.fault,), past)


def component_at(history: IncidentHistory) -> Iterator[Draft]:
    for past in history.draw_incidents(list(filter(history.alone, history.past))):
        verb = f"had fault {past.incident.fault}" if past.incident.fault else "failed"
        text = f"Which component {verb} at {moment(past.incident)}?"
        yield history.ask("IE", "component", text, names_of(past.incident), past)


def duration_of(history: IncidentHistory) -> Iterator[Draft]:
    known = [past for past in history.past if "closing" in past.ids and history.alone(past)]
    for past in history.draw_incidents(known):
        text = (
            f"How long did the incident of {components_text(past.incident)} last that began at "
            f"{moment(past.incident)}?"
        )
        gold = (amount(past.incident.duration_s or 0, "second"),)
        form = "Answer in seconds."
        yield history.ask("IE", "duration", text, gold, turn_id=past.ids["closing"], form=form)


def incident_count(history: IncidentHistory) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        if len(records) > 1:
            text = f"How many incidents did component {name} have?"
            gold = count_golds(len(records), "incident")
            yield history.ask("MR", "count", text, gold, *records, form=IN_WORDS)


def fault_count(history: IncidentHistory) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        by_fault = group((past.incident.fault, past) for past in records if past.incident.fault)
        for fault, incidents in by_fault.items():
            # A count of one would need only one session.
            if len(incidents) > 1:
                text = f"How many times did component {name} have fault {fault}?"
                gold = count_golds(len(incidents), "time")
                yield history.ask("MR", "count", text, gold, *incidents, form=IN_WORDS)


def components_with(history: IncidentHistory) -> Iterator[Draft]:
    for fault, records in history.certain(history.faults):
        names = dict.fromkeys(name for past in records for name in past.incident.components)
        if 2 <= len(names) <= LONGEST_LIST:
            text = f"Which components had fault {fault}?"
            yield history.ask("MR", "list", text, (", ".join(names),), *records, form=ALL_OF_THEM)


def faults_of(history: IncidentHistory) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        faults = dict.fromkeys(known_faults(records))
        if 2 <= len(faults) <= LONGEST_LIST:
            text = f"Which faults did component {name} have?"
            yield history.ask("MR", "list", text, (", ".join(faults),), *records, form=ALL_OF_THEM)


def commonest_fault(history: IncidentHistory) -> Iterator[Draft]:
    for name, records in history.certain(history.components):
        ranked = Counter(known_faults(records)).most_common(2)
        # A tie has no right answer, and a single fault leaves nothing to compare.
        if len(ranked) == 2 and ranked[0][1] > ranked[1][1]:
            text = f"Which fault did component {name} have most often?"
            yield history.ask("MR", "commonest", text, (ranked[0][0],), *records)


def similar_incident(history: IncidentHistory) -> Iterator[Draft]:
    for later in draw(history.rng, history.later, MAX_PER_TEMPLATE):
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


def root_causes(history: IncidentHistory) -> Iterator[Draft]:
    """Asks only if every root cause has failed before, because a memory can name no other, and if
    no other later incident has the same time and symptom.
    """
    alike = Counter(map(_symptom, history.later))
    for later in history.later:
        if not set(later.components) <= history.components.keys() or alike[_symptom(later)] > 1:
            continue

        symptom = f" with symptom {later.fault}" if later.fault else ""
        level = f" at level {later.level}" if later.level else ""
        text = (
            f"Which components are the likeliest root causes of the incident{symptom}{level} that "
            f"began at {moment(later)}?"
        )
        before: list[PastIncident] = []
        for name in later.components:
            before += history.components[name]

        like = [past for past in before if past.incident.fault == later.fault]
        # Incidents of the same fault are better evidence; without any, all incidents of the
        # component count.
        best, gold = like or before, names_of(later)
        yield history.ask("MR", "root_cause", text, gold, *best, at=later.time, form=UP_TO_FIVE)


def _symptom(later: Incident) -> tuple[datetime, str, str]:
    return later.time.replace(second=0), later.fault, later.level


def failed_first(history: IncidentHistory) -> Iterator[Draft]:
    """Asks which of two components had its first incident earlier."""
    for past in history.draw_incidents(list(history.past)):
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


def first_with(history: IncidentHistory) -> Iterator[Draft]:
    for fault, records in history.faults.items():
        if len(records) > 1 and history.alone(records[0]):
            text = f"Which component was the first to have fault {fault}?"
            yield history.ask("TR", "first", text, names_of(records[0].incident), records[0])


def next_after(history: IncidentHistory) -> Iterator[Draft]:
    pairs = [pair for pair in pairwise(history.past) if all(map(history.alone, pair))]
    for past, after in draw(history.rng, pairs, MAX_PER_TEMPLATE):
        # The question names the first incident's components, which must not reveal the answer.
        if not set(past.incident.components) & set(after.incident.components):
            text = (
                f"Which component had the next incident after the one of "
                f"{components_text(past.incident)} at {moment(past.incident)}?"
            )
            yield history.ask("TR", "next", text, names_of(after.incident), past, after)


def clock_time(history: IncidentHistory) -> Iterator[Draft]:
    days = Counter(map(_fault_on_day, history.past))
    for past in history.draw_incidents(list(history.past)):
        if days[_fault_on_day(past)] == 1:
            verb = f"have fault {past.incident.fault}" if past.incident.fault else "fail"
            when = day(past.incident.time)
            text = f"At what time of day did {components_text(past.incident)} {verb} on {when}?"
            yield history.ask("TR", "time", text, (minute(past.incident.time),), past, form=CLOCK)


def _fault_on_day(past: PastIncident) -> tuple[tuple[str, ...], str, date]:
    return past.incident.components, past.incident.fault, past.incident.time.date()


def days_between(history: IncidentHistory) -> Iterator[Draft]:
    for name, records in history.components.items():
        days = (records[-1].incident.time.date() - records[0].incident.time.date()).days
        if days > 1:
            text = (
                "How many days lie between the dates of the first and the latest incident of "
                f"component {name}?"
            )
            ends, gold = (records[0], records[-1]), count_golds(days, "day")
            yield history.ask("TR", "distance", text, gold, *ends, form=IN_WORDS)


def days_since(history: IncidentHistory) -> Iterator[Draft]:
    """Asks for the days up to a later incident's date."""
    for later in draw(history.rng, history.later, MAX_PER_TEMPLATE):
        name = pick(history.rng, list(history.components))
        last = history.components[name][-1]
        days = (later.time.date() - last.incident.time.date()).days
        if days > 1:
            text = (
                f"It is {day(later.time)}. By the records, how many days ago did component {name} "
                "last fail?"
            )
            gold = count_golds(days, "day")
            yield history.ask("TR", "since", text, gold, last, at=later.time, form=IN_WORDS)


def latest_fault(history: IncidentHistory) -> Iterator[Draft]:
    """Asks for the latest fault of components whose fault changed at least once."""
    for name, records in history.components.items():
        latest = records[-1]
        faults = {past.incident.fault for past in records}
        if latest.incident.fault and len(faults) > 1 and history.alone(latest):
            text = f"Which fault did component {name} have most recently?"
            yield history.ask("KU", "latest_fault", text, (latest.incident.fault,), latest)


def latest_component(history: IncidentHistory) -> Iterator[Draft]:
    for fault, records in history.faults.items():
        latest = records[-1]
        if len({past.incident.components for past in records}) > 1 and history.alone(latest):
            text = f"Which component had fault {fault} most recently?"
            yield history.ask("KU", "latest_component", text, names_of(latest.incident), latest)


def latest_time(history: IncidentHistory) -> Iterator[Draft]:
    for name, records in history.components.items():
        if len(records) > 1:
            text = f"At what time of day did the latest incident of component {name} begin?"
            gold = (minute(records[-1].incident.time),)
            yield history.ask("KU", "latest_time", text, gold, records[-1], form=CLOCK)


def contradiction(history: IncidentHistory) -> Iterator[Draft]:
    """Asks for the fault if records of the same components and minute differ: the last counts."""
    for records in history.disputed_records.values():
        text = (
            f"The records contradict each other on the fault of "
            f"{components_text(records[-1].incident)} at {moment(records[-1].incident)}. "
            "Which one does the record entered last name?"
        )
        yield history.ask("CR", "contradiction", text, (records[-1].incident.fault,), *records)


def unknown_component(history: IncidentHistory) -> Iterator[Draft]:
    later = {name for incident in history.later for name in incident.components}
    unknown = (later | history.elsewhere[0]) - history.components.keys()
    for name in draw(history.rng, sorted(unknown), MAX_PER_TEMPLATE):
        text = f"Which fault did component {name} have most recently?"
        yield history.ask("ABS", "unknown_component", text, ())


def unknown_fault(history: IncidentHistory) -> Iterator[Draft]:
    later = {incident.fault for incident in history.later if incident.fault}
    unknown = (later | history.elsewhere[1]) - history.faults.keys()
    for fault in draw(history.rng, sorted(unknown), MAX_PER_TEMPLATE):
        text = f"Which component had fault {fault} most recently?"
        yield history.ask("ABS", "unknown_fault", text, ())


def unknown_pair(history: IncidentHistory) -> Iterator[Draft]:
    """Asks about a component and a fault that are both known but never occurred together."""
    met = set[tuple[str, str]]()
    for past in history.past:
        met.update(product(past.incident.components, [past.incident.fault]))

    pairs = [pair for pair in product(history.components, history.faults) if pair not in met]
    for name, fault in draw(history.rng, pairs, MAX_PER_TEMPLATE):
        text = f"At what time of day did component {name} first have fault {fault}?"
        yield history.ask("ABS", "unknown_pair", text, (), form=CLOCK)


TEMPLATES: Sequence[Callable[[IncidentHistory], Iterator[Draft]]] = (
    *(fault_at, component_at, duration_of),
    *(incident_count, fault_count, components_with, faults_of, commonest_fault, similar_incident),
    *(failed_first, first_with, next_after, clock_time, days_between, days_since),
    *(latest_fault, latest_component, latest_time),
    contradiction,
    *(unknown_component, unknown_fault, unknown_pair),
)
"""All templates, in the order in which they are drafted; those for root causes are separate."""
