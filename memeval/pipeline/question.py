"""One question: asked of a memory, judged. Here, and here alone, any exception becomes a status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from memeval.datasets.contract import Dataset
from memeval.errors import MemevalError, StorageError, SystemFaultError, UserError
from memeval.judges.accuracy import AccuracyJudge
from memeval.judges.contract import Judge, refusal_verdict
from memeval.llm.metering import Ledger, metered
from memeval.llm.reply import CutReplyError, FilteredReplyError
from memeval.metrics.retrieval import ranks_of
from memeval.pipeline.places import place_of_method
from memeval.pipeline.returned import NotAnAnswerError, answer_of
from memeval.pipeline.rows import tries_of, usage_rows, verdict_row
from memeval.pipeline.watch import Watched
from memeval.records import Answer, EvalQuestion, Label, OracleQuery, Query, Role, Status, Verdict
from memeval.shown import one_line
from memeval.systems.base import MemorySystem

Row = dict[str, Any]


async def ask(
    watched: Watched, question: EvalQuestion, session_of: Mapping[str, str], dataset: Dataset
) -> Row:
    """The answer row of a question; its status tells whether there is an answer in it."""
    ledger, started = Ledger(scope=question.question_id), time.perf_counter()
    try:
        with metered(ledger):
            returned = await watched.call("answer", _query(watched.system, question))
        answer = _checked(returned, watched, session_of)
        if not answer.text.strip():
            raise ValueError("the answer is empty")
        row = answered(answer, question, session_of, dataset)
        row |= _shortfall(ledger)
    except (asyncio.CancelledError, StorageError, UserError):
        raise
    except Exception as error:  # noqa: BLE001 - the question boundary: whatever a system raises is this question's failure
        row = failed(_status_of(error, ledger), error)
    if ledger.notes:
        row["notes"] = {**ledger.notes, **row.get("notes", {})}
    seconds = time.perf_counter() - started - ledger.idle_s + ledger.replayed_s
    times = {
        "answer_ms": None if ledger.cached else round(seconds * 1e3, 3),
        "wait_s": round(ledger.wait_s, 3),
    }
    return {"id": question.question_id, **row, "usage": usage_rows(ledger.usages), "times": times}


def _checked(returned: Any, watched: Watched, session_of: Mapping[str, str]) -> Answer:
    """What the system returned, in plain types. Raises `SystemFaultError` that says what is no answer in it."""
    try:
        return answer_of(returned, session_of)
    except Exception as error:
        place = place_of_method(watched.system, "answer", watched.source)
        what = (
            one_line(error, 400)
            if isinstance(error, NotAnAnswerError)
            else f"{type(error).__name__} while its answer was read"
        )
        raise SystemFaultError(f"{place}: {what}") from error


def _shortfall(ledger: Ledger) -> Row:
    """What makes an answer one that is not scored: a reply that it rests on was cut or filtered. Empty for a whole one."""
    if ledger.replies("content_filter", Role.ANSWER):
        error = "the provider's filter withheld a reply that the answer rests on (finish_reason: content_filter)"
        return {"status": Status.ANSWER_FILTERED.value, "error": error, "metrics": {}}
    if ledger.replies("length", Role.ANSWER):
        error = "a reply that the answer rests on was cut at its limit of tokens (finish_reason: length); see llm.max_tokens"
        return {"status": Status.ANSWER_CUT.value, "error": error, "metrics": {}}
    return {}


def _status_of(error: Exception, ledger: Ledger) -> Status:
    """The status of a question that got no answer: a system may have wrapped what its model raised, or said something else for it."""
    if isinstance(error, FilteredReplyError) or ledger.replies("content_filter", Role.ANSWER):
        return Status.ANSWER_FILTERED
    if isinstance(error, CutReplyError) or ledger.replies("length", Role.ANSWER):
        return Status.ANSWER_CUT
    return Status.ANSWER_FAILED


def _query(system: MemorySystem, question: EvalQuestion) -> Query:
    """What the system may see: gold, category, ids and evidence stay behind."""
    seen = (
        question.text,
        question.asked_at,
        question.choices,
        question.choice_labels,
        question.multi_select,
        question.instruction,
    )
    return OracleQuery(*seen, question.evidence) if system.wants_evidence else Query(*seen)


def answered(
    answer: Answer, question: EvalQuestion, session_of: Mapping[str, str], dataset: Dataset
) -> Row:
    row: Row = {"status": Status.OK.value, "hypothesis": answer.text}
    if answer.raw is not None:
        row["raw"] = answer.raw
    row["metrics"] = dict(dataset.answer_metrics(answer.text, question))
    row["retrieved"] = (
        None if answer.retrieved is None else [list(unit.turn_ids) for unit in answer.retrieved]
    )
    if answer.ranking is not None:
        row["evidence_ranks"], row["session_evidence_ranks"] = ranks_of(
            answer.ranking, question.evidence, session_of
        )
        row["metrics"] |= dataset.ranking_metrics(question, answer.ranking, session_of)
    row["context_tokens"] = answer.context_tokens
    if answer.notes:
        row["notes"] = dict(answer.notes)
    return row


async def judged(
    judge: Judge,
    question: EvalQuestion,
    answer: Mapping[str, Any],
    before: Mapping[str, Any] | None = None,
) -> Row:
    """The verdict row of an answer that there is; `before` is the row that an earlier pass left."""
    ledger, started = Ledger(scope=question.question_id), time.perf_counter()
    text, metrics = answer["hypothesis"], answer["metrics"]
    try:
        with metered(ledger):
            if question.choices:  # whatever judges answers in words
                verdict = await AccuracyJudge().judge(question, text, metrics)
            elif not text.strip():  # no model need be asked, and none may guess
                verdict = Verdict(judge.name, Label.WRONG, 0.0, "the answer is blank")
            elif question.answerable or judge.judges_refusals:
                verdict = await judge.judge(question, text, metrics, tried=tries_of(before))
            else:
                verdict = refusal_verdict(text, metrics)
        status = Status.UNPARSED if verdict.label is Label.UNSCORED else Status.OK
        row: Row = {"status": status.value, "verdict": verdict_row(verdict)}
    except (asyncio.CancelledError, StorageError, UserError):
        raise
    except Exception as error:  # noqa: BLE001 - the question boundary: whatever a judge raises leaves this answer unscored
        row = failed(Status.JUDGE_FAILED, error)
    seconds = time.perf_counter() - started - ledger.idle_s + ledger.replayed_s
    if ledger.notes:
        row["notes"] = ledger.notes
    called_model = bool(ledger.usages) and not ledger.cached
    times = {
        "judge_ms": round(seconds * 1e3, 3) if called_model else None,
        "judge_wait_s": round(ledger.wait_s, 3),
    }
    return {"id": question.question_id, **row, "usage": usage_rows(ledger.usages), "times": times}


def failed(status: Status, error: Exception) -> Row:
    """A row without a score, and why."""
    message = str(error) if isinstance(error, MemevalError) else f"{type(error).__name__}: {error}"
    return {"status": status.value, "error": message[:1000]}
