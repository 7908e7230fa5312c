"""Material for questions about past incidents."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain
from random import Random

from msgspec import Struct

from memeval.datasets.chance import draw
from memeval.datasets.grouping import group
from memeval.datasets.incidents.table import Incident
from memeval.datasets.incidents.text import PastIncident, known_faults
from memeval.datasets.netops.base import Draft, draft

CLOCK = "Answer as HH:MM."

MAX_PER_TEMPLATE = 40
"""Maximum number of questions per template, before some are chosen."""


class IncidentHistory(Struct, frozen=True, dict=True):
    """Material for a case's questions."""

    rng: Random
    past: Sequence[PastIncident]
    """Incidents in the memory, in order of time."""
    later: Sequence[Incident]
    """Later incidents, in order of time; never empty."""
    elsewhere: tuple[frozenset[str], frozenset[str]]
    """Components and faults of the table's other systems."""

    @cached_property
    def components(self) -> dict[str, list[PastIncident]]:
        groups: dict[str, list[PastIncident]] = {}
        for past in self.past:
            for name in past.incident.components:
                groups.setdefault(name, []).append(past)

        return groups

    @cached_property
    def faults(self) -> dict[str, list[PastIncident]]:
        """Incidents by fault, without those that name no fault."""
        return group((past.incident.fault, past) for past in self.past if past.incident.fault)

    @cached_property
    def minutes(self) -> Counter[datetime]:
        """Number of incidents per minute: the narratives give times to the minute."""
        return Counter(map(minute_of, self.past))

    @cached_property
    def disputed_records(self) -> dict[tuple[tuple[str, ...], datetime], list[PastIncident]]:
        """Records that give different faults for the same components and minute: it is unclear
        whether they count once or twice.
        """
        groups: dict[tuple[tuple[str, ...], datetime], list[PastIncident]] = {}
        for past in self.past:
            if past.incident.fault:
                key = past.incident.components, minute_of(past)
                groups.setdefault(key, []).append(past)

        return {key: group for key, group in groups.items() if len(set(known_faults(group))) > 1}

    def certain(
        self, groups: Mapping[str, list[PastIncident]]
    ) -> Iterator[tuple[str, list[PastIncident]]]:
        """The groups in which no record is disputed."""
        disputed = chain.from_iterable(self.disputed_records.values())
        doubtful = {past.turn_id for past in disputed}
        for name, records in groups.items():
            if doubtful.isdisjoint(record.turn_id for record in records):
                yield name, records

    @property
    def now(self) -> datetime:
        """The time of questions about the past: the start of the first later incident."""
        return self.later[0].time

    def alone(self, past: PastIncident) -> bool:
        """Whether no other incident began in the same minute."""
        return self.minutes[minute_of(past)] == 1

    def draw_incidents(self, items: Sequence[PastIncident]) -> list[PastIncident]:
        return draw(self.rng, items, MAX_PER_TEMPLATE)

    def ask(
        self,
        ability: str,
        task: str,
        text: str,
        gold: tuple[str, ...],
        *evidence: PastIncident,
        turn_id: str | None = None,
        at: datetime | None = None,
        form: str = "",
    ) -> Draft:
        """A question. Its evidence is the opening turns of incidents, or one other turn."""
        # Sorted by session number, because s10 comes before s2 as a string.
        ordered = sorted(evidence, key=lambda past: int(past.turn_id[1:].split("t")[0]))
        ids = tuple(dict.fromkeys(past.turn_id for past in ordered))
        if turn_id is not None:
            ids = (turn_id,)

        return draft(ability, task, text, gold, evidence=ids, asked_at=at or self.now, form=form)


def names_of(incident: Incident) -> tuple[str, ...]:
    """Gold of a question for an incident's components."""
    return (", ".join(incident.components),)


def minute_of(past: PastIncident) -> datetime:
    """The start of an incident, to the minute, as in the narratives."""
    return past.incident.time.replace(second=0)
