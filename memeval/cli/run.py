"""`python -m memeval [overrides]` and `-m`: Hydra composes, the pipeline runs, the comparison is
printed.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.cli.comparison import read_summaries, show_comparison
from memeval.cli.errors import report_error
from memeval.cli.interrupt import describe_lost, listening
from memeval.cli.only import name_questions
from memeval.cli.session import (
    FailedCell,
    failed_cells,
    note_failed,
    session_folder,
)
from memeval.cli.terminal import guard
from memeval.config.paths import outputs_dir
from memeval.config.schema import PREPARE, RunConfig
from memeval.errors import BudgetError, UserError, WorldError, unknown
from memeval.redaction import redacted

if TYPE_CHECKING:
    from memeval.cli.refused import RefusedError
    from memeval.pipeline.cell import Cell
    from memeval.pipeline.opening import OpenedData
    from memeval.results import RunSummary

VALUED = frozenset(
    """
        -cd --config-dir -cn --config-name -cp --config-path -c --cfg -p --package
        --experimental-rerun
    """.split()
)
FLAGS = frozenset(
    "-m --multirun -r --run --resolve -i --info --hydra-help -sc --shell-completion".split()
)
KEEP_GOING = "--keep-going"
"""Hydra's own options, with a value and without; whatever else begins with a dash is a slip."""


def run(arguments: Sequence[str]) -> int:
    """Composes and runs each cell. Exit status 1 where a cell is invalid."""
    from memeval.cli.hydra_errors import explain, is_about_configs
    from memeval.cli.refused import RefusedError

    arguments = reorder_arguments(arguments)
    check_writable()
    main = hydra_application(arguments)
    interrupted = False

    try:
        main()
    except UserError:
        raise
    except RefusedError as refusal:
        return report_refusal(refusal)
    except Exception as error:
        if is_about_configs(error):
            raise explain(error) from error

        raise
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        # After an error or Ctrl-C as well: cells that were finished are shown.
        clean_copies(session_folder())
        show_comparison(interrupted=interrupted)

    failures = failed_cells()
    for failure in {(failure.message, *failure.hints): failure for failure in failures}.values():
        report_error(UserError(failure.message, *failure.hints))

    if failures:
        if any(failure.status == 1 for failure in failures) and (lost := describe_lost()):
            print(lost.lstrip("\n"), file=sys.stderr)

        return max(failure.status for failure in failures)

    return 1 if any(not cell.valid for cell in read_summaries()) else 0


def hydra_application(arguments: Sequence[str]) -> Callable[[], Any]:
    """Hydra's application for these words, which composes their cells and runs them."""
    from memeval.cli.application import application_of

    named = [word for word in arguments if is_repeated(word)]
    return application_of(arguments, named, run_job)


def hint_after(error: WorldError) -> str:
    """How to continue after a fault of the outside world."""
    if isinstance(error, BudgetError):
        return "finished work is kept; the same command with a larger budget continues it"

    return "finished work is kept; the same command continues it"


def report_refusal(refusal: RefusedError) -> int:
    """Prints each mistake once, and that nothing was run; returns the exit status."""
    for error in {(error.message, *error.hints): error for error in refusal.errors}.values():
        report_error(error)

    print(f"  nothing was run: {refusal}; {KEEP_GOING} runs the others", file=sys.stderr)
    return 2


def run_job(composed: Any) -> float | None:
    """One job of Hydra: a cell, from its composition to its publication.

    Returns its metric that `objective` names. What stops it is noted, and the other cells go on.
    """
    guard()  # a worker's process began elsewhere
    with listening():
        return _run_job(composed)


def _run_job(composed: Any) -> float | None:
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    from memeval.cli.cell import run_cell
    from memeval.cli.spending import check_single, confirm_cost
    from memeval.pipeline.summary import earlier
    from memeval.sweep.plan import Plan, PlannedCell

    job = HydraConfig.get()
    # A single run of Hydra has no job number.
    number = 0 if OmegaConf.is_missing(job.job, "num") else job.job.num
    task: Any = OmegaConf.to_container(job.overrides.task, resolve=False)

    try:
        cell = open_job(composed, task)
        check_single(cell, is_sweep=job.mode is RunMode.MULTIRUN)
        if cell.config.confirm_above_usd is not None:
            confirm_cost(Plan([PlannedCell(number, cell, earlier(cell))]))

        return objective_of(cell, run_cell(cell, number))
    except UserError as error:
        note_failed(
            FailedCell(job=number, status=2, message=error.message, hints=list(error.hints))
        )
    except WorldError as error:
        note_failed(FailedCell(job=number, status=1, message=str(error), hints=[hint_after(error)]))

    return None


def objective_of(cell: Cell, summary: RunSummary) -> float | None:
    """The metric that a sweeper which optimises gets; says so where the cell has none."""
    name = cell.config.objective
    metric = summary.metrics.get(name)
    if metric is None and name != RunConfig.objective:
        print(f"memeval: objective={name} has no value in {cell.name}", file=sys.stderr)

    return metric


def open_job(composed: Any, overrides: Sequence[str], opened: OpenedData | None = None) -> Cell:
    """The cell that a composition describes; `opened` are the data sets of other cells."""
    from memeval.config.resolve import check_choices, resolve
    from memeval.pipeline.objective import check_objective
    from memeval.pipeline.opening import open_cell

    config = resolve(composed)
    check_choices(config, overrides)

    command = repeating_command(overrides, config_dirs())
    cell = open_cell(name_questions(config), command, opened)
    check_objective(cell)
    return cell


def config_dirs() -> list[str]:
    """The folder that the user named by `--config-dir`, if any."""
    from hydra.core.hydra_config import HydraConfig

    return [
        source.path
        for source in HydraConfig.get().runtime.config_sources
        if source.provider == "command-line"
    ]


def repeating_command(overrides: Sequence[str], folders: Sequence[str] = ()) -> str:
    """The one command that repeats a cell; `folders` hold configs of the user's own.

    Where runs are filed and kept changes no result, and the addresses are nobody else's business:
    `tracking`, `store`, `tags`, `note` and `objective` are left out.
    """
    from memeval.config.integers import unquote_integer
    from memeval.config.renamed import current_override

    named = [word for folder in folders for word in ("--config-dir", folder)]
    repeated = [current_override(unquote_integer(word)) for word in overrides if is_repeated(word)]

    return redacted(shlex.join(["python", "-m", "memeval", *named, *repeated]))


def is_repeated(override: str) -> bool:
    """Whether a word of the command line belongs to the command that repeats the run."""
    filing = (
        r"[+~]*(?:tracking\b|store\b|budget\b|tags[.=]|note=|objective=|fresh=|plots="
        r"|confirm_above_usd=|stop_after_failures=|prices=)"
    )
    return re.match(filing, override) is None


def reorder_arguments(arguments: Sequence[str]) -> list[str]:
    """Overrides first and options after them, in whatever order they were typed: Hydra takes no
    other.

    Raises `UserError` for a slip.
    """
    overrides: list[str] = []
    options: list[str] = []

    for before, word in zip(["", *arguments], arguments, strict=False):
        if before in VALUED or (before in ("-i", "--info") and "=" not in word):
            options.append(word)
        elif word == "--fresh" or word.startswith("--fresh="):
            overrides.append(f"fresh={word.partition('=')[2] or PREPARE}")
        elif word == KEEP_GOING:
            overrides.append("hydra.launcher.keep_going=true")
        elif word.startswith("-"):
            options.append(word)
            if word.split("=", 1)[0] not in VALUED | FLAGS:
                raise unknown(
                    "option", word.split("=", 1)[0], VALUED | FLAGS | {"--fresh", KEEP_GOING}
                )
        else:
            overrides.append(word)

    if options and options[-1] in VALUED:
        raise UserError(f"{options[-1]} needs a value")

    return [*overrides, *options]


def check_writable() -> None:
    """Raises `UserError` before anything is paid for where results could not be kept."""
    folder = outputs_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Named by the process: two commands may try at once.
        probe = folder / f".writable.{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder} can't be written: {error.strerror}",
            "make it writable, or set MEMEVAL_HOME to a folder that is",
        ) from error


def clean_copies(folder: Path) -> None:
    """Takes secrets out of the copies of the settings that Hydra writes by itself: files of the
    user's own may have brought some.
    """
    for path in [*folder.glob("multirun.yaml"), *folder.glob("**/.hydra/*.yaml")]:
        try:
            text = path.read_text(encoding="utf-8")
            if (clean := redacted(text)) != text:
                path.write_text(clean, encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            # A copy that can't be cleaned is not kept: the run folder has the settings.
            path.unlink(missing_ok=True)
