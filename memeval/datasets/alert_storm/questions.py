"""Questions about an alert storm, by template.

Gold and evidence are computed from the alerts and their root causes.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

from memeval.datasets.alert_storm.generate import ROOT_KINDS
from memeval.datasets.alert_storm.material import (
    MAX_PER_TEMPLATE,
    StormMaterial,
    causes_of,
    first_lines,
    lines_alone_in_time,
    link_lines,
    moment,
    name_alert,
)
from memeval.datasets.alert_storm.text import ShownAlert
from memeval.datasets.chance import draw, pick
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, count_golds


def device_at(material: StormMaterial) -> Iterator[Draft]:
    for line in lines_alone_in_time(material):
        text = f"Which device had an alert at {moment(line)}?"
        yield material.ask("IE", "device", text, (line.alert.device,), [line])


def kind_at(material: StormMaterial) -> Iterator[Draft]:
    for line in lines_alone_in_time(material):
        text = f"Which alert did device {line.alert.device} have at {moment(line)}?"
        yield material.ask("IE", "kind", text, (line.alert.kind,), [line])


def distinct_alerts(material: StormMaterial) -> Iterator[Draft]:
    same = "the same device and kind"
    if material.storm.network:
        same = "the same device, kind and port"

    form = f"Lines of {same} count once. {IN_WORDS}"
    text = "How many distinct alerts were there in all?"
    firsts = first_lines(material.shown)
    yield material.ask("MR", "distinct", text, count_golds(len(firsts), "alert"), firsts, form=form)

    firsts_of: dict[str, list[ShownAlert]] = {}
    for device, lines in material.devices.items():
        shown = first_lines(lines)
        if len(shown) > 1:
            firsts_of[device] = shown

    for device in material.draw_items(firsts_of):
        shown = firsts_of[device]
        text = f"How many distinct alerts did device {device} have?"
        yield material.ask(
            "MR", "distinct", text, count_golds(len(shown), "alert"), shown, form=form
        )


def lines_of(material: StormMaterial) -> Iterator[Draft]:
    several = [device for device, device_lines in material.devices.items() if len(device_lines) > 1]
    for device in material.draw_items(several):
        shown = material.devices[device]
        text = f"How many alerts did device {device} have, duplicates included?"
        yield material.ask(
            "MR", "lines", text, count_golds(len(shown), "alert"), shown, form=IN_WORDS
        )


def root_causes(material: StormMaterial) -> Iterator[Draft]:
    causes = causes_of(material)
    names = ", ".join(line.alert.device for line in causes)
    if len(causes) == 1:
        text = "Which device is the root cause of the storm?"
        yield material.ask("MR", "root_causes", text, (names,), causes)
    elif causes:
        text = "Which devices are the root causes of the storm?"
        yield material.ask("MR", "root_causes", text, (names,), causes, form=ALL_OF_THEM)


def root_of(material: StormMaterial) -> Iterator[Draft]:
    """Asks for the root cause of a device's symptoms; evidence: an alert per device on the way."""
    first: dict[str, ShownAlert] = {}
    for line in material.shown:
        if line.alert.via or line.alert.kind in ROOT_KINDS:
            first.setdefault(line.alert.device, line)

    roots = material.storm.roots
    for device in material.draw_items(device for device in roots if device != roots[device]):
        way = [first[device]]
        while way[-1].alert.via:
            way.append(first[way[-1].alert.via])

        text = f"Which device is the root cause of the trouble that reached device {device}?"
        yield material.ask("MR", "root_of", text, (roots[device],), way)


def flap_count(material: StormMaterial) -> Iterator[Draft]:
    for device, changes in link_lines(material):
        downs = [line for line in changes if line.alert.kind == "link_down"]
        if len(downs) > 1:
            text = f"How many times did device {device} have alert link_down?"
            yield material.ask(
                "MR", "flaps", text, count_golds(len(downs), "time"), downs, form=IN_WORDS
            )


def first_alert(material: StormMaterial) -> Iterator[Draft]:
    first = material.shown[0]
    if len(material.shown) > 1 and material.is_alone(first):
        text = "Which device had the very first alert?"
        yield material.ask("TR", "first", text, (first.alert.device,), [first])

    causes = causes_of(material)
    if len(causes) > 1:
        text = "Which device was the first root cause?"
        yield material.ask("TR", "first", text, (causes[0].alert.device,), causes)


def first_kind(material: StormMaterial) -> Iterator[Draft]:
    for device, lines in material.draw_differing(material.devices, "kind"):
        text = f"Which alert did device {device} have first?"
        yield material.ask("TR", "first_kind", text, (lines[0].alert.kind,), lines[:1])


def before(material: StormMaterial) -> Iterator[Draft]:
    """Asks for the device of the line before the first line of an alert."""
    firsts = {line.turn_id for line in first_lines(material.shown)}
    pairs: list[tuple[ShownAlert, ShownAlert]] = []
    for line, next_line in pairwise(material.shown):
        is_first = next_line.turn_id in firsts
        if is_first and line.alert.device != next_line.alert.device:
            pairs.append((line, next_line))

    for line, next_line in draw(material.rng, pairs, MAX_PER_TEMPLATE):
        # Lines of a log may share a millisecond, and then their order is unknown.
        if material.is_alone(line) and material.is_alone(next_line):
            alert = name_alert(next_line.alert)
            text = f"Which device had the alert right before the first {alert}?"
            yield material.ask("TR", "before", text, (line.alert.device,), [line, next_line])


def earlier(material: StormMaterial) -> Iterator[Draft]:
    names = list(material.devices)
    for _ in range(MAX_PER_TEMPLATE):
        firsts = [material.devices[name][0] for name in draw(material.rng, names, 2)]
        firsts.sort(key=lambda line: line.alert.time)
        if moment(firsts[0]) == moment(firsts[-1]):
            continue

        gold = first = firsts[0].alert.device
        second = firsts[1].alert.device
        if material.rng.random() >= 0.5:
            first, second = second, first

        text = f"Which of the two had its first alert earlier: device {first} or device {second}?"
        yield material.ask("TR", "order", text, (gold,), firsts)


def link_state(material: StormMaterial) -> Iterator[Draft]:
    for device, changes in link_lines(material):
        text = f"Which alert did the uplink of device {device} have most recently?"
        yield material.ask("KU", "link_state", text, (changes[-1].alert.kind,), changes[-1:])


def latest_kind(material: StormMaterial) -> Iterator[Draft]:
    for device, lines in material.draw_differing(material.devices, "kind"):
        last = lines[-1]
        if material.is_alone(last):
            text = f"Which alert did device {device} have most recently?"
            yield material.ask("KU", "latest_kind", text, (last.alert.kind,), [last])


def latest_device(material: StormMaterial) -> Iterator[Draft]:
    for kind, lines in material.draw_differing(material.kinds, "device"):
        last = lines[-1]
        if material.is_alone(last):
            text = f"Which device had alert {kind} most recently?"
            yield material.ask("KU", "latest_device", text, (last.alert.device,), [last])


def severity(material: StormMaterial) -> Iterator[Draft]:
    """Asks for the severity of alerts with contradictory lines."""
    for _, lines in material.draw_differing(material.identities, "severity"):
        text = (
            f"The lines on {name_alert(lines[0].alert)} contradict each other. What is its "
            "severity by the latest line?"
        )
        yield material.ask("CR", "severity", text, (lines[-1].alert.severity,), lines)


def silent_device(material: StormMaterial) -> Iterator[Draft]:
    """Asks about devices that are linked but raised nothing."""
    for device in material.draw_items(sorted(material.storm.silent)):
        text = f"Which alert did device {device} have first?"
        yield material.ask("ABS", "silent_device", text, ())


def unknown_device(material: StormMaterial) -> Iterator[Draft]:
    """Asks about names like those of the network's devices, with numbers that no device has."""
    names = list(material.devices)
    for number in range(MAX_PER_TEMPLATE // 2):
        stem, _, tail = pick(material.rng, names).rpartition("_")
        beyond = 9 * 10 ** max(2, len(tail) - 1)
        name = f"{stem}_{beyond + int(material.rng.random() * 90) + number}"
        if name not in material.devices:
            text = f"Which alert did device {name} have most recently?"
            yield material.ask("ABS", "unknown_device", text, ())


def unknown_kind(material: StormMaterial) -> Iterator[Draft]:
    """Asks about a known device and a known kind that never occurred together."""
    met = {(line.alert.device, line.alert.kind) for line in material.shown}
    pairs = [pair for pair in product(material.devices, material.kinds) if pair not in met]
    for device, kind in draw(material.rng, pairs, MAX_PER_TEMPLATE):
        text = f"What was the severity of the latest alert {kind} of device {device}?"
        yield material.ask("ABS", "unknown_kind", text, ())


TEMPLATES: Sequence[Callable[[StormMaterial], Iterator[Draft]]] = (
    *(device_at, kind_at),
    *(distinct_alerts, lines_of, root_causes, root_of, flap_count),
    *(first_alert, first_kind, before, earlier),
    *(link_state, latest_kind, latest_device),
    severity,
    *(silent_device, unknown_device, unknown_kind),
)
"""All templates, in the order in which they are drafted."""
OVER_STORMS: Sequence[Callable[[StormMaterial], Iterator[Draft]]] = (
    *(device_at, kind_at, earlier),
    *(link_state, latest_kind, latest_device),
    *(silent_device, unknown_device, unknown_kind),
)
"""The templates whose questions also apply to several storms."""
