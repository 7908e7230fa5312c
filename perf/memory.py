"""How much more memory a sweep of 27 cells takes than its largest cell: three systems times three
`top_k` times three judges over LoCoMo, with 385 questions each.

    MEMEVAL_DATA_DIR=... python perf/memory.py [--systems bm25 rag no_memory] [--latency 0.02]

Each system's cell with the largest `top_k` runs alone first, in a home of its own, and then the
sweep. Printed are the peak of the main process (resident), and that of all its processes together,
where what several share counts once (proportional, looked at every 0.2 s). Linux only.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from measured import serve, start

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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.02)
    parser.add_argument("--systems", nargs="+", default=["bm25", "rag", "no_memory"])
    options = parser.parse_args()

    with serve(options.latency) as address:
        shared = [*DATA, f"llm.base_url={address}", "llm.max_concurrency=64"]
        cells = {system: peaks([*ALONE, f"system={system}", *shared]) for system in options.systems}
        sweep = peaks([*SWEEP, f"system={','.join(options.systems)}", *shared])

    largest = Peaks(
        main_mb=max(cell.main_mb for cell in cells.values()),
        all_mb=max(cell.all_mb for cell in cells.values()),
    )
    for name, cell in [*cells.items(), ("sweep", sweep)]:
        print(f"{name:12} main process {cell.main_mb:6.0f} MB, all processes {cell.all_mb:6.0f} MB")

    print(
        f"sweep / largest cell: main process {sweep.main_mb / largest.main_mb:.2f}, "
        f"all processes {sweep.all_mb / largest.all_mb:.2f}"
    )


def peaks(words: Sequence[str]) -> Peaks:
    """Runs the words in an empty home, and watches its processes."""
    main_mb = all_mb = 0.0
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as said:
        process = start(words, home, said)
        while process.poll() is None:
            main_mb = max(main_mb, _value(process.pid, "status", "VmHWM"))
            tree = [process.pid, *_descendants(process.pid)]
            all_mb = max(all_mb, sum(_value(pid, "smaps_rollup", "Pss") for pid in tree))
            time.sleep(EVERY_S)

        if process.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode())

    return Peaks(main_mb=main_mb, all_mb=all_mb)


def _value(pid: int, file: str, name: str) -> float:
    """A figure in MB from a file below /proc; 0 where the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0.0

    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) / 1024 if values else 0.0


def _descendants(pid: int) -> Iterator[int]:
    listed: list[str] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):  # a thread may have started it
        try:
            listed += task.read_text().split()
        except OSError:
            continue

    for child in map(int, listed):
        yield child
        yield from _descendants(child)


if __name__ == "__main__":
    main()
