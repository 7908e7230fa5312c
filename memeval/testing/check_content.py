"""Rules on content: dates, turn ids, rankings and characters are returned unchanged."""

import re
from collections.abc import Sequence
from datetime import datetime

from memeval.llm.metering import Ledger, metered
from memeval.records import Answer, EvalCase, Query, Session, format_time
from memeval.systems.base import MORE_THAN_ASKED, RecallSystem
from memeval.testing.sample import QUESTIONS, sample_chunks, turn_ids_of
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    SystemUnderTest,
    expect,
    expect_shown,
    prompt_texts,
    quoted,
    retrieved_in,
)
from memeval.text.shown import one_line

_DATE = re.compile(r"\d{1,2}:\d\d [ap]m on \d{1,2} [A-Z][a-z]+ \d{4}")

UNICODE = (
    "Der Zug nach Köln fährt um 7 – „pünktlich“.",
    "猫の名前はミケです。",
    "اسم القطة سمسم",
    'The code name is \N{ROCKET}e\N{COMBINING ACUTE ACCENT} <b>&amp;</b> "quoted" \\ {braces} %s',
)
LONG_TURN_CHARACTERS = 60_000


async def answers_with_text(sut: SystemUnderTest) -> None:
    answers = await sut.ask_all(await sut.fill_system())
    for answer in answers:
        expect(isinstance(answer, Answer), f"a {type(answer).__name__}", "an Answer")
        expect(bool(answer.text.strip()), "an empty answer", "an answer in words")


async def dates_are_kept(sut: SystemUnderTest) -> None:
    model = sut.model()
    answers = await sut.ask_all(await sut.fill_system(model))
    known = {
        format_time(chunk.time): set(chunk.turn_ids)
        for chunk in sample_chunks(granularity="session")
        if chunk.time
    }
    shown = " ".join(prompt_texts(model.prompts))
    # Everything that the model saw: a made-up date from any source misleads it.
    invented = sorted(set(_DATE.findall(shown)) - set(known))
    expect(not invented, f"a shown date that no turn has: {quoted(invented)}", "dates of turns")

    times: dict[str, datetime | None] = {}
    for stored in sample_chunks():
        times |= dict.fromkeys(stored.turn_ids, stored.time)

    for chunk in retrieved_in(answers):
        for date in _DATE.findall(chunk.text):
            expect(
                not chunk.turn_ids or bool(set(chunk.turn_ids) & known.get(date, set())),
                f"{quoted([chunk.text])} has the date of another session",
                "the date of its own turns",
            )

        of_turns = {times[turn] for turn in chunk.turn_ids if turn in times}
        expect(
            # Services add a time zone.
            chunk.time is None or not of_turns or chunk.time.replace(tzinfo=None) in of_turns,
            f"the time {chunk.time} of {quoted([chunk.text])}",
            f"that of its turns, {', '.join(sorted(map(str, of_turns)))}",
        )

    if not any(chunk.time for chunk in retrieved_in(answers)) and not _DATE.search(shown):
        raise NotShownError("neither a date nor a time was returned")


async def turn_ids_are_true(sut: SystemUnderTest) -> None:
    text_of_turn = {chunk.turn_ids[0]: chunk.content.split(": ", 1)[1] for chunk in sample_chunks()}
    chunks = list(retrieved_in(await sut.ask_all(await sut.fill_system())))
    if not turn_ids_of(chunks):
        raise NotShownError("no result came with turn ids")

    for chunk in chunks:
        for turn in chunk.turn_ids:
            expect(turn in text_of_turn, f"turn id '{one_line(turn, 60)}'", "ids of stored turns")
            expect(
                any(words in chunk.text for words in runs_of_words(text_of_turn[turn])),
                f"{quoted([chunk.text])} contains nothing of turn {turn}",
                "only turns that the chunk covers",
            )


async def top_k_is_obeyed(sut: SystemUnderTest) -> None:
    if not sut.bound_by_top_k:
        raise NotApplicableError("it always returns everything, at any top_k")

    for top_k in (1, 3):
        answers = await sut.ask_all(await sut.fill_system(top_k=top_k))
        expect_shown(answers)
        for answer in answers:
            count = len(answer.retrieved or ())
            expect(count <= top_k, f"top_k={top_k} returned {count} chunks", f"at most {top_k}")

    memory = await sut.fill_system()
    if isinstance(memory.system, RecallSystem):
        with metered(Ledger()) as ledger:
            await memory.call("recall", Query(QUESTIONS[0]), 2)

        # `recall` may truncate the service's results: a remark says so.
        noted = ledger.remarks.get(MORE_THAN_ASKED, "")
        expect(not noted, noted, "at most top_k")


async def retrieved_heads_the_ranking(sut: SystemUnderTest) -> None:
    answers = await sut.ask_all(await sut.fill_system())
    expect_shown(answers)
    for answer in answers:
        if answer.ranking is not None:
            retrieved = [chunk.turn_ids for chunk in answer.retrieved or ()]
            expect(
                list(answer.ranking[: len(retrieved)]) == retrieved,
                "a ranking that begins with other chunks than those shown",
                "the chunks shown first",
            )


async def compression_keeps_the_window(sut: SystemUnderTest) -> None:
    model = sut.model()
    answers = await sut.ask_all(await sut.fill_system(model, compress_after=(4, 8)))
    for answer in answers:
        expect(bool(answer.text.strip()), "an empty answer", "an answer in words")

    expect(
        bool(model.prompts) or sut.silent(), "it did not call its model", "answers of the reader"
    )


async def empty_case(sut: SystemUnderTest) -> None:
    """A case without a single chunk is answered, or refused with an error."""
    memory = await sut.fill_system(case=EvalCase("empty", (), ()))
    if memory.system.wants_evidence:
        raise NotApplicableError("it is handed the evidence, and an empty case has none")

    answer = await sut.ask(memory, QUESTIONS[0])
    held = [chunk.text for chunk in answer.retrieved or ()]
    expect(not held, f"an empty case held {quoted(held)}", "nothing found")


async def unicode_survives(sut: SystemUnderTest) -> None:
    case = _case_of("unicode", UNICODE)
    memory = await sut.fill_system(case=case, top_k=len(UNICODE))
    contents = {chunk.turn_ids: chunk.content for chunk in sample_chunks(case)}
    shows, whole = False, 0
    for text in UNICODE:
        retrieved = (await sut.ask(memory, text)).retrieved
        shows = shows or retrieved is not None
        for chunk in retrieved or ():
            whole += any(content in chunk.text for content in contents.values())
            content = contents.get(chunk.turn_ids, "")
            # ASCII words survive any change to the other characters of a text.
            words = re.findall(r"[A-Za-z]{3,}", content)
            if not words or not all(word in chunk.text for word in words):
                continue  # a system that extracts writes its own texts

            expect(
                content in chunk.text,
                f"{quoted([chunk.text])} came out",
                f"{quoted([content])}, character by character",
            )

    if shows and not whole:
        raise NotShownError("none of the texts was found")


async def long_turn(sut: SystemUnderTest) -> None:
    """A turn of 60,000 characters is stored, or refused with an error."""
    filler = " ".join(f"word{number}" for number in range(LONG_TURN_CHARACTERS // 10))
    case = _case_of("long", ("The kayak is red.", f"The harbour code is 4417. {filler}"))
    memory = await sut.fill_system(case=case)
    answer = await sut.ask(memory, "What is the harbour code?")
    expect(bool(answer.text.strip()), "an empty answer", "an answer in words")


def _case_of(case_id: str, texts: Sequence[str]) -> EvalCase:
    time = datetime(2021, 5, 6, 7, 8)
    session = Session.of(case_id, (("Ilse", text) for text in texts), time=time)
    return EvalCase(case_id, (session,), (), ("Ilse",))


def runs_of_words(text: str, length: int = 3) -> list[str]:
    """All sequences of `length` words in a string; the whole string if it is shorter."""
    words = text.split()
    return [" ".join(words[at : at + length]) for at in range(max(1, len(words) - length + 1))]
