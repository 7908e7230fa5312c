"""Incidents as dated narratives: one session each, the words varied by seed, the facts never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from memeval.datasets.incidents.schema import Incident
from memeval.datasets.netops.chance import pick
from memeval.datasets.netops.words import amount, day, minute
from memeval.records import Session, Turn

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


@dataclass(frozen=True, slots=True)
class Past:
    """An incident that memory holds, with the turns that report it."""

    incident: Incident
    turn_id: str
    """Tells when, what, where and which fault."""
    over_id: str | None
    """Tells how long it lasted; None where the table does not."""


def narrate(rng: Random, incidents: Sequence[Incident]) -> tuple[list[Past], tuple[Session, ...]]:
    """The incidents, in order of time, as sessions `s1`, `s2` … of a turn or two."""
    past, sessions = [], []
    for number, incident in enumerate(incidents, start=1):
        turns = [
            Turn(
                turn_id=f"s{number}t1",
                speaker="monitor",
                text=_opening(rng, incident),
                time=incident.time,
            )
        ]
        if incident.duration_s is not None:
            turns.append(
                Turn(
                    turn_id=f"s{number}t2",
                    speaker="operator",
                    text=_closing(rng, incident, incident.duration_s),
                    time=incident.time,
                )
            )

        past.append(
            Past(
                incident=incident,
                turn_id=turns[0].turn_id,
                over_id=turns[1].turn_id if len(turns) > 1 else None,
            )
        )
        sessions.append(
            Session(session_id=f"s{number}", started_at=incident.time, turns=tuple(turns))
        )

    return past, tuple(sessions)


def named(incident: Incident) -> str:
    """`component a`, `components a and b`."""
    *others, last = incident.components
    return f"components {', '.join(others)} and {last}" if others else f"component {last}"


def moment(incident: Incident) -> str:
    """`2021-03-04 14:57`."""
    return f"{day(incident.time)} {minute(incident.time)}"


def _opening(rng: Random, incident: Incident) -> str:
    level = f" Level: {incident.level}." if incident.level else ""
    return _filled(
        pick(rng, WITH_FAULT if incident.fault else WITHOUT_FAULT),
        incident,
        level=level,
        fault=incident.fault,
    )


def _closing(rng: Random, incident: Incident, seconds: int) -> str:
    return _filled(pick(rng, OVER), incident, duration=amount(seconds, "second"))


def _filled(template: str, incident: Incident, **parts: str) -> str:
    name = named(incident)
    return template.format(
        name=name, Name=name[0].upper() + name[1:], time=moment(incident), **parts
    )
