"""`python -m memeval [overrides]` and `-m`: Hydra composes, the pipeline runs, the comparison is
printed.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.cli.errors import report_error
from memeval.cli.session import (
    FailedCell,
    any_publisher,
    done_cells,
    failed_cells,
    note_failed,
    session_folder,
)
from memeval.cli.terminal import drawn, guard
from memeval.config.paths import conf_dir, outputs_dir
from memeval.config.schema import PREPARE
from memeval.errors import StorageError, UserError, WorldError, unknown
from memeval.names import file_name
from memeval.redaction import redacted
from memeval.results import RunSummary
from memeval.shown import printable

if TYPE_CHECKING:
    from memeval.pipeline.cell import Cell

VALUED = frozenset(
    """
        -cd --config-dir -cn --config-name -cp --config-path -c --cfg -p --package --experimental-
        rerun
    """.split()
)
FLAGS = frozenset(
    "-m --multirun -r --run --resolve -i --info --hydra-help -sc --shell-completion".split()
)
"""Hydra's own options, with a value and without; whatever else begins with a dash is a slip."""


def run(arguments: Sequence[str]) -> int:
    """Composes and runs each cell. Exit status 1 where a cell could not score a single record."""
    import hydra

    from memeval.cli.hydra_errors import explain, is_about_configs
    from memeval.config.checks import check_overrides
    from memeval.config.integers import as_hydra_words, register

    arguments = reorder_arguments(arguments)
    check_overrides(arguments)
    os.environ["HYDRA_FULL_ERROR"] = "1"
    check_writable()
    os.environ["MEMEVAL_OUTPUTS"] = str(session_folder())
    register()
    sys.argv = ["memeval", *as_hydra_words(arguments)]
    main = hydra.main(config_path=str(conf_dir()), config_name="config", version_base="1.3")(
        run_job
    )
    interrupted = False

    try:
        main()
    except UserError:
        raise
    except Exception as error:
        if is_about_configs(error):
            raise explain(error) from error

        raise
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        clean_copies(session_folder())
        show_comparison(
            plots=not interrupted
        )  # the publisher, which draws them, may be what was waited for

    failures = failed_cells()
    for failure in {(failure.message, *failure.hints): failure for failure in failures}.values():
        report_error(UserError(failure.message, *failure.hints))

    if failures:
        return max(failure.status for failure in failures)

    return 1 if any(cell.metrics["coverage"] == 0 for cell in read_summaries()) else 0


def run_job(composed: Any) -> None:
    """One job of Hydra: a cell, from its composition to its publication.

    What stops it is noted, and the other cells go on.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    from memeval.cli.cell import run_cell

    guard()  # a worker's process began elsewhere
    job = HydraConfig.get()
    number = 0 if OmegaConf.is_missing(job.job, "num") else job.job.num
    task: Any = OmegaConf.to_container(job.overrides.task, resolve=False)

    try:
        run_cell(open_job(composed, task), number)
    except UserError as error:
        note_failed(
            FailedCell(job=number, status=2, message=error.message, hints=list(error.hints))
        )
    except WorldError as error:
        hint = "finished work is kept; the same command continues it"
        note_failed(FailedCell(job=number, status=1, message=str(error), hints=[hint]))


def open_job(composed: Any, overrides: Sequence[str]) -> Cell:
    """The cell that a composition describes."""
    from memeval.config.resolve import check_choices, resolve
    from memeval.pipeline.cell import open_cell

    config = resolve(composed)
    check_choices(config, overrides)

    return open_cell(config, repeating_command(overrides, config_dirs()))


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

    Where runs are logged changes no result, and its address is nobody else's business: `tracking`
    is left out.
    """
    from memeval.config.integers import unquote_integer
    from memeval.config.renamed import current_override

    named = [word for folder in folders for word in ("--config-dir", folder)]
    repeated = [current_override(unquote_integer(word)) for word in overrides if is_repeated(word)]

    return redacted(shlex.join(["python", "-m", "memeval", *named, *repeated]))


def is_repeated(override: str) -> bool:
    """Whether a word of the command line belongs to the command that repeats the run."""
    return re.match(r"[+~]*(?:tracking\b|fresh=|plots=)", override) is None


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
        elif word.startswith("-"):
            options.append(word)
            if word.split("=", 1)[0] not in VALUED | FLAGS:
                raise unknown("option", word.split("=", 1)[0], VALUED | FLAGS | {"--fresh"})
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
        probe = folder / f".writable.{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder} can't be written: {error.strerror}",
            "make it writable, or set MEMEVAL_HOME to a folder that is",
        ) from error


def clean_copies(folder: Path) -> None:
    """Takes secrets out of what Hydra wrote of its own accord: copies of the settings, which files
    of the user's own may have brought.
    """
    for path in [*folder.glob("multirun.yaml"), *folder.glob("**/.hydra/*.yaml")]:
        try:
            text = path.read_text(encoding="utf-8")
            if (clean := redacted(text)) != text:
                path.write_text(clean, encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            path.unlink(missing_ok=True)


def read_summaries() -> list[RunSummary]:
    """Summaries of this invocation's cells, in the sweep's order."""
    return [RunSummary.read(Path(cell.folder)) for cell in done_cells()]


def show_comparison(*, plots: bool = True) -> None:
    """Prints a table of the invocation's cells for each data set, and leaves them in outputs/ as
    Markdown, CSV and plots.
    """
    cells = done_cells()
    if not cells:
        return

    from rich.console import Console
    from rich.text import Text

    from memeval.report.comparison import (
        by_dataset,
        comparison_csv,
        comparison_markdown,
        comparison_table,
    )

    output = drawn(sys.stdout)
    summaries, console = read_summaries(), Console(file=output)
    if not console.is_terminal:
        console = Console(file=output, width=max(console.width, 200))

    groups = by_dataset(summaries)
    plots = plots and any(cell.plots for cell in cells)
    for name, group in groups.items():
        if len(groups) > 1:
            console.print(Text(f"\n{printable(name)}", style="bold"))

        console.print(comparison_table(group))

    folder = session_folder()
    try:
        (folder / "comparison.md").write_text(comparison_markdown(summaries), encoding="utf-8")
        (folder / "comparison.csv").write_text(comparison_csv(summaries), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror}") from error

    for name, group in groups.items():
        if plots and len(group) > 1:
            plot = "comparison.png" if len(groups) == 1 else f"comparison_{file_name(name)}.png"
            any_publisher().compare(
                [outputs_dir() / "runs" / summary.run_key for summary in group], folder / plot
            )

    for summary in summaries:
        if not summary.valid:
            print(
                f"INVALID: {summary.name}: coverage {summary.metrics['coverage']:.3f}; "
                f"{_worst(summary)}"
            )

    published = [cell.published for cell in cells]
    for line in dict.fromkeys(line for line in published if line.startswith("not logged")):
        print(f"{line}; the same command logs it later", file=sys.stderr)

    print(f"reports: {cells[-1].folder if len(cells) == 1 else folder}")
    if any(line and not line.startswith("not logged") for line in published):
        print("compare: python -m memeval ui")

    for note, count in Counter(note for summary in summaries for note in summary.notes).items():
        print(
            f"note: {note}"
            + (f" ({count} of {len(summaries)} runs)" if count < len(summaries) else "")
        )


def _worst(summary: RunSummary) -> str:
    return ", ".join(
        f"{count} {status}" for status, count in summary.statuses.items() if status != "ok"
    )
