"""A memory that is a program: JSON lines on its stdin, and a reply on its stdout for each."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.errors import ModelError, UserError
from memeval.llm.metering import current_ledger
from memeval.llm.transport import encode, time_limit
from memeval.records import Role
from memeval.systems.base import NOT_NEGATIVE, RUNTIME
from memeval.systems.external import remote, wire
from memeval.systems.external.program import (
    PASS_ON,
    CaseHome,
    Program,
    ProgramError,
    ProgramSettings,
)
from memeval.systems.external.served import (
    AnsweringSettings,
    ServedMemory,
    files_of,
    note_noise,
)
from memeval.systems.external.service import Service
from memeval.text.shown import one_line

MAX_NOISE = 10_000
"""Maximum lines of one process that are not replies."""
EXAMPLE = "for example:  system.command='python my_memory.py'"


@dataclass(frozen=True)
class CommandSettings(ProgramSettings, AnsweringSettings):
    restarts: int = field(default=1, metadata=RUNTIME | NOT_NEGATIVE)
    """Maximum restarts of a dead or hung program per case; it is then sent the case again."""

    def words(self, example: str = EXAMPLE) -> list[str]:
        if not self.command or not self.command.strip():
            raise UserError("system=command needs a program", EXAMPLE)

        return super().words(example)


class CommandMemory(ServedMemory):
    """A process for each case and repeat, which ends when its input ends."""

    settings_type = CommandSettings

    @classmethod
    def resolve_settings(cls, settings: Any, *, has_language_model: bool) -> Any:
        settings.check_program(EXAMPLE)
        return settings

    @classmethod
    def files(cls, settings: Any) -> tuple[Path, ...]:
        return files_of(settings.words())

    def open_service(self) -> Service:
        return CommandService(self.settings, self.namespace)


class RefusalError(ModelError):
    """The process replied with an error, so a new process would not help."""


class CommandService(Service):
    """Passes the operations of one case to its process, one after the other."""

    def __init__(self, settings: CommandSettings, namespace: str) -> None:
        words, self._settings = settings.words(), settings
        self._command = " ".join(words)
        self.name = f"the program '{one_line(words[0], 60)}'"
        self._home, self._namespace = CaseHome(settings, words), namespace
        self._process: Process | None = None
        self._history: list[tuple[str, Mapping[str, Any]]] = []
        """The operations that a new process needs to know the case, in order."""
        self._restarts = settings.restarts
        self._turn = asyncio.Lock()

    async def call(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        async with current_ledger().own_work.holding(self._turn):
            setback = None
            while True:
                try:
                    reply = await self._ask(operation, body)
                except ProgramError as error:
                    await self._stop()
                    if self._restarts < 1:
                        # A program that never replied is the wrong one, or a requirement is
                        # missing.
                        message = f"{self.name} {error}"
                        raise remote.fault(self._command, message, PASS_ON) from error

                    self._restarts -= 1
                    setback = f"it {error}"
                except RefusalError as error:
                    last_words = await self.last_words()
                    raise ModelError(f"{self.name} {error}{last_words}") from error
                else:
                    remote.note_answer(self._command)
                    self.note_setback(setback)
                    return reply

    async def _ask(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation == "reset":
            # An emptied memory needs none of its earlier operations; those of the other user of a
            # shared store remain.
            namespace = body["namespace"]
            self._history = [sent for sent in self._history if sent[1]["namespace"] != namespace]

        if self._process is None:
            # The data of the previous process is also gone: the new one is sent the case again.
            self._home.renew(self._namespace)
            program = await Program.start(self._home.words(), self._home.variables(), EXAMPLE)
            self._process = Process(program)
            for earlier, earlier_body in self._history:
                timeout_s = self._settings.request_timeout_s
                again = await self._process.ask(earlier, earlier_body, timeout_s)
                # A program that calls a model pays for the case again.
                if earlier != "reset":
                    current_ledger().usages += wire.read_usages(again, Role.INGEST)

        reply = await self._process.ask(operation, body, self._settings.request_timeout_s)
        # Only successful operations are repeated to the next process. The operation that failed is
        # sent again by `call`.
        if operation in ("reset", "ingest", *wire.CHANGES):
            self._history.append((operation, body))

        return reply

    async def last_words(self) -> str:
        # A line that the program wrote before its reply may not have been read.
        await asyncio.sleep(0)
        return "" if self._process is None else self._process.program.last_words()

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.program.stop()

    async def close(self) -> None:
        try:
            await self._stop()
        finally:
            self._home.remove()


class Process:
    """An exchange with a program: one line for each operation, and one for its reply."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._count = self._noise = 0
        self._last_noise = ""
        """The last line that was not a reply, since the last request."""

    async def ask(
        self, operation: str, body: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any]:
        """The reply to one operation. Raises `ProgramError` or `RefusalError`."""
        self._count += 1
        self._last_noise = ""
        request = {"id": self._count, "op": operation, **body}
        try:
            async with time_limit(timeout_s):
                reply = await self._exchange(encode(request))
        except TimeoutError:
            problem = f"did not reply to {operation} within {timeout_s:g} s"
            # It may have sent a reply that lacks the request's id.
            if self._last_noise:
                line = one_line(self._last_noise, 80)
                problem += f', but wrote a line without "id": {self._count}: {line}'

            raise ProgramError(f"{problem}{self.program.last_words()}") from None
        except (ConnectionError, asyncio.IncompleteReadError):
            raise ProgramError(await self.program.describe_end(operation)) from None

        error = reply.get("error")
        if error:
            raise RefusalError(f"refused {operation}: {one_line(error, 300)}")

        return reply

    async def _exchange(self, request: bytes) -> Mapping[str, Any]:
        await self.program.write(request)
        while True:
            line = await self.program.read()
            # Programs print to stdout, and so do the libraries that they import: such lines are
            # skipped.
            with suppress(ValueError, RecursionError):
                reply = json.loads(line)
                if isinstance(reply, dict) and reply.get("id") == self._count:
                    return reply

            self._noise += 1
            self._last_noise = line.decode("utf-8", "replace")
            note_noise("the program")
            if self._noise > MAX_NOISE:
                problem = f"wrote {self._noise:,} lines that are not replies"
                raise ProgramError(f"{problem}{self.program.last_words()}")
