"""The files of a comparison, as artifacts of the run of a sweep."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient

from memeval.tracking.earlier import active_run
from memeval.tracking.group import KIND, OF_SWEEP, PARENT
from memeval.tracking.home import read_tracked
from memeval.tracking.store import Store, faults

COMPARED = ("comparison*", "differences*", "conversations*", "curve_*", "haystack_*")
"""Names of the files of a comparison in a sweep's folder."""


def log_comparison(cells: Sequence[Path], folder: Path, store: Store) -> list[str]:
    """Logs the comparison in `folder` to the runs of the sweeps that the cells are below.

    A sweep over several experiments has a run in each; all get the whole comparison. Files of an
    earlier one that have the same names are replaced. Returns the addresses of these runs; none
    where no cell is below a sweep. Raises `WorldError` if the store can't be read or written.
    """
    with faults(store):
        client = MlflowClient(store.uri)
        parents = dict(_parents(client, cells, store))
        for run_id in parents:
            _log_files(client, run_id, folder)

    return [
        f"{store.page}/#/experiments/{experiment_id}/runs/{run_id}"
        for run_id, experiment_id in parents.items()
    ]


def _parents(
    client: MlflowClient, cells: Sequence[Path], store: Store
) -> Iterator[tuple[str, str]]:
    """Id and experiment of the run of a sweep, for each cell that is below one."""
    known: set[str] = set()
    for cell in cells:
        run_id = read_tracked(cell).get(store.name)
        run = active_run(client, run_id) if run_id else None
        parent_id = run.data.tags.get(PARENT) if run else None
        # Cells of one sweep have one parent: it is looked up once.
        if parent_id is None or parent_id in known:
            continue

        known.add(parent_id)
        parent = active_run(client, parent_id)
        # A user may have put the cell below a run of their own.
        if parent is not None and parent.data.tags.get(KIND) == OF_SWEEP:
            yield parent_id, str(parent.info.experiment_id)


def _log_files(client: MlflowClient, run_id: str, folder: Path) -> None:
    # In one batch: a request per file is slow where artifacts are on a server.
    with TemporaryDirectory(prefix="memeval-") as temporary:
        for pattern in COMPARED:
            for path in sorted(folder.glob(pattern)):
                shutil.copyfile(path, Path(temporary) / path.name)

        client.log_artifacts(run_id, temporary)
