"""The terminal: removes secrets and control sequences from everything that memeval, a library or a
traceback writes to it.
"""

import logging
import os
import re
import shutil
import sys
import textwrap
import traceback
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from memeval.errors import UserError
from memeval.text.redaction import keep_environment, redacted, without_known
from memeval.text.shown import printable

NARROWEST = 40
"""Fewest columns that lines are folded to; a narrower terminal wraps them itself."""
COLOURS = re.compile(r"\x1b\[[\d;]*m")
"""Some libraries colour their logs, such as Optuna."""


class GuardedStream:
    """A text stream that cleans text before writing it. Everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        self.unguarded.write(printable(redacted(COLOURS.sub("", text))))
        # The length of the input: otherwise a caller that compares would write the rest again.
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


class DrawingStream(GuardedStream):
    """A stream for drawings with memeval's escape sequences; callers make texts printable first."""

    def write(self, text: str) -> int:
        self.unguarded.write(without_known(text))
        return len(text)


class CleanRecord(logging.LogRecord):
    """A log record without secrets and control characters."""

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return printable(redacted(super().getMessage()))


def guard() -> None:
    """Guards this process's terminal and logs from here on, and remembers its secrets."""
    keep_environment()
    # A caller may close a standard stream (`2>&-`). Standard input comes first: each of these files
    # gets the lowest free number.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - kept open

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, GuardedStream):
            setattr(sys, name, GuardedStream(stream))
        if isinstance(stream, TextIOWrapper):
            # The encoding of a locale such as ISO-8859-1 lacks – and ….
            stream.reconfigure(errors="replace")

    logging.setLogRecordFactory(_record)


def drawing_stream(stream: Any) -> Any:
    """The stream for a progress bar or a table."""
    unguarded = stream.unguarded if isinstance(stream, GuardedStream) else stream
    return DrawingStream(unguarded)


def folded(text: str, stream: Any) -> str:
    """Lines as a terminal shows them best: folded between words. Other streams get them whole."""
    if not stream.isatty():
        return text

    width = max(shutil.get_terminal_size().columns, NARROWEST)
    return "\n".join(_fold(line, width) for line in text.split("\n"))


def print_folded(text: str, end: str = "\n") -> None:
    """Prints lines to standard output, `folded`."""
    print(folded(text, sys.stdout), end=end)


def _fold(line: str, width: int) -> str:
    if len(line) <= width:
        return line

    return textwrap.fill(
        line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record = CleanRecord(*args, **kwargs)
    if record.exc_info and record.exc_info[0] is not None:
        # A formatter creates this string only if it is not set.
        record.exc_text = printable(
            redacted("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        )

    return record


def report_error(error: UserError) -> None:
    """Prints the message on one line, and the hints below it."""
    print(f"memeval: {error.message}", file=sys.stderr)
    for hint in error.hints:
        # Other hints have commands to paste.
        if hint.startswith("usage: "):
            print(folded(f"  {hint}", sys.stderr), file=sys.stderr)
        else:
            print(f"  {hint}", file=sys.stderr)


def report_damage(message: str) -> None:
    """Reports unreadable data that the command continues without."""
    print(f"memeval: {message}", file=sys.stderr)


def ask(prompt: str) -> str | None:
    """A line of input; None at the end of the input."""
    print(prompt, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
        return None

    return line.strip()
