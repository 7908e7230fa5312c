"""The seeded generator of alert storms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter
from random import Random
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memeval.config.schema import ANSWER, PREPARE, at
from memeval.datasets.alert_storm.topology import (
    DeviceNetwork,
    Spread,
    network,
    silent_devices,
    spread,
)
from memeval.datasets.chance import draw, pick
from memeval.datasets.settings import DatasetSettings
from memeval.errors import UserError, check_number

VERSION = 1
"""Increase it whenever the same settings generate a different storm."""
HISTORY_VERSION = 2
"""Likewise for histories."""

ROOT_KINDS: Mapping[str, str] = {
    "power_failure": "the power supply gave out",
    "linecard_failure": "a line card stopped",
    "software_crash": "the control software restarted",
    "overheating": "the temperature passed its limit",
}
SYMPTOMS: Mapping[str, tuple[str, str]] = {
    "neighbor_lost": ("major", "a neighbour fell silent"),
    "bgp_session_down": ("major", "a routing session closed"),
    "high_latency": ("minor", "replies take too long"),
    "packet_loss": ("major", "packets are missing"),
    "route_withdrawn": ("minor", "a route is gone"),
    "queue_overflow": ("warning", "an output queue is full"),
    "heartbeat_missed": ("warning", "no sign of life in time"),
    "sync_failed": ("minor", "the configuration is not in step"),
}
HISTORY_SYMPTOMS: Mapping[str, tuple[str, str]] = {
    **SYMPTOMS,
    "ospf_adjacency_down": ("major", "an adjacency of the interior routing closed"),
}
"""Kinds of symptoms in a history, of which each storm has only some."""
ROUTING = ("bgp_session_down", "ospf_adjacency_down")
"""Kinds that a history's latest storm always has: questions ask whether both occurred before."""
KINDS_PER_STORM = 4
"""Kinds of symptoms in a storm of a history, besides the lost neighbour."""
GAP_DAYS = range(33, 60)
"""Days from a storm of a history to the month of the next storm, always a different month."""
DAYS = range(13, 29)
"""Days of the month; each storm of a history has a different one. All are above 12, so two dates
share only the year or the month, and judges don't confuse them.
"""
LINK_KINDS: Mapping[str, str] = {"link_down": "the link went down", "link_up": "the link came up"}
SEVERITIES = ("critical", "major", "minor", "warning")

MAX_ALERTS = 1_000_000
MAX_STORMS = 12
"""Maximum per case. The day of a storm may be an answer, so no two may be easily confused."""
SHAPE = ("n_alerts", "n_root_causes", "duplicate_rate", "flap_rate", "topology", "n_devices")
"""Settings of a single storm."""

# For storms of 3,000 alerts or more; smaller ones last ten minutes, those over 144,000 eight hours.
RATE = 5.0
"""Alerts per second in a long storm."""
SHORTEST_MS, LONGEST_MS = 600_000, 8 * 3_600_000
REPEATED_WITHIN_MS = 30_000
UNDATED = datetime(1, 1, 1)
"""Placeholder for a storm's start while its alerts are generated; `_dated` sets the real start."""
REGRADED_SHARE = 0.3
"""Share of the duplicates whose severity is drawn again; one in four of them keeps it."""


class Alert(Struct, frozen=True, kw_only=True):
    """One line of a storm."""

    time: datetime
    """To the millisecond; unique within a generated storm."""
    device: str
    severity: str
    kind: str
    port: str
    """Port of the device that the alert is about; empty for lines of a log."""
    message: str
    via: str = ""
    """The neighbour that the trouble came from; empty for root causes, flapping links, and lines of
    a log.
    """

    @property
    def identity(self) -> tuple[str, str, str]:
        """Identity of an alert: lines with equal values are the same alert."""
        return self.device, self.kind, self.port


class Storm(Struct, frozen=True):
    """Alerts and their true causes."""

    alerts: tuple[Alert, ...]
    """In order of time."""
    roots: Mapping[str, str]
    """The root cause by device, for devices that raised a symptom or are root causes; empty if
    unknown.
    """
    network: DeviceNetwork | None = None
    silent: frozenset[str] = frozenset()
    """Devices of the network that raise no alert."""


@dataclass(frozen=True)
class AlertStormSettings(DatasetSettings):
    source: Literal["generated", "log"] = at(PREPARE, "generated")
    """A generated network, or the alert lines of a log, whose root causes are unknown."""
    n_alerts: int = at(PREPARE, 1_000, least=10, most=MAX_ALERTS)
    """Lines of each storm, 10 to 1,000,000."""
    n_root_causes: int = at(PREPARE, 3, least=1)
    duplicate_rate: float = at(PREPARE, 0.2)
    """Share of the lines that repeat an earlier alert."""
    flap_rate: float = at(PREPARE, 0.1)
    """Share of the lines that report flapping links."""
    topology: Literal["tree", "spine_leaf", "random"] = at(PREPARE, "tree")
    n_devices: int = at(PREPARE, 40, least=5, most=9_999)
    n_cases: int = at(PREPARE, 3, least=1, most=10_000)
    """Number of cases: storms, or histories of storms."""
    storms_per_case: int = at(PREPARE, 1, least=1, most=MAX_STORMS)
    """Storms of one network in each case, 1 to 12; with two or more, questions ask what happened in
    earlier storms.
    """
    questions_per_case: int = at(ANSWER, 60, least=1)
    """Maximum number of questions per case, chosen evenly over abilities and templates."""
    seed: int = at(PREPARE, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source == "log":
            self._check_log()
        else:
            self._check_shape()

    @property
    def duplicates(self) -> int:
        """Lines that repeat an alert."""
        return int(self.n_alerts * self.duplicate_rate)

    @property
    def flaps(self) -> int:
        """Lines of flapping links."""
        return int(self.n_alerts * self.flap_rate)

    @property
    def firsts(self) -> int:
        """Lines that report a root cause or a symptom for the first time."""
        return self.n_alerts - self.duplicates - self.flaps

    def _check_log(self) -> None:
        generating = {*SHAPE, "n_cases", "storms_per_case"}
        for field in fields(self):
            if field.name in generating and getattr(self, field.name) != field.default:
                raise UserError(
                    f"dataset.{field.name} needs dataset.source=generated: a log has no such "
                    "setting"
                )

    def _check_shape(self) -> None:
        if self.path is not None:
            raise UserError(
                "dataset.path needs dataset.source=log: a generated storm reads no file"
            )

        most = self.n_devices // 3
        check_number("dataset.n_root_causes", self.n_root_causes, {"least": 1, "most": most})
        if self.n_alerts * self.storms_per_case > MAX_ALERTS:
            raise UserError(
                f"dataset.n_alerts={self.n_alerts} in each of "
                f"dataset.storms_per_case={self.storms_per_case} storms are more than "
                f"{MAX_ALERTS} alerts in a case"
            )

        rates = (self.duplicate_rate, self.flap_rate)
        if not (min(rates) >= 0 and sum(rates) < 1):
            raise UserError(
                "dataset.duplicate_rate and dataset.flap_rate must be 0 or more each, and less "
                "than 1 together"
            )

        if self.firsts <= self.n_root_causes:
            raise UserError(
                f"dataset.n_alerts={self.n_alerts} leaves {self.firsts} lines after "
                f"duplicates and flapping links, too few for {self.n_root_causes} root causes "
                "and a symptom"
            )


def generate(settings: AlertStormSettings, rng: Random) -> Storm:
    """A storm: root causes, their consequences along the links, duplicates, and unrelated flapping
    links.
    """
    net = network(settings.topology, settings.n_devices, rng)
    return _dated(_storm(net, settings, SYMPTOMS, rng), _start(rng))


def generate_history(settings: AlertStormSettings, rng: Random) -> tuple[Storm, ...]:
    """Storms of one network, weeks apart; each has only some kinds of symptoms."""
    net = network(settings.topology, settings.n_devices, rng)
    always, *others = HISTORY_SYMPTOMS
    storms: list[Storm] = []
    start = _start(rng)
    count = settings.storms_per_case
    days = draw(rng, DAYS, count)
    for number in range(count):
        start = start.replace(day=days[number])
        drawn = draw(rng, others)
        # Kinds that the latest storm must have come first; a stable sort keeps the others in order.
        if number == count - 1:
            drawn.sort(key=lambda kind: kind not in ROUTING)

        symptoms = {kind: HISTORY_SYMPTOMS[kind] for kind in (always, *drawn[:KINDS_PER_STORM])}
        storms.append(_dated(_storm(net, settings, symptoms, rng), start))

        start = _start_of_day(start + timedelta(days=pick(rng, GAP_DAYS)), rng)

    return tuple(storms)


def _start(rng: Random) -> datetime:
    return _start_of_day(datetime(2024, 1, 1) + timedelta(days=int(rng.random() * 365)), rng)


def _start_of_day(day: datetime, rng: Random) -> datetime:
    """A second in the first half of a day."""
    midnight = day.replace(hour=0, minute=0, second=0)
    return midnight + timedelta(seconds=int(rng.random() * 12 * 3600))


def _storm(
    net: DeviceNetwork,
    settings: AlertStormSettings,
    symptoms: Mapping[str, tuple[str, str]],
    rng: Random,
) -> Storm:
    """A storm that starts at `UNDATED`, with its alerts in the order in which they are raised."""
    length = int(min(max(SHORTEST_MS, settings.n_alerts / RATE * 1000), LONGEST_MS))
    roots = draw(rng, net.devices, settings.n_root_causes)
    trouble = spread(net=net, roots=roots, window_ms=length, rng=rng)
    silent = silent_devices(trouble, rng, settings.n_devices // 10)
    firsts = list(_causes(trouble, rng))
    firsts += _symptoms(
        trouble=trouble,
        silent=silent,
        count=settings.firsts - settings.n_root_causes,
        symptoms=symptoms,
        length=length,
        rng=rng,
    )

    # Sorted, because the order of a set of strings, and so the draws, differ between processes.
    devices = sorted(set(net.devices) - silent)
    lines = [
        *firsts,
        *_repeats(firsts, settings.duplicates, rng),
        *_flaps(devices=devices, count=settings.flaps, length=length, rng=rng),
    ]
    raised = {line.device for line in lines if line.kind not in LINK_KINDS}
    return Storm(
        alerts=tuple(lines),
        roots={device: trouble.root(device) for device in trouble.arrivals if device in raised},
        network=net,
        silent=silent,
    )


def _causes(trouble: Spread, rng: Random) -> Iterator[Alert]:
    for device, arrival in trouble.arrivals.items():
        if device not in trouble.upstream:
            kind = pick(rng, list(ROOT_KINDS))
            yield Alert(
                time=_after(arrival),
                device=device,
                severity="critical",
                kind=kind,
                port="chassis",
                message=ROOT_KINDS[kind],
            )


def _symptoms(
    trouble: Spread,
    *,
    silent: frozenset[str],
    count: int,
    symptoms: Mapping[str, tuple[str, str]],
    length: int,
    rng: Random,
) -> Iterator[Alert]:
    """`count` symptoms, dealt to the reached devices in turn: first a lost neighbour as the trouble
    arrives, then the other kinds at later times, then all kinds again on the next port.
    """
    reached = [
        (device, arrival)
        for device, arrival in trouble.arrivals.items()
        if device in trouble.upstream and device not in silent
    ]
    kinds = list(symptoms)
    for number in range(count):
        turn, index = divmod(number, len(reached))
        port, kind = divmod(turn, len(kinds))
        device, arrival = reached[index]
        name = kinds[kind]
        # The lost neighbour is seen as the trouble arrives; the other symptoms follow later.
        raised = arrival
        if turn > 0:
            raised += 1 + int(rng.random() * (length - arrival))

        severity, message = symptoms[name]
        yield Alert(
            time=_after(raised),
            device=device,
            severity=severity,
            kind=name,
            port=f"port_{port + 1:05d}",
            message=message,
            via=trouble.upstream[device],
        )


def _repeats(firsts: Sequence[Alert], count: int, rng: Random) -> Iterator[Alert]:
    """Duplicates, each up to 30 seconds after its original; some have another severity."""
    for _ in range(count):
        original = pick(rng, firsts)
        severity = pick(rng, SEVERITIES) if rng.random() < REGRADED_SHARE else original.severity
        later = timedelta(milliseconds=1 + int(rng.random() * REPEATED_WITHIN_MS))
        yield replace(original, time=original.time + later, severity=severity)


def _flaps(devices: Sequence[str], count: int, length: int, rng: Random) -> Iterator[Alert]:
    """Links that go down and up in turn: one per device, on at most half as many devices as there
    are lines, and at most a fifth of all devices.
    """
    flapping = draw(rng, devices, max(1, min(len(devices) // 5, count // 2)))
    # Each link gets one line first; the remaining lines are dealt at random.
    shares = [0] * len(flapping)
    for number in range(count):
        index = number
        if number >= len(shares):
            index = int(rng.random() * len(shares))

        shares[index] += 1

    for device, share in zip(flapping, shares, strict=True):
        times = sorted(int(rng.random() * length) for _ in range(share))
        for number, raised in enumerate(times):
            kind = ("link_down", "link_up")[number % 2]
            yield Alert(
                time=_after(raised),
                device=device,
                severity="minor",
                kind=kind,
                port="uplink",
                message=LINK_KINDS[kind],
            )


def _after(milliseconds: int) -> datetime:
    """A time relative to the placeholder `UNDATED`."""
    return UNDATED + timedelta(milliseconds=milliseconds)


def _dated(storm: Storm, start: datetime) -> Storm:
    """The storm moved to a start: alerts in order of time, no two in the same millisecond. Alerts
    with equal times keep the order in which they were generated.
    """
    step = timedelta(milliseconds=1)
    last = start - step
    alerts = []
    for line in sorted(storm.alerts, key=attrgetter("time")):
        last = max(start + (line.time - UNDATED), last + step)
        alerts.append(replace(line, time=last))

    return replace(storm, alerts=tuple(alerts))
