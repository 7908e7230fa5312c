"""The system under test, and the comparison of its answers, for the rules of systems."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from memeval.llm.contract import Prompt
from memeval.llm.metering import current_ledger
from memeval.llm.prompts import load_builtin
from memeval.pipeline.execute.builder import Bridge
from memeval.pipeline.execute.ingest import health_of_ingest, ingest
from memeval.pipeline.execute.reader import CellReader, without_left_out
from memeval.pipeline.isolate.returned import answer_of
from memeval.pipeline.isolate.watch import Watched
from memeval.pipeline.open.cell_prompts import Templates
from memeval.records import Answer, EvalCase, OracleQuery, Query, Retrieved, Role
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.systems.base import DumpItem, MemorySystem, SystemContext
from memeval.testing.model import ScriptedModel
from memeval.testing.sample import QUESTIONS, sample_case, sample_chunks
from memeval.text.shown import one_line


class ViolationError(AssertionError):
    """A rule is broken: the actual and the expected result."""

    def __init__(self, seen: str, expected: str) -> None:
        super().__init__(f"{seen}; expected: {expected}")
        self.seen, self.expected = seen, expected


class NotApplicableError(Exception):
    """The rule does not apply to this system, with the reason."""


class NotShownError(Exception):
    """The rule could not be tested, because its subject never occurred; with the reason."""


def expect(holds: bool, seen: str, expected: str) -> None:
    """Raises `ViolationError` unless `holds`."""
    if not holds:
        raise ViolationError(seen, expected)


def expect_shown(answers: Sequence[Answer]) -> None:
    """Raises `NotShownError` if a system that shows its results found nothing at all."""
    if answers and all(answer.retrieved == () for answer in answers):
        raise NotShownError("nothing was found for any question")


def expect_alike(
    first: Sequence[Answer], second: Sequence[Answer], when: str, expected: str
) -> None:
    """Raises `ViolationError` for the first difference between the answers to all questions."""
    for question, before, after in zip(QUESTIONS, first, second, strict=True):
        if before.text != after.text:
            texts = quoted([before.text]), quoted([after.text])
            seen = f"'{question}' is answered by {texts[0]}, then {texts[1]}"
            raise ViolationError(f"{when} {seen}", expected)

        if _found_by(before) != _found_by(after):
            raise ViolationError(f"{when} '{question}' gets a different ranking", expected)


def holds(text: str, word: str, query: str) -> bool:
    """Whether a result holds a word, apart from a heading such as "Found 2 for query: 'ribbon'"."""
    echo = rf"(?:query|for)\W*['\"]{re.escape(query)}['\"]"
    return word.casefold() in re.sub(echo, "", text, flags=re.IGNORECASE).casefold()


def _found_by(answer: Answer) -> tuple[Any, ...]:
    return [chunk.turn_ids for chunk in answer.retrieved or ()], answer.ranking


class Opened(Watched):
    """A memory that a check opened: it is called as a run calls it."""

    def __init__(self, system: MemorySystem, model: ScriptedModel, timeout_s: float | None) -> None:
        super().__init__(system, "check", timeout_s)
        self.model = model


class SystemUnderTest:
    """The system that the checks build and use: subclasses define it.

    Questions, dates and turns are those of `memeval.testing.sample`.
    """

    bound_by_top_k = True
    """False for controls that show everything regardless of top_k."""
    top_k = 3
    """Number of chunks for the reader, unless a rule needs another."""
    remembers = True
    """False for the control that has no memory."""
    timeout_s: float | None = None
    """Time limit of each call of the system."""

    def build(self, parts: SystemContext) -> MemorySystem:
        """A fresh system, built from `parts`."""
        raise NotImplementedError("define build() in your subclass")

    def model(self) -> ScriptedModel:
        """The model of the checks: the offline reader, unless the system needs another."""
        return ScriptedModel()

    def embedder(self) -> Embedder:
        return CharTfidfEmbedder()

    def silent(self) -> bool:
        """True for a system that never calls the run's model or reader."""
        return False

    def parts(
        self, model: ScriptedModel, *, top_k: int | None = None, case_id: str = "sample"
    ) -> SystemContext:
        """The context around a model; must be called on a running event loop."""
        if top_k is None:
            top_k = self.top_k

        return SystemContext(
            reader=CellReader(model, Templates(load_builtin("answer_short")), "short", 0),
            model=model,
            embedder=self.embedder(),
            top_k=top_k,
            seed=0,
            case_id=case_id,
            run_sync=Bridge().run_sync,
        )

    async def fill_system(
        self,
        model: ScriptedModel | None = None,
        case: EvalCase | None = None,
        *,
        top_k: int | None = None,
        compress_after: Sequence[int] = (),
    ) -> Opened:
        """A memory that has ingested a case, compressed after each number of chunks."""
        case = case or sample_case()
        memory = self.start(model or self.model(), top_k=top_k, case_id=case.case_id)
        await self.ingest(memory, case, compress_after)
        return memory

    async def ingest(
        self, memory: Opened, case: EvalCase, compress_after: Sequence[int] = ()
    ) -> None:
        """Resets a memory and ingests a case."""
        chunks = sample_chunks(case)
        first = f", the first one: {quoted([chunks[0].text])}" if chunks else ""
        exchanges.append(f"sent: a reset, and {len(chunks)} chunks of '{case.case_id}'{first}")
        await ingest(memory, chunks, compress_after, retain=RETAIN)
        await health_of_ingest(memory, len(chunks), current_ledger())

    def start(
        self, model: ScriptedModel, *, top_k: int | None = None, case_id: str = "sample"
    ) -> Opened:
        """A fresh memory, which `play` closes."""
        system = self.build(self.parts(model, top_k=top_k, case_id=case_id))
        _opened.append(Opened(system, model, self.timeout_s))
        return _opened[-1]

    async def ask(self, memory: Opened, question: str) -> Answer:
        query = Query(question)
        if memory.system.wants_evidence:
            query = OracleQuery(question, evidence=("s1:1",))

        answer: Answer = await memory.call("answer", query)
        exchanges.append(f"asked: {quoted([question])}")
        if isinstance(answer, Answer):
            # As in a run, lists and arrays are accepted; the rules compare tuples.
            answer = without_left_out(answer_of(answer, None), current_ledger().left_out)
            exchanges.extend(f"  got: {line}" for line in _lines_of(answer))

        return answer

    async def finds(self, memory: Opened, question: str, word: str) -> bool:
        """Whether a question retrieves a word: in the retrieved chunks, or, if the question does
        not contain it, in the reader's context or answer.
        """
        before = len(memory.model.prompts)
        answer = await self.ask(memory, question)
        texts = [chunk.text for chunk in answer.retrieved or ()]
        if word not in question:
            texts += [answer.text, *prompt_texts(memory.model.prompts[before:])]

        return any(holds(text, word, question) for text in texts)

    async def finds_any(self, memory: Opened, *words: str) -> bool:
        """Whether a memory finds any of these words, by searching for it or by an open question."""
        for word in words:
            if await self.finds(memory, word, word) or await self.finds(memory, OPEN, word):
                return True

        return False

    async def ask_all(self, memory: Opened) -> list[Answer]:
        return [await self.ask(memory, question) for question in QUESTIONS]

    async def dump(self, memory: Opened) -> list[DumpItem]:
        """The items that the system extracted or wrote; empty if it dumps None."""
        items: Iterable[DumpItem] | None = await memory.call("dump")
        return list(items or ())


RETAIN = 2
"""Chunks that a compression leaves as they are."""
OPEN = "What was talked about?"
"""A question without any of the words that are searched for."""
_opened: list[Opened] = []
"""The memories that the running check has opened."""
exchanges: list[str] = []
"""The requests and replies of the running check, in words."""


def _lines_of(answer: Answer) -> Iterator[str]:
    if answer.retrieved is None:
        yield f"an answer: {quoted([answer.text])}"
        return

    if not answer.retrieved:
        yield "nothing"

    for chunk in answer.retrieved:
        ids = ", ".join(chunk.turn_ids) or "no turn ids"
        yield f"{quoted([chunk.text])} ({one_line(ids, 60)})"


async def play(check: Callable[[SystemUnderTest], Awaitable[None]], sut: SystemUnderTest) -> None:
    """Runs a check, and closes the memories that it opened."""
    # A check may open its memories in an inner function: they are closed here, too.
    before = len(_opened)
    try:
        await check(sut)
    finally:
        while len(_opened) > before:
            opened = _opened.pop()
            if not opened.has_hung_call:
                await opened.call("close")


async def discard(memory: Opened) -> None:
    """Closes an empty memory. An error of its `close` is ignored: a run only notes it."""
    _opened.remove(memory)
    await memory.close()


def prompt_texts(prompts: Iterable[tuple[Role, Prompt]]) -> list[str]:
    texts: list[str] = []
    for _, prompt in prompts:
        texts += [str(message.get("content")) for message in prompt.messages()]

    return texts


def retrieved_in(answers: Iterable[Answer]) -> Iterator[Retrieved]:
    """Everything that was retrieved for any of the answers."""
    for answer in answers:
        yield from answer.retrieved or ()


def quoted(texts: Sequence[str]) -> str:
    return ", ".join(f"'{one_line(text, 80)}'" for text in texts[:3])
