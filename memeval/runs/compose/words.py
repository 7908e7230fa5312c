"""The words of the command line, as Hydra takes them."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.config.schema import PREPARE
from memeval.errors import UserError, unknown

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
"""Hydra's own options, with a value and without; whatever else begins with a dash is a slip."""


def split_values(arguments: Sequence[str]) -> list[str]:
    """The words with each option's value as a word of its own: `--config-dir=FOLDER` as two."""
    words: list[str] = []
    for word in arguments:
        option, equals, value = word.partition("=")
        words += [option, value] if equals and option in VALUED else [word]

    return words


def reorder_arguments(arguments: Sequence[str]) -> list[str]:
    """Overrides first and options after them, in whatever order they were typed: Hydra takes no
    other.

    Raises `UserError` for a slip.
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
            overrides.append("hydra.launcher.keep_going=true")
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
    """The error for an option that neither Hydra nor memeval has; `after` is the next word."""
    # Hydra is imported with it, which a command without a mistake here may not need.
    from memeval.config.names import fields_called

    option, _, value = word.partition("=")
    if names := fields_called(option.lstrip("-").replace("-", "_")):
        return UserError(
            f"unknown option '{option}': set groups and fields without dashes",
            f"use:  {names[0]}={value or after or '...'}",
        )

    return unknown("option", option, {*VALUED, *FLAGS, "--fresh", KEEP_GOING, STATISTICS})
