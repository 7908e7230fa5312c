"""Command-line arguments in the form that Hydra accepts."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from memeval.config.schema import PREPARE
from memeval.errors import UserError, unknown

CONFIG_DIR = ("--config-dir", "-cd")
VALUED = frozenset(
    """
        -cd --config-dir -cn --config-name -cp --config-path -c --cfg -p --package
        --experimental-rerun
    """.split()
)
FLAGS = frozenset(
    "-m --multirun -r --run --resolve -i --info --hydra-help -sc --shell-completion".split()
)
KEEP_GOING, STATISTICS = "--keep-going", "--stats"
"""memeval's own options; `VALUED` and `FLAGS` are Hydra's. No others but `--fresh` are valid."""
KEEPS_GOING = "hydra.launcher.keep_going=true"
"""The override that `--keep-going` sets."""


def user_folders(arguments: Sequence[str]) -> tuple[Path, ...]:
    """The folders with the user's own options."""
    words = pairwise(split_values(arguments))
    return tuple(Path(folder) for option, folder in words if option in CONFIG_DIR)


def split_values(arguments: Sequence[str]) -> list[str]:
    """The arguments with each option's value on its own: `--config-dir=FOLDER` becomes two."""
    words: list[str] = []
    for word in arguments:
        option, equals, value = word.partition("=")
        words += [option, value] if equals and option in VALUED else [word]

    return words


def reorder_arguments(arguments: Sequence[str]) -> list[str]:
    """Moves options after the overrides, regardless of the typed order: Hydra accepts no other
    order.

    Raises `UserError` for an unknown option or a missing value.
    """
    arguments = split_values(arguments)
    overrides: list[str] = []
    options: list[str] = []

    for before, word, after in zip(["", *arguments], arguments, [*arguments[1:], ""], strict=False):
        if before in VALUED or (before in ("-i", "--info") and "=" not in word):
            options.append(word)
        elif word == "--fresh" or word.startswith("--fresh="):
            overrides.append(f"fresh={word.partition('=')[2] or PREPARE}")
        elif word == KEEP_GOING:
            overrides.append(KEEPS_GOING)
        elif word.startswith("-"):
            options.append(word)
            if word.split("=", 1)[0] not in VALUED | FLAGS:
                raise _unknown_option(word, after)
        else:
            overrides.append(word)

    if options and options[-1] in VALUED:
        raise UserError(f"{options[-1]} needs a value")

    return [*overrides, *options]


def _unknown_option(word: str, after: str) -> UserError:
    """The error for an option that neither Hydra nor memeval has; `after` is the next argument."""
    # Imported here: it imports Hydra, which a command without a mistake may not need.
    from memeval.config.names import fields_called

    option, _, value = word.partition("=")
    name = option.lstrip("-").replace("-", "_")
    if name and (names := fields_called(name)):
        return UserError(
            f"unknown option '{option}': set groups and fields without dashes",
            f"use:  {names[0]}={value or after or '...'}",
        )

    known = {*VALUED, *FLAGS, "--help", "--fresh", KEEP_GOING, STATISTICS}
    if option in known and value:
        return UserError(f"{option} takes no value")

    return unknown("option", option, known - {option})
