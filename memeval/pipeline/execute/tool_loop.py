"""The loop of `reader=tools` and `writer=tools`: the model calls tools and gets their results until
it answers, or stops writing.

It follows OpenAI's protocol of tool calls, parallel ones included. It is pure except for the calls
to the model and to the tools, which are passed in. Each deviation of a model from the protocol is
recorded as a `Fault`: the model gets a message, and continues.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from typing import Any

from msgspec import Struct, structs

from memeval.errors import ModelError, StorageError, SystemFaultError, UserError, WorldError
from memeval.llm.contract import Completion, Message, ToolCall, ToolPrompt, fenced
from memeval.llm.metering import current_ledger, plus
from memeval.llm.reply.text import without_controls
from memeval.llm.tokens import count_tokens
from memeval.pipeline.execute.tool_arguments import (
    find_mistake,
    load_arguments,
    whole_numbers,
)
from memeval.pipeline.execute.tool_results import as_result, cut_result, entries_of
from memeval.records import Retrieved
from memeval.systems.tools import Tool, ToolResult
from memeval.text.shown import one_line
from memeval.text.typed import json_or_none

MAX_EQUAL_CALLS = 3
"""Maximum equal calls that are run; further ones are refused with a message to the model."""
CUT_LINE_TOKENS = 16
"""Exceeds the tokens of the line that marks a cut result; no tool is run with so few left."""
_ODD_NAME = re.compile(r"[^A-Za-z0-9_-]")
_WRITTEN_CALL = re.compile(
    r"<\|?(?:\w+:)?tool_?(?:calls?|use)\b|<(?:\w+:)?function(?:=|_calls>)|<(?:\w+:)?invoke name="
    r"|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_calls?_(?:section_)?begin|<｜tool▁calls?▁begin"
    r"|<\|action_start\|>|functools\[|```tool_(?:code|call)|<\|channel\|>commentary to="
    r"|^Action: ?\w+\s*\nAction Input:",
    re.MULTILINE,
)
"""Calls that a server without a parser for its model leaves in the text of a reply."""

_CALL = {"name", "arguments"}
"""Members of a call as JSON."""


class Fault(StrEnum):
    """Deviations of a model or a tool from the protocol."""

    BAD_JSON = "bad_json"
    BAD_ARGUMENTS = "bad_arguments"
    """They don't match the tool's schema."""
    CUT_ARGUMENTS = "cut_arguments"
    """The reply reached its token limit within the arguments."""
    UNKNOWN_TOOL = "unknown_tool"
    REPEATED = "repeated"
    """The same call again after `MAX_EQUAL_CALLS` equal ones."""
    OVER_LIMIT = "over_limit"
    """More calls than `max_tool_calls`, or more tokens of results than `context_tokens`."""
    TOOL_FAILED = "tool_failed"
    """The tool raised, took too long, or reported a failure."""
    BAD_ID = "bad_id"
    """A call without an id, or with the id of another call."""
    EMPTY_REPLY = "empty_reply"
    WRITTEN_CALL = "written_call"
    """A call in the text of the reply."""
    CALL_AT_END = "call_at_end"
    """A call in the reply that had to be the answer."""


class ToolLimits(Struct, frozen=True):
    """The limits of one question, or of one session."""

    steps: int
    """Replies of the model, the answer included."""
    calls: int
    result_tokens: int
    """Limit of one result."""
    context_tokens: int | None = None
    """Limit of all results and of the chunks shown at first; None: no limit."""


class CallRecord(Struct, frozen=True):
    name: str
    arguments: str
    """As the model wrote them."""
    result: str
    """As the model saw it, without the fence around it."""
    tokens: int
    """Tokens of the result."""
    seconds: float | None = None
    """Time of the tool's own work and its calls, without the work of other questions, or wall time
    if that is not known; None if the tool did not run.
    """
    fault: Fault | None = None
    retrieved: tuple[Retrieved, ...] | None = None
    """The chunks that the result shows; None if the tool does not report them."""
    cut: bool = False
    """Whether the result was cut."""


class StepRecord(Struct, frozen=True):
    """One reply of the model, and its tool calls."""

    completion: Completion
    calls: tuple[CallRecord, ...] = ()
    faults: tuple[Fault, ...] = ()
    """Faults of the reply itself."""


Complete = Callable[[ToolPrompt], Awaitable[Completion]]
Use = Callable[[Tool, Mapping[str, Any]], Awaitable[Any]]
"""Runs a tool. Raises `SystemFaultError` for any error of the tool."""


class ToolLoop:
    """The tool loop of one question, or of one session."""

    def __init__(
        self,
        tools: Sequence[Tool],
        limits: ToolLimits,
        *,
        complete: Complete,
        use: Use,
        last_words: str = "",
    ) -> None:
        """`last_words` request the answer when no calls are left."""
        self.steps: list[StepRecord] = []
        """Steps so far, also after an error."""
        self.step_limit = False
        """Whether a limit ended the loop before the model was done."""
        self.context_tokens = 0
        """Tokens of the chunks shown at first and of all results of tools so far."""
        self._tools = {tool.name: tool for tool in tools}
        self._limits, self._complete, self._use = limits, complete, use
        self._last_words = last_words
        self._exchange: list[Message] = []
        self._seen: dict[str, None] = {}
        self._equal_calls: Counter[tuple[str, str]] = Counter()
        self._ids: set[str] = set()
        self._calls_made = 0

    @property
    def calls(self) -> list[CallRecord]:
        """The calls of all steps so far, in order."""
        return list(chain.from_iterable(step.calls for step in self.steps))

    def count_faults(self) -> dict[str, int]:
        """Number of faults of replies and calls so far, by kind."""
        counts: Counter[str] = Counter()
        for step in self.steps:
            for fault in (*step.faults, *(call.fault for call in step.calls)):
                if fault is not None:
                    counts[fault.value] += 1

        return dict(sorted(counts.items()))

    async def run(self, prompt: ToolPrompt) -> Completion:
        """The reply that is the answer.

        Raises `ModelError` if a call of the model failed, or it never answered, and `WorldError` if
        the memory no longer responds.
        """
        # The chunks shown at first count as seen, too.
        self._seen |= dict.fromkeys(prompt.seen)
        self.context_tokens = sum(map(count_tokens, prompt.seen))
        empty = 0
        while len(self.steps) + 1 < self._limits.steps and self._reached_limit() is None:
            completion = await self._complete(self._request(prompt, last=False))
            if completion.tool_calls:
                empty = 0
                await self._run_calls(completion)
                continue

            fault = self._note_text(completion)
            if fault is None:
                return completion

            empty += fault is Fault.EMPTY_REPLY
            if empty > 1:
                raise ModelError("the model's reply was empty twice: no answer and no tool call")

            self._exchange += _complaint(completion, fault)

        self.step_limit = True
        self._exchange.append({"role": "user", "content": self._last_words})
        return self._final(await self._complete(self._request(prompt, last=True)))

    async def run_writing(self, prompt: ToolPrompt) -> None:
        """Ends when the model calls no tool, or may call no more. Raises errors as `run` does."""
        while len(self.steps) < self._limits.steps and self._reached_limit() is None:
            completion = await self._complete(self._request(prompt, last=False))
            if completion.tool_calls:
                await self._run_calls(completion)
                continue

            fault = self._note_text(completion)
            # Unlike an answer, the end of writing need not be stated.
            if fault is not Fault.WRITTEN_CALL:
                return

            self._exchange += _complaint(completion, fault)

        self.step_limit = True

    def _request(self, prompt: ToolPrompt, *, last: bool) -> ToolPrompt:
        return replace(prompt, exchange=tuple(self._exchange), seen=tuple(self._seen), last=last)

    def _final(self, completion: Completion) -> Completion:
        """Checks the last reply, and returns it as the answer if it has text."""
        faults, did = [], "said nothing"
        if completion.tool_calls:
            faults, did = [Fault.CALL_AT_END], "called a tool"
        if _is_written_call(completion.text, self._tools):
            faults.append(Fault.WRITTEN_CALL)

        self._add_step(completion, *faults)
        if not completion.text.strip():
            raise ModelError(
                f"the model {did} instead of answering when its calls were used up "
                "(reader.max_steps, reader.max_tool_calls)"
            )

        return completion

    def _note_text(self, completion: Completion) -> Fault | None:
        """Records a reply that calls no tool, and returns its fault, if it has one."""
        fault = None
        if not completion.text.strip():
            fault = Fault.EMPTY_REPLY
        elif _is_written_call(completion.text, self._tools):
            fault = Fault.WRITTEN_CALL

        self._add_step(completion, *filter(None, [fault]))
        return fault

    def _add_step(self, completion: Completion, *faults: Fault) -> None:
        self.steps.append(StepRecord(completion, faults=faults))

    async def _run_calls(self, completion: Completion) -> None:
        """Runs the calls of a reply one after the other, and adds their results."""
        # Recorded first: if a call fails below, the step still lists the calls before it.
        index = len(self.steps)
        ids, faults = self._ids_of(completion.tool_calls)
        self._add_step(completion, *faults)
        self._exchange.append(_as_message(completion, ids))

        for position, (call, call_id) in enumerate(zip(completion.tool_calls, ids, strict=True)):
            is_last = position == len(completion.tool_calls) - 1
            record = await self._run_call(call, was_cut=completion.cut and is_last)
            self.steps[index] = structs.replace(
                self.steps[index], calls=(*self.steps[index].calls, record)
            )
            content = fenced(record.result, "result")
            self._exchange.append({"role": "tool", "tool_call_id": call_id, "content": content})
            if record.fault is None:
                self._remember(record)

    def _ids_of(self, calls: Sequence[ToolCall]) -> tuple[list[str], list[Fault]]:
        """An id for each call; its own, unless another call has it."""
        ids: list[str] = []
        faults: list[Fault] = []
        for position, call in enumerate(calls, start=1):
            call_id = call.call_id
            if not call_id or call_id in self._ids:
                call_id = f"call_{len(self.steps) + 1}_{position}"
                while call_id in self._ids:
                    call_id += "_"

                faults.append(Fault.BAD_ID)

            self._ids.add(call_id)
            ids.append(call_id)

        return ids, faults

    async def _run_call(self, call: ToolCall, *, was_cut: bool) -> CallRecord:
        limit = self._reached_limit()
        self._calls_made += 1
        try:
            if limit is not None:
                message = f"Not run: the limit of {limit} is reached."
                raise _RefusedCallError(Fault.OVER_LIMIT, message)

            tool = self._tool_of(call)
            arguments = _arguments_of(call, tool, was_cut=was_cut)
            self._count_equal(call, arguments)
        except _RefusedCallError as refusal:
            return CallRecord(
                name=call.name,
                arguments=call.arguments,
                result=str(refusal),
                tokens=count_tokens(str(refusal)),
                fault=refusal.fault,
            )

        return await self._use_tool(call, tool, arguments)

    def _reached_limit(self) -> str | None:
        """The limit that allows no further call, in words; None if one may be made."""
        if self._calls_made >= self._limits.calls:
            return f"{self._limits.calls} tool calls"
        if self._remaining_tokens() <= CUT_LINE_TOKENS:
            return f"{self._limits.context_tokens:,} tokens of results"

        return None

    def _remaining_tokens(self) -> float:
        most = self._limits.context_tokens
        return math.inf if most is None else most - self.context_tokens

    def _tool_of(self, call: ToolCall) -> Tool:
        tool = self._tools.get(call.name)
        if tool is None:
            named, known = one_line(call.name, 60), ", ".join(self._tools)
            message = f"There is no tool '{named}'. The tools are: {known}."
            raise _RefusedCallError(Fault.UNKNOWN_TOOL, message)

        return tool

    def _count_equal(self, call: ToolCall, arguments: Mapping[str, Any]) -> None:
        key = (call.name, json.dumps(arguments, sort_keys=True))
        self._equal_calls[key] += 1
        if self._equal_calls[key] > MAX_EQUAL_CALLS:
            raise _RefusedCallError(
                Fault.REPEATED,
                f"Not run: you made this call {MAX_EQUAL_CALLS} times, and its result is above. "
                "Make another one, or answer.",
            )

    async def _use_tool(
        self, call: ToolCall, tool: Tool, arguments: Mapping[str, Any]
    ) -> CallRecord:
        ledger = current_ledger()
        mark, calls_s = ledger.own_work.mark(), ledger.calls_s() or 0.0
        began, seconds = time.perf_counter(), None
        try:
            result = as_result(await self._use(tool, arguments))
            seconds = plus(ledger.own_work.measured_since(mark), ledger.calls_s())
        except (WorldError, UserError, StorageError):
            raise  # the memory is unreachable: not a tool's result
        except (SystemFaultError, TypeError, ValueError, RecursionError) as error:
            result = ToolResult(f"The tool failed: {one_line(error, 400)}", is_error=True)

        # It failed, or it waited while other questions were worked on.
        if seconds is None:
            seconds = time.perf_counter() - began + calls_s

        text, cut = self._cut(without_controls(result.text)[0])
        fault, retrieved = None, result.retrieved
        if result.is_error:
            fault, retrieved = Fault.TOOL_FAILED, None
        elif cut and retrieved is not None:
            retrieved = tuple(chunk for chunk in retrieved if chunk.text in text)

        tokens = count_tokens(text)
        self.context_tokens += tokens
        return CallRecord(
            name=call.name,
            arguments=call.arguments,
            result=text,
            tokens=tokens,
            seconds=seconds - calls_s,
            fault=fault,
            retrieved=retrieved,
            cut=cut,
        )

    def _cut(self, text: str) -> tuple[str, bool]:
        """Part of a result that the limits allow, and whether it was cut."""
        text, cut = cut_result(text, self._limits.result_tokens)
        remaining = self._remaining_tokens()
        if count_tokens(text) > remaining:
            # The line that marks the cut must fit, too.
            text, cut = cut_result(text, int(remaining) - CUT_LINE_TOKENS)

        return text, cut

    def _remember(self, record: CallRecord) -> None:
        if record.retrieved is not None:
            entries = [chunk.text for chunk in record.retrieved]
        else:
            entries = entries_of(record.result)

        self._seen |= dict.fromkeys(entries)


class _RefusedCallError(Exception):
    """A call that is not run; the message is for the model."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def _arguments_of(call: ToolCall, tool: Tool, *, was_cut: bool) -> dict[str, Any]:
    """The arguments of a call, checked against the tool's schema."""
    try:
        arguments = load_arguments(call.arguments)
    except (ValueError, RecursionError) as error:
        if was_cut:
            message = "Not run: your reply was cut within the arguments. Make a shorter call."
            raise _RefusedCallError(Fault.CUT_ARGUMENTS, message) from error

        reason = f"the arguments are not JSON ({one_line(error, 100)})"
        message = f"Not run: {reason}. Send one JSON object."
        raise _RefusedCallError(Fault.BAD_JSON, message) from error

    mistake = find_mistake(arguments, {**tool.parameters, "type": "object"})
    if mistake is not None:
        raise _RefusedCallError(Fault.BAD_ARGUMENTS, f"Not run: {mistake}.")

    return whole_numbers(arguments, tool)


def _is_written_call(text: str, names: Collection[str]) -> bool:
    """Whether a reply is a call written as markup, JSON or code; `names` are the tools' names."""
    if _WRITTEN_CALL.search(text):
        return True

    plain = re.sub(r"^```\w*\n|\n?```$", "", text.strip()).strip()
    if re.match(rf"\[?(?:{'|'.join(names)})\(.*\)\]?$", plain, re.DOTALL):
        return True

    value = json_or_none(plain)
    # A list: the name in an answer may be a list or an object, which no set or dict can look up.
    known = list(names)
    for call in value if isinstance(value, list) else [value]:
        # An unknown tool's call has exactly these members; other objects may be answers in JSON.
        if isinstance(call, dict) and (call.get("name") in known or call.keys() == _CALL):
            return True

    return False


def _complaint(completion: Completion, fault: Fault) -> list[Message]:
    """Messages for the model after a reply that is neither a call nor an answer."""
    if fault is Fault.EMPTY_REPLY:
        # Some endpoints refuse an empty message of the assistant.
        return [{"role": "user", "content": "Your reply was empty. Call a tool, or answer."}]

    return [
        {"role": "assistant", "content": completion.text},
        {
            "role": "user",
            "content": "No tool was called: calls in the text are not read. Call the tool itself, "
            "or answer.",
        },
    ]


def _as_message(completion: Completion, ids: Sequence[str]) -> Message:
    """The reply as later requests repeat it, without the model's thinking."""
    calls = []
    for call, call_id in zip(completion.tool_calls, ids, strict=True):
        # A name that every endpoint accepts.
        name = _ODD_NAME.sub("_", call.name)[:64] or "unnamed"
        # The templates of some servers need an object.
        arguments = call.arguments if isinstance(json_or_none(call.arguments), dict) else "{}"
        function = {"name": name, "arguments": arguments}
        calls.append({"id": call_id, "type": "function", "function": function})

    return {"role": "assistant", "content": completion.text or None, "tool_calls": calls}
