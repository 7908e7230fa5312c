"""The parser of a command's own arguments, and options and output shared by commands."""

from __future__ import annotations

import argparse
import json
from typing import Any, NoReturn, Self

from memeval.errors import UserError
from memeval.text.redaction import redacted_in


class Parser(argparse.ArgumentParser):
    """Reports a mistake as every command does: on one line, with the usage below it."""

    @classmethod
    def of(cls, command: str, description: str) -> Self:
        """The parser of a command; its usage names it as it is typed."""
        return cls(prog=f"python -m memeval {command}", description=description)

    def add_run(self) -> None:
        """Takes the one run that a command reads."""
        self.add_argument("run", metavar="RUN", help="key, its beginning, name or MLflow run id")

    def add_runs(self, nargs: str) -> None:
        """Takes the runs that a command reads, `nargs` of them."""
        what = "key, its beginning, name, MLflow run id, or filter"
        self.add_argument("runs", nargs=nargs, metavar="RUN", help=what)

    def add_words(self, metavar: str, help: str) -> None:
        """Takes the words that choose runs."""
        self.add_argument("words", nargs="*", metavar=metavar, help=help)

    def add_last(self) -> None:
        """Takes `--last`."""
        self.add_argument("--last", type=int, metavar="N", help="the newest N runs that match")

    def add_json(self, what: str) -> None:
        """Takes `--json`, which prints `what` by `print_json`."""
        self.add_argument("--json", action="store_true", help=f"print {what} as JSON")

    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{self.prog.removeprefix('python -m memeval ')}: {message}",
            " ".join(self.format_usage().split()),
        )


def print_json(content: Any) -> None:
    """Prints the result of a command for machines, without secrets."""
    print(json.dumps(redacted_in(content), indent=1))
