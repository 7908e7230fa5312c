"""The publisher's process: makes reports and MLflow runs of finished run folders.

It reads one JSON request per line. It answers each, but for the one that warms it up, with one JSON
line:

    {"warm": true, "root": …, "uri": …, "track": …, "plots": …}
    {"folder": …, "root": …, "uri": …, "track": …, "plots": …}
      ->  {"ok": true, "run_id": …, "url": …, "created": …} or {"ok": false, "error": …}
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from memeval.config.filing import Filing
from memeval.display.terminal import guard
from memeval.errors import MemevalError
from memeval.text.shown import one_line

NICENESS = 5
"""The process gives way to the main loop where cores are few, but is not starved: beside a process
that computes it gets a quarter of a core.
"""
LONGEST_ERROR = 1000
"""Characters of an error that are reported."""


def main() -> int:
    """Answers requests until there are no more."""
    # The parent acts on Ctrl-C and SIGTERM; a run folder that is being logged is logged to its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(NICENESS)
    # Before anything is imported that could write to stdout.
    answers = private_stdout()
    guard()

    for line in sys.stdin:
        request = json.loads(line)
        if request.get("warm"):
            warm(request)
            continue

        try:
            answers.write(json.dumps(serve(request), ensure_ascii=False) + "\n")
            answers.flush()
        except BrokenPipeError:
            return 1

    return 0


def private_stdout() -> IO[str]:
    """Our own way to the parent; whatever else in this process writes to stdout goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def serve(request: Mapping[str, Any]) -> dict[str, Any]:
    """Publishes one run folder."""
    folder = Path(request["folder"])
    try:
        if "plot" in request:
            return draw(request)
        if "sweep_end" in request:
            return log_sweep_end(request)

        from memeval.report import write_report
        from memeval.report.page import PAGE_FILE, write_page
        from memeval.report.stamp import stamp_report

        plots = request.get("plots", True)
        write_report(folder, plots=plots)
        write_page([folder], folder / PAGE_FILE)
        # After both: the stamp says that they are whole. Before the log, which may fail by itself.
        stamp_report(folder, plots=plots)
        return {"ok": True, **(log(folder, request) if request["track"] else {})}
    except OSError as error:
        path = error.filename or folder
        return {
            "ok": False,
            "error": f"{one_line(path, 500)} can't be written: {error.strerror or error}",
        }
    except MemevalError as error:
        return {"ok": False, "error": one_line(error, LONGEST_ERROR)}
    except Exception as error:  # noqa: BLE001
        # A fault of ours in one report must lose neither the run nor the runs after it.
        return {
            "ok": False,
            "error": f"{folder.name} could not be published: {type(error).__name__}: "
            f"{one_line(error, LONGEST_ERROR)}",
        }


def draw(request: Mapping[str, Any]) -> dict[str, Any]:
    """Draws the comparison of several cells, or how they differ."""
    plot = Path(request["plot"])
    if "differences" in request:
        from memeval.report.plots.differences import DrawnDifferences, write_difference_plots

        drawn = DrawnDifferences.from_json(request["differences"])
        write_difference_plots(drawn, plot.parent, plot.stem.removeprefix("comparison"))
    else:
        from memeval.report.plots.sweep import write_sweep_plots
        from memeval.results import RunSummary

        write_sweep_plots([RunSummary.read(Path(cell)) for cell in request["cells"]], plot)

    return {"ok": True}


def log_sweep_end(request: Mapping[str, Any]) -> dict[str, Any]:
    """Logs the end of a sweep to MLflow."""
    from memeval.tracking.store import prepare_store

    store = prepare_store(Path(request["root"]), request.get("uri"))
    # Below: an address that can't be used is refused before MLflow is loaded for it.
    from memeval.tracking.comparison import log_comparison
    from memeval.tracking.sweep_end import SweepEnd

    end = SweepEnd.from_request(request["sweep_end"])
    return {"ok": True, "urls": log_comparison(Path(request["folder"]), store, end)}


def log(folder: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Logs one run folder to MLflow."""
    from memeval.tracking.store import prepare_store

    store = prepare_store(Path(request["root"]), request.get("uri"))
    from memeval.tracking.log import log_run

    tracked = log_run(folder, store, Filing(**request.get("filing", {})))

    return {"run_id": tracked.run_id, "url": tracked.url, "created": tracked.created}


def warm(request: Mapping[str, Any]) -> None:
    """Loads what publishing needs, makes a missing store and opens it.

    What fails here fails again with the first run, and is reported then.
    """
    with suppress(MemevalError, OSError, ImportError):
        import memeval.report.plots.differences
        import memeval.report.plots.sweep  # noqa: F401
        from memeval.report.page.write import load_template
        from memeval.report.plots.draw import warm_up

        load_template()
        if request["plots"]:
            warm_up()

        if request["track"]:
            from memeval.tracking.store import prepare_store

            store = prepare_store(Path(request["root"]), request.get("uri"))
            from memeval.tracking.log import look

            # A server that is away would hold up the first run, which waits for this process.
            if not store.remote:
                look(store)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # The interpreter would spend a second on taking MLflow apart, and the parent waits.
    os._exit(status)
