"""How long a command works after its last verdict: 1, 9 and 27 runs over LoCoMo against an
endpoint on loopback.

    MEMEVAL_DATA_DIR=... python perf/tail.py [--latency 0.2] [--times 3] [--runs 1,9,27]

Printed for each number of runs, from the fastest of several times: seconds from the last verdict on
disk until the last run's summary, report and MLflow run, the comparison's plots, MLflow's view of
the sweep, and the end of the process. Each time has a home of its own, so its store is new.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from measured import run_timed, serve

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
"""What each step leaves in the folder of outputs."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--runs", default="1,9,27")
    options, overrides = parser.parse_known_args()

    for runs in map(int, options.runs.split(",")):
        tails = []
        for _ in range(options.times):
            with serve(options.latency) as address, tempfile.TemporaryDirectory() as home:
                words = ["-m", "dataset=locomo", *SWEEPS[runs], "llm=openai", "judge=llm"]
                words += [f"llm.base_url={address}", "llm.max_concurrency=64", *overrides]
                timed = run_timed(words, home)
                tails.append(steps_of(Path(home)))
                print(f"  {runs} runs in {timed.wall_s:.1f} s: {shown(tails[-1])}", flush=True)

        print(f"{runs} runs, fastest: {shown(min(tails, key=lambda tail: tail['end']))}")


def steps_of(home: Path) -> Mapping[str, float]:
    """Seconds from the last verdict to the end of each step."""
    ended = time.time()
    outputs = home / "outputs"
    last_verdict = newest(outputs, "verdicts/*.jsonl")
    steps = {name: newest(outputs, pattern) - last_verdict for name, pattern in STEPS.items()}
    steps["sweep logged"] = newest(home, "mlruns/mlflow.db") - last_verdict
    return {**steps, "end": ended - last_verdict}


def newest(folder: Path, pattern: str) -> float:
    """When the newest of these files was written; not a number if there is none."""
    times = [path.stat().st_mtime for path in folder.glob(pattern)]
    return max(times, default=float("nan"))


def shown(steps: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in steps.items())


if __name__ == "__main__":
    main()
