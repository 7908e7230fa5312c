"""Ports for servers that are told where to listen."""

from __future__ import annotations

import secrets
import socket

RANGE = range(12_000, 32_000)
"""Below the ports that the system gives to whoever asks for any: all workers of the tests do so
again and again, and one of them could be given a port that was free when a test looked.
"""


def free_port() -> int:
    """A port of loopback on which nothing listens."""
    while True:
        port = secrets.choice(RANGE)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue

        return port
