"""One job of Hydra: a run, from its composition to its publication."""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.config.paths import outputs_dir, refusing_paths
from memeval.config.schema import RunConfig
from memeval.errors import UserError, WorldError
from memeval.runs.compose.config import name_questions
from memeval.runs.display.terminal import guard
from memeval.runs.interrupt import listening
from memeval.runs.invocation import current_invocation, failed_cell
from memeval.text.redaction import redacted

if TYPE_CHECKING:
    from memeval.pipeline.open.cell import Cell
    from memeval.pipeline.open.opening import OpenedData
    from memeval.results import RunSummary


def processes_of(launcher: Any) -> int:
    """Number of processes that a launcher of Hydra runs at once, according to its settings."""
    count = launcher.get("n_jobs") or 1
    # As in joblib: -1 means all processors, -2 all but one.
    return count if count > 0 else max(1, (os.cpu_count() or 1) + 1 + count)


@listening()
def run_job(composed: Any) -> float | None:
    """One job of Hydra: a cell, from its composition to its publication.

    Returns the metric that `objective` names. If an error stops the cell, it is noted, and the
    other cells continue.
    """
    guard()  # a launcher's worker process is not guarded yet
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    from memeval.runs.cell import run_alone
    from memeval.runs.spending import refuse_limits_of_sweep

    job = HydraConfig.get()
    # A single run of Hydra has no job number.
    is_sweep = job.mode is RunMode.MULTIRUN
    invocation = current_invocation(in_sweep=is_sweep)
    number = 0 if OmegaConf.is_missing(job.job, "num") else job.job.num
    task: Any = OmegaConf.to_container(job.overrides.task, resolve=False)

    try:
        with refusing_paths():
            cell = open_job(composed, task)
            processes = 1
            if is_sweep:
                refuse_limits_of_sweep(cell)
                processes = processes_of(job.launcher)

            outcome = run_alone(cell, invocation, number, processes=processes)
    except (UserError, WorldError) as error:
        invocation.note_failed(failed_cell(number, error))
        return None

    if outcome.summary is not None:
        return objective_of(cell, outcome.summary)
    if outcome.error is not None and outcome.failure is None:
        raise outcome.error  # a bug in memeval

    return None


def objective_of(cell: Cell, summary: RunSummary) -> float | None:
    """The metric for an optimising sweeper; reports it if the cell has no such metric."""
    name = cell.config.objective
    metric = summary.metrics.get(name)
    if metric is None and name != RunConfig.objective:
        print(f"memeval: objective={name} has no value in {cell.name}", file=sys.stderr)

    return metric


def open_job(composed: Any, overrides: Sequence[str], opened: OpenedData | None = None) -> Cell:
    """The cell that a composition describes; `opened` contains the data sets of other cells."""
    from hydra.core.hydra_config import HydraConfig

    from memeval.config.resolve import check_choices, resolve
    from memeval.pipeline.measure.objective import check_objective
    from memeval.pipeline.open.opening import open_cell

    config = resolve(composed)
    check_choices(config, overrides)

    # The folder that the user named by `--config-dir`, if any.
    sources = HydraConfig.get().runtime.config_sources
    folders = [source.path for source in sources if source.provider == "command-line"]
    command = repeating_command(overrides, folders)
    cell = open_cell(name_questions(config), command, opened)
    check_objective(cell, str(HydraConfig.get().sweeper.get("direction")))
    return cell


def repeating_command(overrides: Sequence[str], folders: Sequence[str] = ()) -> str:
    """The one command that repeats a cell; `folders` contain the user's own configs.

    Settings such as `tracking`, `store`, `tags`, `note` and `budget` are left out: they change no
    result, and some contain private addresses.
    """
    from memeval.config.integers import unquote_integer
    from memeval.config.overrides import as_typed, full_override

    words = ["python", "-m", "memeval"]
    for folder in folders:
        words += ["--config-dir", folder]

    for override in overrides:
        kept = filter(is_repeated, as_typed(override))
        words += [full_override(unquote_integer(word)) for word in kept]

    return redacted(shlex.join(words))


def is_repeated(override: str) -> bool:
    """Whether an override belongs to the command that repeats the run."""
    filing = (
        r"[+~]*(?:tracking\b|store\b|budget\b|tags[.=]|note=|objective=|fresh=|plots="
        r"|confirm_above_usd=|stop_after_failures=|prices=)"
    )
    return re.match(filing, override) is None


def check_writable() -> None:
    """Raises `UserError` if results could not be stored, before anything is paid for."""
    folder = outputs_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Named by process and thread: two runs may try at the same time.
        probe = folder / f".writable.{os.getpid()}.{threading.get_ident()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder} can't be written: {error.strerror}",
            "make it writable, or set MEMEVAL_HOME to a folder that is",
        ) from error


def clean_copies(folder: Path) -> None:
    """Removes secrets from Hydra's copies of the settings: a user's files may contain some."""
    for path in [*folder.glob("multirun.yaml"), *folder.glob("**/.hydra/*.yaml")]:
        try:
            text = path.read_text(encoding="utf-8")
            if (clean := redacted(text)) != text:
                path.write_text(clean, encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            # A copy that can't be cleaned is not kept: the run folder has the settings.
            path.unlink(missing_ok=True)
