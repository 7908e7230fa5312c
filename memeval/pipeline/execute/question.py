"""Asks a memory one question. Any error of a system becomes the status of the question."""

import asyncio
from dataclasses import asdict
from typing import Any

from msgspec.structs import replace

from memeval.config.classes import located_error
from memeval.errors import MemevalError, StorageError, UserError
from memeval.llm.contract import AnswerPrompt, ChoosePrompt, Message, ToolPrompt
from memeval.llm.metering import Ledger, metered, plus
from memeval.llm.reply.body import CutReplyError, FilteredReplyError
from memeval.pipeline.execute.reader import whole_reply, without_left_out
from memeval.pipeline.execute.source import ServiceWatch
from memeval.pipeline.execute.tool_loop import ToolLoop
from memeval.pipeline.execute.tool_reader import ToolReader, shown_turns, step_rows
from memeval.pipeline.execute.traces import find_traces
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.isolate.returned import NotAnAnswerError, answer_of
from memeval.pipeline.isolate.watch import Watched
from memeval.records import Answer, EvalQuestion, OracleQuery, Query, Role, Status
from memeval.results import AnswerRow, RetrievedChunk, SentMessage, StepTimes, TextStore
from memeval.results.steps import by_reference
from memeval.text.shown import one_line

_WHY_UNSCORED = {
    Status.ANSWER_FILTERED: "the provider's filter withheld a reply that the answer needs "
    "(finish_reason: content_filter)",
    Status.ANSWER_CUT: "a reply that the answer needs was cut at its token limit "
    "(finish_reason: length); see llm.max_tokens",
}


async def ask(
    watched: Watched,
    question: EvalQuestion,
    turns: CaseTurns,
    texts: TextStore,
    *,
    service: ServiceWatch,
    retrieves_only: bool = False,
    tool_reader: ToolReader | None = None,
) -> AnswerRow:
    """The answer row of a question; its status says whether there is an answer.

    `tool_reader` answers in place of the system. `service` counts failures; raises `WorldError`.
    """
    ledger = Ledger(scope=question.question_id, answer_form=question.answer_form)
    loop: ToolLoop | None = None
    try:
        with metered(ledger):
            query = _query(watched, question)
            if tool_reader is None:
                returned = await watched.call("answer", query)
            else:
                loop = await tool_reader.loop()
                returned = await tool_reader.answer(query, loop)

        answer = without_left_out(_check_answer(returned, watched, turns), ledger.left_out)
        if not answer.text.strip() and not retrieves_only:
            raise ValueError("the answer is empty")

        row = answer_row(answer, question, turns, texts)
        row = _with_status(row, ledger, retrieves_only=retrieves_only)
        if question.traces is not None:
            row = replace(row, seen=await find_traces(watched, question.traces, answer, ledger))

    except (asyncio.CancelledError, StorageError, UserError):
        raise  # these concern the whole run, not this question
    except Exception as error:  # noqa: BLE001
        # The question boundary: any error of a system is this question's failure.
        status = _unscored_status(ledger, error) or Status.ANSWER_FAILED
        row = failed_answer(question.question_id, status, error)
        service.note_failure(error)
    else:
        service.note_success()

    return _with_calls(row, ledger, loop, turns, texts)


def _with_calls(
    row: AnswerRow, ledger: Ledger, loop: ToolLoop | None, turns: CaseTurns, texts: TextStore
) -> AnswerRow:
    """The row with its usage, times, notes, steps and request."""
    notes = {**ledger.notes, **row.notes}
    row = replace(row, usage=tuple(ledger.usages), times=_answer_times(row, ledger), notes=notes)
    # Also for a failed question, whose steps show where it failed.
    if loop is not None:
        row = _with_steps(row, loop, turns, texts)

    return _with_request(row, ledger, texts)


def _with_steps(row: AnswerRow, loop: ToolLoop, turns: CaseTurns, texts: TextStore) -> AnswerRow:
    steps = step_rows(loop.steps, lambda call: shown_turns(call, turns.quotations))
    times = row.times.join(step_times(loop))
    kept = by_reference(steps, texts.put)
    return replace(row, steps=kept, step_limit=loop.step_limit, times=times)


def _answer_times(row: AnswerRow, ledger: Ledger) -> StepTimes:
    """Times of an answer's steps; a cached reply counts with its original time."""
    retrieval_s = plus(ledger.own_work.measured_s, ledger.calls_s(Role.EMBED))
    model_s = ledger.calls_s(*set(Role) - {Role.EMBED})
    times = StepTimes(
        answer_ms=milliseconds(plus(retrieval_s, model_s)),
        retrieval_ms=milliseconds(retrieval_s),
        model_ms=milliseconds(model_s),
        place_ms=milliseconds(ledger.slot_wait_s),
        wait_s=round(ledger.wait_s, 3),
    )
    if row.status is not Status.OK:
        times = replace(times, answer_ms=None, model_ms=None)
    # The retrieval itself may have failed, for example a refused search.
    if row.status is Status.ANSWER_FAILED:
        times = replace(times, retrieval_ms=None)

    return times


def step_times(loop: ToolLoop) -> StepTimes:
    """Times of the model's replies and of the tool calls."""
    return StepTimes(
        replies_ms=tuple(round(step.completion.latency_s * 1e3, 3) for step in loop.steps),
        tools_ms=tuple(milliseconds(call.seconds) for call in loop.calls),
    )


def milliseconds(seconds: float | None) -> float | None:
    """Seconds as milliseconds, to the microsecond; None if they were not measured."""
    return None if seconds is None else round(seconds * 1e3, 3)


def _with_request(row: AnswerRow, ledger: Ledger, texts: TextStore) -> AnswerRow:
    """The row with its request: context, messages, and how the reply ended."""
    if ledger.answered is None:
        return row

    prompt, completion = ledger.answered.prompt, ledger.answered.completion
    joined, context = "", None
    if isinstance(prompt, AnswerPrompt | ChoosePrompt | ToolPrompt):
        joined = "\n".join(prompt.context)
        context = texts.put_joined(prompt.context or ("",), "\n")

    sent: tuple[SentMessage, ...] = ()
    if ledger.answered.sent:
        sent = tuple(
            SentMessage(message["role"], texts.put_around(_text_of(message), joined))
            for message in prompt.messages()
        )

    # The whole reply is kept if it differs from the answer, so that a reader can see the rest.
    raw = row.raw
    if raw is None:
        raw = whole_reply(completion, row.hypothesis)

    return replace(
        row, context=context, prompt=sent, finish_reason=completion.finish_reason, raw=raw
    )


def _text_of(message: Message) -> str:
    """The text of a message. Its tool calls are written below it, one per line."""
    lines = []
    if content := message.get("content"):
        lines.append(str(content))
    for call in message.get("tool_calls", ()):
        function = call["function"]
        lines.append(f"{function['name']} {function['arguments']}")

    return "\n".join(lines)


def _check_answer(returned: Any, watched: Watched, turns: CaseTurns) -> Answer:
    """The system's answer in plain types. Raises `SystemFaultError`."""
    try:
        return answer_of(returned, turns.position_of)
    except NotAnAnswerError as error:
        raise watched.misuse("answer", one_line(error, 400)) from error
    except Exception as error:
        reason = f"{type(error).__name__} while reading its answer"
        raise watched.misuse("answer", reason) from error


def _with_status(row: AnswerRow, ledger: Ledger, *, retrieves_only: bool) -> AnswerRow:
    """The row, marked as not scored if a reply that the answer needs was cut or filtered."""
    if retrieves_only:
        return replace(row, status=Status.RETRIEVED, hypothesis=None, raw=None)

    status = _unscored_status(ledger)
    if status is None:
        return row

    return replace(row, status=status, error=_WHY_UNSCORED[status])


def _unscored_status(ledger: Ledger, error: Exception | None = None) -> Status | None:
    """The status of a question whose answer needs a reply that was filtered or cut."""
    if isinstance(error, FilteredReplyError) or ledger.replies("content_filter", Role.ANSWER):
        return Status.ANSWER_FILTERED
    if isinstance(error, CutReplyError) or ledger.replies("length", Role.ANSWER):
        return Status.ANSWER_CUT

    return None


def _query(watched: Watched, question: EvalQuestion) -> Query:
    """Fields that the system may see: no gold, category, ids or evidence."""
    query = Query(
        text=question.text,
        asked_at=question.asked_at,
        choices=question.choices,
        choice_labels=question.choice_labels,
        multi_select=question.multi_select,
        instruction=question.instruction,
        user=watched.user,
    )
    if not watched.system.wants_evidence:
        return query

    return OracleQuery(**asdict(query), evidence=question.evidence)


def answer_row(
    answer: Answer, question: EvalQuestion, turns: CaseTurns, texts: TextStore
) -> AnswerRow:
    """The row of an answer as returned by the system; its texts are references."""
    retrieved = ranking = None
    if answer.retrieved is not None:
        retrieved = tuple(
            RetrievedChunk(
                turn_ids=chunk.turn_ids,
                text=texts.put(chunk.text),
                score=chunk.score,
                time=chunk.time,
            )
            for chunk in answer.retrieved
        )
    if answer.ranking is not None:
        ranking = turns.positions(answer.ranking)

    return AnswerRow(
        id=question.question_id,
        status=Status.OK,
        hypothesis=answer.text,
        raw=answer.raw,
        retrieved=retrieved,
        ranking=ranking,
        context_tokens=answer.context_tokens,
        notes=answer.notes,
    )


def failed_answer(question_id: str, status: Status, error: Exception) -> AnswerRow:
    """The row of a question without an answer, with the reason."""
    return AnswerRow(id=question_id, status=status, error=failure_message(error))


def failure_message(error: BaseException) -> str:
    """Error message for a row, at most 1,000 characters."""
    message = str(error)
    if not isinstance(error, MemevalError):
        message = located_error(error, 1000)

    # A provider may quote the whole request in its error.
    return message[:1000]
