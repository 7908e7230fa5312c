"""Rules of isolation: a memory knows its own case, and no question changes it."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.pipeline.ingest import ingest
from memeval.records import Answer
from memeval.testing.sample import sample_case, sample_chunks
from memeval.testing.under_test import (
    SystemUnderTest,
    expect,
    first_difference,
    quoted,
    seen,
    turns_of,
)


async def reset_isolates_cases(of: SystemUnderTest) -> None:
    second = sample_case("second", ("s3",))
    used = await of.fill_system(case=sample_case("first", ("s1", "s2")))
    await ingest(used, sample_chunks(second), (), 2)
    of_used = await of.ask_all(used)
    of_fresh = await of.ask_all(await of.fill_system(case=second))

    _expect_nothing_of(of_used, ("s1", "s2"), "after a reset")
    expect(
        [seen(answer) for answer in of_used] == [seen(answer) for answer in of_fresh],
        f"after a reset {first_difference(of_used, of_fresh)}",
        "the answers of a memory that never held another case",
    )


async def cases_do_not_mix(of: SystemUnderTest) -> None:
    """Two cases at once: what services that keep one store for all get wrong."""
    first = await of.fill_system(case=sample_case("first", ("s1", "s2")))
    second = await of.fill_system(case=sample_case("second", ("s3",)))
    _expect_nothing_of(await of.ask_all(second), ("s1", "s2"), "in another case")
    _expect_nothing_of(await of.ask_all(first), ("s3",), "in another case")


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


async def questions_change_nothing(of: SystemUnderTest) -> None:
    system = await of.fill_system()
    first, second = await of.ask_all(system), await of.ask_all(system)
    expect(
        [seen(answer) for answer in first] == [seen(answer) for answer in second],
        f"asked a second time, {first_difference(first, second)}",
        "the same answers: a question changes nothing",
    )
