"""Rules of change: forgotten facts are gone, corrected ones are replaced, and a repeated import
loses nothing.
"""

from typing import Any

from memeval.pipeline.execute.ingest import await_ready
from memeval.records import CorrectRequest, ForgetRequest, OracleForgetRequest
from memeval.testing.sample import MARKS, sample_case, sample_chunks
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    Opened,
    SystemUnderTest,
    expect,
)
from memeval.text.shown import one_line

THING, OTHER = "greyhound", "whippet"
"""Words that are forgotten or corrected, in the turn that is the evidence of every question."""
KEPT = ("rye", *MARKS["s2"], *MARKS["s3"])
"""Words of turns that must not change."""
SHOWN = 40
"""More than the number of chunks, so that no chunk is missing because it ranks low."""
FORGET = ForgetRequest(words=f"Please forget the {THING}.", about=THING)
CORRECT = CorrectRequest(words=f"It is no {THING}, it is a {OTHER}.", old=THING, new=OTHER)


async def forgets_what_it_is_told_to(sut: SystemUnderTest) -> None:
    memory = await sut.fill_system(top_k=SHOWN)
    request: Any = FORGET
    if memory.system.wants_evidence:
        request = OracleForgetRequest(words=FORGET.words, about=FORGET.about, values=(THING,))

    await _expect_changed(sut, memory, "forget", request)
    # A mark that only hides the forgotten item may be lost in maintenance.
    await memory.call("consolidate")
    await await_ready(memory)
    expect(
        not await sut.finds_any(memory, THING), f"after consolidate(), '{THING}' is back", "nothing"
    )


async def corrects_what_it_is_told_to(sut: SystemUnderTest) -> None:
    memory = await sut.fill_system(top_k=SHOWN)
    await _expect_changed(sut, memory, "correct", CORRECT)
    expect(await sut.finds_any(memory, OTHER), f"'{OTHER}' was not found", "the corrected word")


async def takes_a_session_twice(sut: SystemUnderTest) -> None:
    memory = await sut.fill_system(top_k=SHOWN)
    known = await _known_words(sut, memory, (THING, *KEPT))
    for chunk in sample_chunks(sample_case(sessions=("s1",))):
        await memory.call("ingest", chunk)

    await memory.call("consolidate")
    await await_ready(memory)
    await _expect_kept(sut, memory, known, "after a session was imported again")
    if not known:
        raise NotShownError("it found nothing before either")


async def _expect_changed(sut: SystemUnderTest, memory: Opened, name: str, request: Any) -> None:
    """Expects that a request removes the thing from a system, and nothing else."""
    known, was_found = await _known_words(sut, memory, KEPT), await sut.finds_any(memory, THING)
    items = await memory.call(name, request)
    if items is None:
        raise NotApplicableError(f"it does not support {name}()")

    await await_ready(memory)
    is_count = isinstance(items, int) and not isinstance(items, bool) and items >= 0
    expect(is_count, f"{name}() returned {one_line(items, 60)}", "how many items it changed")
    expect(not await sut.finds_any(memory, THING), f"'{THING}' was found after {name}()", "nothing")
    await _expect_kept(sut, memory, known, f"after {name}() of another fact")
    if not was_found:
        raise NotShownError(f"it did not find '{THING}' before {name}()")

    expect(items > 0, f"{name}() returned 0, but '{THING}' is gone", "how many items it changed")


async def _known_words(sut: SystemUnderTest, memory: Opened, words: tuple[str, ...]) -> list[str]:
    return [word for word in words if await sut.finds_any(memory, word)]


async def _expect_kept(sut: SystemUnderTest, memory: Opened, words: list[str], when: str) -> None:
    for word in words:
        expect(
            await sut.finds_any(memory, word),
            f"'{word}' was not found {when}",
            "the same as before",
        )
