"""The time of publishing: the cold start, and one run of 1,540 records. `python perf/tracking.py`

Times depend on the machine and its other work; compare the ratios between them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))

from sample_runs import CONTEXT, summary, write_folder

RECORDS = 1540


@contextmanager
def timed(step: str) -> Iterator[None]:
    """Prints how long a step took, and the CPU time that this process spent on it."""
    started, cpu_started = time.perf_counter(), time.process_time()
    yield
    wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started
    print(f"{step:58} {wall_s:7.2f} s, {cpu_s:6.2f} s of CPU", flush=True)


def write_run(root: Path, system: str) -> Path:
    return write_folder(root / "runs", summary(system), RECORDS)


def in_process(root: Path) -> None:
    """Times each step by itself."""
    with timed("import MLflow"):
        from memeval.tracking.log import log_run, open_early
        from memeval.tracking.store import locate, prepare_store

    with timed("make a fresh store (migrations)"):
        store = prepare_store(locate(root))

    with timed("open the store"):
        open_early(store)

    with timed("import matplotlib, load fonts"):
        from memeval.report.markdown import write_report
        from memeval.report.plots.draw import warm_up

        warm_up()

    for number, system in enumerate(CONTEXT, start=1):
        folder = write_run(root, system)
        with timed(f"report and plots, run {number}"):
            write_report(folder)

        with timed(f"log {RECORDS:,} records, run {number}"):
            log_run(folder, store)

    with timed("log the same run again"):
        log_run(folder, store)


def by_publisher(root: Path) -> None:
    """Times the steps as a sweep does them."""
    from memeval.config.filing import Filing
    from memeval.runs.publish.publisher import Publisher
    from memeval.tracking.store import locate

    first, second = write_run(root, "bm25"), write_run(root, "rag")
    with closing(Publisher(locate(root))) as publisher:
        with timed("publisher, cold: from its start to the first run"):
            publisher.publish(first, Filing()).result()

        with timed("publisher, warm: one run, report included"):
            publisher.publish(second, Filing()).result()


if __name__ == "__main__":
    for measure in (in_process, by_publisher):
        with tempfile.TemporaryDirectory() as temporary:
            measure(Path(temporary))
