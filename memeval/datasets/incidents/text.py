"""Incidents as dated narratives, one session each. The seed varies the words, never the facts."""

from collections.abc import Mapping, Sequence
from random import Random

from msgspec import Struct

from memeval.datasets.chance import pick
from memeval.datasets.incidents.runbooks import Handling
from memeval.datasets.incidents.table import Incident
from memeval.datasets.netops.words import amount, day, minute
from memeval.records import Session

WITH_FAULT = (
    "{Name} had fault {fault}. It began at {time}.{level}",
    "Fault {fault} was found on {name}. It began at {time}.{level}",
    "{Name} was hit by fault {fault}. The incident began at {time}.{level}",
    "{Name} failed with fault {fault}. That was at {time}.{level}",
)
WITHOUT_FAULT = (
    "{Name} had an incident. It began at {time}.{level}",
    "{Name} failed. That was at {time}.{level}",
    "An incident hit {name}. It began at {time}.{level}",
)
OVER = (
    "The incident of {name} that began at {time} lasted {duration}.",
    "{Name} recovered: the incident of {time} lasted {duration}.",
)
HANDLED = "Fault {fault} of {name} at {time} was handled by these steps: {steps}."
RUNBOOK = "Runbook for fault {fault}, revision {revision} of {time}: {steps}."

SPEAKERS = {
    "opening": "monitor",
    "closing": "operator",
    "handling": "operator",
    "runbook": "runbook",
}
"""Speaker of each part of a narrative: what happened, how long it lasted, how it was handled, and
the revision of the fault's runbook that was written after it.
"""


class PastIncident(Struct, frozen=True):
    """An incident in the memory, with the turns that report it."""

    incident: Incident
    ids: Mapping[str, str]
    """Its turn ids by part (see `SPEAKERS`), without unknown parts."""
    handling: Handling | None
    """None without runbooks, or if the table names no fault."""

    @property
    def turn_id(self) -> str:
        """The turn that gives the time, the components, the level and the fault."""
        return self.ids["opening"]


def narrate(
    rng: Random, incidents: Sequence[Incident], handlings: Sequence[Handling | None]
) -> tuple[list[PastIncident], tuple[Session, ...]]:
    """The incidents, in order of time, as sessions `s1`, `s2` … of one or two turns, plus one or
    two about the handling of the incident, if known.
    """
    past, sessions = [], []
    for number, (incident, handling) in enumerate(zip(incidents, handlings, strict=True), start=1):
        parts = _parts(rng, incident, handling)
        turns = [(SPEAKERS[part], text) for part, text in parts.items()]
        session = Session.of(f"s{number}", turns, time=incident.time, ids=f"s{number}t")
        ids = {part: turn.turn_id for part, turn in zip(parts, session.turns, strict=True)}
        past.append(PastIncident(incident=incident, ids=ids, handling=handling))
        sessions.append(session)

    return past, tuple(sessions)


def _parts(rng: Random, incident: Incident, handling: Handling | None) -> dict[str, str]:
    """Text of an incident's record, by part, in order."""
    level = f" Level: {incident.level}." if incident.level else ""
    template = pick(rng, WITH_FAULT if incident.fault else WITHOUT_FAULT)
    parts = {"opening": _filled(template, incident, level=level, fault=incident.fault)}
    if incident.duration_s is not None:
        duration = amount(incident.duration_s, "second")
        parts["closing"] = _filled(pick(rng, OVER), incident, duration=duration)
    if handling is None:
        return parts

    parts["handling"] = _filled(HANDLED, incident, fault=incident.fault, steps=handling.steps)
    if handling.revision is not None:
        parts["runbook"] = RUNBOOK.format(
            fault=incident.fault,
            revision=handling.revision,
            time=moment(incident),
            steps=handling.revised,
        )

    return parts


def known_faults(records: Sequence[PastIncident]) -> list[str]:
    return [past.incident.fault for past in records if past.incident.fault]


def components_text(incident: Incident) -> str:
    """`component a`, `components a and b`."""
    *others, last = incident.components
    return f"components {', '.join(others)} and {last}" if others else f"component {last}"


def moment(incident: Incident) -> str:
    """`2021-03-04 14:57`."""
    return f"{day(incident.time)} {minute(incident.time)}"


def _filled(template: str, incident: Incident, **parts: str) -> str:
    name = components_text(incident)
    return template.format(
        name=name, Name=name[0].upper() + name[1:], time=moment(incident), **parts
    )
