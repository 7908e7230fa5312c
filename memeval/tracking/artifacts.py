"""The files of a run folder as artifacts, sent in one batch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient

from memeval.results import CONFIG_FILE, RECORDS_FILE
from memeval.tracking import payload

REPORT = "report.md"
FILES = (CONFIG_FILE, RECORDS_FILE, REPORT, "report.html")
HYPOTHESES = "hypotheses*.jsonl"
PLOTS = "plots"


def log_files(client: MlflowClient, run_id: str, folder: Path) -> None:
    """Logs the files of a run folder, and the records as a table."""
    with TemporaryDirectory(prefix="memeval-") as temporary:
        batch = Path(temporary)
        for path in run_files(folder):
            copy = batch / path.relative_to(folder)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)

        if (folder / RECORDS_FILE).exists():
            table = payload.records_table(folder)
            (batch / payload.TABLE_FILE).write_text(table, encoding="utf-8")

        # In one batch: a request per file is slow where artifacts are on a server.
        client.log_artifacts(run_id, str(batch))


def run_files(folder: Path) -> Iterator[Path]:
    """The files of a run folder that are logged as they are."""
    named = [folder / name for name in FILES]
    yield from (path for path in named if path.exists())
    yield from sorted(folder.glob(HYPOTHESES))
    for ending in ("png", "svg"):
        yield from sorted((folder / PLOTS).glob(f"*.{ending}"))
