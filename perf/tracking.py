"""What publishing costs: the cold start, and one cell of 1,540 records. `python perf/tracking.py`

Times are of this machine and of what else it does; the ratios between them are what to watch.
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
def timed(what: str) -> Iterator[None]:
    """Prints how long a step took, and what of it this process computed."""
    started, computed = time.perf_counter(), time.process_time()
    yield
    seconds = f"{time.perf_counter() - started:7.2f} s"
    print(f"{what:58} {seconds}, {time.process_time() - computed:6.2f} s of CPU", flush=True)


def in_process(root: Path) -> None:
    """Each step on its own."""
    with timed("import MLflow"):
        import memeval.tracking.log
        from memeval.tracking.store import prepare_store
    with timed("make a fresh store (migrations)"):
        store = prepare_store(root)
    with timed("open the store"):
        memeval.tracking.log.open_early(store)
    with timed("import matplotlib, load fonts"):
        from memeval.report.markdown import write_report
        from memeval.report.plots.draw import warm_up

        warm_up()
    for place, system in enumerate(CONTEXT):
        folder = write_folder(root / "runs", summary(system), RECORDS)
        if place in {0, len(CONTEXT) - 1}:
            which = "first" if place == 0 else "seventh"
            with timed(f"report and plots, {which} cell"):
                write_report(folder)
            with timed(f"log {RECORDS:,} records, {which} cell"):
                memeval.tracking.log.log_run(folder, store)
        else:
            write_report(folder)
            memeval.tracking.log.log_run(folder, store)
    with timed("log the same cell again"):
        memeval.tracking.log.log_run(folder, store)


def by_publisher(root: Path) -> None:
    """As the pipeline does it."""
    from memeval.config.filing import Filing
    from memeval.runs.publish.publisher import Publisher

    folders = [write_folder(root / "runs", summary(system), RECORDS) for system in ("bm25", "rag")]
    with closing(Publisher(root)) as publisher:
        with timed("publisher, cold: from its start to the first cell"):
            assert publisher.publish(folders[0], Filing()).result().error is None
        with timed("publisher, warm: one cell, report included"):
            assert publisher.publish(folders[1], Filing()).result().error is None


if __name__ == "__main__":
    for measure in (in_process, by_publisher):
        with tempfile.TemporaryDirectory() as temporary:
            measure(Path(temporary))
