"""Functions that the measurements share: options, endpoints, commands and LoCoMo's file."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

import aiohttp

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from doubles.endpoint import ScriptedEndpoint

SCRIPTED_ENDPOINT = str(Path(__file__).parents[1] / "tests" / "scripted_endpoint.py")
Body = Mapping[str, Any]
Reply = Callable[[Body], str | Mapping[str, Any]]


def parser_of(doc: str | None, **defaults: float | str) -> argparse.ArgumentParser:
    """A parser with one option per default: `latency=0.2` adds `--latency`, which takes a float."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default)

    return parser


@contextmanager
def serve(latency_s: float, script: str | None = None) -> Iterator[str]:
    """Runs an endpoint in a separate process, where each call takes `latency_s`; yields its URL.

    `script` calls `serve_replies` if it is started with `--serve`; without it, the scripted
    endpoint of the tests is started.
    """
    words = [script, "--serve"] if script else [SCRIPTED_ENDPOINT]
    command = [sys.executable, *words, "--latency", str(latency_s)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as endpoint:
        assert endpoint.stdout is not None and endpoint.stdin is not None
        try:
            yield endpoint.stdout.readline().strip()
        finally:
            endpoint.stdin.close()


def serve_replies(reply: Reply, latency_s: float) -> None:
    """Prints the endpoint's URL, and serves these replies until standard input ends."""
    with ScriptedEndpoint(reply, latency_s=latency_s) as endpoint:
        print(endpoint.base_url, flush=True)
        sys.stdin.read()


def stats_of(url: str) -> dict[str, Any]:
    """An endpoint's `requests`, `peak` (most at once) and `seconds` (first to last request)."""
    stats: dict[str, Any] = json.load(urlopen(f"{url}/stats"))
    return stats


async def send_requests(url: str, bodies: Iterable[Body], slots: int) -> None:
    """Sends chat requests in a bare aiohttp loop, at most `slots` at once."""
    waiting = iter(bodies)

    async def work(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(f"{url}/chat/completions", json=body) as reply:
                await reply.json()

    connector = aiohttp.TCPConnector(limit=slots)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(slots)))


@dataclass(frozen=True)
class CommandCost:
    """Time and memory of a command and its child processes."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    """Of the largest of its processes."""
    stderr: str


def run_memeval(words: Sequence[str], home: str) -> CommandCost:
    """Runs `python -m memeval` with these words; ends the script if it fails."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as stderr:
        process = start_memeval(words, home, stderr)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - started
        stderr.seek(0)
        messages = stderr.read()

    if process.returncode:
        raise SystemExit(f"exit status {process.returncode}: {' '.join(words)}\n{messages}")

    return CommandCost(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
        stderr=messages,
    )


def start_memeval(words: Sequence[str], home: str, stderr: IO[Any]) -> subprocess.Popen[bytes]:
    """Starts `python -m memeval` with these words and this `MEMEVAL_HOME`."""
    return subprocess.Popen(
        [sys.executable, "-m", "memeval", *words],
        env={**os.environ, "MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


def ratio_lines(
    stats: Mapping[str, Any], latency_s: float, slots: int, wall_s: float, least_s: float = 0.0
) -> Iterator[str]:
    """The ideal time of a run's calls, `least_s` or more, and its times as multiples of that."""
    calls = stats["requests"]
    ideal_s = max(calls * latency_s / slots, least_s)
    yield (
        f"{calls} calls of {latency_s * 1e3:.0f} ms over {slots} connections "
        f"(peak {stats['peak']}): ideal {ideal_s:.2f} s"
    )
    for label, value in (("first call to last reply", stats["seconds"]), ("whole process", wall_s)):
        yield f"{label:26}  {value:6.2f} s  {value / ideal_s:5.2f} x ideal"


def locomo_sessions(talk: Mapping[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Date and turns of each session of a conversation in LoCoMo's file, in order."""
    names = filter(re.compile(r"session_\d+").fullmatch, talk)
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        yield talk[f"{name}_date_time"], talk[name]


def locomo_evidence(question: Mapping[str, Any]) -> Iterator[str]:
    """Turn ids of a question's evidence in LoCoMo's file, with misspelt ids corrected."""
    for text in question["evidence"]:
        for session, turn in re.findall(r"D:?(\d+):(\d+)", text):
            yield f"D{int(session)}:{int(turn)}"
