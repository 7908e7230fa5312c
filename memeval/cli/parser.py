"""The parser of a command's own arguments: built from its usage, with errors on one line."""

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from memeval.errors import UserError, unknown
from memeval.text.redaction import redacted_in
from memeval.text.shown import in_shell, one_line

RUN = "run RUN  key or its beginning, name or MLflow run id"
LAST = "--last N:int  the newest N runs that match"
CONFIG_DIR = "--config-dir FOLDER  folder with your own options"
"""Arguments that several commands have."""
_NO_CHOICE = re.compile(
    r"argument (?P<argument>\S+): invalid choice: '(?P<given>.*)' \(choose from (?P<choices>.*)\)"
)
"""Matches argparse's message for a value that is not among the choices of an argument."""
_NAMES = re.compile(r"(?P<names>(?:-\w )?[\w-]+)(?P<mark>[?*+!|]?)(?: (?P<value>.+))?")


class Parser(argparse.ArgumentParser):
    """Reports a mistake as every command does: on one line, with the usage below it."""

    @classmethod
    def of(cls, command: str, usage: str, **defaults: Any) -> Self:
        """A command's parser; `usage` has its description and, below, its arguments: see `take`."""
        description, arguments = _split(usage)
        parser = cls(prog=f"python -m memeval {command}", description=description)
        parser.take(arguments)
        parser.set_defaults(**defaults)
        return parser

    @classmethod
    def of_actions(cls, command: str, description: str, usages: Mapping[str, str]) -> Self:
        """The parser of a command whose first word is an action; each has its own usage."""
        parser = cls.of(command, description)
        actions = parser.add_subparsers(dest="action", required=True)
        for name, usage in usages.items():
            summary, arguments = _split(usage)
            actions.add_parser(name, help=summary, description=summary).take(arguments)

        return parser

    def take(self, arguments: str) -> None:
        """Adds arguments, one per line, with their help after two blanks and in indented lines.

        `file FILE` is a positional argument; `words*` and `files+` accept several values,
        `question?` may be left out. `--json` is a switch, `--last N:int` an option with a typed
        value, `--to {a,b}` an option with choices; `--out! FILE` is required, `--metric* M` may be
        given several times, and exactly one of `--to| URL` and `--from| URL` is required.
        """
        exclusive = None
        for line in filter(None, re.split(r"\n(?=\S)", arguments.strip())):
            head, _, text = re.sub(r"\n\s+", " ", line).partition("  ")
            match = _NAMES.fullmatch(head)
            assert match is not None, f"not an argument: {head}"
            names, mark, value = match["names"].split(), match["mark"], match["value"]
            settings = {**_value_of(value), **_kind_of(names[0], mark, value)}
            add: Callable[..., Any] = self.add_argument
            if mark == "|":
                exclusive = exclusive or self.add_mutually_exclusive_group(required=True)
                add = exclusive.add_argument

            add(*names, help=text.strip() or None, **settings)

    def error(self, message: str) -> NoReturn:
        command = self.prog.removeprefix("python -m memeval ")
        usage = " ".join(self.format_usage().split())
        if match := _NO_CHOICE.fullmatch(message):
            kind = f"{match['argument']} of {command}"
            raise unknown(kind, match["given"], re.findall(r"[\w-]+", match["choices"]), usage)

        raise UserError(f"{command}: {message}", usage)


def _split(usage: str) -> tuple[str, str]:
    """A command's description, on one line, and its arguments."""
    description, _, arguments = usage.strip().partition("\n\n")
    return " ".join(description.split()), arguments


def _points(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan

    if not 0 <= value <= 100:
        message = f"{one_line(text, 40)} is not a number of points from 0 to 100"
        raise argparse.ArgumentTypeError(message)

    return value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{one_line(text, 40)} is not a whole number from 0")

    return int(text)


def _data(text: str) -> str:
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"{one_line(text, 80)} does not exist")

    return text


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file '{one_line(text, 80)}'")

    return path


def _names(text: str) -> str:
    if text and not all(map(str.strip, text.split(","))):
        message = f"'{one_line(text, 80)}' has a comma too many: write the names without spaces"
        raise argparse.ArgumentTypeError(message)

    return text


_TYPES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "path": Path,
    "data": _data,
    "file": _file,
    "points": _points,
    "count": _count,
    "names": _names,
}


def _value_of(value: str | None) -> dict[str, Any]:
    """A value's name and type, or its choices, as settings for argparse."""
    if value is None:
        return {}
    if value.startswith("{"):
        return {"choices": value.strip("{}").split(",")}

    name, _, kind = value.rpartition(":")
    if kind in _TYPES:
        return {"metavar": name, "type": _TYPES[kind]}

    return {"metavar": value}


def _kind_of(name: str, mark: str, value: str | None) -> dict[str, Any]:
    """The allowed number of words or options, as settings for argparse."""
    if not name.startswith("-"):
        # Without a default, argparse calls an argument that may be left out required.
        kinds: dict[str, dict[str, Any]] = {"": {}, "*": {"nargs": "*", "default": []}}
        return kinds.get(mark, {"nargs": mark})
    if value is None:
        return {"action": "store_true"}
    if mark == "*":
        return {"action": "append", "default": []}

    return {"required": mark == "!"}


def settings_of(
    command: str, words: Sequence[str], config_dir: str | None, *examples: str
) -> list[str]:
    """A command's words as settings of a run, with `--config-dir` if it is given.

    Raises `UserError` for a word that is not an override.
    """
    for word in words:
        if "=" not in word:
            raise UserError(f"{command}: '{one_line(word)}' is not an override", *examples)

    if config_dir:
        return ["--config-dir", config_dir, *words]

    return list(words)


def one_of(choices: Iterable[str]) -> str:
    """The choices of an option, in the syntax of `Parser.take`."""
    return f"{{{','.join(choices)}}}"


def check_folder_of(option: str, path: Path) -> None:
    """Raises `UserError` for a file to be written that is a folder, or whose folder is missing."""
    if path.is_dir():
        raise UserError(f"{option} {one_line(path)} must be a file, but is a folder")
    if not path.parent.is_dir():
        raise UserError(
            f"{option} {one_line(path)}: the folder {one_line(path.parent)} does not exist",
            f"make it:  mkdir -p {in_shell(path.parent)}",
        )


def print_json(content: Any) -> None:
    """Prints the result of a command as JSON, without secrets."""
    print(json.dumps(redacted_in(content), indent=1))
