"""Material and shared wording for the questions about an alert storm."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any

from msgspec import Struct

from memeval.datasets.alert_storm.generate import LINK_KINDS, ROOT_KINDS, Alert, Storm
from memeval.datasets.alert_storm.text import ShownAlert, clock
from memeval.datasets.chance import draw
from memeval.datasets.grouping import K, group
from memeval.datasets.netops.base import Draft, draft
from memeval.datasets.netops.words import day

MAX_PER_TEMPLATE = 20
"""Maximum number of questions per template, before some are chosen."""

MAX_EVIDENCE = 1_000
"""Maximum number of turns that a question names as evidence; a question with more names none."""


class StormMaterial(Struct, frozen=True, dict=True):
    """Material for a case's questions."""

    rng: Random
    storm: Storm
    shown: Sequence[ShownAlert]
    """The alerts in order of time."""

    @cached_property
    def devices(self) -> Mapping[str, list[ShownAlert]]:
        return _lines_by("device", self.shown)

    @cached_property
    def identities(self) -> Mapping[tuple[str, str, str], list[ShownAlert]]:
        """Lines by alert: its first line and the duplicates."""
        return _lines_by("identity", self.shown)

    @cached_property
    def kinds(self) -> Mapping[str, list[ShownAlert]]:
        return _lines_by("kind", self.shown)

    @cached_property
    def times(self) -> Counter[str]:
        """Number of alerts by displayed time; lines of a log may share one."""
        return Counter(map(moment, self.shown))

    def is_alone(self, line: ShownAlert) -> bool:
        """Whether no other alert has the same displayed time."""
        return self.times[moment(line)] == 1

    @property
    def now(self) -> datetime:
        """The time of all questions: the start of the minute after the last alert."""
        # Questions that name the latest state must be asked after it.
        return self.shown[-1].alert.time.replace(second=0, microsecond=0) + timedelta(minutes=1)

    def draw_items(self, items: Iterable[K]) -> list[K]:
        return draw(self.rng, items, MAX_PER_TEMPLATE)

    def draw_differing(
        self, groups: Mapping[K, list[ShownAlert]], field: str
    ) -> Iterator[tuple[K, list[ShownAlert]]]:
        """Groups of lines whose alerts differ in a field."""
        for key in self.draw_items(key for key, lines in groups.items() if differ(lines, field)):
            yield key, groups[key]

    def ask(
        self,
        ability: str,
        task: str,
        text: str,
        gold: tuple[str, ...],
        evidence: Sequence[ShownAlert] = (),
        *,
        form: str = "",
    ) -> Draft:
        ids = tuple(dict.fromkeys(line.turn_id for line in evidence))
        if len(ids) > MAX_EVIDENCE:
            ids = ()

        return draft(ability, task, text, gold, evidence=ids, asked_at=self.now, form=form)


def _lines_by(field: str, lines: Iterable[ShownAlert]) -> dict[Any, list[ShownAlert]]:
    return group((getattr(line.alert, field), line) for line in lines)


def differ(lines: Sequence[ShownAlert], field: str) -> bool:
    """Whether the alerts of some lines differ in a field."""
    return len({getattr(line.alert, field) for line in lines}) > 1


def causes_of(material: StormMaterial) -> list[ShownAlert]:
    """The first line of each root cause, in order of time; empty if the root causes are unknown."""
    roots = set(material.storm.roots.values())
    return [
        line
        for line in first_lines(material.shown)
        if line.alert.device in roots and line.alert.kind in ROOT_KINDS
    ]


def link_lines(material: StormMaterial) -> Iterator[tuple[str, list[ShownAlert]]]:
    lines: list[ShownAlert] = []
    for kind in LINK_KINDS:
        lines += material.kinds.get(kind, ())

    by_device = _lines_by("device", lines)
    for device in material.draw_items(by_device):
        yield device, sorted(by_device[device], key=lambda line: line.alert.time)


def lines_alone_in_time(material: StormMaterial) -> Iterator[ShownAlert]:
    return filter(material.is_alone, draw(material.rng, material.shown, MAX_PER_TEMPLATE))


def first_lines(lines: Sequence[ShownAlert]) -> list[ShownAlert]:
    firsts: dict[tuple[str, str, str], ShownAlert] = {}
    for line in lines:
        firsts.setdefault(line.alert.identity, line)

    return list(firsts.values())


def moment(line: ShownAlert) -> str:
    return f"{day(line.alert.time)} {clock(line.alert.time)}"


def name_alert(alert: Alert) -> str:
    """`alert packet_loss on port_00003 of device agg_002`."""
    port = f" on {alert.port}" if alert.port else ""
    return f"alert {alert.kind}{port} of device {alert.device}"
