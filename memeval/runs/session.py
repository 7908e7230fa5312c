"""What the cells of one invocation share: the publisher, and the list of what they finished, which
workers in other processes add to.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from memeval.config.filing import Filing, read_experiment, read_filing
from memeval.config.paths import outputs_dir, project_root
from memeval.config.schema import RunConfig, TrackingConfig
from memeval.errors import StorageError
from memeval.private import make_folder, open_private
from memeval.redaction import redacted_in
from memeval.results.files import append_whole
from memeval.runs.publish.publisher import Publisher, PublishResult
from memeval.tracking.store import check_store, locate

VARIABLE = "MEMEVAL_SESSION"
"""Environment variable that names the invocation's folder; workers inherit it."""
SWEEP_VARIABLE = "MEMEVAL_SWEEP"
"""Environment variable that holds the digest of the invocation's words."""


@dataclass(frozen=True)
class DoneCell:
    """A line of the list: where a cell's run folder is, and what became of it."""

    job: int
    """Number in the sweep; 0 in a single run."""
    folder: str
    reused: bool
    published: str
    """Address of the run, or why there is none."""
    plots: bool
    """Whether its plots are drawn."""
    sweep_id: str | None = None
    """The sweep whose end is logged to MLflow; None if the cell is not tracked, or in no sweep."""


_started = itertools.count()


def session_folder() -> Path:
    """The invocation's folder below outputs/sweeps/, named after its start."""
    # In the environment, for workers in other processes: they add to the same lists.
    global _owner  # noqa: PLW0603 - workers of any launcher import this module, too
    if VARIABLE not in os.environ:
        _owner = os.getpid()
        stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
        # A process may start two within a second, and their lists must not meet.
        number = next(_started)
        name = f"{stamp}_{os.getpid()}" + (f"_{number}" if number else "")
        os.environ[VARIABLE] = str(outputs_dir() / "sweeps" / name)

    return Path(os.environ[VARIABLE])


def name_sweep(arguments: Sequence[str]) -> None:
    """Gives the invocation its name, a digest of its words; workers inherit it.

    The same words are the same sweep: one that was stopped continues under its name.
    """
    words = sorted(word for word in arguments if not word.startswith(("-", "hydra")))
    os.environ[SWEEP_VARIABLE] = sha256("\0".join(words).encode()).hexdigest()[:8]


def filing_of(config: RunConfig) -> Filing:
    """How a cell's run is filed."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    # The Python API composes without Hydra's own config.
    in_sweep = HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN
    return read_filing(config, os.environ.get(SWEEP_VARIABLE) if in_sweep else None)


@dataclass(frozen=True)
class FailedCell:
    """A line of the list of what could not be run."""

    job: int
    status: int
    """Exit status that it calls for."""
    message: str
    hints: list[str]


def note_done(cell: DoneCell) -> None:
    """Adds a cell to the invocation's list."""
    _append("cells.jsonl", cell)


def note_failed(cell: FailedCell) -> None:
    """Adds a cell to the invocation's list of failures."""
    _append("failures.jsonl", cell)


def done_cells() -> list[DoneCell]:
    """The invocation's cells, in the sweep's order."""
    return sorted((DoneCell(**row) for row in _rows("cells.jsonl")), key=lambda cell: cell.job)


def failed_cells() -> list[FailedCell]:
    """The cells that could not be run, in the sweep's order."""
    return sorted((FailedCell(**row) for row in _rows("failures.jsonl")), key=lambda cell: cell.job)


def _append(name: str, cell: DoneCell | FailedCell) -> None:
    path, row = session_folder() / name, redacted_in(asdict(cell))
    try:
        make_folder(path.parent)
        # Appended, a line each: workers in other processes write to the same list.
        file = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            append_whole(file, (json.dumps(row) + "\n").encode(), path)
        finally:
            os.close(file)
    except (OSError, StorageError) as error:
        # On a full disk the user still gets to know what failed.
        if _owner != os.getpid():
            raise StorageError(f"{path.parent} can't be written: {error}") from error

        _unwritten.setdefault(path, []).append(row)


def _rows(name: str) -> list[dict[str, Any]]:
    path = session_folder() / name
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return [json.loads(line) for line in lines if line] + _unwritten.get(path, [])


_owner: int | None = None
"""The process that named the invocation's folder, and that reads its lists."""
_unwritten: dict[Path, list[dict[str, Any]]] = {}
"""Lines that the disk refused, by file."""
_publishers: dict[tuple[str, str | None, bool], Publisher] = {}


def start_publisher(tracking: TrackingConfig, *, plots: bool = True) -> Publisher:
    """This process's publisher for a store, started when first asked for, so that it loads while
    the cell runs.

    Raises `UserError` for an address that is not a tracking URI.
    """
    key = (tracking.name, tracking.uri, plots)
    if key not in _publishers:
        if tracking.name == "mlflow":
            read_experiment(tracking)
            check_store(
                locate(project_root(), tracking.uri or os.environ.get("MLFLOW_TRACKING_URI"))
            )

        publisher = Publisher(
            project_root(), tracking.uri, track=tracking.name == "mlflow", plots=plots
        )
        publisher.start()
        # However the process ends, but for a kill: the worker then sees its closed pipe.
        atexit.register(publisher.close)
        _publishers[key] = publisher

    return _publishers[key]


def any_publisher() -> Publisher:
    """A publisher that draws what belongs to no store: one that is running, or a new one."""
    drawing = [publisher for publisher in _publishers.values() if publisher.plots]
    return drawing[0] if drawing else start_publisher(TrackingConfig(name="none"))


def tracking_publishers() -> list[Publisher]:
    """This process's publishers that log to a store, one for each store."""
    by_store = {
        uri: publisher for (name, uri, _), publisher in _publishers.items() if name != "none"
    }
    return list(by_store.values())


def tracked_sweep(config: RunConfig) -> str | None:
    """The sweep that a cell's run in MLflow belongs to; None if there is none."""
    return None if config.tracking.name == "none" else filing_of(config).sweep_id


def describe_publication(result: PublishResult) -> str:
    """What became of publishing, in a word for the user."""
    return (result.url or "") if result.ok else f"not logged: {result.error}"
