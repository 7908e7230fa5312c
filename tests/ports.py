"""Ports for servers whose port is an argument."""

from __future__ import annotations

import secrets
import socket

RANGE = range(12_000, 32_000)
"""Below the range of ephemeral ports: all test workers bind those continually, and one could take a
port after a test found it free.
"""


def free_port() -> int:
    """A loopback port on which nothing listens."""
    while True:
        port = secrets.choice(RANGE)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue

        return port
