"""What the loop of tools takes of the processor for each tool call: the model and the tool reply at
once, and the step is kept in the row.

    python perf/tools.py [--questions 200] [--result-words 200]

The figure is the slope between questions with 2 and with 10 calls. The target is 3 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--result-words", type=int, default=200)
    options = parser.parse_args()

    # The first questions import and compile what all need.
    measure(FEW, 5, options.result_words)
    few, many = (measure(calls, options.questions, options.result_words) for calls in (FEW, MANY))
    each = (many - few) / (MANY - FEW)
    print(f"{each:.2f} ms of CPU per tool call (target: {TARGET_MS:g})")
    raise SystemExit(int(each > TARGET_MS))


def sentence(draw: random.Random) -> str:
    """Twenty random words."""
    return " ".join(f"w{draw.randrange(2000)}" for _ in range(20))


def measure(calls: int, questions: int, words: int) -> float:
    """Milliseconds of CPU per question with this many calls."""
    draw = random.Random(0)
    texts = [sentence(draw) for _ in range(600)]
    turns = tuple(Turn(f"t{at}", "Ann", text, None) for at, text in enumerate(texts))
    case = EvalCase("case", (Session("s", None, turns),), ())
    memory = Stub(SystemSettings(), None)
    memory.result = " ".join(" ".join(texts[: words // 20]).split()[:words])
    model = Calling(calls)
    reader = ToolReader(
        Watched(memory),
        reader=CellReader(model, load_builtin("answer_short"), "short", 0),
        model=model,
        instructions=load_builtin("tools"),
        limits=LIMITS,
        seed=0,
    )

    async def run(texts: TextStore) -> None:
        known = CaseTurns.of(case)
        for number in range(questions):
            question = EvalQuestion(f"q{number}", f"What is w{number}?", "c", ("x",))
            row = await ask(
                Watched(memory),
                question,
                known,
                texts,
                service=ServiceWatch(None),
                tool_reader=reader,
            )
            assert row.hypothesis == "done", row.error

    with tempfile.TemporaryDirectory() as folder, TextStore(Path(folder) / "texts.jsonl") as texts:
        began = time.process_time()
        asyncio.run(run(texts))
        return (time.process_time() - began) / questions * 1e3


class Calling(LanguageModel):
    """Makes so many calls one after the other, then answers."""

    name = "calling"
    deterministic = True

    def __init__(self, calls: int) -> None:
        self._calls = calls

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        assert isinstance(prompt, ToolPrompt)
        usage = Usage(role, self.name, "stub", 1, 1)
        # A client would serialise them.
        json.dumps(prompt.messages())
        made = sum(len(message.get("tool_calls", ())) for message in prompt.exchange)
        if made >= self._calls:
            return Completion("done", usage, latency_s=0.0)

        call = ToolCall(f"call_{made}", "search", json.dumps({"query": f"w{made}"}))
        return Completion("", usage, latency_s=0.0, tool_calls=(call,))


class Stub(MemorySystem):
    """A memory whose only tool returns one text, of which nobody says whose turns it shows."""

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
