"""Whether two versions of memeval give the same figures, to the last digit.

    MEMEVAL_DATA_DIR=... python perf/same_figures.py make before.json
    ... change the code ...
    MEMEVAL_DATA_DIR=... python perf/same_figures.py make after.json
    python perf/same_figures.py compare before.json after.json

Runs every system and every judge on the data sets that ship, offline and at the scripted endpoint,
and conv-26 of LoCoMo if it is there. Kept of each run: its key, every metric but times, every field
of its records but times, and what it retrieved. `--quick` runs the demo set alone. The exit status
is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

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
"""Beginnings of the names of what differs between two runs of the same code."""
TIME_OF_OPERATION = "/ms"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="run everything and write the figures to a file")
    make.add_argument("file", type=Path)
    make.add_argument("--quick", action="store_true")
    both = commands.add_parser("compare", help="print the differences between two files")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "make":
        options.file.write_text(json.dumps(figures(options.quick), indent=1, sort_keys=True))
        return 0

    before, after = json.loads(options.before.read_text()), json.loads(options.after.read_text())
    lines = list(differences(before, after))
    print("\n".join(lines) or f"the same: {len(before)} runs")
    return 1 if lines else 0


def figures(quick: bool) -> dict[str, Any]:
    """Runs the sweeps in a new home, and returns the figures of each run, by its settings."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from doubles.endpoint import ScriptedEndpoint

    sweeps = QUICK if quick else OFFLINE
    if not quick and os.environ.get("MEMEVAL_DATA_DIR"):
        sweeps = sweeps + LOCOMO

    with tempfile.TemporaryDirectory() as home:
        for words in sweeps:
            _run(words, home)

        if not quick:
            with ScriptedEndpoint(port=PORT) as endpoint:
                os.environ["OPENAI_BASE_URL"] = endpoint.base_url
                for words in AT_ENDPOINT:
                    _run(words, home)

        return dict(_runs(home))


def _run(words: list[str], home: str) -> None:
    """Runs one sweep; a status of 1 says that a run is invalid, which is a figure like others."""
    began = time.monotonic()
    finished = subprocess.run(
        [sys.executable, "-m", "memeval", "-m", *words, "tracking=none"],
        env={
            **os.environ,
            "MEMEVAL_HOME": home,
            "OPENAI_API_KEY": "test",
            "MEMEVAL_PLOTS": "false",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if finished.returncode > 1:
        raise SystemExit(f"exit status {finished.returncode}: {words}\n{finished.stderr}")

    print(f"{time.monotonic() - began:6.1f} s  {' '.join(words)}", file=sys.stderr)


def _runs(home: str) -> Iterator[tuple[str, dict[str, Any]]]:
    import memeval

    os.environ["MEMEVAL_HOME"] = home
    for run in memeval.load_runs():
        records = run.records()
        # Compared below, as `retrieved()` serves it.
        columns = [name for name in records.columns if name != "retrieved"]
        kept = [name for name in columns if not name.startswith(TIMES)]
        settings = json.dumps(run.params, sort_keys=True, default=str)
        yield (
            f"{run.name} {_digest(settings)}",
            {
                "key": run.key,
                "metrics": {
                    name: value
                    for name, value in run.metrics.items()
                    if not name.startswith(TIMES) and not name.endswith(TIME_OF_OPERATION)
                },
                "records": {
                    name: _digest(records[name].to_json(date_format="iso")) for name in kept
                },
                "retrieved": _digest(run.retrieved().to_json(date_format="iso")),
            },
        )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """One line for each figure that differs, and for each run that only one of the two has."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after or name not in before:
            yield f"{name}: only {'before' if name in before else 'after'}"
            continue

        for part in ("key", "retrieved"):
            if before[name][part] != after[name][part]:
                yield f"{name}: {part} {before[name][part]} -> {after[name][part]}"

        for part in ("metrics", "records"):
            yield from _unlike(f"{name}: {part}", before[name][part], after[name][part])


def _unlike(where: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "absent"), after.get(name, "absent")
        if old != new:
            yield f"{where} {name}: {old} -> {new}"


if __name__ == "__main__":
    raise SystemExit(main())
