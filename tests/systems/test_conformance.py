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
from memeval.testing.checks import Check
from memeval.testing.contract import RULES, MemorySystemContract

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
FIRST_OF_CLASS = {REGISTRY.path_of(name): name for name in SYSTEMS[::-1]}
LONGER = ("cases_do_not_mix", "empty_case", "unicode_survives", "long_turn")
"""Rules that settings do not change: `make test` looks at one name of each class."""
SAMPLED = [
    pytest.param(rule, marks=[pytest.mark.slow] if rule.run.__name__ in LONGER else [])
    for rule in RULES
]


def sampled(made: type[MemorySystemContract]) -> type[MemorySystemContract]:
    """The suite with the rules of `LONGER` marked as slow."""

    class Sampled(made):
        @pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.run.__name__)
        def test_rule(self, rule: Check) -> None:
            super().test_rule(rule)

    Sampled.__name__ = Sampled.__qualname__ = made.__name__
    return Sampled


for one in SYSTEMS:
    made = suite(one)
    globals()[made.__name__] = made if one in FIRST_OF_CLASS.values() else sampled(made)
del made


def test_no_two_names_are_the_same_system_under_the_same_settings() -> None:
    settings = [
        (REGISTRY.path_of(name), repr(sorted(settings_in_yaml(name).items())))
        for name in built_in()
    ]
    assert len(settings) == len(set(settings))
