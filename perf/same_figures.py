"""Whether two versions of memeval give the same figures, to the last digit.

    MEMEVAL_DATA_DIR=... python perf/same_figures.py make before.json
    ... change the code ...
    MEMEVAL_DATA_DIR=... python perf/same_figures.py make after.json
    python perf/same_figures.py compare before.json after.json

Runs every system and every judge on the data sets that ship, offline and at the scripted endpoint,
and conv-26 of LoCoMo if it exists. The file holds, for each run: its key, every metric but times,
every field of its records but times, and the chunks that it retrieved. `--quick` only runs the demo
set. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import ScriptedEndpoint, parser_of

if TYPE_CHECKING:
    from memeval import Run

PORT = 18417
"""Fixed, because the endpoint's URL is part of the keys."""

SYSTEMS = "system=bm25,rag,dense,hybrid,mem0_verbatim,cogcanvas,combined,last_k,oracle,random_k"
QUICK = [["dataset=demo", SYSTEMS]]
OFFLINE = [
    *QUICK,
    ["+sweep=smoke"],
    ["+sweep=all_systems", "dataset=demo_longmemeval"],
    ["dataset=demo", "system=bm25,rag", "num_runs=2", "top_k=3,20"],
]
LOCOMO = [["dataset=locomo", "dataset.limit_cases=1", "system=bm25,rag,mem0_verbatim,cogcanvas"]]
AT_ENDPOINT = [
    ["+sweep=smoke_endpoint"],
    ["dataset=demo", "llm=openai", "judge=llm", "system=bm25,rag,mem0,cogcanvas,memgpt_lite"],
]

TIMES = ("latency_ms/", "duration_s", "retry_wait_s", "times.")
"""How names of figures begin that differ between two runs of the same code."""
TIME_OF_OPERATION = "/ms"


def main() -> int:
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="run everything and write the figures to a file")
    make.add_argument("file", type=Path)
    make.add_argument("--quick", action="store_true")
    compare = commands.add_parser("compare", help="print the differences between two files")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "make":
        options.file.write_text(json.dumps(figures(options.quick), indent=1, sort_keys=True))
        return 0

    before, after = json.loads(options.before.read_text()), json.loads(options.after.read_text())
    lines = list(differences(before, after))
    print("\n".join(lines) or f"the same: {len(before)} runs")
    return int(bool(lines))


def figures(quick: bool) -> dict[str, Any]:
    """Runs the sweeps in a new home; returns the figures of each run by its settings."""
    with tempfile.TemporaryDirectory() as home:
        if quick:
            run_sweeps(QUICK, home)
            return dict(figures_of_runs(home))

        run_sweeps(OFFLINE, home)
        if os.environ.get("MEMEVAL_DATA_DIR"):
            run_sweeps(LOCOMO, home)

        with ScriptedEndpoint(port=PORT) as endpoint:
            os.environ["OPENAI_BASE_URL"] = endpoint.base_url
            run_sweeps(AT_ENDPOINT, home)

        return dict(figures_of_runs(home))


def run_sweeps(sweeps: list[list[str]], home: str) -> None:
    """Runs sweeps, and prints their times; ends the script if one can't be run."""
    own = {"MEMEVAL_HOME": home, "OPENAI_API_KEY": "test", "MEMEVAL_PLOTS": "false"}
    for words in sweeps:
        started = time.monotonic()
        finished = subprocess.run(
            [sys.executable, "-m", "memeval", "-m", *words, "tracking=none"],
            env={**os.environ, **own},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        # 1 means that a run is invalid, which both versions must agree on.
        if finished.returncode > 1:
            raise SystemExit(f"exit status {finished.returncode}: {words}\n{finished.stderr}")

        print(f"{time.monotonic() - started:6.1f} s  {' '.join(words)}", file=sys.stderr)


def figures_of_runs(home: str) -> Iterator[tuple[str, dict[str, Any]]]:
    import memeval

    os.environ["MEMEVAL_HOME"] = home
    for run in memeval.load_runs():
        settings = json.dumps(run.params, sort_keys=True, default=str)
        yield f"{run.name} {digest(settings)}", figures_of(run)


def figures_of(run: Run) -> dict[str, Any]:
    """A run's key and metrics, and digests of its records by field."""
    metrics = {name: value for name, value in run.metrics.items() if not is_time(name)}
    table = run.records()
    # `retrieved` is compared below, as `retrieved()` serves it.
    fields = [name for name in table if name != "retrieved" and not name.startswith(TIMES)]
    records = {name: digest(table[name].to_json(date_format="iso")) for name in fields}
    retrieved = digest(run.retrieved().to_json(date_format="iso"))
    return {"key": run.key, "metrics": metrics, "records": records, "retrieved": retrieved}


def is_time(metric: str) -> bool:
    return metric.startswith(TIMES) or metric.endswith(TIME_OF_OPERATION)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """One line per figure that differs, and per run that only one of the files has."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"{name}: only before"
            continue

        if name not in before:
            yield f"{name}: only after"
            continue

        for part in ("key", "retrieved"):
            if before[name][part] != after[name][part]:
                yield f"{name}: {part} {before[name][part]} -> {after[name][part]}"

        for part in ("metrics", "records"):
            for line in different_values(before[name][part], after[name][part]):
                yield f"{name}: {part} {line}"


def different_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "absent"), after.get(name, "absent")
        if old != new:
            yield f"{name}: {old} -> {new}"


if __name__ == "__main__":
    raise SystemExit(main())
