"""Every built-in system obeys the contract of plug-ins, with the settings of its YAML."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from memeval.config.settings import NOT_SETTINGS, read_settings
from memeval.runs.compose.config import compose_config
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.registry import SYSTEMS as REGISTRY
from memeval.systems.registry import built_in, system_class
from memeval.testing.contract import MemorySystemContract

ELSEWHERE = {"letta", "http", "mcp", "command"}
"""Systems that need a server; their own tests run against one."""


@cache
def settings_in_yaml(name: str) -> dict[str, Any]:
    """The settings in `conf/system/<name>.yaml`, with those from its list of defaults."""
    system = compose_config([f"system={name}"]).system
    return {key: value for key, value in system.items() if key not in NOT_SETTINGS}


def settings_under_test(name: str) -> dict[str, Any]:
    """The settings of the YAML, except for a compact form, which need not contain words of a
    turn.
    """
    settings = settings_in_yaml(name)
    return {**settings, "show": "full"} if settings.get("show") == "compact" else settings


def suite(name: str) -> type[MemorySystemContract]:
    class Suite(MemorySystemContract):
        remembers = name not in ("no_memory", "constant")
        # cogcanvas has its own top_k.
        bound_by_top_k = name != "oracle" and not name.startswith("cogcanvas")

        def build(self, parts: SystemContext) -> MemorySystem:
            # Composed only here: pytest imports this file in every worker.
            system = system_class(name)
            return system(read_settings(system.settings_type, settings_under_test(name)), parts)

        def silent(self) -> bool:
            return name == "constant"

    Suite.__name__ = Suite.__qualname__ = f"Test{''.join(word.title() for word in name.split('_'))}"
    return Suite


SYSTEMS = sorted(set(built_in()) - ELSEWHERE)
# `make test` tests only one name per class.
FIRST_OF_CLASS = {REGISTRY.path_of(name): name for name in SYSTEMS[::-1]}
for one in SYSTEMS:
    made = suite(one)
    is_first = one in FIRST_OF_CLASS.values()
    globals()[made.__name__] = made if is_first else pytest.mark.slow(made)
del made


@pytest.mark.slow
def test_no_two_names_are_the_same_class_with_the_same_settings() -> None:
    settings = [
        (REGISTRY.path_of(name), repr(sorted(settings_in_yaml(name).items())))
        for name in built_in()
    ]
    assert len(settings) == len(set(settings))
