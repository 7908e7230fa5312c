"""A run as an offline run of Weights & Biases, which `wandb sync` sends."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from memeval.errors import UserError
from memeval.packages.export.rows import Row, measured_metrics, run_identity
from memeval.packages.export.terms import DataTerms
from memeval.results.files import json_line
from memeval.results.run import Run
from memeval.text.shown import one_line

COLUMNS = tuple(
    "question_id category_name repeat status label score question hypothesis context_tokens "
    "answer_ms".split()
)
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE")
"""Environment variables for the library: no keys, and no settings of the user's other runs."""
LONGEST_WAIT_S = 300


def write_wandb(run: Run, rows: Sequence[Row], terms: DataTerms, folder: Path) -> None:
    """Writes the offline run into `folder`. Raises `UserError` if the library fails."""
    folder = folder.resolve()
    about = run_identity(run)
    outcome = {"valid": run.valid, "finished_at": run.summary.finished_at}
    content = {
        "folder": str(folder),
        "id": run.key,
        "name": one_line(about["name"], 120),
        "config": {**about["params"], "judge": about["judge"], "data_licence": terms.licence},
        "notes": one_line(about["command"], 1_000),
        "summary": measured_metrics(run) | outcome,
        "columns": list(COLUMNS),
        "rows": list(map(itemgetter(*COLUMNS), rows)),
    }
    # In a separate process: the library starts a server, reads the environment on import, and would
    # report its own errors to its developers.
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memeval.packages.export.wandb_writer"],
            input=json_line(content),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=_environment(folder),
            timeout=LONGEST_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"wandb did not finish within {LONGEST_WAIT_S} s") from error

    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise UserError(f"wandb failed: {one_line(' '.join(last) or 'no error message', 300)}")

    _remove_logs(folder)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return kept | {
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_MODE": "offline",
        # Otherwise it would leave a part of the run, and its logs, in the user's home.
        "WANDB_DATA_DIR": str(folder / "data"),
        "WANDB_CACHE_DIR": str(folder / "cache"),
        "WANDB_CONFIG_DIR": str(folder / "cache"),
    }


def _remove_logs(folder: Path) -> None:
    """Removes the library's cache and logs, which contain paths of this machine."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    for run_folder in offline_runs(folder):
        shutil.rmtree(run_folder / "logs", ignore_errors=True)

    for path in (folder / "wandb").iterdir():
        if path.is_symlink():
            path.unlink()


def offline_runs(folder: Path) -> list[Path]:
    """The folders of offline runs, as `wandb sync` accepts them."""
    return sorted((folder / "wandb").glob("offline-run-*"))
