"""What the measurements share: the scripted endpoint, and what a command took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

TESTS = Path(__file__).parents[1] / "tests"
"""Holds the scripted endpoint."""


@contextmanager
def serve(latency_s: float) -> Iterator[str]:
    """The scripted endpoint in a process of its own, where each call takes `latency_s`; yields its
    address.
    """
    words = [str(TESTS / "scripted_endpoint.py"), "--latency", str(latency_s)]
    with subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as endpoint:
        assert endpoint.stdout is not None and endpoint.stdin is not None
        try:
            yield endpoint.stdout.readline().strip()
        finally:
            endpoint.stdin.close()


def stats_of(address: str) -> dict[str, Any]:
    """What the endpoint saw: requests, the most at once, seconds from the first to the last."""
    stats: dict[str, Any] = json.load(urlopen(f"{address}/stats"))
    return stats


@dataclass(frozen=True)
class Timed:
    """What a command and its children took."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    """Of the largest of its processes."""
    said: str
    """On standard error."""


def run_timed(words: Sequence[str], home: str) -> Timed:
    """Runs `python -m memeval` with these words in a home; ends the script where it fails."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = start(words, home, said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - began
        said.seek(0)
        text = said.read()

    if process.returncode:
        raise SystemExit(f"exit status {process.returncode}: {' '.join(words)}\n{text}")

    return Timed(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
        said=text,
    )


def start(words: Sequence[str], home: str, said: Any) -> subprocess.Popen[bytes]:
    """Starts `python -m memeval` with these words; `said` gets what it says on standard error."""
    return subprocess.Popen(
        [sys.executable, "-m", "memeval", *words],
        env={**os.environ, "MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"},
        stdout=subprocess.DEVNULL,
        stderr=said,
    )
