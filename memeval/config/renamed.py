"""Options that have a new name. The old name works for a while, with a warning.

Hydra loads an option by its name, wherever a user writes that name: on the command line, in the
lists of a sweep, in a defaults list. So our config source serves the old names (`integers.py`).
Code that takes a name without Hydra, such as `data fetch NAME`, calls `current_name`.
"""

from __future__ import annotations

import os
import sys

from memeval.config.paths import conf_dir

RENAMED: dict[str, dict[str, str]] = {
    "system": {"embedding_only": "dense"},
    "dataset": {"memae": "memory_agent_bench", "demo_memae": "demo_memory_agent_bench"},
    "judge": {"memae": "memory_agent_bench"},
    "granularity": {"exchange": "round"},
}
"""Old name -> new name, by group."""

UNTIL = "0.3"
"""The release that no longer knows the old names."""

_WARNED = "MEMEVAL_WARNED"
"""Environment variable with the names that were warned of. Workers inherit it, and stay silent."""


def renamed_to(group: str, name: str) -> str | None:
    """The new name of an option; None where `name` is not an old name."""
    new = RENAMED.get(group, {}).get(name)
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
    """A word of the command line with the new name of its option. Other words stay as they are."""
    key, equals, value = word.partition("=")
    new = renamed_to(key.lstrip("+"), value.strip("'\""))
    return word if new is None else f"{key}{equals}{new}"


def warn_renamed(old: str, new: str) -> None:
    """Says on stderr that a name is an old one, once per name."""
    warned = os.environ.get(_WARNED, "").split()
    if old in warned:
        return

    os.environ[_WARNED] = " ".join([*warned, old])
    sys.stderr.write(f"memeval: {old} is now called {new}; the old name works until {UNTIL}\n")
