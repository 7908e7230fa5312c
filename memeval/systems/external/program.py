"""A program that keeps a memory: its start, its environment, and its end."""

import asyncio
import os
import re
import shlex
import shutil
import signal
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from asyncio.subprocess import Process as StreamsOfProcess
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import filterfalse
from pathlib import Path
from typing import Self

from memeval.errors import ModelError, UserError, unknown
from memeval.process import started
from memeval.systems.base import INGEST, RUNTIME
from memeval.systems.external.served import ServedSettings
from memeval.text.redaction import keep_secret
from memeval.text.shown import one_line

LONGEST_LINE = 32 * 2**20
"""Maximum bytes of one line."""
LAST_WORDS = 60
"""Last lines of stderr that are kept."""
STOP_S = 2.0
"""Seconds between the end of a program's input and its end by force."""
KILLED_S = 5.0
"""Seconds to wait for a process that was killed."""
INHERITED = ("HOME", "PATH", "LANG", "TMPDIR")
"""Environment variables that every program gets."""
PASS_ON = f"it gets {', '.join(INHERITED)} and what you name:  system.environment=[MY_KEY]"
CASE_FIELDS = ("case_dir", "namespace")
"""Fields that are replaced in a command and its variables."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
"""Names of variables whose values are removed from all output."""
_AFTER_CAUSE = re.compile(
    r"Node\.js v\d|\(Use `node|Require stack:|- /|\s*[\]}]|"
    r"\s+(?:at\s|'|→|\[?\w+\]?:\s|For further information visit\s)"
)
"""Lines that Node and pydantic write after the cause of a crash: stack, properties, version."""
_FIELD = re.compile(r"\{([a-z_]+)\}")
_CASE_FIELD = re.compile(r"\{(case_dir|namespace)\}")


@dataclass(frozen=True)
class ProgramSettings(ServedSettings):
    """Settings of memories that are programs on this machine."""

    command: str | None = field(default=None, metadata=INGEST)
    """The program with its arguments, quoted as for a shell; no shell runs it. `{case_dir}` is
    replaced with an empty folder for the case, `{namespace}` with the case's name. If neither is
    used, here or in `env`, that folder is the program's HOME.
    """
    env: dict[str, str] | None = field(default=None, metadata=INGEST)
    """The program's variables, by name; fields are replaced as in `command`."""
    environment: tuple[str, ...] = field(default=(), metadata=RUNTIME)
    """Names of memeval's environment variables to pass on, in addition to HOME, PATH, LANG and
    TMPDIR, such as that of a key.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (self.env or {}).items():
            if not isinstance(value, str):
                raise UserError(f"system.env.{name} must be a string, but is '{one_line(value)}'")

            for field_name in _FIELD.findall(value):
                if field_name not in CASE_FIELDS:
                    raise unknown(f"field in system.env.{name}", field_name, CASE_FIELDS)

    @property
    def names_case(self) -> bool:
        """Whether `command` or `env` has a field that names the case."""
        return any(map(_CASE_FIELD.search, [self.command or "", *(self.env or {}).values()]))

    def words(self, example: str) -> list[str]:
        """The program and its arguments, if any. Raises `UserError` if they can't be parsed."""
        try:
            return shlex.split(self.command or "")
        except ValueError as error:
            raise UserError(f"system.command can't be read: {error}", example) from error

    def check_program(self, example: str) -> None:
        """Raises `UserError` if the program can't run, before anything is requested or paid for."""
        words = self.words(example)
        if words and not _CASE_FIELD.search(words[0]) and shutil.which(words[0]) is None:
            is_there = "/" in words[0] and os.path.exists(words[0])  # noqa: PTH110 - never raises
            state = "is not executable" if is_there else "is not on this machine"
            program = one_line(words[0], 80)
            raise UserError(f"system.command: the program '{program}' {state}", example)

        self.inherited_variables()

    def inherited_variables(self) -> dict[str, str]:
        """The variables that are passed on. Raises `UserError` if a named one is not set."""
        for name in self.environment:
            if name not in os.environ:
                raise UserError(
                    f"system.environment: the environment variable {one_line(name)} is not set",
                    f"set it:      export {one_line(name)}=...",
                )

            if _SECRET.search(name):
                keep_secret(os.environ[name])

        names = (*INHERITED, *self.environment)
        return {name: os.environ[name] for name in names if name in os.environ}


class CaseHome:
    """Environment of one case's program: its folder, its command and its variables."""

    def __init__(self, settings: ProgramSettings, words: Sequence[str]) -> None:
        self._settings, self._given, self._namespace = settings, words, ""
        self._folder: Path | None = None

    def renew(self, namespace: str) -> None:
        """Creates an empty folder, and removes the previous one, if any."""
        self.remove()
        self._namespace = namespace
        self._folder = started.make_folder("case")

    def remove(self) -> None:
        """Removes the folder with everything that the program kept in it."""
        folder, self._folder = self._folder, None
        if folder is not None:
            started.remove_folder(folder)

    def words(self) -> list[str]:
        """The program and its arguments."""
        return list(map(self._filled, self._given))

    def variables(self) -> dict[str, str]:
        """The program's environment."""
        variables = self._settings.inherited_variables()
        given = self._settings.env or {}
        if not self._settings.names_case:
            given = {"HOME": str(self._folder), **given}
        if "HOME" in given:
            variables = _caches(variables.get("HOME")) | variables

        return variables | {name: self._filled(value) for name, value in given.items()}

    def _filled(self, text: str) -> str:
        values = {"case_dir": str(self._folder), "namespace": self._namespace}
        return _CASE_FIELD.sub(lambda match: values[match[1]], text)


def _caches(home: str | None) -> dict[str, str]:
    """Variables with which `npx`, `uvx` and Hugging Face's libraries find their downloads in spite
    of another HOME.
    """
    if home is None:
        return {}

    caches = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    usual = {
        "npm_config_cache": f"{home}/.npm",
        "UV_CACHE_DIR": f"{caches}/uv",
        "HF_HOME": f"{caches}/huggingface",
    }
    return {name: os.environ.get(name, folder) for name, folder in usual.items()}


class ProgramError(ModelError):
    """The process died, hung, or wrote something other than a reply; a new process may work."""


class LongLineError(ProgramError):
    """A line is too long to be read."""


class _Streams(SubprocessStreamProtocol):
    """The pipes of a process, whose group is ended when the process exits."""

    def __init__(self) -> None:
        super().__init__(LONGEST_LINE, asyncio.get_running_loop())
        self.group = 0
        self.ended = asyncio.Event()

    def process_exited(self) -> None:
        # A child that was left behind keeps the pipes open: a reader would wait forever.
        started.end(self.group)
        self.ended.set()
        super().process_exited()


class Program:
    def __init__(self, process: StreamsOfProcess, streams: _Streams) -> None:
        assert process.stdin and process.stdout and process.stderr, "it was started with pipes"
        self._input, self._output, self._errors = process.stdin, process.stdout, process.stderr
        self._process, self._streams = process, streams
        self._stderr: deque[str] = deque(maxlen=LAST_WORDS)
        self._listening = asyncio.ensure_future(self._keep_last_words())

    @classmethod
    async def start(cls, words: Sequence[str], variables: Mapping[str, str], example: str) -> Self:
        """Starts a program. Raises `UserError` if it can't be started."""
        loop = asyncio.get_running_loop()
        try:
            transport, streams = await loop.subprocess_exec(
                _Streams,
                *words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=variables,
                # Ctrl-C in the terminal only reaches memeval, which then ends the program's input.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or one_line(error)
            raise UserError(
                f"system.command: '{one_line(words[0], 80)}' can't be started: {reason}", example
            ) from error

        streams.group = transport.get_pid()
        started.adopt(streams.group)
        if streams.ended.is_set():
            started.end(streams.group)

        return cls(StreamsOfProcess(transport, streams, loop), streams)

    async def write(self, line: bytes) -> None:
        """Writes a line to the program's input."""
        self._input.write(line + b"\n")
        await self._input.drain()

    async def read(self) -> bytes:
        """The next line of its output.

        Raises `LongLineError` for one that is too long, and `IncompleteReadError` at the end.
        """
        try:
            return await self._output.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise LongLineError(
                f"wrote a line of more than {LONGEST_LINE / 2**20:.0f} MiB"
            ) from None

    async def skip_line(self) -> None:
        """Drops the rest of a line that was too long."""
        while True:
            try:
                await self._output.readuntil(b"\n")
                return
            except asyncio.LimitOverrunError as error:
                await self._output.readexactly(error.consumed)

    async def describe_end(self, during: str) -> str:
        """Describes the end of a process that closed its pipes, with its last words."""
        # The exit status and the last lines of stderr may come after the pipe has closed.
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._streams.ended.wait()
                await self._listening

        ended = "closed its output"
        if (status := self._process.returncode) is not None:
            ended = f"ended {describe_status(status)}"

        return f"{ended} during {during}{self.last_words()}"

    def last_words(self) -> str:
        """The last line of its stderr that may tell the cause, in the form that messages append."""
        if not self._stderr:
            return ""

        causes = list(filterfalse(_AFTER_CAUSE.match, self._stderr))
        return f"; last line of stderr: {one_line((causes or self._stderr)[-1])}"

    async def _keep_last_words(self) -> None:
        while True:
            try:
                line = await self._errors.readline()
            except ValueError:
                continue  # a line that is too long is dropped

            if not line:
                return

            if line.strip():
                self._stderr.append(line.decode("utf-8", "replace"))

    async def stop(self) -> None:
        """Closes the input and waits; then kills the process with all that it has started."""
        self._input.close()
        try:
            await self._ends_within(STOP_S)
        finally:
            # Also if Ctrl-C cancels the wait.
            self.kill()
            await self._ends_within(KILLED_S)
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _ends_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._streams.ended.wait()

    def kill(self) -> None:
        """Kills the process group and closes the pipes."""
        started.end(self._streams.group)
        self._listening.cancel()
        # Otherwise the pipes are closed at garbage collection, with a warning.
        self._process._transport.close()  # type: ignore[attr-defined]


def describe_status(status: int) -> str:
    """The end of a process in words: by a signal, or with a status."""
    if status >= 0:
        return f"with status {status}"

    try:
        return f"by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
