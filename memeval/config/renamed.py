"""Options and settings that have a new name. The old name works for a while, with a warning.

Hydra loads an option by its name, wherever a user writes that name: on the command line, in the
lists of a sweep, in a defaults list. So our config source serves the old names (`integers.py`).
Code that takes a name without Hydra, such as `data fetch NAME`, calls `current_name`.

A setting is renamed where an override enters (the command line, the parameters and the grids of a
sweep: `current_setting`), and in what config files say (`rename_settings`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from memeval.config.options import options
from memeval.config.paths import conf_dir
from memeval.errors import UserError
from memeval.shown import one_line

RENAMED: dict[str, dict[str, str]] = {
    "system": {"embedding_only": "dense"},
    "dataset": {"memae": "memory_agent_bench", "demo_memae": "demo_memory_agent_bench"},
    "judge": {"memae": "memory_agent_bench"},
    "granularity": {"exchange": "round"},
}
"""Old name -> new name, by group."""

RENAMED_SETTINGS = {
    "system.rerank": "reranker",
    "system.rerank_url": "reranker.base_url",
    "system.rerank_model": "reranker.model",
    "system.rerank_key_env": "reranker.api_key_env",
}
"""Old path -> new path, of overrides."""

ASKED_SETTINGS = ("sample", "sample_seed", "question_ids", "only")
"""Settings of any data set, also of one whose option does not list them. They work without the
prefix `dataset.` too.
"""

OWN_RERANKER = "system.reranker"
"""What a system reranks by under `reranker=default`; it takes any reranker by name or class path.
"""

UNTIL = "0.3"
"""The release that no longer knows the old names."""

_WARNED = "MEMEVAL_WARNED"
"""Environment variable with the names that were warned of. Workers inherit it, and stay silent."""


def renamed_to(group: str, name: str) -> str | None:
    """The new name of an option; None where `name` is not an old name."""
    new = RENAMED.get(group, {}).get(name)
    # A name that is an option again is nobody's old name.
    if new is None or (conf_dir() / group / f"{name}.yaml").is_file():
        return None

    return new


def current_name(group: str, name: str) -> str:
    """`name`, or the new name where it is an old one. Warns once per name, on stderr."""
    new = renamed_to(group, name)
    if new is None:
        return name

    warn_renamed(f"{group}={name}", f"{group}={new}")
    return new


def current_override(word: str) -> str:
    """A word of the command line with the new names of its option and setting.

    Other words stay as they are.
    """
    word = current_setting(word, warn=False)
    key, equals, value = word.partition("=")
    new = renamed_to(key.lstrip("+"), value.strip("'\""))
    return word if new is None else f"{key}{equals}{new}"


def current_setting(word: str, *, warn: bool = True) -> str:
    """An override under the new name of its setting. Warns once per setting, on stderr.

    Other words stay as they are.
    """
    key, equals, value = word.partition("=")
    old = key.lstrip("+")
    if equals and old.removeprefix("dataset.") in ASKED_SETTINGS:
        return f"++dataset.{old.removeprefix('dataset.')}={value}"

    if equals and key.startswith("tags."):
        return f"++{word}"  # tags have names of the user's own, which Hydra wants added

    new = RENAMED_SETTINGS.get(old)
    if new is None or not equals:
        return word

    if warn:
        warn_renamed(old, new)
    if old != "system.rerank":
        return f"++{new}={value}"  # the option that is chosen may not have the field

    # A reranker without an option in conf/ has no place in the group.
    names = {name.strip(" '\"") for name in value.split(",")}
    return f"{new}={value}" if names <= set(options("reranker")) else f"{OWN_RERANKER}={value}"


def check_given_once(overrides: Sequence[str]) -> None:
    """Raises `UserError` where two words that were typed give one setting other values: Hydra takes
    the last of them, and says nothing.
    """
    given: dict[str, str] = {}
    for word in overrides:
        name, equals, value = current_override(word).lstrip("+").partition("=")
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
    """Raises `UserError` where two words choose different rerankers: Hydra takes the last of them,
    and says nothing.
    """
    chosen: dict[str, str] = {}
    for word in overrides:
        name, equals, value = current_setting(word, warn=False).lstrip("+").partition("=")
        if equals and name in ("reranker", "system.reranker") and value != "default":
            chosen.setdefault(value, word)

    if len(chosen) > 1:
        first, second, *_ = chosen.values()
        raise UserError(
            f"{first} and {second} choose different rerankers",
            f"use one of them; to compare both:  python -m memeval -m reranker={','.join(chosen)}",
        )


def warn_renamed(old: str, new: str) -> None:
    """Says on stderr that a name is an old one, once per name."""
    warned = os.environ.get(_WARNED, "").split()
    if old in warned:
        return

    os.environ[_WARNED] = " ".join([*warned, old])
    sys.stderr.write(f"memeval: {old} is now called {new}; the old name works until {UNTIL}\n")


def rename_settings(container: dict[Any, Any], *, warn: bool = True) -> None:
    """Gives what a config file says under an old name its new one. The container is changed."""
    _rename_options(container)
    _move_judge_model(container.get("llm"))
    _move_rerank(container, warn=warn)


def _rename_options(container: dict[Any, Any]) -> None:
    """A config file of the user's own may say `name:` with an old name."""
    for group in RENAMED:
        values = container.get(group)
        if isinstance(values, dict) and isinstance(values.get("name"), str):
            values["name"] = current_name(group, values["name"])


def _move_judge_model(llm: Any) -> None:
    """`llm.judge_model` is the old name of `llm.judge.model`."""
    if not isinstance(llm, dict) or llm.get("judge_model") is None:
        return

    model = llm.pop("judge_model")
    judge = llm.setdefault("judge", {})
    if not isinstance(judge, dict):
        return  # refused where it is typed
    if judge.get("model") not in (None, model):
        raise UserError(
            f"llm.judge_model={one_line(model)} is the old name of "
            f"llm.judge.model={one_line(judge['model'])}, and both are set",
            "leave llm.judge_model out",
        )

    warn_renamed("llm.judge_model", "llm.judge.model")
    judge["model"] = model


def _move_rerank(container: dict[Any, Any], *, warn: bool) -> None:
    """A system's file says under `reranker` what it said under `rerank`; how an endpoint is reached
    is in the group.
    """
    system, reranker = container.get("system"), container.setdefault("reranker", {})
    if not isinstance(system, dict) or not isinstance(reranker, dict):
        return

    for old, new in RENAMED_SETTINGS.items():
        name = old.removeprefix("system.")
        if name not in system:
            continue

        value = system.pop(name)
        if warn:
            warn_renamed(old, OWN_RERANKER if name == "rerank" else new)
        if name == "rerank":
            system.setdefault("reranker", value)
        elif value is not None:
            reranker.setdefault(new.removeprefix("reranker."), value)
