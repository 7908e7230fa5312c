"""Answers and judges the questions of one case, and stores each row immediately."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec.structs import replace

from memeval.config.schema import ANSWER, JUDGE
from memeval.errors import ModelError, StorageError
from memeval.judges.contract import Judge
from memeval.llm.disk import is_about_disk
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.execute.judging import failed_verdict, judge_answer, judge_of
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.metrics import Measured, measure_answer
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.question import failed_answer
from memeval.pipeline.execute.repeat import Repeat, ingest_id
from memeval.pipeline.execute.rows import Bill, answer_digest, is_about, is_final
from memeval.pipeline.execute.source import AnswerSource, CaseAnswers
from memeval.pipeline.execute.timeline import cases_until
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.execute.window import WindowShare
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.results import AnswerRow, IngestRow, VerdictRow
from memeval.text.shown import one_line


class CaseWork:
    """Work on the cases of a cell; finished rows are kept, failed ones are tried again."""

    def __init__(
        self,
        cell: Cell,
        progress: Progress,
        connections: Connections,
        source: Callable[[Cell, Models], AnswerSource] = MemorySource,
        judge: Judge | None = None,
    ) -> None:
        """`source` creates the answer source (default: memories); `judge` replaces the config's."""
        self.cell = cell
        self.progress: Progress = progress
        self._connections = connections
        self._make_source, self._given_judge = source, judge
        self._bill = Bill(cell.run_key)
        self._unread = 0
        self._notes: list[str] = []

    def begin(self, models: Models | None = None) -> None:
        """Makes the cell's models, unless they are given, and the source of its answers."""
        self._models = models or Models(
            self.cell.config, self.cell.run_key, self.progress.say, self._connections
        )
        self._source = self._make_source(self.cell, self._models)
        self.progress.watch(self._models.connections)

    def notes(self) -> tuple[str, ...]:
        """Notes on this pass for the reader."""
        return tuple(dict.fromkeys([*self._notes, *self._source.notes()]))

    def take_notes(self) -> tuple[str, ...]:
        """The notes so far; those kept here are cleared."""
        notes, self._notes = self.notes(), []
        return notes

    def judge(self, seed: int) -> Judge:
        """The judge of the repeat under a seed."""
        return self._given_judge or judge_of(self.cell, self._models, seed)

    async def work(self, repeat: Repeat, case: EvalCase, share: WindowShare | None = None) -> None:
        """Answers and judges the questions of a case."""
        turns = CaseTurns.of(case)
        kept = {}
        for question in case.questions:
            kept[question.question_id] = self._reusable_answer(repeat, question, turns)

        remaining = len(case.questions)
        with metered(Ledger()) as case_ledger:
            try:
                for part in cases_until(case):
                    await self._work_on(repeat, part, kept, turns, share=share, remaining=remaining)
                    remaining -= len(part.questions)
            finally:
                self.progress.spent(self._bill.split(case_ledger.usages))

    async def _work_on(
        self,
        repeat: Repeat,
        case: EvalCase,
        kept: Mapping[str, AnswerRow | None],
        turns: CaseTurns,
        *,
        share: WindowShare | None,
        remaining: int,
    ) -> None:
        """Answers and judges a case or a checkpoint of it; `remaining` counts open questions."""
        if not self.knows_totals:
            self.expect(1, len(case.questions))

        answers: CaseAnswers | None = None
        # Loading a memory may take minutes: skipped if every answer is stored.
        if any(kept[question.question_id] is None for question in case.questions):
            with self._stopping_all():
                answers = await self._open_case(repeat, case)

        is_failed = answers is not None and answers.failed
        self.progress.done("prepare", reused=answers is None or answers.reused, failed=is_failed)
        try:
            async with asyncio.TaskGroup() as group:
                for number, question in enumerate(case.questions):
                    before = kept[question.question_id]
                    task = group.create_task(
                        self._answer_and_judge(repeat, question, before, answers, turns)
                    )
                    if share and remaining - number <= share.slots:
                        # One slot per remaining question: from here on, each question frees its
                        # slot.
                        task.add_done_callback(lambda _: share.leave_one())

                    # Lets earlier questions run first: all retrievals of a case at once would delay
                    # every call.
                    await asyncio.sleep(0)
        finally:
            if answers is not None:
                await answers.close()

    @property
    def knows_totals(self) -> bool:
        """Whether the totals are reported before the work begins, as reading the data is quick."""
        # Other sources count in `cases()`: reading the cases twice would count them twice.
        return self.cell.is_read_quickly and isinstance(self._source, MemorySource)

    def expect(self, memories: int, questions: int) -> None:
        """Reports that this many more memories and questions have to be done."""
        self.progress.expect("prepare", memories)
        self.progress.expect("answer", questions)
        if not retrieves_only(self.cell.config):
            self.progress.expect("judge", questions)

    async def _open_case(self, repeat: Repeat, case: EvalCase) -> CaseAnswers:
        """Opens the source of a case's answers; a failed ingest gives each question its error."""
        answers = await self._source.open(case, repeat.seed)
        ingested = answers.ingest
        row = repeat.answers.rows.get(ingest_id(case.case_id))
        if ingested is not None and not (
            isinstance(row, IngestRow)
            and row.health == ingested.health
            # A failed ingest has no health, but may have cost more than the previous one.
            and (row.health is not None or row.usage == ingested.usage)
        ):
            # Stored only if the health differs: otherwise each load of the memory would add a row.
            written = ingested.written and ingested.written.by_reference(repeat.texts.put)
            repeat.answers.append(replace(ingested, id=ingest_id(case.case_id), written=written))
            self.progress.spent(self._bill.usages_of(ingested))

        return answers

    def _reusable_answer(
        self, repeat: Repeat, question: EvalQuestion, turns: CaseTurns
    ) -> AnswerRow | None:
        """The stored answer of a question; None if it is missing or must be made again."""
        answer = repeat.answer(question.question_id)
        if answer is None or not self._is_kept(answer, ANSWER):
            return None

        # Rankings are stored as positions: an edited row could point past the case's last turn.
        if answer.ranking is not None and not turns.has_positions(answer.ranking):
            self._notes.append(
                f"The stored answer to {one_line(question.question_id, 80)} names turns that "
                "are not in its case: it was skipped and made again."
            )
            return None

        return answer

    async def _answer_and_judge(
        self,
        repeat: Repeat,
        question: EvalQuestion,
        kept: AnswerRow | None,
        answers: CaseAnswers | None,
        turns: CaseTurns,
    ) -> None:
        answer = kept
        with self._stopping_all():
            if answer is None:
                assert answers is not None, "a case with open questions is opened"
                row = await answers.answer(question, turns, repeat.texts)
                answer = self._keep_answer(repeat, row)

            failed = not answer.status.is_complete
            self.progress.done("answer", reused=kept is not None, failed=failed)

            # Also for stored answers: rows contain no metrics, so that a formula can change.
            measured = measure_answer(answer, question, turns, self.cell.dataset)
            repeat.measured[question.question_id] = measured
            await self._judge(repeat, question, answer, measured)

    @contextmanager
    def _stopping_all(self) -> Iterator[None]:
        """Stops all work on a full disk, so that no cell pays for replies that can't be stored."""
        try:
            yield
        except StorageError as error:
            if is_about_disk(error):
                self._connections.breaker.lose_store(error)

            raise

    def _keep_answer(self, repeat: Repeat, row: AnswerRow) -> AnswerRow:
        """Stores an answer and returns its row: a failed one if the answer can't be stored."""
        row = replace(row, origin=self.cell.run_key)
        self.progress.spent(self._bill.usages_of(row))
        # An answer that can't be stored fails its question, not the run.
        try:
            stored = repeat.answers.append(row)
        except ValueError as problem:
            failure = failed_answer(row.id, Status.ANSWER_FAILED, problem)
            stored = repeat.answers.append(replace(failure, origin=self.cell.run_key))

        assert isinstance(stored, AnswerRow)
        return stored

    async def _judge(
        self, repeat: Repeat, question: EvalQuestion, answer: AnswerRow, measured: Measured
    ) -> None:
        if retrieves_only(self.cell.config):
            return

        before = repeat.verdicts.rows.get(question.question_id)
        kept = self._is_kept(before, JUDGE)
        if answer.status is not Status.OK:
            self.progress.done("judge", reused=kept, failed=True)
            return

        if kept and before and is_about(before, answer):
            self._report_score(question, before)
            self.progress.done("judge", reused=True)
            return

        text = answer.hypothesis or ""
        row = await judge_answer(repeat.judge, question, text, measured.metrics, before)
        self.progress.spent(row.usage)
        stored = self._keep_verdict(repeat, row, text)
        self.check_readable(stored)
        self._report_score(question, stored)
        self.progress.done("judge", failed=not stored.status.is_complete)

    def _report_score(self, question: EvalQuestion, row: VerdictRow | None) -> None:
        """Reports a score if it counts towards the accuracy."""
        credit = row.verdict.credit if row and row.verdict else None
        headline = self.cell.dataset.headline
        if credit is not None and (headline is None or question.category in headline):
            self.progress.scored(credit)

    def _keep_verdict(self, repeat: Repeat, row: VerdictRow, answer: str) -> VerdictRow:
        """Stores a verdict and returns its row: a failed one if the verdict can't be stored."""
        digest, origin = answer_digest(answer), self.cell.run_key
        try:
            return repeat.verdicts.append(replace(row, judged=digest, origin=origin))
        except ValueError as problem:
            failure = failed_verdict(row.id, problem)
            return repeat.verdicts.append(replace(failure, judged=digest, origin=origin))

    def _is_kept(self, row: AnswerRow | VerdictRow | None, stage: str) -> bool:
        return is_final(row) and not self.cell.redoes(stage)

    def check_readable(self, row: VerdictRow) -> None:
        """Stops the run if the judge's model never replies in the requested form."""
        if not row.tries or row.verdict is None:
            # A failed call has no reply to read: it neither counts nor resets.
            if row.status is Status.OK:
                self._unread = 0

            return

        self._unread += 1
        most = self.cell.config.stop_after_failures
        if most is not None and self._unread >= most:
            raise ModelError(
                f"the last {self._unread} replies of judge={self.cell.config.judge.name} could not "
                f"be read ({one_line(row.verdict.reason)}; stop_after_failures={most}): "
                "use a model that follows the format, or a prompt template that asks for it"
            )
