"""Times of a request and its reply, measured at the socket. A reply may wait for a busy event loop:
that time belongs to this machine, not to the endpoint. The kernel records when the last bytes of a
connection arrived.
"""

import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

_LAST_DATA_RECEIVED = 52
"""Offset in Linux' `struct tcp_info` of the milliseconds since the last data were received."""
_COARSE_CLOCK = 6
"""Linux' `CLOCK_MONOTONIC_COARSE`, which counts kernel ticks."""


class Exchange(Struct):
    """A request and its reply, in seconds of `time.perf_counter`."""

    began: float
    """When the request was handed to the client."""
    sent: float | None = None
    """When its last bytes left; None if the client's socket is not a `TimedSocket`."""
    arrived: float | None = None
    """When the last bytes of the reply arrived."""

    def seconds(self) -> float:
        """The time that the endpoint took; without a `TimedSocket`, the time until now."""
        if self.sent is None or self.arrived is None:
            return time.perf_counter() - self.began

        return max(self.arrived - self.sent, 0.0)


_current: ContextVar[Exchange | None] = ContextVar("memeval_exchange", default=None)


@contextmanager
def exchange() -> Iterator[Exchange]:
    """Times the request that is sent inside the `with` block."""
    timed = Exchange(time.perf_counter())
    token = _current.set(timed)
    try:
        yield timed
    finally:
        _current.reset(token)


class TimedSocket(socket.socket):
    """A socket that notes its traffic in the current exchange, one exchange at a time."""

    _exchange: Exchange | None = None

    def send(self, data: Any, *arguments: Any) -> int:
        self._note_sent()
        return super().send(data, *arguments)

    def sendmsg(self, *arguments: Any) -> int:
        self._note_sent()
        return super().sendmsg(*arguments)

    def recv(self, *arguments: Any) -> bytes:
        data = super().recv(*arguments)
        self._note_arrived()
        return data

    def recv_into(self, *arguments: Any) -> int:
        size = super().recv_into(*arguments)
        self._note_arrived()
        return size

    def _note_sent(self) -> None:
        # Data not sent immediately is written later by the event loop, outside any exchange.
        self._exchange = _current.get() or self._exchange
        if self._exchange is not None:
            self._exchange.sent, self._exchange.arrived = time.perf_counter(), None

    def _note_arrived(self) -> None:
        if self._exchange is not None:
            self._exchange.arrived = time.perf_counter() - waited_s(self)


def waited_s(connection: socket.socket) -> float:
    """Seconds since a connection's last bytes arrived, to a few ms; 0 outside of Linux."""
    if sys.platform != "linux":
        return 0.0

    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    except OSError:
        return 0.0

    if len(info) < _LAST_DATA_RECEIVED + 4:
        return 0.0

    (milliseconds,) = struct.unpack_from("I", info, _LAST_DATA_RECEIVED)
    # The kernel counts a tick as soon as it begins. One tick is subtracted, so that the wait is
    # never overestimated, and a call shorter than a tick still takes some time.
    return max(float(milliseconds) / 1e3 - time.clock_getres(_COARSE_CLOCK), 0.0)


def timed_socket(address: tuple[Any, ...]) -> socket.socket:
    """Creates a socket for an address, as aiohttp's `socket_factory`."""
    family, kind, protocol, *_ = address
    return TimedSocket(family, kind, protocol)
