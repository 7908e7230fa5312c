"""The templates of the questions about past incidents, in the order in which they are drafted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from memeval.datasets.incidents.facts import FACT_TEMPLATES
from memeval.datasets.incidents.history import CLOCK, OFFERED, History
from memeval.datasets.incidents.times import TIME_TEMPLATES
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.chance import draw


def drafts(history: History) -> Iterator[Draft]:
    """Every template's questions, those for root causes aside."""
    for template in TEMPLATES:
        yield from template(history)


def unknown_component(history: History) -> Iterator[Draft]:
    later = {name for incident in history.later for name in incident.components}
    unknown = (later | history.elsewhere[0]) - history.components.keys()
    for name in draw(history.rng, sorted(unknown), OFFERED):
        text = f"Which fault did component {name} have most recently?"
        yield history.ask("ABS", "unknown_component", text, ())


def unknown_fault(history: History) -> Iterator[Draft]:
    later = {incident.fault for incident in history.later if incident.fault}
    unknown = (later | history.elsewhere[1]) - history.faults.keys()
    for fault in draw(history.rng, sorted(unknown), OFFERED):
        text = f"Which component had fault {fault} most recently?"
        yield history.ask("ABS", "unknown_fault", text, ())


def unknown_pair(history: History) -> Iterator[Draft]:
    """A component and a fault that are both known, and never came together."""
    met = {
        (name, past.incident.fault) for past in history.past for name in past.incident.components
    }
    pairs = [pair for pair in product(history.components, history.faults) if pair not in met]
    for name, fault in draw(history.rng, pairs, OFFERED):
        text = f"At what time of day did component {name} first have fault {fault}?"
        yield history.ask("ABS", "unknown_pair", text, (), form=CLOCK)


TEMPLATES: Sequence[Callable[[History], Iterator[Draft]]] = (
    *FACT_TEMPLATES,
    *TIME_TEMPLATES,
    *(unknown_component, unknown_fault, unknown_pair),
)
