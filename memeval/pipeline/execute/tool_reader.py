"""The reader under `reader=tools`: a model that uses the tools of one memory."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.errors import UserError
from memeval.llm.contract import Completion, ToolPrompt
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import PromptTemplate
from memeval.metrics.quotation import Quotations
from memeval.pipeline.execute.reader import CellReader, final_answer, fitting_texts, whole_reply
from memeval.pipeline.execute.tool_loop import (
    CallRecord,
    Complete,
    StepRecord,
    ToolLimits,
    ToolLoop,
)
from memeval.pipeline.isolate.watch import Watched
from memeval.records import Answer, Query, Retrieved, Role
from memeval.results.steps import AgentStep, StepCall
from memeval.systems.base import RecallSystem, latest_first
from memeval.systems.tools import Tool
from memeval.text.shown import one_line

NOTHING_SHOWN = "(nothing yet: look it up by the tools)"
"""The context of a question before the first call."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolReader:
    """Answers the questions of one case with the tools of its memory."""

    def __init__(
        self,
        watched: Watched,
        *,
        reader: CellReader,
        model: LanguageModel,
        instructions: PromptTemplate,
        limits: ToolLimits,
        seed: int,
    ) -> None:
        """`reader` formulates the question; `instructions` describe the tools."""
        self._watched, self._reader, self._model = watched, reader, model
        self._instructions, self._limits, self._seed = instructions, limits, seed
        self._tools: tuple[Tool, ...] | None = None
        self._opening = asyncio.Lock()

    async def loop(self) -> ToolLoop:
        """The loop of the next question.

        Raises `UserError` if the memory has no tools, and `SystemFaultError` if they are not valid.
        """
        async with self._opening:
            if self._tools is None:
                tools = await open_tools(self._watched)
                self._tools = tuple(tool for tool in tools if not tool.writes)
                if not self._tools:
                    raise UserError(
                        f"{type(self._watched.system).__name__} has no tool that only reads; "
                        "use reader=direct"
                    )

        return ToolLoop(
            self._tools,
            self._limits,
            complete=complete_by(self._model, Role.ANSWER, self._seed),
            use=self._watched.use,
            last_words=self._instructions.user,
        )

    async def answer(self, query: Query, loop: ToolLoop) -> Answer:
        """The answer at the end of the loop. Raises the same errors as `ToolLoop.run`."""
        window = await self._window()
        prompt = ToolPrompt(
            asked=self._reader.prompt(query, window or (NOTHING_SHOWN,)),
            instructions=self._instructions.system,
            tools=tuple(map(as_function, self._tools or ())),
            seen=tuple(window),
        )
        completion = await loop.run(prompt)
        text = completion.text.strip()
        if not query.choices:
            text = final_answer(text)

        return Answer(
            text=text,
            raw=whole_reply(completion, text),
            retrieved=_retrieved(loop.calls),
            context_tokens=loop.context_tokens,
        )

    async def _window(self) -> Sequence[str]:
        """The chunks that the agent always sees, such as its window after a compression: the latest
        ones that fit in `context_tokens`.
        """
        if not isinstance(self._watched.system, RecallSystem):
            return ()

        texts = [chunk.text for chunk in await self._watched.call("window")]
        most = self._limits.context_tokens
        if most is None:
            return texts

        return fitting_texts(texts, latest_first(len(texts)), most)


def complete_by(model: LanguageModel, role: Role, seed: int) -> Complete:
    """Returns the function by which a loop calls a model."""

    async def complete(prompt: ToolPrompt) -> Completion:
        completion = await model.complete(prompt, role=role, seed=seed)
        if completion.cut and completion.tool_calls:
            # The loop continues, as nothing depends on the cut reply.
            current_ledger().drop_cut(role)

        return completion

    return complete


TurnsOf = Callable[[CallRecord], tuple[str, ...]]
"""Returns the turn ids for a call that did not fail."""


def step_rows(steps: Sequence[StepRecord], turns_of: TurnsOf) -> tuple[AgentStep, ...]:
    """The steps as a row stores them, but with whole texts."""
    rows = []
    for step in steps:
        completion = step.completion
        reply = completion.raw or completion.text
        row = AgentStep(
            text=reply if reply.strip() else None,
            finish_reason=completion.finish_reason,
            prompt_tokens=completion.usage.prompt_tokens,
            completion_tokens=completion.usage.completion_tokens,
            faults=tuple(fault.value for fault in step.faults),
            calls=tuple(_call_row(call, turns_of) for call in step.calls),
        )
        rows.append(row)

    return tuple(rows)


def _call_row(call: CallRecord, turns_of: TurnsOf) -> StepCall:
    return StepCall(
        name=one_line(call.name, 64),
        arguments=call.arguments,
        result=call.result,
        tokens=call.tokens,
        fault=None if call.fault is None else call.fault.value,
        turn_ids=turns_of(call) if call.fault is None else None,
        cut=call.cut,
    )


def shown_turns(call: CallRecord, quotations: Quotations[str]) -> tuple[str, ...]:
    """The turns that a result shows, as reported by its tool, or else those that it quotes."""
    turns: list[str] = []
    for chunk in call.retrieved or ():
        turns += map(str, chunk.turn_ids)

    # Notes, and results of servers, don't name turns.
    if not turns and call.retrieved != ():
        return quotations.found_in(call.result)

    return tuple(turns)


def _retrieved(calls: Sequence[CallRecord]) -> tuple[Retrieved, ...] | None:
    """The chunks of all results, each once; None if a tool that was run doesn't report them."""
    chunks: dict[tuple[str, tuple[str, ...]], Retrieved] = {}
    for call in calls:
        if call.fault is not None:
            continue
        if call.retrieved is None:
            return None

        for chunk in call.retrieved:
            chunks.setdefault((chunk.text, tuple(chunk.turn_ids)), chunk)

    return tuple(chunks.values())


def as_function(tool: Tool) -> Mapping[str, Any]:
    """A tool as requests describe it."""
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


async def open_tools(watched: Watched) -> tuple[Tool, ...]:
    """The tools of a memory.

    Raises `UserError` if it has no tools, and `SystemFaultError` for an object that is not a tool.
    """
    tools = await watched.call("tools")
    if not isinstance(tools, Sequence) or not all(isinstance(tool, Tool) for tool in tools):
        raise watched.misuse("tools", "it must return a sequence of Tool")
    if not tools:
        raise UserError(f"{type(watched.system).__name__} has no tools; use reader=direct")

    names = [tool.name for tool in tools]
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise watched.misuse(
                "tools", f"'{one_line(name, 60)}' is not a tool name: use letters, digits, _ and -"
            )
        if names.count(name) > 1:
            raise watched.misuse("tools", f"two tools are named '{name}'")

    for tool in tools:
        if (mistake := _mistake_in(tool)) is not None:
            raise watched.misuse("tools", f"{mistake} in the tool '{tool.name}'")

    return tuple(tools)


def _mistake_in(tool: Tool) -> str | None:
    """The first part of a tool that is not valid, in words that continue a message."""
    if not isinstance(tool.description, str):
        return "the description must be a string"
    if not isinstance(tool.parameters, Mapping):
        return "the parameters must be a JSON schema"

    try:
        json.dumps(as_function(tool))
    except (TypeError, ValueError, RecursionError) as error:
        return f"the parameters can't be sent as JSON ({one_line(error, 100)})"

    if not callable(tool.call):
        return "`call` must be a function"

    return None
