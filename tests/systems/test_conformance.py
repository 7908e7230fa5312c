"""Every built-in system keeps to the contract that plug-in authors are held to, under the
settings of its own YAML.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from memeval.config.settings import NOT_SETTINGS
from memeval.runs.compose.config import compose_config
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.registry import SYSTEMS as REGISTRY
from memeval.systems.registry import build_system, built_in
from memeval.testing.contract import MemorySystemContract

ELSEWHERE = {"letta", "http", "mcp", "command"}
"""Systems that need a server of their own; their own tests run against one."""


@cache
def settings_in_yaml(name: str) -> dict[str, Any]:
    """What `conf/system/<name>.yaml` sets, with what it takes from other files."""
    system = compose_config([f"system={name}"]).system
    return {key: value for key, value in system.items() if key not in NOT_SETTINGS}


def settings_under_test(name: str) -> dict[str, Any]:
    """The settings of the YAML, but for a form whose words need not be those of a turn."""
    settings = settings_in_yaml(name)
    return {**settings, "show": "full"} if settings.get("show") == "compact" else settings


def suite(name: str) -> type[MemorySystemContract]:
    class Suite(MemorySystemContract):
        remembers = name not in ("no_memory", "constant")
        # cogcanvas has a top_k of its own.
        bound_by_top_k = name != "oracle" and not name.startswith("cogcanvas")

        def build(self, parts: SystemContext) -> MemorySystem:
            # Composed here and not above: pytest reads this file in every worker.
            return build_system(name, settings_under_test(name), parts)

        def silent(self) -> bool:
            return name == "constant"

    Suite.__name__ = Suite.__qualname__ = f"Test{''.join(word.title() for word in name.split('_'))}"
    return Suite


SYSTEMS = sorted(set(built_in()) - ELSEWHERE)
# `make test` tests one name of each class.
FIRST_OF_CLASS = {REGISTRY.path_of(name): name for name in SYSTEMS[::-1]}
for one in SYSTEMS:
    made = suite(one)
    is_first = one in FIRST_OF_CLASS.values()
    globals()[made.__name__] = made if is_first else pytest.mark.slow(made)
del made


@pytest.mark.slow
def test_no_two_names_are_the_same_system_under_the_same_settings() -> None:
    settings = [
        (REGISTRY.path_of(name), repr(sorted(settings_in_yaml(name).items())))
        for name in built_in()
    ]
    assert len(settings) == len(set(settings))
