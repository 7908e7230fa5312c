"""Rules of isolation: a memory knows its own case, and no question changes it."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.records import Answer
from memeval.systems.base import MemorySystem
from memeval.testing.sample import MARKS, sample_case, sample_chunks
from memeval.testing.under_test import (
    OPEN,
    NotShownError,
    SystemUnderTest,
    expect,
    expect_shown,
    first_difference,
    quoted,
    seen,
    turns_of,
)

FIRST, SECOND = (*MARKS["s1"], *MARKS["s2"]), MARKS["s3"]
"""What is said in one of two cases, and not in the other."""


async def reset_isolates_cases(of: SystemUnderTest) -> None:
    second = sample_case("second", ("s3",))
    used = await of.fill_system(case=sample_case("first", ("s1", "s2")))
    found = await of.finds_any(used, FIRST)
    await of.ingest(used, second)
    of_used = await of.ask_all(used)
    of_fresh = await of.ask_all(await of.fill_system(case=second))

    _expect_nothing_of(of_used, ("s1", "s2"), "after a reset")
    expect(
        [seen(answer) for answer in of_used] == [seen(answer) for answer in of_fresh],
        f"after a reset {first_difference(of_used, of_fresh)}",
        "the answers of a memory that never held another case",
    )
    await _expect_no_marks(of, used, FIRST, "after a reset")
    if _searches(of, used) and not found:
        raise NotShownError("before the reset it did not find what it was given")


async def cases_do_not_mix(of: SystemUnderTest) -> None:
    """Two cases at once: what services that keep one store for all get wrong."""
    first = await of.fill_system(case=sample_case("first", ("s1", "s2")))
    second = await of.fill_system(case=sample_case("second", ("s3",)))
    _expect_nothing_of(await of.ask_all(second), ("s1", "s2"), "in another case")
    _expect_nothing_of(await of.ask_all(first), ("s3",), "in another case")
    await _expect_no_marks(of, second, FIRST, "in another case")
    await _expect_no_marks(of, first, SECOND, "in another case")
    # Only where the same search finds it in its own case is its absence elsewhere worth anything.
    if not _searches(of, first):
        return
    if not await of.finds_any(first, FIRST) or not await of.finds_any(second, SECOND):
        raise NotShownError("what is said in a case was not found in that case either")


def _searches(of: SystemUnderTest, system: MemorySystem) -> bool:
    """Whether it is no control without a memory, or one that is handed the evidence."""
    return of.remembers and not system.wants_evidence


async def _expect_no_marks(
    of: SystemUnderTest, system: MemorySystem, marks: Sequence[str], where: str
) -> None:
    for mark in marks:
        found = await of.finds(system, mark, mark) or await of.finds(system, OPEN, mark)
        expect(not found, f"'{mark}', which was said in another case, was found {where}", "nothing")


def _expect_nothing_of(answers: Sequence[Answer], sessions: Sequence[str], where: str) -> None:
    foreign = sample_chunks(sample_case("foreign", tuple(sessions)))
    turns = {turn for chunk in foreign for turn in chunk.turn_ids}
    for answer in answers:
        leaked = sorted(set(turns_of(answer)) & turns)
        expect(
            not leaked, f"turns {', '.join(leaked)} of a case were found {where}", "only its own"
        )
        for chunk in answer.retrieved or ():
            # By its words, too: a service may return texts without ids.
            said = [other.content for other in foreign if other.content in chunk.text]
            expect(not said, f"{quoted(said)} of a case was found {where}", "only its own texts")


async def same_input_same_output(of: SystemUnderTest) -> None:
    first = await of.ask_all(await of.fill_system())
    second = await of.ask_all(await of.fill_system())
    expect(
        [seen(answer) for answer in first] == [seen(answer) for answer in second],
        f"the same case, ingested twice, {first_difference(first, second)}",
        "the same answers, results and ranking",
    )
    expect_shown(first)


async def questions_change_nothing(of: SystemUnderTest) -> None:
    system = await of.fill_system()
    first, second = await of.ask_all(system), await of.ask_all(system)
    expect(
        [seen(answer) for answer in first] == [seen(answer) for answer in second],
        f"asked a second time, {first_difference(first, second)}",
        "the same answers: a question changes nothing",
    )
    expect_shown(first)
