"""Converts command-line words to Hydra's form, and refuses contradictory words.

`system.class=my.module:Class` chooses an option: the class with its own settings, and without the
fields of the option that it replaces. Such an option is named by the path, or by a chosen option
and the path: `system='rag:my.module:Class'` runs the class as `rag`.
"""

import re
import shlex
from collections.abc import Sequence

from memeval.errors import UserError
from memeval.text.shown import one_line

MULTIRUN = ("-m", "--multirun")
INTEGER_GROUPS = ("top_k", "compression_turn")
"""Groups that take any positive integer."""
ASKED_SETTINGS = ("sample", "sample_seed", "question_ids", "only")
"""Settings of any data set, listed or not; they also work without the prefix `dataset.`."""


def full_override(word: str) -> str:
    """An override under its full path: `sample=5` is `++dataset.sample=5`."""
    key, equals, value = word.partition("=")
    name = key.lstrip("+").removeprefix("dataset.")
    if equals and name in ASKED_SETTINGS:
        return f"++dataset.{name}={value}"

    # Users choose the names of tags, so Hydra has to add them as new fields.
    return f"++{word}" if equals and key.startswith("tags.") else word


def check_given_once(overrides: Sequence[str]) -> None:
    """Raises `UserError` if two words set a setting differently: Hydra would take the last."""
    given: dict[str, str] = {}
    for word in overrides:
        name, value = _setting(word)
        if name and given.setdefault(name, value) != value:
            first, second = one_line(given[name], 60), one_line(value, 60)
            both = shlex.quote(f"{name}={first},{second}")
            raise UserError(
                f"{one_line(name)} is given twice: {name}={first} and {name}={second}",
                f"to compare both:  python -m memeval -m {both}",
                f"to use one of them, leave the other out:  {shlex.quote(f'{name}={second}')}",
            )


def last_of_each(overrides: Sequence[str]) -> list[str]:
    """The overrides without those that a later one replaces in a single run."""
    last: dict[str | int, str] = {}
    for position, word in enumerate(overrides):
        # Any other word stays: two folders have two options `--config-dir`.
        key = _setting(word)[0] or position
        last.pop(key, None)
        last[key] = word

    return list(last.values())


def _setting(word: str) -> tuple[str, str]:
    """Name and value of the setting that a word sets; both are empty for any other word."""
    name, equals, value = full_override(word).lstrip("+").partition("=")
    if not equals or name.startswith(("-", "~")):
        return "", ""

    return name, value


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
            f"{first} and {second} name different rerankers",
            f"use one of them; to compare both:  python -m memeval -m reranker={','.join(chosen)}",
        )


GROUPS = ("system", "dataset", "judge", "embedder", "reranker")
"""Groups that take `class`."""

_PATH = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"
_WORD = re.compile(
    rf"\+{{0,2}}(?P<group>{'|'.join(GROUPS)})\.class="
    rf"(?P<paths>['\"]?{_PATH}['\"]?(?:,['\"]?{_PATH}['\"]?)*)"
)
_ONE_OPTION = re.compile(r"[\w.-]+")
CLASS_OPTION = re.compile(rf"(?:(?P<name>[^:]+):)?(?P<path>{_PATH})")
"""The name of an option that is a class."""


def choose_classes(words: Sequence[str]) -> list[str]:
    """Overrides with `system.class=PATH` as the choice of an option.

    A built-in class stays a field, as does a class with several options.
    """
    chosen = list(words)
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None or "memeval." in match["paths"]:
            continue

        group = match["group"]
        options = [other for other in chosen if other.lstrip("+").startswith(f"{group}=")]
        option = options[0] if options else ""
        name = option.partition("=")[2]
        if len(options) > 1 or (option and not _ONE_OPTION.fullmatch(name)):
            continue

        prefix = f"{name}:" if name else ""
        choices = [f"'{prefix}{path}'" for path in re.findall(_PATH, match["paths"])]
        chosen[chosen.index(word)] = f"{group}={','.join(choices)}"
        if option:
            chosen.remove(option)

        for index, other in enumerate(chosen):
            # A field added with `+` gets `++`: the option did not have it, but the class may.
            if other.startswith(f"+{group}."):
                chosen[index] = f"+{other}"

    return chosen


def as_typed(word: str) -> list[str]:
    """An override as a user types it: a class as `system.class=PATH`, next to its name."""
    group, _, value = word.partition("=")
    match = CLASS_OPTION.fullmatch(value.strip("'\""))
    if group not in GROUPS or match is None:
        return [word]

    option = [f"{group}={match['name']}"] if match["name"] else []
    return [*option, f"{group}.class={match['path']}"]
