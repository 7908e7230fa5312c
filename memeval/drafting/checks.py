"""The checks of a proposed question that need a model: the readers and the judge of a run."""

import asyncio
from dataclasses import replace

from memeval.datasets.granularity import chunks
from memeval.drafting.proposal import MULTI_HOP, UNANSWERABLE, UPDATE, Proposal, Reason
from memeval.errors import ModelError
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.execute.ingest import await_value
from memeval.pipeline.execute.judging import judge_answer, judge_of
from memeval.pipeline.execute.reader import CellReader, cell_reader
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import Answer, EvalCase, EvalQuestion, Label, OracleQuery, Status, Usage
from memeval.results import VerdictRow
from memeval.systems.base import MemorySystem, RecallSystem, SystemContext
from memeval.systems.registry import system_class

VOTES = 2
"""Number of answers that must agree."""
BEST = 20
"""Chunks of each ranking from which the reader tries to answer an unanswerable question."""
EVIDENCE, NOTHING = "oracle", "no_memory"
RANKINGS = ("bm25", "dense")


class _UnscoredError(Exception):
    """The judge's reply could not be read."""


class Checker:
    """Checks the questions of one case."""

    def __init__(
        self, cell: Cell, models: Models, case: EvalCase, *, estimate_only: bool = False
    ) -> None:
        """`estimate_only` treats each check as passed after its requests were made."""
        self.usages: list[Usage] = []
        self._cell, self._models, self._case = cell, models, case
        self._estimate_only = estimate_only
        self._chunks = chunks(case, cell.config.granularity)
        self._memories: dict[tuple[str, int], MemorySystem] = {}
        self._building = asyncio.Lock()
        self._rows: dict[tuple[str, tuple[str, ...], str], VerdictRow] = {}
        """Verdicts by question, gold and answer."""
        self._judge = judge_of(cell, models, cell.config.seed)

    async def check(
        self, proposal: Proposal, question: EvalQuestion
    ) -> tuple[Reason | None, dict[str, str]]:
        """The reason to drop the question, or None if it is kept, and the result of each check.

        Raises `ModelError` if a call fails.
        """
        results: dict[str, str] = {}
        try:
            if proposal.kind == UNANSWERABLE:
                reason = await self._check_unanswerable(question, results)
            else:
                reason = await self._check_answerable(proposal, question, results)
        except _UnscoredError:
            reason = Reason.UNSCORED

        return reason, results

    async def _check_answerable(
        self, proposal: Proposal, question: EvalQuestion, results: dict[str, str]
    ) -> Reason | None:
        for vote in range(VOTES):
            if not await self._is_right(EVIDENCE, question, vote, expected=True):
                return Reason.NOT_SUPPORTED

        results["from its evidence"] = f"right, {VOTES} of {VOTES}"
        for vote in range(VOTES):
            if await self._is_right(NOTHING, question, vote, expected=False):
                return Reason.KNOWN

        results["without memory"] = f"not right, {VOTES} of {VOTES}"
        if proposal.kind == MULTI_HOP:
            for left_out in question.evidence:
                kept = tuple(turn for turn in question.evidence if turn != left_out)
                part = replace(question, evidence=kept)
                if await self._is_right(EVIDENCE, part, expected=False):
                    return Reason.NOT_NEEDED

            count = len(question.evidence)
            results["without one turn"] = f"not right, {count} of {count}"

        return await self._check_update(proposal, question, results)

    async def _check_update(
        self, proposal: Proposal, question: EvalQuestion, results: dict[str, str]
    ) -> Reason | None:
        """Checks that the earlier turn would have answered the question with the older value."""
        if proposal.kind != UPDATE:
            return None

        gold, evidence = [], []
        for value, quote in proposal.stale:
            gold.append(value)
            evidence.append(quote.turn_id)

        older = replace(question, gold=tuple(gold), evidence=tuple(evidence))
        if not await self._is_right(EVIDENCE, older, expected=True):
            return Reason.NO_OLDER

        results["older value from its turn"] = "given"
        return None

    async def _check_unanswerable(
        self, question: EvalQuestion, results: dict[str, str]
    ) -> Reason | None:
        query = OracleQuery(text=question.text, asked_at=question.asked_at)
        retrieved: set[tuple[str, ...]] = set()
        with metered(Ledger(scope=question.question_id)) as ledger:
            for name in RANKINGS:
                system = await self._memory(name)
                assert isinstance(system, RecallSystem)
                ranked = await await_value(system.recall(query, BEST))
                for result in ranked[:BEST]:
                    retrieved.add(result.turn_ids)

        self.usages += ledger.usages
        shown = [chunk.text for chunk in self._chunks if chunk.turn_ids in retrieved]
        for vote in range(VOTES):
            with metered(Ledger(scope=question.question_id)) as ledger:
                reply = await self._reader(vote).answer(query, shown)

            self.usages += ledger.usages
            if not await self._is_judged_right(question, reply.text, expected=True):
                return Reason.ANSWERED

        results["not found"] = f"{VOTES} of {VOTES}, in {len(shown)} chunks"
        return None

    async def _is_right(
        self, name: str, question: EvalQuestion, vote: int = 0, *, expected: bool
    ) -> bool:
        """Whether a system with only the evidence, or with nothing, answers right."""
        query = OracleQuery(
            text=question.text, asked_at=question.asked_at, evidence=question.evidence
        )
        system = await self._memory(name, vote)
        with metered(Ledger(scope=question.question_id)) as ledger:
            answer: Answer = await await_value(system.answer(query))

        self.usages += ledger.usages
        return await self._is_judged_right(question, answer.text, expected=expected)

    async def _is_judged_right(
        self, question: EvalQuestion, answer: str, *, expected: bool
    ) -> bool:
        # Two votes, or a question without one of its turns, often get the same answer.
        key = (question.question_id, question.gold, answer)
        if key not in self._rows:
            metrics = self._cell.dataset.answer_metrics(answer, question)
            self._rows[key] = await judge_answer(self._judge, question, answer, metrics)
            self.usages += self._rows[key].usage

        row = self._rows[key]
        if row.status is Status.JUDGE_FAILED:
            raise ModelError(row.error or "the judge failed")
        if row.verdict is None or row.verdict.label is Label.UNSCORED:
            raise _UnscoredError

        return expected if self._estimate_only else row.verdict.label is Label.CORRECT

    async def _memory(self, name: str, vote: int = 0) -> MemorySystem:
        """The memory of the case in a system, built once."""
        async with self._building:
            if (name, vote) not in self._memories:
                chosen = system_class(name)
                system = chosen(chosen.settings_type(), self._parts(vote))
                for chunk in self._chunks:
                    await await_value(system.ingest(chunk))

                await await_value(system.consolidate())
                self._memories[name, vote] = system

        return self._memories[name, vote]

    def _parts(self, vote: int) -> SystemContext:
        models = self._models
        return SystemContext(
            reader=self._reader(vote),
            model=models.ingest_model,
            embedder=models.embedder(),
            top_k=BEST,
            seed=vote,
            case_id=self._case.case_id,
            run_sync=_refuse_sync,
        )

    def _reader(self, vote: int) -> CellReader:
        """The reader of a run; each vote has its own seed."""
        return cell_reader(self._cell, self._models.reader, self._cell.config.seed + vote)

    async def close(self) -> None:
        for system in self._memories.values():
            await await_value(system.close())


def _refuse_sync(_: object) -> object:
    raise RuntimeError("the systems of these checks call nothing from threads")
