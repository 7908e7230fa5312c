"""Questions about the handling of incidents, and about runbooks, whose newest revision counts."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from memeval.datasets.chance import draw
from memeval.datasets.incidents.history import MAX_PER_TEMPLATE, IncidentHistory, minute_of
from memeval.datasets.incidents.text import PastIncident, components_text, moment
from memeval.datasets.netops.base import Draft
from memeval.records import CategoryId

HANDLING, RUNBOOK_UPDATE = "HA", "RU"

HANDLING_CATEGORIES: Mapping[CategoryId, str] = {
    HANDLING: "handling",
    RUNBOOK_UPDATE: "runbook_update",
}
"""Categories that exist only with `dataset.runbooks=true`."""

BOTH_STEPS = "Name both steps."


def handled(history: IncidentHistory) -> Iterator[Draft]:
    known = [past for past in history.past if past.handling and history.alone(past)]
    for past in history.draw_incidents(known):
        text = (
            f"How was the incident of {components_text(past.incident)} handled that began at "
            f"{moment(past.incident)}?"
        )
        yield _about_handling(history, past, task="handled", text=text)


def handled_last(history: IncidentHistory) -> Iterator[Draft]:
    """Asks how a fault was last handled, by any revision of its runbook."""
    for fault, records in history.faults.items():
        if len(records) > 1 and history.alone(records[-1]):
            text = f"How was the latest incident with fault {fault} handled?"
            yield _about_handling(history, records[-1], task="handled_last", text=text)


def procedure(history: IncidentHistory) -> Iterator[Draft]:
    for fault, newest in _last_revisions(history):
        text = f"What does the runbook for fault {fault} say to do now?"
        yield _about_runbook(history, newest, task="procedure", text=text)


def new_incident(history: IncidentHistory) -> Iterator[Draft]:
    """Asks what the newest runbook says about the fault of a later incident."""
    newest_of = dict(_last_revisions(history))
    for later in draw(history.rng, history.later, MAX_PER_TEMPLATE):
        newest = newest_of.get(later.fault)
        if newest is not None:
            text = (
                f"An incident of {components_text(later)} with fault {later.fault} began at "
                f"{moment(later)}. What does the runbook for this fault say to do now?"
            )
            at = later.time
            yield _about_runbook(history, newest, task="new_incident", text=text, at=at)


def _last_revisions(history: IncidentHistory) -> Iterator[tuple[str, PastIncident]]:
    """Each fault with a revised runbook, and the incident after which it was last revised.

    Left out if its last two revisions are of one minute: the narrative does not say which is newer.
    """
    for fault, records in history.faults.items():
        revisions = [past for past in records if "runbook" in past.ids]
        if len(revisions) > 1 and minute_of(revisions[-1]) != minute_of(revisions[-2]):
            yield fault, revisions[-1]


def _about_handling(history: IncidentHistory, past: PastIncident, *, task: str, text: str) -> Draft:
    gold = (past.handling.steps,) if past.handling else ()
    turn_id = past.ids["handling"]
    return history.ask(HANDLING, task, text, gold, turn_id=turn_id, form=BOTH_STEPS)


def _about_runbook(
    history: IncidentHistory,
    newest: PastIncident,
    *,
    task: str,
    text: str,
    at: datetime | None = None,
) -> Draft:
    gold = (newest.handling.revised,) if newest.handling else ()
    turn_id = newest.ids["runbook"]
    return history.ask(RUNBOOK_UPDATE, task, text, gold, turn_id=turn_id, at=at, form=BOTH_STEPS)


HANDLING_TEMPLATES = (handled, handled_last, procedure, new_incident)
