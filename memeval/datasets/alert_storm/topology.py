"""Networks of devices, and the spread of trouble in them from root causes."""

import heapq
from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal

from msgspec import Struct

from memeval.datasets.chance import draw

Topology = Literal["tree", "spine_leaf", "random"]

BRANCHES = 4
"""Maximum number of devices directly below a device of a tree."""

DELAY_MS = (2_000, 20_000)
"""Minimum and maximum time that trouble takes along a link."""


class DeviceNetwork(Struct, frozen=True):
    devices: tuple[str, ...]
    """Names of the form `<role>_<number>`, with numbers of equal width, so that no name is a prefix
    of another.
    """
    links: Mapping[str, tuple[str, ...]]
    """Neighbours of each device, both ways."""


class Spread(Struct, frozen=True):
    """The devices that trouble reached: a forest whose roots are the root causes."""

    arrivals: Mapping[str, int]
    """Arrival times by device, in milliseconds after the storm's start, in order of arrival."""
    upstream: Mapping[str, str]
    """The neighbour that the trouble came from; root causes have no entry."""

    def root(self, device: str) -> str:
        """The root cause of a device's trouble."""
        while device in self.upstream:
            device = self.upstream[device]

        return device


def network(kind: Topology, count: int, rng: Random) -> DeviceNetwork:
    """`count` devices of a topology; always connected.

    `tree`: each device has up to four below it. `spine_leaf`: each leaf is linked to all spines,
    each server to one leaf. `random`: each device is linked to an earlier one, and up to `count //
    4` random links are added.
    """
    if kind == "spine_leaf":
        roles, pairs = _spine_leaf(count)
    elif kind == "tree":
        roles = ["core", *["agg"] * BRANCHES, *["access"] * count][:count]
        pairs = [((node - 1) // BRANCHES, node) for node in range(1, count)]
    else:
        roles = ["router"] * count
        pairs = [(int(rng.random() * node), node) for node in range(1, count)]
        pairs += [(int(rng.random() * count), int(rng.random() * count)) for _ in range(count // 4)]

    width = max(3, len(str(count)))
    links: dict[str, dict[str, None]] = {}
    for number, role in enumerate(roles, start=1):
        links[f"{role}_{number:0{width}d}"] = {}

    names = tuple(links)
    for one, other in pairs:
        if one != other:
            links[names[one]][names[other]] = links[names[other]][names[one]] = None

    return DeviceNetwork(names, {name: tuple(near) for name, near in links.items()})


def spread(net: DeviceNetwork, roots: Sequence[str], window_ms: int, rng: Random) -> Spread:
    """Spreads trouble from root causes that start within the first 40 % of `window_ms`; a device
    follows the root cause that reaches it first.
    """
    starts: dict[str, int] = {}
    waiting: list[tuple[int, str, str]] = []
    for root in roots:
        starts[root] = int(rng.random() * window_ms * 0.4)
        heapq.heappush(waiting, (starts[root], root, ""))

    arrivals: dict[str, int] = {}
    upstream: dict[str, str] = {}
    low, high = DELAY_MS
    while waiting:
        time, device, source = heapq.heappop(waiting)
        if device in arrivals or (device in starts and source):
            continue

        arrivals[device] = time
        if source:
            upstream[device] = source

        for near in net.links[device]:
            if near not in arrivals:
                delay = low + int(rng.random() * (high - low))
                heapq.heappush(waiting, (time + delay, near, device))

    return Spread(arrivals, upstream)


def silent_devices(trouble: Spread, rng: Random, count: int) -> frozenset[str]:
    """Devices at the ends of the forest that raise no alert: only their links are known."""
    between = set(trouble.upstream.values())
    ends = [device for device in trouble.upstream if device not in between]
    return frozenset(draw(rng, ends, min(count, len(ends) // 2)))


def _spine_leaf(count: int) -> tuple[list[str], list[tuple[int, int]]]:
    spines, leaves = max(2, count // 10), max(2, count * 3 // 10)
    roles = ["spine"] * spines + ["leaf"] * leaves + ["server"] * (count - spines - leaves)
    fabric = [(spine, leaf) for leaf in range(spines, spines + leaves) for spine in range(spines)]
    servers = [(spines + node % leaves, node) for node in range(spines + leaves, count)]
    return roles, fabric + servers
