"""What every memory system must do, one function per rule.

They run in two ways: as tests of pytest (`memeval.testing.contract`), and against a running service
(`python -m memeval check`).
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memeval.embedding.contract import Embedder
from memeval.embedding.tfidf import CharTfidfEmbedder
from memeval.errors import MemevalError, ModelError
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.builder import wait_from_thread
from memeval.pipeline.ingest import call_method, ingest
from memeval.pipeline.reader import CellReader
from memeval.prompts import load_builtin
from memeval.records import (
    Answer,
    EvalCase,
    OracleQuery,
    Query,
    Retrieved,
    Session,
    Turn,
    format_time,
)
from memeval.shown import one_line
from memeval.systems.base import (
    MORE_THAN_ASKED,
    NOISE,
    TRIED_AGAIN,
    DumpItem,
    MemorySystem,
    RecallSystem,
    SystemContext,
)
from memeval.testing.model import ScriptedModel
from memeval.testing.sample import QUESTIONS, sample_case, sample_chunks

_DATE = re.compile(r"\d{1,2}:\d\d [ap]m on \d{1,2} [A-Z][a-z]+ \d{4}")

UNICODE = (
    "Der Zug nach Köln fährt um 7 – „pünktlich“.",
    "猫の名前はミケです。",
    "اسم القطة سمسم",
    'The code name is \N{ROCKET}e\N{COMBINING ACUTE ACCENT} <b>&amp;</b> "quoted" \\ {braces} %s',
)
LONG_TURN_CHARACTERS = 60_000


class ViolationError(AssertionError):
    """A rule is broken: what was seen, and what was expected."""

    def __init__(self, seen: str, expected: str) -> None:
        super().__init__(f"{seen}; expected: {expected}")
        self.seen, self.expected = seen, expected


class NotApplicableError(Exception):
    """The rule says nothing of this system, and why."""


def expect(holds: bool, seen: str, expected: str) -> None:
    """Raises `ViolationError` unless `holds`."""
    if not holds:
        raise ViolationError(seen, expected)


class SystemUnderTest:
    """How the checks build and use a system: subclasses say which.

    Questions, dates and turns are those of `memeval.testing.sample`.
    """

    bound_by_top_k = True
    """False for controls that show all they have, whatever top_k is."""

    def build(self, parts: SystemContext) -> MemorySystem:
        """A fresh system, built from `parts`."""
        raise NotImplementedError("define build() in your subclass")

    def model(self) -> ScriptedModel:
        """The model of the checks: the offline reader, unless the system needs another."""
        return ScriptedModel()

    def embedder(self) -> Embedder:
        """The embedder of the checks."""
        return CharTfidfEmbedder()

    def silent(self) -> bool:
        """True for a system that never asks the cell's model or reader."""
        return False

    def parts(
        self, model: ScriptedModel, *, top_k: int = 3, case_id: str = "sample"
    ) -> SystemContext:
        """The context around a model; must be called on a running event loop."""
        loop = asyncio.get_running_loop()
        return SystemContext(
            reader=CellReader(model, load_builtin("answer_short"), "short", 0),
            model=model,
            embedder=self.embedder(),
            top_k=top_k,
            seed=0,
            case_id=case_id,
            run_sync=lambda awaitable: wait_from_thread(awaitable, loop),
        )

    async def fill_system(
        self,
        model: ScriptedModel | None = None,
        case: EvalCase | None = None,
        *,
        top_k: int = 3,
        compress_after: Sequence[int] = (),
        retain: int = 2,
    ) -> MemorySystem:
        """A system that has ingested a case, compressed after each number of chunks."""
        case = case or sample_case()
        parts = self.parts(model or self.model(), top_k=top_k, case_id=case.case_id)
        system = self.start(parts)
        await ingest(system, sample_chunks(case), compress_after, retain)
        return system

    def start(self, parts: SystemContext) -> MemorySystem:
        """A fresh system, which `play` closes."""
        system = self.build(parts)
        _OPEN.append(system)
        return system

    async def ask(self, system: MemorySystem, question: str) -> Answer:
        query = (
            OracleQuery(question, evidence=("s1:1",)) if system.wants_evidence else Query(question)
        )
        answer: Answer = await call_method(system, system.answer, query)
        return answer

    async def ask_all(self, system: MemorySystem) -> list[Answer]:
        return [await self.ask(system, question) for question in QUESTIONS]

    async def dump(self, system: MemorySystem) -> list[DumpItem]:
        """What the system extracted or wrote; nothing if it says None."""
        items: Iterable[DumpItem] | None = await call_method(system, system.dump)
        return [dict(item) for item in items or ()]


_OPEN: list[MemorySystem] = []
"""Systems that the running check has built."""


async def play(check: Callable[[SystemUnderTest], Awaitable[None]], of: SystemUnderTest) -> None:
    """Runs a check, and closes what it built."""
    before = len(_OPEN)
    try:
        await check(of)
    finally:
        while len(_OPEN) > before:
            system = _OPEN.pop()
            await call_method(system, system.close)


# The rules


async def answers_with_text(of: SystemUnderTest) -> None:
    answers = await of.ask_all(await of.fill_system())
    for answer in answers:
        expect(isinstance(answer, Answer), f"a {type(answer).__name__}", "an Answer")
        expect(bool(answer.text.strip()), "an empty answer", "a text")


async def works_without_a_fault(of: SystemUnderTest) -> None:
    with metered(Ledger()) as ledger:
        await of.ask_all(await of.fill_system())

    for remark in (TRIED_AGAIN, NOISE):
        told = ledger.remarks.get(remark, "")
        expect(not told, told, "every request answered at once, and nothing else written")


async def reset_isolates_cases(of: SystemUnderTest) -> None:
    second = sample_case("second", ("s3",))
    used = await of.fill_system(case=sample_case("first", ("s1", "s2")))
    await ingest(used, sample_chunks(second), (), 2)
    of_used = await of.ask_all(used)
    of_fresh = await of.ask_all(await of.fill_system(case=second))

    _expect_nothing_of(of_used, ("s1", "s2"), "after a reset")
    expect(
        [seen(answer) for answer in of_used] == [seen(answer) for answer in of_fresh],
        f"after a reset {_first_difference(of_used, of_fresh)}",
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
            not leaked, f"turns {', '.join(leaked)} of a case were found {where}", "its own alone"
        )
        for chunk in answer.retrieved or ():
            said = [one.content for one in foreign if one.content in chunk.text]
            expect(not said, f"{_quoted(said)} of a case was found {where}", "its own texts alone")


async def same_input_same_output(of: SystemUnderTest) -> None:
    first = await of.ask_all(await of.fill_system())
    second = await of.ask_all(await of.fill_system())
    expect(
        [seen(answer) for answer in first] == [seen(answer) for answer in second],
        f"the same case, ingested twice, {_first_difference(first, second)}",
        "the same answers, results and ranking",
    )


async def questions_change_nothing(of: SystemUnderTest) -> None:
    system = await of.fill_system()
    first, second = await of.ask_all(system), await of.ask_all(system)
    expect(
        [seen(answer) for answer in first] == [seen(answer) for answer in second],
        f"asked a second time, {_first_difference(first, second)}",
        "the same answers: a question changes nothing",
    )


async def dates_are_kept(of: SystemUnderTest) -> None:
    model = of.model()
    answers = await of.ask_all(await of.fill_system(model))
    known = {
        format_time(chunk.time): set(chunk.turn_ids)
        for chunk in sample_chunks(granularity="session")
        if chunk.time
    }
    shown = " ".join(
        message["content"] for _, prompt in model.prompts for message in prompt.messages()
    )
    invented = sorted(set(_DATE.findall(shown)) - set(known))
    expect(
        not invented, f"a date was shown that no turn has: {_quoted(invented)}", "dates of turns"
    )

    times = {turn: chunk.time for chunk in sample_chunks() for turn in chunk.turn_ids}
    for chunk in retrieved_in(answers):
        for date in _DATE.findall(chunk.text):
            expect(
                not chunk.turn_ids or bool(set(chunk.turn_ids) & known.get(date, set())),
                f"{_quoted([chunk.text])} has the date of another session",
                "the date of its own turns",
            )

        of_turns = {times[turn] for turn in chunk.turn_ids if turn in times}
        expect(
            chunk.time is None or not of_turns or _naive(chunk.time) in of_turns,
            f"the time {chunk.time} of {_quoted([chunk.text])}",
            f"that of its turns, {', '.join(sorted(map(str, of_turns)))}",
        )


def _naive(time: datetime) -> datetime:
    """A time without its zone: services add one."""
    return time.replace(tzinfo=None)


async def turn_ids_are_true(of: SystemUnderTest) -> None:
    said = {chunk.turn_ids[0]: chunk.content.split(": ", 1)[1] for chunk in sample_chunks()}
    for chunk in retrieved_in(await of.ask_all(await of.fill_system())):
        for turn in chunk.turn_ids:
            expect(turn in said, f"turn id '{one_line(turn, 60)}'", "ids of turns that went in")
            expect(
                any(words in chunk.text for words in runs_of_words(said[turn])),
                f"{_quoted([chunk.text])} holds nothing of turn {turn}",
                "the turns that a text covers",
            )


async def top_k_is_obeyed(of: SystemUnderTest) -> None:
    if not of.bound_by_top_k:
        raise NotApplicableError("it shows all it has, whatever top_k is")

    for top_k in (1, 3):
        for answer in await of.ask_all(await of.fill_system(top_k=top_k)):
            count = len(answer.retrieved or ())
            expect(count <= top_k, f"top_k={top_k} gave {count} chunks", f"at most {top_k}")

    system = await of.fill_system()
    if isinstance(system, RecallSystem):
        with metered(Ledger()) as ledger:
            await call_method(system, system.recall, Query(QUESTIONS[0]), 2)

        told = ledger.remarks.get(MORE_THAN_ASKED, "")
        expect(not told, told, "at most top_k")


async def retrieved_heads_the_ranking(of: SystemUnderTest) -> None:
    for answer in await of.ask_all(await of.fill_system()):
        if answer.ranking is not None:
            retrieved = [chunk.turn_ids for chunk in answer.retrieved or ()]
            expect(
                list(answer.ranking[: len(retrieved)]) == retrieved,
                "a ranking that begins with other chunks than those shown",
                "the chunks shown first",
            )


async def compression_keeps_the_window(of: SystemUnderTest) -> None:
    model = of.model()
    answers = await of.ask_all(await of.fill_system(model, compress_after=(4, 8)))
    expect(all(answer.text.strip() for answer in answers), "an empty answer", "a text")
    expect(bool(model.prompts) or of.silent(), "it did not call its model", "answers of the reader")


async def empty_case(of: SystemUnderTest) -> None:
    """A case without a single chunk is answered, or refused with an error."""
    system = await of.fill_system(case=EvalCase("empty", (), ()))
    if system.wants_evidence:
        raise NotApplicableError("it is handed its evidence, of which there is none")

    answer = await of.ask(system, QUESTIONS[0])
    found = list(answer.retrieved or ())
    expect(not found, f"an empty case held {_quoted([one.text for one in found])}", "nothing found")


async def unicode_survives(of: SystemUnderTest) -> None:
    case = _case_of("unicode", UNICODE)
    system = await of.fill_system(case=case, top_k=len(UNICODE))
    contents = {chunk.turn_ids: chunk.content for chunk in sample_chunks(case)}
    for text in UNICODE:
        for chunk in (await of.ask(system, text)).retrieved or ():
            content = contents.get(chunk.turn_ids)
            if content is None or not _is_verbatim(chunk.text, content):
                continue  # a system that extracts writes texts of its own

            expect(
                content in chunk.text,
                f"{_quoted([chunk.text])} came out",
                f"{_quoted([content])}, character by character",
            )


def _is_verbatim(text: str, content: str) -> bool:
    """Whether a text is that of a turn, damaged or not: its words in ASCII are there."""
    words = re.findall(r"[A-Za-z]{3,}", content)
    return bool(words) and all(word in text for word in words)


async def long_turn(of: SystemUnderTest) -> None:
    """A turn of 60,000 characters is stored, or refused with an error."""
    filler = " ".join(f"word{number}" for number in range(LONG_TURN_CHARACTERS // 10))
    case = _case_of("long", ("The kayak is red.", f"The harbour code is 4417. {filler}"))
    system = await of.fill_system(case=case)
    answer = await of.ask(system, "What is the harbour code?")
    expect(bool(answer.text.strip()), "an empty answer", "a text")


def _case_of(case_id: str, texts: Sequence[str]) -> EvalCase:
    time = datetime(2021, 5, 6, 7, 8)
    turns = tuple(
        Turn(turn_id=f"{case_id}:{number}", speaker="Ilse", text=text, time=time)
        for number, text in enumerate(texts, start=1)
    )
    return EvalCase(case_id, (Session(f"{case_id}-s", time, turns),), (), ("Ilse",))


async def save_and_load(of: SystemUnderTest) -> None:
    with _folder() as folder:
        system = await of.fill_system(compress_after=(6,))
        await _save(system, folder)
        model = of.model()
        other = of.start(of.parts(model))
        await call_method(other, other.load, folder)
        calls = len(model.prompts)
        first, second = await of.ask_all(system), await of.ask_all(other)

    expect(
        [seen(answer) for answer in first] == [seen(answer) for answer in second],
        f"after loading, {_first_difference(first, second)}",
        "the answers of the memory that was saved",
    )
    expect(calls == 0, f"loading called the model {calls} times", "no call")


async def dump_is_plain(of: SystemUnderTest) -> None:
    system = await of.fill_system(compress_after=(6,))
    dumped = await of.dump(system)
    loaded = dumped
    with _folder() as folder:
        try:
            await _save(system, folder)
        except NotApplicableError:
            pass
        else:
            other = of.start(of.parts(of.model()))
            await call_method(other, other.load, folder)
            loaded = await of.dump(other)

    turns = {turn for chunk in sample_chunks() for turn in chunk.turn_ids}
    for item in dumped:
        expect(json.loads(json.dumps(item)) == item, "an item that is not plain JSON", "plain JSON")
        for name in ("kind", "text"):
            value = item.get(name)
            told = f"an item whose {name} is {one_line(value, 60)}"
            expect(isinstance(value, str) and bool(value), told, "a string")

        foreign = sorted(set(item.get("turn_ids", ())) - turns)
        expect(not foreign, f"an item of turns {_quoted(foreign)}", "turns of the case")

    expect(loaded == dumped, "another dump after loading", "the same")


async def damage_is_refused(of: SystemUnderTest) -> None:
    with _folder() as folder:
        await _save(await of.fill_system(), folder)
        files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1]
        if not files:
            return

        for path in files:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

        other = of.start(of.parts(of.model()))
        try:
            await call_method(other, other.load, folder)
        except Exception:  # noqa: BLE001 - any error tells the engine to build the memory again
            return

    raise ViolationError("a memory that was cut in half was loaded", "an error")


async def usage_adds_up(of: SystemUnderTest) -> None:
    model = of.model()
    with metered(Ledger()) as ledger:
        await of.ask_all(await of.fill_system(model, compress_after=(6,)))

    counted = sum(usage.calls for usage in ledger.usages if usage.model == model.name)
    expect(
        counted == len(model.prompts),
        f"usage of {counted} calls for {len(model.prompts)}",
        "one usage per call",
    )


async def failure_is_not_an_answer(of: SystemUnderTest) -> None:
    if of.silent():
        raise NotApplicableError("it never calls the cell's model or reader")

    try:
        await of.ask_all(await of.fill_system(ScriptedModel(fails=True), compress_after=(6,)))
    except ModelError:
        return

    raise ViolationError("an answer although the model failed", "an error, which becomes a status")


async def _save(system: MemorySystem, folder: Path) -> None:
    try:
        await call_method(system, system.save, folder)
    except NotImplementedError:
        raise NotApplicableError("it can't be saved: its memory is built again") from None


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="memeval-check-") as name:
        yield Path(name)


@dataclass(frozen=True)
class Check:
    """A rule under its name."""

    name: str
    """In words, as it is printed."""
    run: Callable[[SystemUnderTest], Awaitable[None]]


CHECKS = (
    Check("it answers with text", answers_with_text),
    Check("no request fails", works_without_a_fault),
    Check("a reset forgets the case before", reset_isolates_cases),
    Check("two cases do not mix", cases_do_not_mix),
    Check("the same input gives the same output", same_input_same_output),
    Check("questions do not change the memory", questions_change_nothing),
    Check("dates that go in come out", dates_are_kept),
    Check("turn ids are true", turn_ids_are_true),
    Check("top_k is obeyed", top_k_is_obeyed),
    Check("what is shown heads the ranking", retrieved_heads_the_ranking),
    Check("a compression is survived", compression_keeps_the_window),
    Check("an empty case is answered", empty_case),
    Check("any character comes back as it was", unicode_survives),
    Check("a long turn is stored", long_turn),
    Check("a saved memory answers alike", save_and_load),
    Check("its dump is plain", dump_is_plain),
    Check("a damaged memory is refused", damage_is_refused),
    Check("usage adds up", usage_adds_up),
    Check("a failure is not an answer", failure_is_not_an_answer),
)
"""All rules, in the order in which they are reported."""


@dataclass(frozen=True)
class Outcome:
    """What a check came to."""

    name: str
    state: str
    """`ok`, `violated` or `not applicable`."""
    seen: str = ""
    """What was seen, or why the check does not apply."""
    expected: str = ""

    @property
    def line(self) -> str:
        """One line for people."""
        told = self.seen
        if self.expected:
            told += f"; expected: {self.expected}"

        return f"{self.state:<15} {self.name}" + (f": {told}" if told else "")


async def outcome_of(check: Check, of: SystemUnderTest) -> Outcome:
    """Runs a check. Whatever a system raises is a violation; a user's mistake is raised."""
    from memeval.errors import UserError

    try:
        await play(check.run, of)
    except ViolationError as violation:
        return Outcome(check.name, "violated", one_line(violation.seen, 400), violation.expected)
    except NotApplicableError as reason:
        return Outcome(check.name, "not applicable", str(reason))
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary of a check
        told = str(error) if isinstance(error, MemevalError) else f"{type(error).__name__}: {error}"
        return Outcome(check.name, "violated", one_line(told, 400), "no error")

    return Outcome(check.name, "ok")


def seen(answer: Answer) -> tuple[Any, ...]:
    """What equal answers have in common."""
    return answer.text, [chunk.turn_ids for chunk in answer.retrieved or ()], answer.ranking


def _first_difference(first: Sequence[Answer], second: Sequence[Answer]) -> str:
    """Where two series of answers part, in words."""
    for question, one, other in zip(QUESTIONS, first, second, strict=True):
        if seen(one) != seen(other):
            what = (
                f"'{question}' is answered by {_quoted([one.text])}, then {_quoted([other.text])}"
            )
            return what if one.text != other.text else f"'{question}' finds other chunks"

    return "nothing differs"


def turns_of(answer: Answer) -> Iterable[str]:
    return (turn for chunk in answer.retrieved or () for turn in chunk.turn_ids)


def retrieved_in(answers: Iterable[Answer]) -> Iterator[Retrieved]:
    """Everything that was retrieved for any of the answers."""
    for answer in answers:
        yield from answer.retrieved or ()


def runs_of_words(text: str, length: int = 3) -> list[str]:
    """Every run of `length` words in a string; the whole string if it is shorter."""
    words = text.split()
    return [" ".join(words[at : at + length]) for at in range(max(1, len(words) - length + 1))]


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(f"'{one_line(text, 80)}'" for text in texts[:3])
