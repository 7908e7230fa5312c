"""The templates of the questions about past incidents, in the order in which they are drafted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memeval.datasets.incidents.facts import (
    commonest_fault,
    component_at,
    components_with,
    duration_of,
    fault_at,
    fault_count,
    faults_of,
    incident_count,
    similar_incident,
)
from memeval.datasets.incidents.history import CLOCK, OFFERED, History
from memeval.datasets.incidents.times import (
    clock_time,
    contradiction,
    days_between,
    days_since,
    failed_first,
    first_with,
    latest_component,
    latest_fault,
    latest_time,
    next_after,
)
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.chance import draw


def drafts(history: History) -> Iterator[Draft]:
    """Every template's questions, those for root causes aside."""
    for template in TEMPLATES:
        yield from template(history)


def unknown_component(history: History) -> Iterator[Draft]:
    later = {name for incident in history.later for name in incident.components}
    for name in draw(
        history.rng, sorted((later | history.elsewhere[0]) - history.components.keys()), OFFERED
    ):
        yield history.ask(
            "ABS", "unknown_component", f"Which fault did component {name} have most recently?", ()
        )


def unknown_fault(history: History) -> Iterator[Draft]:
    later = {incident.fault for incident in history.later if incident.fault}
    for fault in draw(
        history.rng, sorted((later | history.elsewhere[1]) - history.faults.keys()), OFFERED
    ):
        yield history.ask(
            "ABS", "unknown_fault", f"Which component had fault {fault} most recently?", ()
        )


def unknown_pair(history: History) -> Iterator[Draft]:
    """A component and a fault that are both known, and never came together."""
    met = {
        (name, past.incident.fault) for past in history.past for name in past.incident.components
    }
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
