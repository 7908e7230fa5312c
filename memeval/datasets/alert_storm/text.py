"""Alerts as turns in dated sessions."""

from datetime import datetime
from itertools import groupby

from msgspec import Struct

from memeval.datasets.alert_storm.generate import Alert, Storm
from memeval.datasets.netops.words import day
from memeval.records import Session, Turn

HISTORY = (
    "The alerts are those of several storms, each on a day of its own. The latest storm is that "
    "of the last day."
)
LEGEND = (
    "How to read the alerts: an alert that follows from trouble elsewhere names the neighbour "
    "that the trouble came from. "
    "The alert of a root cause names no neighbour. Alerts link_down and link_up tell of flapping "
    "links, which are no root causes. "
    "A line with the same device, kind and port as an earlier one is a duplicate; where its "
    "severity differs, the latest line holds."
)


class ShownAlert(Struct, frozen=True):
    """An alert, and the id of the turn that shows it."""

    alert: Alert
    turn_id: str


def show(storm: Storm, *legend: str) -> tuple[list[ShownAlert], tuple[Session, ...]]:
    """The alerts as turns, and the sessions: one per minute, or one per day for a log. A session
    with the legend and the links comes first if the network is known.
    """
    sessions: list[Session] = []
    shown: list[ShownAlert] = []
    if storm.network:
        texts = [LEGEND, *legend]
        for device, near in storm.network.links.items():
            texts.append(f"Device {device} is linked to {', '.join(near)}.")

        spoken = [("operator", text) for text in texts]
        start = storm.alerts[0].time.replace(second=0, microsecond=0)
        sessions.append(Session.of("s1", spoken, time=start, ids="s1t"))

    for _, alerts in groupby(
        storm.alerts, key=lambda alert: _window(alert.time, by_minute=storm.network is not None)
    ):
        name, turns = f"s{len(sessions) + 1}", []
        for number, alert in enumerate(alerts, start=1):
            turn_id = f"{name}t{number}"
            shown.append(ShownAlert(alert, turn_id))
            turns.append(Turn(turn_id, speaker="monitor", text=text(alert), time=alert.time))

        sessions.append(Session(session_id=name, started_at=turns[0].time, turns=tuple(turns)))

    return shown, tuple(sessions)


def text(alert: Alert) -> str:
    """The line that the memory sees."""
    port = f" Port: {alert.port}." if alert.port else ""
    via = f" Trouble came from {alert.via}." if alert.via else ""
    return (
        f"Device {alert.device} had alert {alert.kind}. Time: {day(alert.time)} "
        f"{clock(alert.time)}.{port} "
        f"Severity: {alert.severity}. Message: {alert.message}.{via}"
    )


def clock(time: datetime) -> str:
    """`10:00:05.123`."""
    return time.isoformat(timespec="milliseconds")[11:]


def _window(time: datetime, *, by_minute: bool) -> datetime:
    window = time.replace(second=0, microsecond=0)
    if by_minute:
        return window

    return window.replace(hour=0, minute=0)
