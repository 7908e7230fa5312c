"""How much more memory a sweep of 27 runs takes than its largest run: three systems times three
`top_k` times three judges over LoCoMo, with 385 questions each.

    MEMEVAL_DATA_DIR=... python perf/memory.py [--systems bm25 rag no_memory] [--latency 0.02]

First each system's run with the largest `top_k` runs alone, in its own home, and then the sweep.
Printed are the peak of the main process (resident), and the peak of all its processes together, in
which shared memory counts once (proportional, sampled every 0.2 s). Linux only.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from measured import parser_of, serve, start_memeval

EVERY_S = 0.2
DATA = ("dataset=locomo", "dataset.limit_questions=42", "llm=openai")
ALONE = ("top_k=10", "judge=llm")
SWEEP = ("-m", "top_k=3,5,10", "judge=llm,mem0,contains")


@dataclass(frozen=True)
class Peaks:
    """The most memory that a command took, in MB."""

    main_mb: float
    all_mb: float


def main() -> None:
    parser = parser_of(__doc__, latency=0.02)
    parser.add_argument("--systems", nargs="+", default=["bm25", "rag", "no_memory"])
    options = parser.parse_args()

    largest = Peaks(main_mb=0, all_mb=0)
    with serve(options.latency) as url:
        shared = [*DATA, f"llm.base_url={url}", "llm.max_concurrency=64"]
        for system in options.systems:
            run = measure(system, [*ALONE, f"system={system}", *shared])
            largest = Peaks(
                main_mb=max(largest.main_mb, run.main_mb), all_mb=max(largest.all_mb, run.all_mb)
            )

        sweep = measure("sweep", [*SWEEP, f"system={','.join(options.systems)}", *shared])

    print(
        f"sweep / largest run: main process {sweep.main_mb / largest.main_mb:.2f}, "
        f"all processes {sweep.all_mb / largest.all_mb:.2f}"
    )


def measure(label: str, words: Sequence[str]) -> Peaks:
    """Runs the words in an empty home, and prints the peaks of its processes."""
    main_mb = all_mb = 0.0
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as stderr:
        process = start_memeval(words, home, stderr)
        while process.poll() is None:
            main_mb = max(main_mb, _megabytes(process.pid, "status", "VmHWM"))
            tree_mb = 0.0
            for pid in [process.pid, *_descendants(process.pid)]:
                tree_mb += _megabytes(pid, "smaps_rollup", "Pss")

            all_mb = max(all_mb, tree_mb)
            time.sleep(EVERY_S)

        if process.returncode:
            stderr.seek(0)
            raise SystemExit(stderr.read().decode())

    print(f"{label:12} main process {main_mb:6.0f} MB, all processes {all_mb:6.0f} MB", flush=True)
    return Peaks(main_mb=main_mb, all_mb=all_mb)


def _megabytes(pid: int, file: str, field: str) -> float:
    """A field of a file below /proc, in MB; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0.0

    for line in lines:
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024

    return 0.0


def _descendants(pid: int) -> Iterator[int]:
    """Ids of a process's children, their children, and so on."""
    children: list[str] = []
    # Each thread has its own list of the processes that it started.
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += task.read_text().split()
        except OSError:
            continue

    for child in map(int, children):
        yield child
        yield from _descendants(child)


if __name__ == "__main__":
    main()
