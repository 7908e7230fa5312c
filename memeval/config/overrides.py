"""Words of the command line as Hydra takes them, and those that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.errors import UserError
from memeval.text.shown import one_line

ASKED_SETTINGS = ("sample", "sample_seed", "question_ids", "only")
"""Settings of any data set, listed or not; they work without the prefix `dataset.` too."""


def full_override(word: str) -> str:
    """An override under its full path: `sample=5` is `++dataset.sample=5`."""
    key, equals, value = word.partition("=")
    name = key.lstrip("+").removeprefix("dataset.")
    if equals and name in ASKED_SETTINGS:
        return f"++dataset.{name}={value}"

    # Tags have names of the user's own, which Hydra wants added.
    return f"++{word}" if equals and key.startswith("tags.") else word


def check_given_once(overrides: Sequence[str]) -> None:
    """Raises `UserError` if two words set one setting: Hydra would take the last."""
    given: dict[str, str] = {}
    for word in overrides:
        name, equals, value = full_override(word).lstrip("+").partition("=")
        if not equals or name.startswith(("-", "~")):
            continue

        if given.setdefault(name, value) != value:
            first, second = one_line(given[name], 60), one_line(value, 60)
            raise UserError(
                f"{one_line(name)} is given twice: {name}={first} and {name}={second}",
                f"to compare both:  python -m memeval -m {name}={first},{second}",
                f"for one of them, leave the other out:  {name}={second}",
            )


def check_one_reranker(overrides: Sequence[str]) -> None:
    """Raises `UserError` if two words choose rerankers: Hydra would take the last."""
    chosen: dict[str, str] = {}
    for word in overrides:
        name, equals, value = full_override(word).lstrip("+").partition("=")
        if equals and name in ("reranker", "system.reranker") and value != "default":
            chosen.setdefault(value, word)

    if len(chosen) > 1:
        first, second, *_ = chosen.values()
        raise UserError(
            f"{first} and {second} choose different rerankers",
            f"use one of them; to compare both:  python -m memeval -m reranker={','.join(chosen)}",
        )
