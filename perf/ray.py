"""How the throughput grows with the workers of a Ray cluster of this machine, where calls wait for
a slow endpoint: one cell of many small cases, of which each worker has some open at once.

    python perf/ray.py [--workers 1 2 4] [--latency 1.0] [--cases 8] [--number 160] [overrides ...]

Calls a second are those between the first call and the last, as the endpoint saw them; the whole
process also starts the cluster. The endpoint runs in a process of its own.
"""

from __future__ import annotations

import argparse
import tempfile

from measured import run_timed, serve, stats_of

CELL = (
    "-m",
    "dataset=synthetic",
    "dataset.tokens=600",
    "dataset.questions_per_case=1",
    "system=bm25",
    "llm=openai",
    "llm.max_concurrency=256",
    "judge=llm",
    "tracking=none",
    "plots=false",
    "hydra/launcher=ray",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--number", type=int, default=160, help="cases of the cell")
    options, overrides = parser.parse_known_args()

    first = None
    for workers in options.workers:
        words = [
            f"dataset.n_cases={options.number}",
            f"hydra.launcher.workers={workers}",
            f"hydra.launcher.cases={options.cases}",
            *overrides,
        ]
        calls, seconds, peak, wall_s = measure(words, options.latency)
        rate = calls / seconds
        first = first or rate / workers
        print(
            f"{workers} workers: {calls} calls in {seconds:.1f} s, {rate:.1f} a second, "
            f"{rate / first / workers:.2f} of {workers} x one; "
            f"{rate * options.latency / (workers * options.cases):.2f} of the ideal; "
            f"peak {peak}; whole process {wall_s:.1f} s",
            flush=True,
        )


def measure(words: list[str], latency_s: float) -> tuple[int, float, int, float]:
    """Calls, seconds between the first and the last, most at once, and seconds in all."""
    with serve(latency_s) as address, tempfile.TemporaryDirectory() as home:
        timed = run_timed([*CELL, f"llm.base_url={address}", *words], home)
        stats = stats_of(address)

    return stats["requests"], stats["seconds"], stats["peak"], timed.wall_s


if __name__ == "__main__":
    main()
