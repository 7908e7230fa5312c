"""Chooses the command, and turns errors into one clear line and an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from memeval import __version__
from memeval.cli.errors import report_error
from memeval.errors import UserError, WorldError, unknown

COMMANDS = {
    "run": "memeval.cli.run:run",
    "evaluate": "memeval.cli.evaluate:evaluate",
    "data": "memeval.cli.data:data",
    "ui": "memeval.cli.ui:ui",
}
OFFLINE = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MEM0_TELEMETRY": "False",
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "2",
}
"""Set before anything is imported: telemetry off, no hub; a user's own value wins."""


def run_command(arguments: list[str]) -> int:
    """Runs the command that the first word names; no such word means `run`."""
    for variable, value in OFFLINE.items():
        os.environ.setdefault(variable, value)
    try:
        if _informed(arguments):
            return 0
        name, rest = _command(arguments)
        module, _, function = COMMANDS[name].partition(":")
        command: Callable[[Sequence[str]], int] = getattr(importlib.import_module(module), function)
        return command(rest)
    except UserError as error:
        report_error(error)
        return 2
    except WorldError as error:
        print(f"memeval: {error}", file=sys.stderr)
        print("  what was finished is kept; the same command goes on from there", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmemeval: stopped. What was finished is kept; the same command goes on from there.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _informed(arguments: list[str]) -> bool:
    """Answers `--help` and `--version` without loading anything; whether it did."""
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "help"):
        from memeval.cli.help import print_help

        print_help()
    elif first == "--version":
        print(__version__)
    return first in ("-h", "--help", "help", "--version")


def _command(arguments: list[str]) -> tuple[str, list[str]]:
    if arguments and arguments[0].isidentifier():
        if arguments[0] not in COMMANDS:
            raise unknown("command", arguments[0], COMMANDS)
        return arguments[0], arguments[1:]
    return "run", arguments
