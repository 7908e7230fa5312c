"""Whether a question takes more work than it did: the gate of `make speed`.

    python perf/speed.py [--runs 1]

Questions are answered and judged at the scripted endpoint, which runs in another process. Counted
are the bytecodes that Python executes for them, as a ratio to those of a bare aiohttp loop that
sends as many requests. Processor time would be nearer to what is meant, but on a busy machine its
ratio swings by a tenth and more; this one by less than a hundredth. Work inside of C, such as
numpy's, is not counted. The exit status is 1 above `MOST` times the committed ratio.

After a change that makes memeval quicker, or slower on purpose, commit the new ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import aiohttp
from measured import serve

if TYPE_CHECKING:
    from memeval.pipeline.open.cell import Cell

COMMITTED = 5.30
"""Bytecodes of the questions, in those of as many bare requests, on Python 3.11."""
MOST = 1.15
SLOTS = 64
CASES, QUESTIONS = 4, 120
"""Conversations, and questions of all of them."""
CALLS_PER_QUESTION = 2
BODY = {
    "model": "bare",
    "temperature": 0.0,
    "max_tokens": 256,
    "messages": [
        {"role": "system", "content": "Answer the question from the context. " * 4},
        {"role": "user", "content": "[1:56 pm on 8 May 2023] Ann: words that were said. " * 30},
    ],
}
"""About as long as the requests of the questions."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as home, serve(0.0) as address:
        os.environ |= {"MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"}
        os.environ.pop("MEMEVAL_DATA_DIR", None)
        data = write_data(Path(home))
        # The first of each loads modules and fills their caches.
        answer_questions(open_cell_of(data, address, 0))
        send_requests(address)
        ratios = [compare(data, address, number) for number in range(1, options.runs + 1)]

    return 1 if min(ratios) > MOST * COMMITTED else 0


def compare(data: Path, address: str, number: int) -> float:
    """The bytecodes of questions in those of their bare requests."""
    cell = open_cell_of(data, address, number)
    ours = bytecodes(lambda: answer_questions(cell))
    bare = bytecodes(lambda: send_requests(address))
    ratio = ours / bare
    print(
        f"a question takes {ratio:.2f} x the bytecodes of its bare requests "
        f"({ours / QUESTIONS:,.0f}); committed: {COMMITTED:.2f}, at most {MOST * COMMITTED:.2f}"
    )
    return ratio


def bytecodes(work: Callable[[], object]) -> int:
    """How many bytecodes this thread executes for `work`."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            count += 1

        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)

    return count


def write_data(home: Path) -> Path:
    """A file of generated conversations: they are not generated again for each cell."""
    from memeval.datasets.locate import build
    from memeval.datasets.synthetic.file import write_cases

    path, asked = home / "generated.json", QUESTIONS // CASES
    dataset = build("synthetic", home, tokens=5000, n_cases=CASES, questions_per_case=asked)
    with path.open("w", encoding="utf-8") as file:
        write_cases(dataset.cases(), file)

    return path


def open_cell_of(data: Path, address: str, number: int) -> Cell:
    from memeval.api.running import compose_cell

    return compose_cell(
        [
            "dataset=synthetic",
            f"dataset.path={data}",
            "system=bm25",
            "llm=openai",
            "judge=llm",
            # Replies are kept by what was sent: each cell has another model.
            f"llm.model=number-{number}",
            f"llm.base_url={address}",
            f"llm.max_concurrency={SLOTS}",
        ]
    )


def answer_questions(cell: Cell) -> None:
    """Works on a cell, from reading its data to its last row."""
    from memeval.pipeline.execute.progress import Silent
    from memeval.pipeline.execute.run import CellRun

    asyncio.run(CellRun(cell, Silent()).run(lambda _: None))


def send_requests(address: str) -> None:
    asyncio.run(request(f"{address}/chat/completions", QUESTIONS * CALLS_PER_QUESTION))


async def request(url: str, count: int) -> None:
    waiting = iter(range(count))

    async def work(session: aiohttp.ClientSession) -> None:
        for _ in waiting:
            async with session.post(url, json=BODY) as reply:
                await reply.json()

    connector = aiohttp.TCPConnector(limit=SLOTS)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(SLOTS)))


if __name__ == "__main__":
    raise SystemExit(main())
