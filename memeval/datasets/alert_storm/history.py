"""Several storms of one network in one case, and the questions that a later one raises for an
operator: has this been seen before, and when?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice

from msgspec import Struct

from memeval.datasets.alert_storm.generate import LINK_KINDS, ROOT_KINDS, Storm
from memeval.datasets.alert_storm.material import StormMaterial
from memeval.datasets.alert_storm.text import ShownAlert
from memeval.datasets.grouping import K, group
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, count_golds, day

WHEN = "If it was several times, give the day of the latest one."


class PastStorm(Struct, frozen=True, dict=True):
    """One storm of a history, as lines with their turns."""

    shown: Sequence[ShownAlert]

    @property
    def day(self) -> str:
        return day(self.shown[0].alert.time)

    @property
    def dates(self) -> tuple[str, str]:
        """The day as the alerts write it, and in words."""
        time = self.shown[0].alert.time
        return self.day, f"{time.day} {time:%B %Y}"

    @cached_property
    def first_of_kind(self) -> dict[str, ShownAlert]:
        """The first line of each kind of alert, without flapping links."""
        return _first((line.alert.kind, line) for line in self.shown)

    @cached_property
    def first_on_device(self) -> dict[tuple[str, str], ShownAlert]:
        """The first line of each device and kind, without flapping links."""
        return _first(((line.alert.device, line.alert.kind), line) for line in self.shown)

    @cached_property
    def causes(self) -> dict[str, ShownAlert]:
        """The first line of each root cause, by device."""
        return _first(
            (line.alert.device, line) for line in self.shown if line.alert.kind in ROOT_KINDS
        )


def _first(lines: Iterable[tuple[K, ShownAlert]]) -> dict[K, ShownAlert]:
    by_key = group((key, line) for key, line in lines if line.alert.kind not in LINK_KINDS)
    return {key: own[0] for key, own in by_key.items()}


def join_storms(storms: Sequence[Storm]) -> Storm:
    """A history's alerts as one storm, without root causes: questions about those name a storm."""
    alerts = tuple(alert for storm in storms for alert in storm.alerts)
    network = storms[0].network
    assert network is not None
    silent = frozenset(network.devices) - {alert.device for alert in alerts}
    return Storm(alerts=alerts, roots={}, network=network, silent=silent)


def history_drafts(material: StormMaterial, storms: Sequence[Storm]) -> Iterator[Draft]:
    """Questions that only a memory over several storms can answer."""
    lines = iter(material.shown)
    past = [PastStorm(list(islice(lines, len(storm.alerts)))) for storm in storms]
    *earlier, latest = past
    yield from _kinds_together(material, earlier, latest)
    yield from _kinds_on_device(material, earlier, latest)
    yield from _root_cause_before(material, earlier, latest)
    yield from _root_causes_of(material, past)
    yield from _storms_with(material, past)


def _kinds_together(
    material: StormMaterial, earlier: Sequence[PastStorm], latest: PastStorm
) -> Iterator[Draft]:
    """Asks when two kinds of the latest storm were raised in one earlier storm."""
    for first, second in material.draw_items(combinations(_symptoms(latest), 2)):
        matching = [storm for storm in earlier if {first, second} <= storm.first_of_kind.keys()]
        evidence = (
            [matching[-1].first_of_kind[kind] for kind in (first, second)] if matching else []
        )
        text = (
            f"When were alerts {first} and {second} raised together before, in one storm earlier "
            "than the latest?"
        )
        yield _when(material, "together", text, matching, evidence)


def _kinds_on_device(
    material: StormMaterial, earlier: Sequence[PastStorm], latest: PastStorm
) -> Iterator[Draft]:
    """Asks the same about one device that has both kinds in the latest storm."""
    kinds = group((device, line) for (device, _), line in latest.first_on_device.items())
    pairs = [
        (device, first.alert.kind, second.alert.kind)
        for device, lines in kinds.items()
        for first, second in combinations(lines, 2)
    ]
    for device, first, second in material.draw_items(pairs):
        wanted = ((device, first), (device, second))
        matching = [storm for storm in earlier if set(wanted) <= storm.first_on_device.keys()]
        evidence = [matching[-1].first_on_device[key] for key in wanted] if matching else []
        text = (
            f"When did device {device} have alerts {first} and {second} together before, in one "
            "storm earlier than the latest?"
        )
        yield _when(material, "together_on_device", text, matching, evidence)


def _root_cause_before(
    material: StormMaterial, earlier: Sequence[PastStorm], latest: PastStorm
) -> Iterator[Draft]:
    """Asks when a device that is a root cause of any storm was one before the latest storm."""
    devices = dict.fromkeys(device for storm in (*earlier, latest) for device in storm.causes)
    for device in material.draw_items(devices):
        matching = [storm for storm in earlier if device in storm.causes]
        text = f"When was device {device} a root cause before, in a storm earlier than the latest?"
        evidence = [matching[-1].causes[device]] if matching else []
        yield _when(material, "root_cause_before", text, matching, evidence)


def _when(
    material: StormMaterial,
    task: str,
    text: str,
    matching: Sequence[PastStorm],
    evidence: Sequence[ShownAlert],
) -> Draft:
    """Asks for the day of the latest matching storm; unanswerable if no storm matches."""
    # Not "has it been …?": a judge that searches the answer for the gold finds "no" in many words.
    if not matching:
        return material.ask("ABS", f"never_{task}", text, (), form=WHEN)

    return material.ask("TR", task, text, matching[-1].dates, evidence, form=WHEN)


def _root_causes_of(material: StormMaterial, past: Sequence[PastStorm]) -> Iterator[Draft]:
    for storm in past:
        text = f"Which devices were the root causes of the storm of {storm.day}?"
        lines = list(storm.causes.values())
        names = ", ".join(line.alert.device for line in lines)
        yield material.ask("MR", "root_causes_of", text, (names,), lines, form=ALL_OF_THEM)


def _storms_with(material: StormMaterial, past: Sequence[PastStorm]) -> Iterator[Draft]:
    kinds = dict.fromkeys(kind for storm in past for kind in _symptoms(storm))
    for kind in kinds:
        lines = [storm.first_of_kind[kind] for storm in past if kind in storm.first_of_kind]
        text = f"In how many storms was alert {kind} raised?"
        yield material.ask(
            "MR", "storms_with", text, count_golds(len(lines), "storm"), lines, form=IN_WORDS
        )


def _symptoms(storm: PastStorm) -> list[str]:
    return [kind for kind in storm.first_of_kind if kind not in ROOT_KINDS]
