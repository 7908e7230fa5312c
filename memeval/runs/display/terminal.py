"""The terminal: text written to it by memeval, a library or a traceback holds no secret and no
control sequence.
"""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap
import traceback
from typing import Any, TextIO

from memeval.errors import UserError
from memeval.text.redaction import keep_environment, redacted, without_known
from memeval.text.shown import printable

NARROWEST = 40
"""Columns below which lines are left to the terminal."""


class Guarded:
    """A text stream that is cleaned before it is written. Everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        self.unguarded.write(printable(redacted(text)))
        # Length of the input: a caller that compares would write the rest again.
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


class Drawn(Guarded):
    """A stream for drawings with escape sequences of our own.

    Its texts are made printable on entry.
    """

    def write(self, text: str) -> int:
        self.unguarded.write(without_known(text))
        return len(text)


class CleanRecord(logging.LogRecord):
    """A log record without secrets and control characters."""

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return printable(redacted(super().getMessage()))


def guard() -> None:
    """Guards this process's terminal and logs from here on, and remembers the secrets of its
    environment.
    """
    keep_environment()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Guarded):
            setattr(sys, name, Guarded(stream))

    logging.setLogRecordFactory(_record)


def drawn(stream: Any) -> Any:
    """The stream for a progress bar or a table."""
    return Drawn(stream.unguarded if isinstance(stream, Guarded) else stream)


def folded(text: str, stream: Any) -> str:
    """Lines as a terminal shows them best: folded between words. Other streams get them whole."""
    if not stream.isatty():
        return text

    width = max(shutil.get_terminal_size().columns, NARROWEST)
    return "\n".join(
        line if len(line) <= width else _fold(line, width) for line in text.split("\n")
    )


def _fold(line: str, width: int) -> str:
    return textwrap.fill(
        line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record = CleanRecord(*args, **kwargs)
    if record.exc_info and record.exc_info[0] is not None:
        # A formatter makes this string only if it is not set.
        record.exc_text = printable(
            redacted("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        )

    return record


def report_error(error: UserError) -> None:
    """One clear line, and below it the ways out."""
    print(f"memeval: {error.message}", file=sys.stderr)
    for hint in error.hints:
        print(f"  {hint}", file=sys.stderr)


def report_damage(message: str) -> None:
    """Something unreadable that the command continues without."""
    print(f"memeval: {message}", file=sys.stderr)
