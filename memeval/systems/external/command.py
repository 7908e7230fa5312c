"""A memory that is a program: JSON lines on its stdin, and a reply on its stdout for each."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.errors import ModelError, UserError
from memeval.llm.transport import encode
from memeval.shown import one_line
from memeval.systems.base import INGEST, RUNTIME
from memeval.systems.external.served import (
    AnsweringSettings,
    Reply,
    ServedMemory,
    Service,
    files_of,
    note_noise,
)

LONGEST_LINE = 32 * 2**20
"""Bytes of one reply."""
MOST_NOISE = 10_000
"""Lines that are not replies, of one process."""
LAST_WORDS = 20
"""Lines of stderr that are kept."""
STOP_S = 2.0
"""The wait between the end of a program's input and its end by force."""
EXAMPLE = "for example:  system.command='python my_memory.py'"


@dataclass(frozen=True)
class Settings(AnsweringSettings):
    """Settings of `command`."""

    command: str | None = field(default=None, metadata=INGEST)
    """The program with its arguments, in the quoting of a shell; no shell runs it."""
    restarts: int = field(default=1, metadata=RUNTIME)
    """How often a program that died or hung is started again for a case; it is then sent the case
    again.
    """

    def __post_init__(self) -> None:
        AnsweringSettings.__post_init__(self)
        if self.restarts < 0:
            raise UserError(f"system.restarts must not be negative, but is {self.restarts}")

    def words(self) -> list[str]:
        """The program and its arguments."""
        if not self.command or not self.command.strip():
            raise UserError("system=command needs a program", EXAMPLE)

        try:
            return shlex.split(self.command)
        except ValueError as error:
            raise UserError(f"system.command can't be read: {error}", EXAMPLE) from error


class CommandMemory(ServedMemory):
    """A process for each case and repeat, which ends when its input does."""

    settings_type = Settings

    @classmethod
    def files(cls, settings: Any) -> tuple[Path, ...]:
        return files_of(settings.words())

    def open_service(self) -> Service:
        return CommandService(self.settings)


class ProcessError(ModelError):
    """The process died, hung, or wrote what is not a reply: another one may do better."""


class RefusalError(ModelError):
    """The process replied with an error: another one would not do better."""


class CommandService(Service):
    """Passes the operations of one case to its process, one after the other."""

    def __init__(self, settings: Settings) -> None:
        self._words, self._settings = settings.words(), settings
        self.name = f"the program '{one_line(self._words[0], 60)}'"
        self._process: Process | None = None
        self._history: list[tuple[str, Mapping[str, Any]]] = []
        """The operations that a new process needs to know the case, in order."""
        self._restarts = settings.restarts
        self._turn = asyncio.Lock()

    async def call(self, operation: str, body: Mapping[str, Any]) -> Reply:
        async with self._turn:
            setback = None
            while True:
                try:
                    return Reply(await self._ask(operation, body), setback)
                except ProcessError as error:
                    await self._stop()
                    if self._restarts < 1:
                        raise ModelError(f"{self.name} {error}") from error

                    self._restarts -= 1
                    setback = f"it {error}"
                except RefusalError as error:
                    raise ModelError(f"{self.name} {error}") from error

    async def _ask(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation == "reset":
            # A memory that was emptied needs nothing of what came before.
            self._history.clear()

        if self._process is None:
            self._process = await Process.start(self._words)
            for earlier, earlier_body in self._history:
                await self._process.ask(earlier, earlier_body, self._settings.request_timeout_s)

        reply = await self._process.ask(operation, body, self._settings.request_timeout_s)
        # Only what has succeeded is repeated to the next process. The operation that failed is
        # sent again by `call`.
        if operation in ("reset", "ingest"):
            self._history.append((operation, body))

        return reply

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.stop()

    async def close(self) -> None:
        await self._stop()


class Process:
    """A program that was started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._count = self._noise = 0
        self._last_noise = ""
        """The last line that was not a reply, since the last request."""
        self._stderr: deque[str] = deque(maxlen=LAST_WORDS)
        self._listening = asyncio.ensure_future(self._keep_last_words())

    @classmethod
    async def start(cls, words: Sequence[str]) -> Process:
        """Starts a program. Raises `UserError` where it can't be."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                limit=LONGEST_LINE,
                # Ctrl-C in the terminal is for memeval, which then ends the program's input.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or one_line(error)
            raise UserError(
                f"system.command: '{one_line(words[0], 80)}' can't be started: {reason}", EXAMPLE
            ) from error

        return cls(process)

    async def ask(
        self, operation: str, body: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any]:
        """The reply to one operation. Raises `ProcessError` or `RefusalError`."""
        self._count += 1
        self._last_noise = ""
        request = {"id": self._count, "op": operation, **body}
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._exchange(encode(request) + b"\n")
        except TimeoutError:
            raise ProcessError(
                f"gave no reply to {operation} within {timeout_s:g} s"
                f"{self._unlike_a_reply()}{self._last_words()}"
            ) from None
        except (ConnectionError, asyncio.IncompleteReadError):
            raise await self._death(operation) from None

        error = reply.get("error")
        if error is not None:
            raise RefusalError(f"refused {operation}: {one_line(error, 300)}")

        return reply

    async def _exchange(self, request: bytes) -> Mapping[str, Any]:
        assert self._process.stdin is not None, "it was started with pipes"
        self._process.stdin.write(request)
        await self._process.stdin.drain()
        while True:
            line = await self._read()
            reply = _read_line(line)
            # Programs print to stdout, and so do the libraries that they import: such lines are
            # skipped.
            if reply is not None and reply.get("id") == self._count:
                return reply

            self._noise += 1
            self._last_noise = line.decode("utf-8", "replace")
            note_noise("the program")
            if self._noise > MOST_NOISE:
                raise ProcessError(f"wrote {self._noise:,} lines that are not replies")

    async def _read(self) -> bytes:
        assert self._process.stdout is not None, "it was started with pipes"
        try:
            return await self._process.stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise ProcessError(
                f"wrote a line of more than {LONGEST_LINE / 2**20:.0f} MiB"
            ) from None

    async def _death(self, operation: str) -> ProcessError:
        """The error for a process that closed its pipes."""
        # The exit status and the last lines of stderr may come after the pipe has closed.
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
                await self._listening

        status = self._process.returncode
        ended = "closed its output" if status is None else f"ended {describe_end(status)}"
        return ProcessError(f"{ended} during {operation}{self._last_words()}")

    async def _keep_last_words(self) -> None:
        assert self._process.stderr is not None, "it was started with pipes"
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                continue  # a line that is too long is dropped

            if not line:
                return

            if line.strip():
                self._stderr.append(line.decode("utf-8", "replace"))

    def _last_words(self) -> str:
        return f"; its last words: {one_line(self._stderr[-1])}" if self._stderr else ""

    def _unlike_a_reply(self) -> str:
        """What the process wrote instead of a reply, such as one that lacks the request's id."""
        if not self._last_noise:
            return ""

        return f', but a line without "id": {self._count}: {one_line(self._last_noise, 80)}'

    async def stop(self) -> None:
        """Ends the input, then the process: by force where it stays."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()

        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()

            await process.wait()

        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        # Else the pipes are closed when they are collected, which warns.
        process._transport.close()  # type: ignore[attr-defined]


def describe_end(status: int) -> str:
    """How a process ended, in words: by a signal, or with a status."""
    if status >= 0:
        return f"with status {status}"

    try:
        return f"by the signal {signal.Signals(-status).name}"
    except ValueError:
        return f"by the signal {-status}"


def _read_line(line: bytes) -> Mapping[str, Any] | None:
    """The JSON object on a line; None for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None

    return value if isinstance(value, dict) else None
