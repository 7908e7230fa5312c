"""The rules of every memory system, one function per rule.

They run in two ways: as tests of pytest (`memeval.testing.contract`), and against a running service
(`python -m memeval check`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from memeval.errors import MemevalError, UserError
from memeval.testing.check_calls import (
    failure_is_not_an_answer,
    usage_adds_up,
    works_without_a_fault,
)
from memeval.testing.check_changes import (
    corrects_what_it_is_told_to,
    forgets_what_it_is_told_to,
    takes_a_session_twice,
)
from memeval.testing.check_content import (
    answers_with_text,
    compression_keeps_the_window,
    dates_are_kept,
    empty_case,
    long_turn,
    retrieved_heads_the_ranking,
    top_k_is_obeyed,
    turn_ids_are_true,
    unicode_survives,
)
from memeval.testing.check_finding import finds_what_it_was_given, makes_nothing_up
from memeval.testing.check_isolation import (
    cases_do_not_mix,
    questions_change_nothing,
    reset_isolates_cases,
    same_input_same_output,
    users_do_not_mix,
)
from memeval.testing.check_saving import damage_is_refused, dump_is_plain, save_and_load
from memeval.testing.check_tools import tools_find_what_they_wrote, tools_find_what_was_stored
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    SystemUnderTest,
    ViolationError,
    exchanges,
    expect,
    play,
)
from memeval.text.shown import one_line

__all__ = [
    "CHECKS",
    "Check",
    "NotApplicableError",
    "NotShownError",
    "Outcome",
    "SystemUnderTest",
    "ViolationError",
    "answers_with_text",
    "cases_do_not_mix",
    "compression_keeps_the_window",
    "corrects_what_it_is_told_to",
    "damage_is_refused",
    "dates_are_kept",
    "dump_is_plain",
    "empty_case",
    "expect",
    "failure_is_not_an_answer",
    "finds_what_it_was_given",
    "forgets_what_it_is_told_to",
    "long_turn",
    "makes_nothing_up",
    "outcome_of",
    "play",
    "questions_change_nothing",
    "reset_isolates_cases",
    "retrieved_heads_the_ranking",
    "same_input_same_output",
    "save_and_load",
    "takes_a_session_twice",
    "tools_find_what_they_wrote",
    "tools_find_what_was_stored",
    "top_k_is_obeyed",
    "turn_ids_are_true",
    "unicode_survives",
    "usage_adds_up",
    "users_do_not_mix",
    "works_without_a_fault",
]


@dataclass(frozen=True)
class Check:
    """A rule under its name."""

    name: str
    """As printed."""
    run: Callable[[SystemUnderTest], Awaitable[None]]
    is_essential: bool = False
    """Whether `check` fails if it was not put to the test."""


FINDS = Check("it finds what it was given", finds_what_it_was_given, is_essential=True)
"""The rule that all others rest on: if nothing is found, they are not put to the test."""
CHECKS = (
    FINDS,
    Check("it makes nothing up", makes_nothing_up),
    Check("it answers with text", answers_with_text),
    Check("no request fails", works_without_a_fault),
    Check("a reset forgets the case before", reset_isolates_cases, is_essential=True),
    Check("two cases do not mix", cases_do_not_mix, is_essential=True),
    Check("two users of one store do not mix", users_do_not_mix),
    Check("the same input gives the same output", same_input_same_output),
    Check("questions do not change the memory", questions_change_nothing),
    Check("what is to be forgotten is gone", forgets_what_it_is_told_to),
    Check("what is corrected is replaced", corrects_what_it_is_told_to),
    Check("an import that is run twice loses nothing", takes_a_session_twice),
    Check("dates that go in come out", dates_are_kept),
    Check("turn ids are true", turn_ids_are_true),
    Check("top_k is obeyed", top_k_is_obeyed),
    Check("what is shown heads the ranking", retrieved_heads_the_ranking),
    Check("survives a context compression", compression_keeps_the_window),
    Check("an empty case is answered", empty_case),
    Check("any character comes back as it was", unicode_survives),
    Check("a long turn is stored", long_turn),
    Check("a saved memory answers alike", save_and_load),
    Check("dump() returns JSON-serialisable items", dump_is_plain),
    Check("a damaged memory is refused", damage_is_refused),
    Check("usage adds up", usage_adds_up),
    Check("a failure is not an answer", failure_is_not_an_answer),
)
"""The rules of all systems, in the order in which they are reported."""
OF_TOOLS = (
    Check("its tools find what was stored, in its own case", tools_find_what_was_stored),
    Check("its tools find what they wrote", tools_find_what_they_wrote),
)
"""The rules of systems with tools of their own."""


@dataclass(frozen=True)
class Outcome:
    """The result of a check."""

    name: str
    state: str
    """`ok`, `violated`, `not shown` or `not applicable`."""
    seen: str = ""
    """The observation, or why the check does not apply."""
    expected: str = ""
    is_essential: bool = False
    exchanges: tuple[str, ...] = ()
    """Requests and replies, a line each."""

    @property
    def fails(self) -> bool:
        """Whether the system does not pass."""
        return self.state == "violated" or (self.state == "not shown" and self.is_essential)

    @property
    def line(self) -> str:
        """One line for people."""
        reason = self.seen
        if self.expected:
            reason += f"; expected: {self.expected}"

        return f"{self.state:<15} {self.name}" + (f": {reason}" if reason else "")


async def outcome_of(check: Check, of: SystemUnderTest) -> Outcome:
    """Runs a check. Whatever a system raises is a violation; a user's mistake is raised."""
    exchanges.clear()
    outcome = await _outcome(check, of)
    return replace(outcome, is_essential=check.is_essential, exchanges=tuple(exchanges))


async def _outcome(check: Check, of: SystemUnderTest) -> Outcome:
    try:
        await play(check.run, of)
    except ViolationError as violation:
        return Outcome(check.name, "violated", one_line(violation.seen, 400), violation.expected)
    except NotApplicableError as reason:
        return Outcome(check.name, "not applicable", str(reason))
    except NotShownError as reason:
        return Outcome(check.name, "not shown", str(reason))
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary of a check
        raised = str(error)
        if not isinstance(error, MemevalError):
            raised = f"{type(error).__name__}: {error}"

        return Outcome(check.name, "violated", one_line(raised, 400), "no error")

    return Outcome(check.name, "ok")
