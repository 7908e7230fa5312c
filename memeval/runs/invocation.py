"""One invocation: its folder, its name as a sweep, and the lists of its cells and failures, which
workers in other processes add to.
"""

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memeval.config.paths import outputs_dir
from memeval.errors import BudgetError, StorageError, UserError, WorldError
from memeval.process.environment import environment
from memeval.results.files import append_whole, writing
from memeval.results.private import make_folder, open_private
from memeval.text.redaction import redacted_in

VARIABLE = "MEMEVAL_INVOCATION"
"""Environment variable that names the invocation's folder: conf/config.yaml has Hydra write there,
and workers inherit it.
"""
SWEEP_VARIABLE = "MEMEVAL_SWEEP"
"""Environment variable that contains the digest of the invocation's overrides."""


class DoneCell(Struct, frozen=True):
    """A line of the list of cells: a cell's run folder and its outcome."""

    job: int
    """Number in the sweep; 0 in a single run."""
    folder: str
    reused: bool
    plots: bool
    """Whether its plots are drawn."""
    url: str | None
    """URL of the run in MLflow, if any."""
    not_logged: str | None = None
    """The reason why its report or its run in MLflow is missing; None on success."""
    sweep_id: str | None = None
    """The sweep whose end is logged to MLflow; None if the cell is untracked, or not in a sweep."""


class FailedCell(Struct, frozen=True):
    """A line of the list of cells that could not be run."""

    job: int
    status: int
    """Exit status that the failure calls for."""
    message: str
    hints: list[str]


def failed_cell(number: int, error: UserError | WorldError) -> FailedCell:
    """A cell that could not be run: status 2 for the user's mistake, 1 for an outside fault."""
    if isinstance(error, UserError):
        return FailedCell(number, status=2, message=error.message, hints=list(error.hints))

    command = "the same command"
    if isinstance(error, BudgetError):
        command += " with a larger budget"

    hint = f"finished work is kept; {command} continues it"
    return FailedCell(number, status=1, message=str(error), hints=[hint])


class Invocation(Struct, frozen=True):
    folder: Path
    """Below outputs/sweeps/, named after its start."""
    sweep: str | None = None
    """A digest of its overrides: the same overrides are the same sweep. None for a single run."""

    def note_done(self, cell: DoneCell) -> None:
        """Adds a cell to the invocation's list."""
        self._append("cells.jsonl", cell)

    def note_failed(self, cell: FailedCell) -> None:
        """Adds a cell to the invocation's list of failures."""
        self._append("failures.jsonl", cell)

    def done_cells(self) -> list[DoneCell]:
        """The invocation's cells, in the sweep's order."""
        cells = [DoneCell(**row) for row in self._rows("cells.jsonl")]
        return sorted(cells, key=lambda cell: cell.job)

    def failed_cells(self) -> list[FailedCell]:
        """The cells that could not be run, in the sweep's order."""
        cells = [FailedCell(**row) for row in self._rows("failures.jsonl")]
        return sorted(cells, key=lambda cell: cell.job)

    def _append(self, name: str, cell: DoneCell | FailedCell) -> None:
        path, row = self.folder / name, redacted_in(asdict(cell))
        try:
            with writing(path):
                make_folder(path.parent)
                # Appended, a line each: workers in other processes write to the same list.
                with open(path, "ab", buffering=0, opener=open_private) as file:
                    append_whole(file.fileno(), (json.dumps(row) + "\n").encode(), path)
        except StorageError:
            # On a full disk the user should still see the failures.
            if _owners.get(self.folder) != os.getpid():
                raise

            _unwritten.setdefault(path, []).append(row)

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        return [*map(json.loads, filter(None, lines)), *_unwritten.get(path, [])]


_started = itertools.count()
_owners: dict[Path, int] = {}
"""By folder, the id of the process that named it and reads its lists."""
_unwritten: dict[Path, list[dict[str, Any]]] = {}
"""Lines that could not be written, by file."""


def current_invocation(*, in_sweep: bool = False) -> Invocation:
    """The command line's invocation that this process, or the one that started it, belongs to."""
    sweep = os.environ.get(SWEEP_VARIABLE) if in_sweep else None
    return Invocation(invocation_folder(), sweep)


def invocation_folder() -> Path:
    """The folder of the command line's invocation."""
    # Kept in the environment, for workers in other processes: they add to the same lists.
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(_new_folder())

    return Path(os.environ[VARIABLE])


def new_invocation(words: Sequence[str]) -> Invocation:
    """An invocation of a sweep from Python, which is not the command line's."""
    return Invocation(_new_folder(), sweep_digest(words))


@contextmanager
def composing_in(folder: Path) -> Iterator[None]:
    """Inside the block, Hydra writes to this folder, not to the command line's invocation.

    What composing leaves in the environment ends with the block.
    """
    with environment({VARIABLE: str(folder), SWEEP_VARIABLE: "", "HYDRA_FULL_ERROR": "1"}):
        yield


def begin_invocation(arguments: Sequence[str]) -> None:
    """Gives the command line's invocation its folder, where Hydra writes, and its name as a sweep;
    workers inherit both.
    """
    invocation_folder()
    os.environ[SWEEP_VARIABLE] = sweep_digest(arguments)


def sweep_digest(words: Sequence[str]) -> str:
    """The digest of a sweep's overrides: a sweep that was stopped continues under the same name."""
    overrides = sorted(word for word in words if not word.startswith(("-", "hydra")))
    return sha256("\0".join(overrides).encode(errors="surrogateescape")).hexdigest()[:8]


def _new_folder() -> Path:
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
    # A process may start two within a second, and their lists must not be mixed.
    name = f"{stamp}_{os.getpid()}"
    if number := next(_started):
        name += f"_{number}"

    folder = outputs_dir() / "sweeps" / name
    _owners[folder] = os.getpid()
    return folder
