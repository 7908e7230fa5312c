"""Files as artifacts, sent in one batch."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mlflow import MlflowClient

from memeval.report.stamp import PAGE_FILE, REPORT_FILE
from memeval.results import CONFIG_FILE, RECORDS_FILE
from memeval.results.files import temporary_folder
from memeval.tracking import payload

FILES = (CONFIG_FILE, RECORDS_FILE, REPORT_FILE, PAGE_FILE)
HYPOTHESES = "hypotheses*.jsonl"
PLOTS = "plots"


def log_run_files(client: MlflowClient, run_id: str, folder: Path) -> None:
    texts = {}
    if (folder / RECORDS_FILE).exists():
        texts[payload.TABLE_FILE] = payload.records_table(folder)

    log_files(client, run_id, folder, run_files(folder), texts)


def log_files(
    client: MlflowClient, run_id: str, folder: Path, files: Iterable[Path], texts: Mapping[str, str]
) -> None:
    """Logs files under their paths relative to `folder`, and texts as files with these names."""
    with temporary_folder("artifacts") as temporary:
        batch = Path(temporary)
        for path in files:
            copy = batch / path.relative_to(folder)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)

        for name, text in texts.items():
            (batch / name).write_text(text, encoding="utf-8")

        # In one batch: a request per file is slow if artifacts are stored on a server.
        client.log_artifacts(run_id, str(batch))


def run_files(folder: Path) -> Iterator[Path]:
    """The files of a run folder that are logged as they are."""
    for name in FILES:
        if (folder / name).exists():
            yield folder / name

    yield from sorted(folder.glob(HYPOTHESES))
    for ending in ("png", "svg"):
        yield from sorted((folder / PLOTS).glob(f"*.{ending}"))
