"""Several storms of one network in one case, and an operator's questions in a later one: has this
been seen before, and when?
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, islice

from memeval.datasets.alert_storm.generate import LINK_KINDS, ROOT_KINDS, Alert, Storm
from memeval.datasets.alert_storm.material import StormMaterial
from memeval.datasets.alert_storm.text import ShownAlert
from memeval.datasets.grouping import K, group
from memeval.datasets.netops.base import Draft
from memeval.datasets.netops.words import ALL_OF_THEM, IN_WORDS, count_golds, day

WHEN = "If it was several times, give the day of the latest one."


class PastStorm:
    """The first lines of one storm of a history, without flapping links."""

    def __init__(self, shown: Sequence[ShownAlert]) -> None:
        self.day = day(shown[0].alert.time)
        self.on_device: dict[tuple[str, str], ShownAlert] = {}
        """By device and kind."""
        self.causes: dict[str, ShownAlert] = {}
        """The root causes, by device."""
        self.symptoms: dict[str, ShownAlert] = {}
        """The others, by kind."""
        for line in shown:
            device, kind = line.alert.device, line.alert.kind
            if kind in LINK_KINDS:
                continue

            self.on_device.setdefault((device, kind), line)
            if kind in ROOT_KINDS:
                self.causes.setdefault(device, line)
            else:
                self.symptoms.setdefault(kind, line)


def join_storms(storms: Sequence[Storm]) -> Storm:
    """A history's alerts as one storm, without root causes: questions about those name a storm."""
    alerts: list[Alert] = []
    for storm in storms:
        alerts += storm.alerts

    network = storms[0].network
    assert network is not None
    silent = frozenset(network.devices) - {alert.device for alert in alerts}
    return Storm(alerts=tuple(alerts), roots={}, network=network, silent=silent)


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
    past = [storm.symptoms for storm in earlier]
    for first, second in material.draw_items(combinations(latest.symptoms, 2)):
        text = (
            f"When were alerts {first} and {second} raised together before, in one storm earlier "
            "than the latest?"
        )
        yield _when(material, "together", text, past, [first, second])


def _kinds_on_device(
    material: StormMaterial, earlier: Sequence[PastStorm], latest: PastStorm
) -> Iterator[Draft]:
    """Asks the same about one device that has both kinds in the latest storm."""
    pairs = [
        (device, first, second)
        for device, kinds in group(latest.on_device).items()
        for first, second in combinations(kinds, 2)
    ]
    past = [storm.on_device for storm in earlier]
    for device, first, second in material.draw_items(pairs):
        text = (
            f"When did device {device} have alerts {first} and {second} together before, in one "
            "storm earlier than the latest?"
        )
        keys = [(device, first), (device, second)]
        yield _when(material, "together_on_device", text, past, keys)


def _root_cause_before(
    material: StormMaterial, earlier: Sequence[PastStorm], latest: PastStorm
) -> Iterator[Draft]:
    """Asks when a device that is a root cause of any storm was one before the latest storm."""
    past = [storm.causes for storm in earlier]
    for device in material.draw_items(dict.fromkeys(chain(*past, latest.causes))):
        text = f"When was device {device} a root cause before, in a storm earlier than the latest?"
        yield _when(material, "root_cause_before", text, past, [device])


def _when(
    material: StormMaterial,
    task: str,
    text: str,
    past: Sequence[Mapping[K, ShownAlert]],
    keys: Sequence[K],
) -> Draft:
    """Asks for the day of the latest storm that has lines of all keys; unanswerable if none has.

    `past` holds the lines of each storm by key. All lines of a storm have the same day.
    """
    # Not "has it been …?": a judge that searches for the gold "no" finds it in many words.
    for lines in reversed(past):
        if lines.keys() >= set(keys):
            evidence = [lines[key] for key in keys]
            time = evidence[0].alert.time
            dates = day(time), f"{time.day} {time:%B %Y}"
            return material.ask("TR", task, text, dates, evidence, form=WHEN)

    return material.ask("ABS", f"never_{task}", text, (), form=WHEN)


def _root_causes_of(material: StormMaterial, past: Sequence[PastStorm]) -> Iterator[Draft]:
    for storm in past:
        text = f"Which devices were the root causes of the storm of {storm.day}?"
        names, lines = ", ".join(storm.causes), list(storm.causes.values())
        yield material.ask("MR", "root_causes_of", text, (names,), lines, form=ALL_OF_THEM)


def _storms_with(material: StormMaterial, past: Sequence[PastStorm]) -> Iterator[Draft]:
    for kind in dict.fromkeys(chain.from_iterable(storm.symptoms for storm in past)):
        lines = [storm.symptoms[kind] for storm in past if kind in storm.symptoms]
        text = f"In how many storms was alert {kind} raised?"
        yield material.ask(
            "MR", "storms_with", text, count_golds(len(lines), "storm"), lines, form=IN_WORDS
        )
