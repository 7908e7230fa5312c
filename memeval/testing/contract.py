"""The conformance suite of memory systems: subclass it, define `build`, and run pytest.

class TestMine(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Mine(Settings(), parts)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from memeval.testing import checks
from memeval.testing.checks import SystemUnderTest


class MemorySystemContract(SystemUnderTest):
    """The rules of every memory system, as tests of pytest.

    The rules are those of `memeval.testing.checks`, which `python -m memeval check` runs as well.
    """

    def _play(self, check: Callable[[SystemUnderTest], Awaitable[None]]) -> None:
        # A loop per rule: a system that leaves a task behind spoils only its own test.
        try:
            asyncio.run(checks.play(check, self))
        except checks.NotApplicableError as reason:
            pytest.skip(str(reason))
        except checks.NotShownError as reason:
            essential = [rule.run for rule in checks.CHECKS if rule.is_essential]
            if check in essential:
                pytest.fail(f"not shown: {reason}")

            pytest.skip(f"not shown: {reason}")

    def test_it_finds_what_it_was_given(self) -> None:
        self._play(checks.finds_what_it_was_given)

    def test_it_makes_nothing_up(self) -> None:
        self._play(checks.makes_nothing_up)

    def test_it_answers_with_text(self) -> None:
        self._play(checks.answers_with_text)

    def test_reset_isolates_cases(self) -> None:
        self._play(checks.reset_isolates_cases)

    def test_cases_do_not_mix(self) -> None:
        self._play(checks.cases_do_not_mix)

    def test_two_users_of_one_store_do_not_mix(self) -> None:
        self._play(checks.users_do_not_mix)

    def test_the_same_input_gives_the_same_output(self) -> None:
        self._play(checks.same_input_same_output)

    def test_questions_do_not_change_memory(self) -> None:
        self._play(checks.questions_change_nothing)

    def test_what_is_to_be_forgotten_is_gone(self) -> None:
        self._play(checks.forgets_what_it_is_told_to)

    def test_what_is_corrected_is_replaced(self) -> None:
        self._play(checks.corrects_what_it_is_told_to)

    def test_an_import_that_is_run_twice_loses_nothing(self) -> None:
        self._play(checks.takes_a_session_twice)

    def test_dates_that_go_in_come_out(self) -> None:
        self._play(checks.dates_are_kept)

    def test_turn_ids_are_true(self) -> None:
        self._play(checks.turn_ids_are_true)

    def test_top_k_is_obeyed(self) -> None:
        self._play(checks.top_k_is_obeyed)

    def test_what_was_retrieved_heads_the_ranking(self) -> None:
        self._play(checks.retrieved_heads_the_ranking)

    def test_compression_keeps_the_window(self) -> None:
        self._play(checks.compression_keeps_the_window)

    def test_its_tools_find_what_was_stored_in_its_own_case(self) -> None:
        self._play(checks.tools_find_what_was_stored)

    def test_its_tools_find_what_they_wrote(self) -> None:
        self._play(checks.tools_find_what_they_wrote)

    def test_an_empty_case_is_answered(self) -> None:
        self._play(checks.empty_case)

    def test_unicode_survives(self) -> None:
        self._play(checks.unicode_survives)

    def test_a_long_turn_is_stored(self) -> None:
        self._play(checks.long_turn)

    def test_save_and_load_round_trip_to_identical_answers(self) -> None:
        self._play(checks.save_and_load)

    def test_what_it_dumps_is_plain_and_the_same_after_a_load(self) -> None:
        self._play(checks.dump_is_plain)

    def test_a_truncated_memory_is_refused_or_answers_alike(self) -> None:
        self._play(checks.damage_is_refused)

    def test_usage_adds_up(self) -> None:
        self._play(checks.usage_adds_up)

    def test_a_failing_model_is_an_error_and_not_an_answer(self) -> None:
        self._play(checks.failure_is_not_an_answer)
