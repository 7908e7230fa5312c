"""The conformance suite of memory systems: subclass it, define `build`, and run pytest.

class TestMine(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Mine(Settings(), parts)
"""

import asyncio

import pytest

from memeval.testing.checks import CHECKS, OF_TOOLS, Check
from memeval.testing.under_test import NotApplicableError, NotShownError, SystemUnderTest, play

RULES = (*CHECKS, *OF_TOOLS)


class MemorySystemContract(SystemUnderTest):
    """The rules of every memory system, as pytest tests.

    The rules are those that `python -m memeval check` runs.
    """

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.run.__name__)
    def test_rule(self, rule: Check) -> None:
        # A loop per rule: a system that leaves a task behind affects only its own test.
        try:
            asyncio.run(play(rule.run, self))
        except NotApplicableError as reason:
            pytest.skip(str(reason))
        except NotShownError as reason:
            if rule.is_essential:
                pytest.fail(f"not shown: {reason}")

            pytest.skip(f"not shown: {reason}")
