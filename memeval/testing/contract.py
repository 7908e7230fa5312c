"""The conformance suite of memory systems: subclass it, define `build`, and run pytest.

class TestMine(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Mine(Settings(), parts)
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from memeval.embedding.tfidf import CharTfidfEmbedder
from memeval.errors import ModelError
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.builder import wait_from_thread
from memeval.pipeline.ingest import call_method, ingest
from memeval.pipeline.reader import CellReader
from memeval.prompts import load_builtin
from memeval.records import Answer, EvalCase, OracleQuery, Query, Retrieved, format_time
from memeval.systems.base import DumpItem, MemorySystem, SystemContext
from memeval.testing.model import ScriptedModel
from memeval.testing.sample import QUESTIONS, sample_case, sample_chunks

T = TypeVar("T")
_DATE = re.compile(r"\d{1,2}:\d\d [ap]m on \d{1,2} [A-Z][a-z]+ \d{4}")


class MemorySystemContract:
    """What every memory system must do.

    Questions, dates and turns are those of `memeval.testing.sample`.
    """

    bound_by_top_k = True
    """False for controls that show all they have, whatever top_k is."""

    def build(self, parts: SystemContext) -> MemorySystem:
        """A fresh system, built from `parts`."""
        raise NotImplementedError("define build() in your subclass")

    # What the tests use

    def model(self) -> ScriptedModel:
        """The model of the tests: the offline reader, unless the system needs another."""
        return ScriptedModel()

    def parts(
        self, model: ScriptedModel, *, top_k: int = 3, case_id: str = "sample"
    ) -> SystemContext:
        """The context around a model; must be called on a running event loop."""
        loop = asyncio.get_running_loop()
        return SystemContext(
            reader=CellReader(model, load_builtin("answer_short"), "short", 0),
            model=model,
            embedder=CharTfidfEmbedder(),
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
        system = self.build(self.parts(model or self.model(), top_k=top_k, case_id=case.case_id))
        await ingest(system, sample_chunks(case), compress_after, retain)
        return system

    async def ask(self, system: MemorySystem, question: str) -> Answer:
        query = (
            OracleQuery(question, evidence=("s1:1",)) if system.wants_evidence else Query(question)
        )
        answer: Answer = await call_method(system, system.answer, query)
        return answer

    async def ask_all(self, system: MemorySystem) -> list[Answer]:
        return [await self.ask(system, question) for question in QUESTIONS]

    # The contract

    def test_it_answers_with_text(self) -> None:
        async def play() -> list[Answer]:
            return await self.ask_all(await self.fill_system())

        assert all(isinstance(answer, Answer) and answer.text.strip() for answer in run(play))

    def test_reset_isolates_cases(self) -> None:
        async def play() -> tuple[list[Answer], list[Answer]]:
            second = sample_case("second", ("s3",))
            used = await self.fill_system(case=sample_case("first", ("s1", "s2")))
            await ingest(used, sample_chunks(second), (), 2)
            return await self.ask_all(used), await self.ask_all(await self.fill_system(case=second))

        used, fresh = run(play)
        assert [seen(answer) for answer in used] == [seen(answer) for answer in fresh]
        assert not {turn for answer in used for turn in turns_of(answer)} & {
            f"s{s}:{t}" for s in (1, 2) for t in range(1, 5)
        }

    def test_the_same_input_gives_the_same_output(self) -> None:
        async def play() -> tuple[list[Answer], list[Answer]]:
            return await self.ask_all(await self.fill_system()), await self.ask_all(
                await self.fill_system()
            )

        first, second = run(play)
        assert [seen(answer) for answer in first] == [seen(answer) for answer in second]

    def test_questions_do_not_change_memory(self) -> None:
        async def play() -> tuple[list[Answer], list[Answer]]:
            system = await self.fill_system()
            return await self.ask_all(system), await self.ask_all(system)

        first, second = run(play)
        assert [seen(answer) for answer in first] == [seen(answer) for answer in second]

    def test_dates_that_go_in_come_out(self) -> None:
        async def play() -> tuple[list[Answer], ScriptedModel]:
            model = self.model()
            return await self.ask_all(await self.fill_system(model)), model

        answers, model = run(play)
        known = {
            format_time(chunk.time): set(chunk.turn_ids)
            for chunk in sample_chunks(granularity="session")
            if chunk.time
        }
        shown = " ".join(
            message["content"] for _, prompt in model.prompts for message in prompt.messages()
        )
        assert set(_DATE.findall(shown)) <= set(known), "a date was shown that no turn has"
        for chunk in retrieved_in(answers):
            for date in _DATE.findall(chunk.text):
                assert not chunk.turn_ids or set(chunk.turn_ids) & known[date], (
                    f"{chunk.text!r} has the date of another session"
                )

    def test_turn_ids_are_true(self) -> None:
        async def play() -> list[Answer]:
            return await self.ask_all(await self.fill_system())

        said = {chunk.turn_ids[0]: chunk.content.split(": ", 1)[1] for chunk in sample_chunks()}
        for chunk in retrieved_in(run(play)):
            for turn in chunk.turn_ids:
                assert turn in said, f"turn {turn} is missing"
                assert any(words in chunk.text for words in runs_of_words(said[turn])), (
                    f"{chunk.text!r} holds nothing of {turn}"
                )

    @pytest.mark.parametrize("top_k", [1, 3])
    def test_top_k_is_obeyed(self, top_k: int) -> None:
        async def play() -> list[Answer]:
            return await self.ask_all(await self.fill_system(top_k=top_k))

        if not self.bound_by_top_k:
            pytest.skip("shows all it has, whatever top_k is")

        assert all(len(answer.retrieved or ()) <= top_k for answer in run(play))

    def test_what_was_retrieved_heads_the_ranking(self) -> None:
        async def play() -> list[Answer]:
            return await self.ask_all(await self.fill_system())

        for answer in run(play):
            if answer.ranking is not None:
                retrieved = [chunk.turn_ids for chunk in answer.retrieved or ()]
                assert list(answer.ranking[: len(retrieved)]) == retrieved

    def test_compression_keeps_the_window(self) -> None:
        async def play() -> tuple[list[Answer], ScriptedModel]:
            model = self.model()
            return await self.ask_all(await self.fill_system(model, compress_after=(4, 8))), model

        answers, model = run(play)
        assert all(answer.text.strip() for answer in answers)
        assert model.prompts or self.silent(), "it did not call its model"

    def silent(self) -> bool:
        """True for a system that never asks the cell's model or reader."""
        return False

    def test_save_and_load_round_trip_to_identical_answers(self, tmp_path: Path) -> None:
        async def play() -> tuple[list[Answer], list[Answer], int]:
            system = await self.fill_system(compress_after=(6,))
            try:
                await call_method(system, system.save, tmp_path)
            except NotImplementedError:
                pytest.skip("can't be saved: its memory is built again")

            model = self.model()
            other = self.build(self.parts(model))
            await call_method(other, other.load, tmp_path)
            calls = len(model.prompts)
            return await self.ask_all(system), await self.ask_all(other), calls

        first, second, calls = run(play)
        assert [seen(answer) for answer in first] == [seen(answer) for answer in second]
        assert calls == 0, "loading asks no model"

    def test_what_it_dumps_is_plain_and_the_same_after_a_load(self, tmp_path: Path) -> None:
        async def play() -> tuple[list[DumpItem], list[DumpItem] | None]:
            system = await self.fill_system(compress_after=(6,))
            dumped = await self.dump(system)
            try:
                await call_method(system, system.save, tmp_path)
            except NotImplementedError:
                return dumped, None

            other = self.build(self.parts(self.model()))
            await call_method(other, other.load, tmp_path)
            return dumped, await self.dump(other)

        dumped, loaded = run(play)
        turns = {turn for chunk in sample_chunks() for turn in chunk.turn_ids}
        for item in dumped:
            assert json.loads(json.dumps(item)) == item, "an item of a dump is plain JSON"
            assert isinstance(item["kind"], str) and item["kind"]
            assert isinstance(item["text"], str) and item["text"]
            assert set(item.get("turn_ids", ())) <= turns, "a dump names turns of the case"

        assert loaded in (None, dumped)

    async def dump(self, system: MemorySystem) -> list[DumpItem]:
        """What the system extracted or wrote; nothing if it says None."""
        items: Iterable[DumpItem] | None = await call_method(system, system.dump)
        return [dict(item) for item in items or ()]

    def test_a_truncated_memory_is_refused_or_answers_alike(self, tmp_path: Path) -> None:
        async def play() -> None:
            system = await self.fill_system()
            try:
                await call_method(system, system.save, tmp_path)
            except NotImplementedError:
                pytest.skip("can't be saved: its memory is built again")

            files = [
                path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1
            ]
            if not files:
                return

            for path in files:
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

            other = self.build(self.parts(self.model()))
            # Any error tells the engine to build the memory again.
            with pytest.raises(Exception):  # noqa: B017
                await call_method(other, other.load, tmp_path)

        run(play)

    def test_usage_adds_up(self) -> None:
        async def play() -> tuple[Ledger, ScriptedModel]:
            model = self.model()
            with metered(Ledger()) as ledger:
                await self.ask_all(await self.fill_system(model, compress_after=(6,)))

            return ledger, model

        ledger, model = run(play)
        assert sum(usage.calls for usage in ledger.usages if usage.model == model.name) == len(
            model.prompts
        )

    def test_a_failing_model_is_an_error_and_not_an_answer(self) -> None:
        async def play() -> None:
            broken = ScriptedModel(fails=True)
            with pytest.raises(ModelError):
                await self.ask_all(await self.fill_system(broken, compress_after=(6,)))

        if self.silent():
            pytest.skip("asks no model")

        run(play)


def run(play: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs it on a new event loop."""
    return asyncio.run(play())


def seen(answer: Answer) -> tuple[Any, ...]:
    """What equal answers have in common."""
    return answer.text, [chunk.turn_ids for chunk in answer.retrieved or ()], answer.ranking


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
