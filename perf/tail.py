"""How long a command works after its last verdict: 1, 9 and 27 runs over LoCoMo against an
endpoint on loopback.

    MEMEVAL_DATA_DIR=... python perf/tail.py [--latency 0.2] [--times 3] [--runs 1,9,27]

Prints, for each number of runs, the fastest of several invocations: the seconds from the last
verdict on disk to each step's file (see `STEPS`), to MLflow's view of the sweep, and to the end of
the process. Each invocation has its own home, so its store is new.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from measured import parser_of, run_memeval, serve

SWEEPS = {
    1: ("system=bm25", "top_k=5", "dataset.limit_questions=null"),
    9: ("system=bm25,rag,no_memory", "top_k=3,5,10", "dataset.limit_questions=42"),
    27: (
        "system=bm25,rag,no_memory",
        "top_k=1,2,3,4,5,6,7,8,9",
        "dataset.limit_questions=14",
    ),
}
STEPS = {
    "summary": "runs/*/run.json",
    "report": "runs/*/report.html",
    "logged": "runs/*/tracked.json",
    "tables": "sweeps/*/comparison.csv",
    "page": "sweeps/*/comparison.html",
    "plots": "sweeps/*/*.svg",
}
"""Files that each step writes below the folder of outputs."""


def main() -> None:
    parser = parser_of(__doc__, latency=0.2, times=3, runs="1,9,27")
    options, overrides = parser.parse_known_args()
    for runs in map(int, options.runs.split(",")):
        tails = [measure(runs, options.latency, overrides) for _ in range(options.times)]
        fastest = min(tails, key=lambda tail: tail["end"])
        print(f"{runs} runs, fastest: {seconds_of(fastest)}")


def measure(runs: int, latency_s: float, overrides: Sequence[str]) -> Mapping[str, float]:
    """Runs a sweep, and prints and returns the times of its steps."""
    with serve(latency_s) as url, tempfile.TemporaryDirectory() as home:
        endpoint = ["llm=openai", "judge=llm", f"llm.base_url={url}", "llm.max_concurrency=64"]
        words = ["-m", "dataset=locomo", *SWEEPS[runs], *endpoint, *overrides]
        cost = run_memeval(words, home)
        steps = times_of_steps(Path(home))

    print(f"  {runs} runs in {cost.wall_s:.1f} s: {seconds_of(steps)}", flush=True)
    return steps


def times_of_steps(home: Path) -> Mapping[str, float]:
    """Seconds from the last verdict to the end of each step."""
    ended = time.time()
    outputs = home / "outputs"
    last_verdict = newest(outputs, "verdicts/*.jsonl")
    steps = {name: newest(outputs, pattern) - last_verdict for name, pattern in STEPS.items()}
    steps["sweep logged"] = newest(home, "mlruns/mlflow.db") - last_verdict
    return {**steps, "end": ended - last_verdict}


def newest(folder: Path, pattern: str) -> float:
    """When the newest of these files was written; not a number without files."""
    times = [path.stat().st_mtime for path in folder.glob(pattern)]
    return max(times, default=float("nan"))


def seconds_of(steps: Mapping[str, float]) -> str:
    return ", ".join(map("{} {:.2f}".format, steps.keys(), steps.values()))


if __name__ == "__main__":
    main()
