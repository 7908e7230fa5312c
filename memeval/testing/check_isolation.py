"""Rules of isolation: a memory knows its own case, and no question changes it."""

from collections.abc import Sequence
from dataclasses import replace

from memeval.pipeline.execute.ingest import ingest
from memeval.records import Answer, ForgetRequest, MemoryChunk, Query
from memeval.testing.sample import MARKS, sample_case, sample_chunks, turn_ids_of
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    Opened,
    SystemUnderTest,
    discard,
    expect,
    expect_alike,
    expect_shown,
    holds,
    quoted,
)

FIRST, SECOND = (*MARKS["s1"], *MARKS["s2"]), MARKS["s3"]
"""Words of one of two cases that the other does not have."""


async def reset_isolates_cases(sut: SystemUnderTest) -> None:
    used = await sut.fill_system(case=sample_case("first", ("s1", "s2")))
    is_found = await sut.finds_any(used, *FIRST)
    await sut.ingest(used, sample_case("second", ("s3",)))
    _expect_nothing_of(await sut.ask_all(used), ("s1", "s2"), "after a reset")
    await _expect_no_marks(sut, used, FIRST, "after a reset")
    if _searches(sut, used) and not is_found:
        raise NotShownError("it did not find the facts before the reset")


async def cases_do_not_mix(sut: SystemUnderTest) -> None:
    """Two cases at the same time: services that keep one store for all often get this wrong."""
    first = await sut.fill_system(case=sample_case("first", ("s1", "s2")))
    second = await sut.fill_system(case=sample_case("second", ("s3",)))
    _expect_nothing_of(await sut.ask_all(second), ("s1", "s2"), "in another case")
    _expect_nothing_of(await sut.ask_all(first), ("s3",), "in another case")
    await _expect_no_marks(sut, second, FIRST, "in another case")
    await _expect_no_marks(sut, first, SECOND, "in another case")
    # Its absence elsewhere counts only if the same search finds it in its own case.
    if not _searches(sut, first):
        return
    if not await sut.finds_any(first, *FIRST) or not await sut.finds_any(second, *SECOND):
        raise NotShownError("what is said in a case was not found in that case either")


async def users_do_not_mix(sut: SystemUnderTest) -> None:
    """Two users of one store: neither finds or removes anything of the other's."""
    memory = sut.start(sut.model())
    if not memory.system.knows_users(memory.system.settings):
        await discard(memory)
        raise NotApplicableError("it does not tell users apart: knows_users() is False")

    users = {
        "user-1": sample_chunks(sample_case(sessions=("s1", "s2"))),
        "user-2": sample_chunks(sample_case(sessions=("s3",))),
    }
    chunks: list[MemoryChunk] = []
    for user, own_chunks in users.items():
        chunks += [replace(chunk, user=user) for chunk in own_chunks]

    await ingest(memory, chunks, (), 0)
    marks = {user: await _marks_of(memory, user) for user in users}
    for user, facts, others in (("user-1", FIRST, SECOND), ("user-2", SECOND, FIRST)):
        seen_of_others = marks[user].intersection(others)
        expect(
            not seen_of_others,
            f"{quoted(sorted(seen_of_others))}, which another user said, was found",
            "only what the user said who asks",
        )
        if not marks[user].intersection(facts):
            raise NotShownError(f"{user} did not find what was said by {user} either")

    request = ForgetRequest(words="Forget it.", about=SECOND[0], user="user-1")
    if await memory.call("forget", request) is not None:
        kept = await _marks_of(memory, "user-2")
        expect(
            kept == marks["user-2"],
            f"'{SECOND[0]}' of one user is gone, as another one wanted it forgotten",
            "what another user said stays",
        )


async def _marks_of(memory: Opened, user: str) -> set[str]:
    marks = set()
    for mark in (*FIRST, *SECOND):
        for result in await memory.call("probe", Query(mark, user=user), 10) or ():
            if holds(result.text, mark, mark):
                marks.add(mark)

    return marks


def _searches(sut: SystemUnderTest, memory: Opened) -> bool:
    """Whether it is a system with a memory that does not get the evidence."""
    return sut.remembers and not memory.system.wants_evidence


async def _expect_no_marks(
    sut: SystemUnderTest, memory: Opened, marks: Sequence[str], where: str
) -> None:
    for mark in marks:
        leaks = await sut.finds_any(memory, mark)
        expect(not leaks, f"'{mark}', which was said in another case, was found {where}", "nothing")


def _expect_nothing_of(answers: Sequence[Answer], sessions: Sequence[str], where: str) -> None:
    foreign = sample_chunks(sample_case("foreign", tuple(sessions)))
    turns = turn_ids_of(foreign)
    for answer in answers:
        leaked = sorted(turn_ids_of(answer.retrieved or ()) & turns)
        expect(
            not leaked, f"turns {', '.join(leaked)} of a case were found {where}", "only its own"
        )
        for chunk in answer.retrieved or ():
            # Also by its words: a service may return texts without ids.
            foreign_texts = [other.content for other in foreign if other.content in chunk.text]
            expect(
                not foreign_texts,
                f"{quoted(foreign_texts)} of a case was found {where}",
                "only its own texts",
            )


async def same_input_same_output(sut: SystemUnderTest) -> None:
    """Also after a reset: statistics of another case may survive it."""
    used = await sut.fill_system(case=sample_case(sessions=("s3",)))
    await sut.ingest(used, sample_case())
    of_used = await sut.ask_all(used)
    of_fresh = await sut.ask_all(await sut.fill_system())
    when = "the same case, after a reset and in a fresh memory,"
    expect_alike(of_used, of_fresh, when, "the same answers, results and ranking")
    expect_shown(of_used)


async def questions_change_nothing(sut: SystemUnderTest) -> None:
    memory = await sut.fill_system()
    first, second = await sut.ask_all(memory), await sut.ask_all(memory)
    expect_alike(
        first, second, "asked a second time,", "the same answers: a question changes nothing"
    )
    expect_shown(first)
