"""Whether a question takes more work than before: the gate of `make speed`.

    python perf/speed.py [--runs 1]

Questions are answered and judged at the scripted endpoint, which runs in a separate process. The
script counts the bytecodes that Python executes for them, and divides by those of a bare aiohttp
loop that sends as many requests. The ratio of CPU times would be a better measure, but it varies by
a tenth and more on a busy machine; the ratio of bytecodes varies by less than a hundredth. Work in
C, such as numpy's, is not counted. The exit status is 1 above `MOST` times the committed ratio.

Commit the new ratio after a change that makes memeval faster, or slower on purpose.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from measured import parser_of, send_requests, serve

if TYPE_CHECKING:
    from memeval.pipeline.open.cell import Cell

COMMITTED = 5.30
"""Bytecodes of the questions per bytecode of as many bare requests, on Python 3.11."""
MOST = 1.15
SLOTS = 64
CASES, QUESTIONS = 4, 120
"""Number of conversations, and of all their questions."""
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
    options = parser_of(__doc__, runs=1).parse_args()
    with tempfile.TemporaryDirectory() as home, serve(0.0) as url:
        os.environ |= {"MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"}
        os.environ.pop("MEMEVAL_DATA_DIR", None)
        data = write_data(Path(home))
        # The first of each loads modules and fills their caches.
        answer_questions(compose(data, url, 0))
        send_bare_requests(url)
        ratios = [measure(data, url, number) for number in range(1, options.runs + 1)]

    return int(min(ratios) > MOST * COMMITTED)


def measure(data: Path, url: str, number: int) -> float:
    """Bytecodes of the questions per bytecode of their bare requests."""
    cell = compose(data, url, number)
    ours = bytecodes(lambda: answer_questions(cell))
    bare = bytecodes(lambda: send_bare_requests(url))
    ratio = ours / bare
    print(
        f"a question takes {ratio:.2f} x the bytecodes of its bare requests "
        f"({ours / QUESTIONS:,.0f}); committed: {COMMITTED:.2f}, at most {MOST * COMMITTED:.2f}"
    )
    return ratio


def bytecodes(work: Callable[[], object]) -> int:
    """Number of bytecodes that this thread executes for `work`."""
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
    """Writes generated conversations to a file, so that they are generated once for all runs."""
    from memeval.datasets.locate import build
    from memeval.datasets.synthetic.file import write_cases

    path, per_case = home / "generated.json", QUESTIONS // CASES
    dataset = build("synthetic", home, tokens=5000, n_cases=CASES, questions_per_case=per_case)
    with path.open("w", encoding="utf-8") as file:
        write_cases(dataset.cases(), file)

    return path


def compose(data: Path, url: str, number: int) -> Cell:
    from memeval.api.running import compose_cell

    return compose_cell(
        [
            "dataset=synthetic",
            f"dataset.path={data}",
            "system=bm25",
            "llm=openai",
            "judge=llm",
            # Replies are cached by request, so each run has another model.
            f"llm.model=number-{number}",
            f"llm.base_url={url}",
            f"llm.max_concurrency={SLOTS}",
        ]
    )


def answer_questions(cell: Cell) -> None:
    """Runs a cell, from reading its data to its last row."""
    from lone_runs import run_cell

    finished = run_cell(cell, end=lambda _, finished: finished)
    verdicts = finished.repeats[0].verdicts.rows.values()
    judged = sum(row.status == "ok" for row in verdicts)
    if judged != QUESTIONS:
        # Failures are quick: without this check they would pass as an improvement.
        raise SystemExit(f"only {judged} of {QUESTIONS} questions were answered and judged")


def send_bare_requests(url: str) -> None:
    asyncio.run(send_requests(url, repeat(BODY, QUESTIONS * CALLS_PER_QUESTION), SLOTS))


if __name__ == "__main__":
    raise SystemExit(main())
