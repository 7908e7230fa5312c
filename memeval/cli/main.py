"""Selects the command, and turns errors into one clear line and an exit status."""

import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from memeval import __version__
from memeval.config.paths import refusing_paths
from memeval.errors import DISK_ERRORS, UserError, WorldError, unknown
from memeval.process.environment import private_umask, set_environment
from memeval.runs.display.terminal import guard, report_error
from memeval.text.shown import one_line

COMMANDS = tuple(
    "run plan prepare evaluate data compare table export explain gate claims lint check history "
    "list show judge label pack register unpack verify board store ui init".split()
)
"""Each is the function of its name in the module of its name."""
_OTHER_NAMES = {"history": "show_history", "list": "list_runs"}
"""Functions of commands whose names would hide another function."""
OWN_HELP = set(COMMANDS) - {"run", "plan", "prepare", "evaluate"}
"""Commands that describe their own arguments; the others take those of a run."""
COMPLETED = {*COMMANDS} - OWN_HELP | {"check", "gate", "register"}
"""Commands whose settings a shell completes, as it does those of `judge probe`."""
HELP = ("help", "-h", "--help")
LIMITS = {
    errno.EAGAIN: "ulimit -u",
    errno.EMFILE: "ulimit -n",
    errno.ENOMEM: "ulimit -v",
}
"""The limit of a process behind each error of the system."""
NO_THREAD = "can't start new thread"
"""Python's error if the system refuses a thread."""


def run_command(arguments: list[str]) -> int:
    """Runs the command that the first word names; without such a word, `run`."""
    # First: libraries read the environment when they are imported, and from here on no output, not
    # even a traceback, contains a secret.
    set_environment()
    guard()

    try:
        answered = _answer_help(arguments) or _complete_command(arguments)
        status = 0 if answered else _run_named(arguments)
        # Here, so that a failure is reported: Python flushes at exit.
        sys.stdout.flush()
        return status
    except UserError as error:
        report_error(error)
        return 2
    except (WorldError, MemoryError) as error:
        return _report_fault(str(error) or "out of memory", arguments)
    except KeyboardInterrupt:
        print(f"\nmemeval: stopped{_describe_left(arguments)}", file=sys.stderr)
        from memeval.runs.interrupt import exit_status

        return exit_status()
    except (OSError, RuntimeError) as error:
        if limit := _reached_limit(error):
            return _report_fault(limit, arguments)
        if not isinstance(error, OSError) or not _is_about_output(error):
            raise

        # At exit, Python would flush and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"memeval: the output can't be written: {error.strerror}", file=sys.stderr)

        return 1


def _report_fault(fault: str, arguments: Sequence[str]) -> int:
    print(f"memeval: {fault}{_describe_left(arguments)}", file=sys.stderr)
    return 1


def _reached_limit(error: OSError | RuntimeError) -> str:
    """The limit of the process that caused an error; empty for any other error."""
    if str(error) == NO_THREAD:
        error = OSError(errno.EAGAIN, NO_THREAD)
    elif not isinstance(error, OSError) or error.strerror != os.strerror(error.errno or 0):
        # Also an output that is not ready: it has the number of a refused process.
        return ""

    limit = LIMITS.get(error.errno or 0, "")
    return limit and f"{error.strerror} (its limit: {limit})"


def _is_about_output(error: OSError) -> bool:
    """Whether standard output can't be written: the disk is full, or the reader closed the pipe."""
    return isinstance(error, BrokenPipeError) or (not error.filename and error.errno in DISK_ERRORS)


def _run_named(arguments: list[str]) -> int:
    name, rest = _split_command(arguments)
    _check_filled(arguments)
    # Each command is its own invocation, even in a process that has run another, or below a run.
    os.environ.pop("MEMEVAL_INVOCATION", None)
    if name != "data":  # data sets are public, and may be shared on a machine
        private_umask()

    with refusing_paths():
        return _load_command(name)(rest)


def _check_filled(arguments: Sequence[str]) -> None:
    """Raises `UserError` for an empty argument, as an unset variable of the shell leaves it."""
    for before, word in pairwise(["memeval", *arguments]):
        option, equals, value = word.partition("=")
        if not word.strip() or (option.startswith("--") and equals and not value.strip()):
            empty = one_line(word) or f"the argument after {one_line(before)}"
            raise UserError(f"{empty} is empty", "is a variable of the shell not set?")


def _load_command(name: str) -> Callable[[Sequence[str]], int]:
    """Imports a command. Raises `UserError` if this interpreter lacks a package that memeval needs:
    usually it is the wrong interpreter.
    """
    try:
        command: Callable[[Sequence[str]], int] = load(path_of(name))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("memeval"):
            raise

        raise UserError(
            f"the package '{error.name}' is not installed for {sys.executable}\n"
            "  in a checkout:  make install, then .venv/bin/python -m memeval\n"
            "  elsewhere:      python -m pip install memeval-bench"
        ) from error

    return command


def path_of(command: str) -> str:
    """The path `module:name` of a command's function."""
    return f"memeval.cli.{command}:{_OTHER_NAMES.get(command, command)}"


def load(path: str) -> Any:
    """The object at a path `module:name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _describe_left(arguments: Sequence[str]) -> str:
    # Loaded here: loading asyncio takes longer than `--help` may take.
    from memeval.runs.interrupt import describe_left

    return describe_left("".join(arguments[:1]))


def _answer_help(arguments: list[str]) -> bool:
    """Answers `--help` and `--version` without loading anything; returns whether it did."""
    first = arguments[0] if arguments else ""
    asked = first == "help" or (
        first not in OWN_HELP and not {"-h", "--help"}.isdisjoint(arguments)
    )

    if asked:
        from memeval.cli.help import OF_COMMANDS, print_help
        from memeval.runs.compose.words import user_folders

        position = next(index for index, word in enumerate(arguments) if word in HELP)
        names = filter(str.isidentifier, arguments[position + 1 :])
        topics = [*names, *OF_COMMANDS.keys() & {first}, None]
        print_help(topics[0], user_folders(arguments))
    elif first == "--version":
        print(__version__)

    return asked or first == "--version"


def _complete_command(arguments: list[str]) -> bool:
    """Completes a command for a shell; returns whether Hydra has nothing to add."""
    line = os.environ.get("COMP_LINE", "")
    if arguments[:1] != ["-sc"] or " " not in line:
        return False

    program, first, *rest = line.split(" ")
    if rest:
        words = rest if first in COMMANDS else [first, *rest]
        os.environ["COMP_LINE"] = " ".join([program, *_for_hydra(words[:-1]), words[-1]])
    else:
        for name in COMMANDS:
            if name.startswith(first):
                print(name)

    takes_settings = first in COMPLETED or [first, *rest[:1]] == ["judge", "probe"]
    is_other = first.isidentifier() and not takes_settings
    word = line.rpartition(" ")[2]
    if word.startswith("-") or (rest and is_other):
        return True

    before, comma, begun = word.rpartition(",")
    if comma:
        _print_options(before, begun)

    return bool(comma)


def _print_options(before: str, begun: str) -> None:
    """Prints the completions of an option after others, such as `system=bm25`; Hydra has none."""
    from memeval.config.options import available

    for name in available(before.partition("=")[0]):
        if name.startswith(begun):
            print(f"{before},{name}")


def _for_hydra(words: Sequence[str]) -> list[str]:
    """The words that Hydra accepts: settings, and its own options with their values."""
    from memeval.runs.compose.words import FLAGS, VALUED

    kept = []
    for before, word in pairwise(["", *words]):
        is_setting = "=" in word and not word.startswith("--")
        if is_setting or before in VALUED or word.partition("=")[0] in VALUED | FLAGS:
            kept.append(word)

    return kept


def _split_command(arguments: list[str]) -> tuple[str, list[str]]:
    if arguments and arguments[0].isidentifier():
        if arguments[0] not in COMMANDS:
            # Imported here: only a mistake needs it.
            from memeval.config.schema import RunConfig

            if hasattr(RunConfig(), arguments[0]):
                value = " ".join(arguments[1:]).lstrip("= ").partition(" ")[0] or "..."
                raise UserError(
                    f"'{arguments[0]}' is a setting, not a command",
                    f"write it without spaces:  {arguments[0]}={one_line(value)}",
                )

            raise unknown(
                "command", arguments[0], COMMANDS, "all commands:  python -m memeval --help"
            )

        return arguments[0], arguments[1:]

    return "run", arguments
