"""Questions about an alert storm, by template.

Gold and evidence are computed from the alerts and their root causes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import TypeVar

from memeval.datasets.alert_storm.generate import LINK_KINDS, ROOT_KINDS, Alert, Storm
from memeval.datasets.alert_storm.text import Shown, clock
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.chance import draw, pick
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, counted, day

K = TypeVar("K", bound=Hashable)

OFFERED = 20
"""Questions that one template makes at most, before they are chosen from."""

MOST_EVIDENCE = 1_000
"""Turns that a question names as evidence at most; a question that rests on more of them names
none.
"""


@dataclass(frozen=True)
class Seen:
    """What a case's questions are made from."""

    rng: Random
    storm: Storm
    shown: Sequence[Shown]
    """The alerts in order of time."""

    @cached_property
    def devices(self) -> Mapping[str, list[Shown]]:
        """Alerts by device."""
        return _grouped((line.alert.device, line) for line in self.shown)

    @cached_property
    def identities(self) -> Mapping[tuple[str, str, str], list[Shown]]:
        """Lines by alert: the first and its duplicates."""
        return _grouped((line.alert.identity, line) for line in self.shown)

    @cached_property
    def kinds(self) -> Mapping[str, list[Shown]]:
        """Alerts by kind."""
        return _grouped((line.alert.kind, line) for line in self.shown)

    @cached_property
    def times(self) -> Counter[str]:
        """Alerts by the time as it is shown: lines of a log may share it."""
        return Counter(_moment(line.alert) for line in self.shown)

    @property
    def now(self) -> datetime:
        """When everything is asked: as the minute after the last alert begins."""
        return self.shown[-1].alert.time.replace(second=0, microsecond=0) + timedelta(minutes=1)

    def some(self, items: Iterable[K]) -> list[K]:
        return draw(self.rng, items, OFFERED)

    def ask(
        self,
        ability: str,
        task: str,
        text: str,
        gold: tuple[str, ...],
        evidence: Sequence[Shown] = (),
        *,
        form: str = "",
    ) -> Draft:
        ids = tuple(dict.fromkeys(one.turn_id for one in evidence))
        return Draft(
            ability=ability,
            task=task,
            text=text,
            gold=gold,
            evidence=ids if len(ids) <= MOST_EVIDENCE else (),
            asked_at=self.now,
            instruction=form,
        )


def _differ(lines: Sequence[Shown], field: str) -> bool:
    """Whether the alerts of some lines differ in a field."""
    return len({getattr(line.alert, field) for line in lines}) > 1


def drafts(seen: Seen) -> Iterator[Draft]:
    """Every template's questions."""
    for template in TEMPLATES:
        yield from template(seen)


def device_at(seen: Seen) -> Iterator[Draft]:
    for one in _lone(seen):
        yield seen.ask(
            "IE",
            "device",
            f"Which device had an alert at {_moment(one.alert)}?",
            (one.alert.device,),
            [one],
        )


def kind_at(seen: Seen) -> Iterator[Draft]:
    for one in _lone(seen):
        text = f"Which alert did device {one.alert.device} have at {_moment(one.alert)}?"
        yield seen.ask("IE", "kind", text, (one.alert.kind,), [one])


def distinct_alerts(seen: Seen) -> Iterator[Draft]:
    text, form = (
        "How many distinct alerts were there in all?",
        f"Lines of {_sameness(seen)} count once. {IN_WORDS}",
    )
    yield seen.ask(
        "MR",
        "distinct",
        text,
        counted(len(seen.identities), "alert"),
        [lines[0] for lines in seen.identities.values()],
        form=form,
    )
    firsts = {
        device: own for device, lines in seen.devices.items() if len(own := _firsts(lines)) > 1
    }
    for device in seen.some(firsts):
        own = firsts[device]
        text = f"How many distinct alerts did device {device} have?"
        yield seen.ask("MR", "distinct", text, counted(len(own), "alert"), own, form=form)


def lines_of(seen: Seen) -> Iterator[Draft]:
    for device in seen.some(device for device, own in seen.devices.items() if len(own) > 1):
        own = seen.devices[device]
        text = f"How many alerts did device {device} have, duplicates included?"
        yield seen.ask("MR", "lines", text, counted(len(own), "alert"), own, form=IN_WORDS)


def root_causes(seen: Seen) -> Iterator[Draft]:
    causes = _causes(seen)
    if len(causes) == 1:
        yield seen.ask(
            "MR",
            "root_causes",
            "Which device is the root cause of the storm?",
            (causes[0].alert.device,),
            causes,
        )
    elif causes:
        names = ", ".join(one.alert.device for one in causes)
        yield seen.ask(
            "MR",
            "root_causes",
            "Which devices are the root causes of the storm?",
            (names,),
            causes,
            form=ALL_OF_THEM,
        )


def root_of(seen: Seen) -> Iterator[Draft]:
    """Behind a device's symptoms; the evidence is one alert of each device on the way."""
    first = {
        one.alert.device: one
        for one in reversed(seen.shown)
        if one.alert.via or one.alert.kind in ROOT_KINDS
    }
    for device in seen.some(device for device, root in seen.storm.roots.items() if device != root):
        way = [first[device]]
        while way[-1].alert.via:
            way.append(first[way[-1].alert.via])

        text = f"Which device is the root cause of the trouble that reached device {device}?"
        yield seen.ask("MR", "root_of", text, (seen.storm.roots[device],), way)


def flap_count(seen: Seen) -> Iterator[Draft]:
    for device, own in _links(seen):
        downs = [one for one in own if one.alert.kind == "link_down"]
        if len(downs) > 1:
            text = f"How many times did device {device} have alert link_down?"
            yield seen.ask("MR", "flaps", text, counted(len(downs), "time"), downs, form=IN_WORDS)


def first_alert(seen: Seen) -> Iterator[Draft]:
    if len(seen.shown) > 1 and seen.times[_moment(seen.shown[0].alert)] == 1:
        yield seen.ask(
            "TR",
            "first",
            "Which device had the very first alert?",
            (seen.shown[0].alert.device,),
            seen.shown[:1],
        )

    causes = _causes(seen)
    if len(causes) > 1:
        yield seen.ask(
            "TR",
            "first",
            "Which device was the first root cause?",
            (causes[0].alert.device,),
            causes,
        )


def first_kind(seen: Seen) -> Iterator[Draft]:
    for device in seen.some(device for device, own in seen.devices.items() if _differ(own, "kind")):
        own = seen.devices[device][0]
        yield seen.ask(
            "TR",
            "first_kind",
            f"Which alert did device {device} have first?",
            (own.alert.kind,),
            [own],
        )


def before(seen: Seen) -> Iterator[Draft]:
    """The line before the first one of an alert."""
    firsts = {lines[0].turn_id for lines in seen.identities.values()}
    pairs = [
        (line, next_line)
        for line, next_line in pairwise(seen.shown)
        if next_line.turn_id in firsts and line.alert.device != next_line.alert.device
    ]
    for line, next_line in draw(seen.rng, pairs, OFFERED):
        if seen.times[_moment(line.alert)] == seen.times[_moment(next_line.alert)] == 1:
            text = f"Which device had the alert right before the first {_alert(next_line.alert)}?"
            yield seen.ask("TR", "before", text, (line.alert.device,), [line, next_line])


def earlier(seen: Seen) -> Iterator[Draft]:
    names = list(seen.devices)
    for _ in range(OFFERED):
        pair = sorted(draw(seen.rng, names, 2), key=lambda name: seen.devices[name][0].alert.time)
        firsts = [seen.devices[name][0] for name in pair]
        if len({_moment(line.alert) for line in firsts}) == 2:
            first, second = pair if seen.rng.random() < 0.5 else reversed(pair)
            text = (
                f"Which of the two had its first alert earlier: device {first} or device {second}?"
            )
            yield seen.ask("TR", "order", text, (pair[0],), firsts)


def link_state(seen: Seen) -> Iterator[Draft]:
    for device, own in _links(seen):
        text = f"Which alert did the uplink of device {device} have most recently?"
        yield seen.ask("KU", "link_state", text, (own[-1].alert.kind,), own[-1:])


def latest_kind(seen: Seen) -> Iterator[Draft]:
    for device in seen.some(device for device, own in seen.devices.items() if _differ(own, "kind")):
        last = seen.devices[device][-1]
        if seen.times[_moment(last.alert)] == 1:
            yield seen.ask(
                "KU",
                "latest_kind",
                f"Which alert did device {device} have most recently?",
                (last.alert.kind,),
                [last],
            )


def latest_device(seen: Seen) -> Iterator[Draft]:
    for kind in seen.some(kind for kind, own in seen.kinds.items() if _differ(own, "device")):
        last = seen.kinds[kind][-1]
        if seen.times[_moment(last.alert)] == 1:
            text = f"Which device had alert {kind} most recently?"
            yield seen.ask("KU", "latest_device", text, (last.alert.device,), [last])


def severity(seen: Seen) -> Iterator[Draft]:
    """Where lines of one alert contradict each other."""
    contradictions = [lines for lines in seen.identities.values() if _differ(lines, "severity")]
    for lines in draw(seen.rng, contradictions, OFFERED):
        text = (
            f"The lines on {_alert(lines[0].alert)} contradict each other. What is its severity "
            "by the latest line?"
        )
        yield seen.ask("CR", "severity", text, (lines[-1].alert.severity,), lines)


def silent_device(seen: Seen) -> Iterator[Draft]:
    """Devices that are linked, and raised nothing."""
    for device in seen.some(sorted(seen.storm.silent)):
        yield seen.ask("ABS", "silent_device", f"Which alert did device {device} have first?", ())


def unknown_device(seen: Seen) -> Iterator[Draft]:
    """Names like those of the network's devices, with numbers that none of them has."""
    names = list(seen.devices)
    for number in range(OFFERED // 2):
        stem, _, tail = pick(seen.rng, names).rpartition("_")
        name = f"{stem}_{9 * 10 ** max(2, len(tail) - 1) + int(seen.rng.random() * 90) + number}"
        if name not in seen.devices:
            yield seen.ask(
                "ABS", "unknown_device", f"Which alert did device {name} have most recently?", ()
            )


def unknown_kind(seen: Seen) -> Iterator[Draft]:
    """A device and a kind that are both known, and never came together."""
    met = {(one.alert.device, one.alert.kind) for one in seen.shown}
    pairs = [
        (device, kind)
        for device in seen.devices
        for kind in seen.kinds
        if (device, kind) not in met
    ]
    for device, kind in draw(seen.rng, pairs, OFFERED):
        text = f"What was the severity of the latest alert {kind} of device {device}?"
        yield seen.ask("ABS", "unknown_kind", text, ())


TEMPLATES: Sequence[Callable[[Seen], Iterator[Draft]]] = (
    *(device_at, kind_at),
    *(distinct_alerts, lines_of, root_causes, root_of, flap_count),
    *(first_alert, first_kind, before, earlier),
    *(link_state, latest_kind, latest_device),
    severity,
    *(silent_device, unknown_device, unknown_kind),
)


def _causes(seen: Seen) -> list[Shown]:
    """The first line of each root cause, in order of time; none where nobody knows the truth."""
    roots = set(seen.storm.roots.values())
    return [
        lines[0]
        for (device, kind, _), lines in seen.identities.items()
        if device in roots and kind in ROOT_KINDS
    ]


def _links(seen: Seen) -> Iterator[tuple[str, list[Shown]]]:
    own = _grouped(
        (one.alert.device, one) for kind in LINK_KINDS for one in seen.kinds.get(kind, ())
    )
    for device in seen.some(own):
        yield device, sorted(own[device], key=lambda one: one.alert.time)


def _lone(seen: Seen) -> Iterator[Shown]:
    return (
        one for one in draw(seen.rng, seen.shown, OFFERED) if seen.times[_moment(one.alert)] == 1
    )


def _firsts(lines: Sequence[Shown]) -> list[Shown]:
    firsts: dict[tuple[str, str, str], Shown] = {}
    for one in lines:
        firsts.setdefault(one.alert.identity, one)

    return list(firsts.values())


def _moment(alert: Alert) -> str:
    return f"{day(alert.time)} {clock(alert.time)}"


def _alert(alert: Alert) -> str:
    """`alert packet_loss on port_00003 of device agg_002`."""
    return f"alert {alert.kind}{f' on {alert.port}' if alert.port else ''} of device {alert.device}"


def _sameness(seen: Seen) -> str:
    return "the same device, kind and port" if seen.storm.network else "the same device and kind"


def _grouped(pairs: Iterable[tuple[K, Shown]]) -> dict[K, list[Shown]]:
    groups: dict[K, list[Shown]] = {}
    for key, one in pairs:
        groups.setdefault(key, []).append(one)

    return groups
