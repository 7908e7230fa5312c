"""CPU time of the tool loop per tool call, with a model and a tool that reply immediately, and with
the step stored in the row.

    python perf/tools.py [--questions 200] [--result-words 200]

The figure is the slope between questions with 2 and with 10 calls. The target is 3 ms.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measured import parser_of

from memeval.llm.contract import Completion, Prompt, ToolCall, ToolPrompt
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import load_builtin
from memeval.pipeline.execute.question import ask
from memeval.pipeline.execute.reader import CellReader
from memeval.pipeline.execute.source import ServiceWatch
from memeval.pipeline.execute.tool_loop import ToolLimits
from memeval.pipeline.execute.tool_reader import ToolReader
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.isolate.watch import Watched
from memeval.records import EvalCase, EvalQuestion, Role, Session, Turn, Usage
from memeval.results import TextStore
from memeval.systems.base import MemorySystem, SystemSettings
from memeval.systems.tools import Tool, object_schema

FEW, MANY = 2, 10
LIMITS = ToolLimits(steps=MANY + 2, calls=2 * MANY, result_tokens=2000)
TARGET_MS = 3.0


def main() -> None:
    options = parser_of(__doc__, questions=200, result_words=200).parse_args()

    # The first questions import and compile what all need.
    measure(FEW, 5, options.result_words)
    few_ms = measure(FEW, options.questions, options.result_words)
    many_ms = measure(MANY, options.questions, options.result_words)
    call_ms = (many_ms - few_ms) / (MANY - FEW)
    print(f"{call_ms:.2f} ms of CPU per tool call (target: {TARGET_MS:g})")
    raise SystemExit(int(call_ms > TARGET_MS))


def measure(calls: int, questions: int, words: int) -> float:
    """Milliseconds of CPU per question with this many calls, whose results have `words` words."""
    rng = random.Random(0)
    sentences = [random_sentence(rng) for _ in range(600)]
    memory = Stub(SystemSettings(), None)
    memory.result = " ".join(" ".join(sentences[: words // 20]).split()[:words])
    model = CallingModel(calls)
    reader = ToolReader(
        Watched(memory),
        reader=CellReader(model, load_builtin("answer_short"), "short", 0),
        model=model,
        instructions=load_builtin("tools"),
        limits=LIMITS,
        seed=0,
    )
    case = case_of(sentences)
    with tempfile.TemporaryDirectory() as folder, TextStore(Path(folder) / "texts.jsonl") as texts:
        started = time.process_time()
        asyncio.run(answer(questions, case, texts, memory, reader))
        return (time.process_time() - started) / questions * 1e3


def random_sentence(rng: random.Random) -> str:
    """Twenty random words."""
    return " ".join(f"w{rng.randrange(2000)}" for _ in range(20))


def case_of(sentences: Sequence[str]) -> EvalCase:
    """One session with a turn per sentence."""
    turns = []
    for number, sentence in enumerate(sentences):
        turns.append(Turn(f"t{number}", "Ann", sentence, None))

    return EvalCase("case", (Session("s", None, tuple(turns)),), ())


async def answer(
    questions: int, case: EvalCase, texts: TextStore, memory: MemorySystem, reader: ToolReader
) -> None:
    """Answers questions with the tools, one after the other."""
    turns = CaseTurns.of(case)
    for number in range(questions):
        row = await ask(
            Watched(memory),
            EvalQuestion(f"q{number}", f"What is w{number}?", "c", ("x",)),
            turns,
            texts,
            service=ServiceWatch(None),
            tool_reader=reader,
        )
        assert row.hypothesis == "done", row.error


class CallingModel(LanguageModel):
    """Makes a number of calls one after the other, then answers."""

    name = "calling"
    deterministic = True

    def __init__(self, calls: int) -> None:
        self._calls = calls

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        assert isinstance(prompt, ToolPrompt)
        usage = Usage(role, self.name, "stub", 1, 1)
        # As a client would before it sends them.
        json.dumps(prompt.messages())

        made = sum(len(message.get("tool_calls", ())) for message in prompt.exchange)
        if made >= self._calls:
            return Completion("done", usage, latency_s=0.0)

        call = ToolCall(f"call_{made}", "search", json.dumps({"query": f"w{made}"}))
        return Completion("", usage, latency_s=0.0, tool_calls=(call,))


class Stub(MemorySystem):
    """A memory whose only tool always returns the same text, and not the turns it is from."""

    in_thread = False
    result = ""

    def reset(self) -> None: ...

    def ingest(self, chunk: Any) -> None: ...

    def answer(self, query: Any) -> Any: ...

    def tools(self) -> Sequence[Tool]:
        schema = object_schema(required=["query"], query={"type": "string"})
        return [Tool("search", "Searches.", schema, lambda **_: self.result)]


if __name__ == "__main__":
    main()
