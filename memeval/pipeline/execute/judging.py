"""Judges one answer. Any error of a judge leaves the answer unscored."""

import asyncio

from msgspec.structs import replace

from memeval.errors import StorageError, UserError
from memeval.judges.accuracy import AccuracyJudge
from memeval.judges.contract import Judge, JudgeContext, Metrics, refusal_verdict
from memeval.judges.registry import build_judge
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.execute.question import failure_message, milliseconds
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import EvalQuestion, Label, Status, Verdict
from memeval.results import StepTimes, VerdictRow


def judge_of(cell: Cell, models: Models, seed: int) -> Judge:
    """The judge of a cell, for the repeat under a seed."""
    judging = cell.config.judge
    context = JudgeContext(
        model=models.judge,
        template=cell.judge_template,
        threshold=judging.threshold,
        settings=judging,
        seed=seed,
    )
    return build_judge(judging.name, context, judging.class_)


async def judge_answer(
    judge: Judge,
    question: EvalQuestion,
    answer: str,
    metrics: Metrics,
    before: VerdictRow | None = None,
) -> VerdictRow:
    """The verdict row of an existing answer; `before` is the row of an earlier pass."""
    ledger = Ledger(scope=question.question_id)
    try:
        with metered(ledger):
            verdict = await _verdict(judge, question, answer, metrics, before)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"judge() must return a Verdict, but returned {type(verdict).__name__}")

        status = Status.UNPARSED if verdict.label is Label.UNSCORED else Status.OK
        row = VerdictRow(id=question.question_id, status=status, verdict=verdict)
    except (asyncio.CancelledError, StorageError, UserError):
        raise  # these concern the whole run, not this answer
    except (Exception, SystemExit) as error:  # noqa: BLE001
        # The question boundary: any error of a judge leaves this answer unscored.
        row = failed_verdict(question.question_id, error)

    times = StepTimes(
        judge_ms=milliseconds(ledger.calls_s()) if ledger.called_s else None,
        judge_wait_s=round(ledger.wait_s, 3),
    )
    return replace(row, usage=tuple(ledger.usages), times=times, notes=ledger.notes)


async def _verdict(
    judge: Judge, question: EvalQuestion, answer: str, metrics: Metrics, before: VerdictRow | None
) -> Verdict:
    if question.choices:  # regardless of the judge for free-text answers
        return await AccuracyJudge().judge(question, answer, metrics)
    if not answer.strip() and not judge.judges_blanks:
        # A model is not called: it could only guess.
        return Verdict(judge=judge.name, label=Label.WRONG, score=0.0, reason="the answer is blank")

    if question.answerable or judge.judges_refusals:
        tried = before.tries if before else 0
        return await judge.judge(question, answer, metrics, tried=tried)

    # Nothing in the conversation answers it: a refusal is right, and a rule can detect refusals.
    return refusal_verdict(answer, metrics)


def failed_verdict(question_id: str, error: BaseException) -> VerdictRow:
    """The row of an answer that could not be judged, with the reason."""
    return VerdictRow(id=question_id, status=Status.JUDGE_FAILED, error=failure_message(error))
