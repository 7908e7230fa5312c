"""The rules of every memory system, one function per rule.

They run in two ways: as tests of pytest (`memeval.testing.contract`), and against a running service
(`python -m memeval check`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memeval.errors import MemevalError, UserError
from memeval.testing import check_calls as calls
from memeval.testing import check_changes as changes
from memeval.testing import check_content as content
from memeval.testing import check_finding as finding
from memeval.testing import check_isolation as isolation
from memeval.testing import check_saving as saving
from memeval.testing import check_tools as tools
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    SystemUnderTest,
    ViolationError,
    exchanges,
    play,
)
from memeval.text.shown import one_line


@dataclass(frozen=True)
class Check:
    name: str
    """As printed."""
    run: Callable[[SystemUnderTest], Awaitable[None]]
    is_essential: bool = False
    """Whether `check` fails if the rule could not be tested."""


CHECKS = (
    # All others depend on this one: if nothing is found, they can't test anything.
    Check("it finds what it was given", finding.finds_what_it_was_given, is_essential=True),
    Check("it makes nothing up", finding.makes_nothing_up),
    Check("it answers with text", content.answers_with_text),
    Check("no request fails", calls.works_without_a_fault),
    Check("a reset forgets the previous case", isolation.reset_isolates_cases, is_essential=True),
    Check("two cases do not mix", isolation.cases_do_not_mix, is_essential=True),
    Check("two users of one store do not mix", isolation.users_do_not_mix),
    Check("the same input gives the same output", isolation.same_input_same_output),
    Check("questions do not change the memory", isolation.questions_change_nothing),
    Check("forgotten facts are gone", changes.forgets_what_it_is_told_to),
    Check("corrected facts are replaced", changes.corrects_what_it_is_told_to),
    Check("a repeated import loses nothing", changes.takes_a_session_twice),
    Check("dates are kept", content.dates_are_kept),
    Check("turn ids are correct", content.turn_ids_are_true),
    Check("top_k is obeyed", content.top_k_is_obeyed),
    Check("shown chunks head the ranking", content.retrieved_heads_the_ranking),
    Check("survives a context compression", content.compression_keeps_the_window),
    Check("an empty case is answered", content.empty_case),
    Check("all characters are kept", content.unicode_survives),
    Check("a long turn is stored", content.long_turn),
    Check("a saved memory gives the same answers", saving.save_and_load),
    Check("dump() returns JSON-serialisable items", saving.dump_is_plain),
    Check("a damaged memory is refused", saving.damage_is_refused),
    Check("usage adds up", calls.usage_adds_up),
    Check("a failure is not an answer", calls.failure_is_not_an_answer),
)
"""The rules of all systems, in the order in which they are reported."""
OF_TOOLS = (
    Check("its tools find what was stored, in its own case", tools.tools_find_what_was_stored),
    Check("its tools find what they wrote", tools.tools_find_what_they_wrote),
)
"""The rules of systems with their own tools."""


@dataclass(frozen=True)
class CheckResult:
    name: str
    state: str
    """`ok`, `violated`, `not shown` or `not applicable`."""
    seen: str = ""
    """The observation, or why the check does not apply."""
    expected: str = ""
    is_essential: bool = False
    exchanges: tuple[str, ...] = ()
    """Requests and replies, one per line."""

    @property
    def fails(self) -> bool:
        """Whether the system does not pass."""
        return self.state == "violated" or (self.state == "not shown" and self.is_essential)

    @property
    def line(self) -> str:
        reason = self.seen
        if self.expected:
            reason += f"; expected: {self.expected}"

        return f"{self.state:<15} {self.name}" + (f": {reason}" if reason else "")


async def outcome_of(check: Check, sut: SystemUnderTest) -> CheckResult:
    """Runs a check. Any error of a system is a violation, but a `UserError` is raised again."""
    exchanges.clear()
    state, seen, expected = "ok", "", ""
    try:
        await play(check.run, sut)
    except ViolationError as violation:
        state, seen, expected = "violated", one_line(violation.seen, 400), violation.expected
    except NotApplicableError as reason:
        state, seen = "not applicable", str(reason)
    except NotShownError as reason:
        state, seen = "not shown", str(reason)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary of a check
        raised = str(error)
        if not isinstance(error, MemevalError):
            raised = f"{type(error).__name__}: {error}"

        state, seen, expected = "violated", one_line(raised, 400), "no error"

    return CheckResult(check.name, state, seen, expected, check.is_essential, tuple(exchanges))
