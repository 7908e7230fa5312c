"""Hydra's application for command-line arguments, which composes their cells and runs them.

`hydra.main` composes everything an additional time, only to find the mode that the configs choose.
If the arguments determine the mode, Hydra is started in it directly.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import OmegaConf

from memeval.config.checks import check_overrides
from memeval.config.grids import sweep_file
from memeval.config.integers import as_hydra_words
from memeval.config.names import options_with_field
from memeval.config.overrides import MULTIRUN, check_given_once, last_of_each
from memeval.config.paths import conf_dir
from memeval.config.plugins import check_folder
from memeval.config.served import register
from memeval.errors import UserError
from memeval.runs.compose.errors import explaining_config_errors, several_values_error
from memeval.runs.compose.words import (
    FLAGS,
    KEEP_GOING,
    KEEPS_GOING,
    reorder_arguments,
    user_folders,
)
from memeval.runs.invocation import begin_invocation
from memeval.runs.job import is_repeated, run_job
from memeval.runs.launch.launcher import Start, planning

if TYPE_CHECKING:
    from memeval.runs.plan import Plan

VERSION_BASE = "1.3"
LAUNCHER_PREFIXES = ("hydra/launcher=", "hydra.launcher.")
"""Beginnings of overrides that choose a launcher or change its settings."""
OWN_LAUNCHERS = ("memeval", "ray")
"""Launchers that compose all cells before they run the first."""
_ONE_VALUE = re.compile(r"(?!null$)[\w:/\\.+*%@?| -]+|\[[^][()]*]|{[^{}()]*}", re.I | re.ASCII)
"""A value, list or mapping that Hydra reads as it is, and as a choice, which `null` is not."""
_PLAIN = re.compile(r"(?!hydra)(\+sweep=)?[a-z]")


def hydra_application(arguments: Sequence[str]) -> Callable[[], Any]:
    """Hydra's application for these arguments: composes their runs, passes each to `run_job`."""
    check_overrides(list(arguments))
    _check_keep_going(arguments)
    if _names_launcher(arguments):
        # Hydra uses a launcher for sweeps only: a single run would ignore it.
        arguments = [*arguments, MULTIRUN[0]]

    folders = user_folders(arguments)
    for folder in folders:
        check_folder(folder)

    # Otherwise Hydra prints its own error messages, and ends the process itself.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    begin_invocation(list(filter(is_repeated, arguments)))
    register()
    words = as_hydra_words(arguments)
    is_single = _is_single_run(arguments)
    if not is_single:
        # A single run takes the last of two overrides, as commands do. In a sweep, the user meant
        # both.
        check_given_once(arguments)
        words = [f"hydra.mode={RunMode.MULTIRUN.name}", *_for_cells_alone(words, folders)]

    # `hydra.main` reads its arguments only from there.
    sys.argv = ["memeval", *words]

    # Otherwise Hydra, or a file that is not a sweep, may determine the mode.
    if all(word in MULTIRUN or _PLAIN.match(word) for word in arguments):
        mode = RunMode.RUN if is_single else RunMode.MULTIRUN
        return partial(_run_in_mode, mode, [word for word in words if word not in MULTIRUN])

    main: Callable[[], Any] = hydra.main(str(conf_dir()), "config", VERSION_BASE)(run_job)
    return main


def _names_launcher(arguments: Sequence[str]) -> bool:
    """Whether a launcher is named, and no option, such as `--cfg`, says what to do instead."""
    named = any(word.startswith(LAUNCHER_PREFIXES[0]) for word in arguments)
    return named and not ({"-c", "--cfg"} | FLAGS).intersection(arguments)


def _is_single_run(arguments: Sequence[str]) -> bool:
    if set(MULTIRUN).intersection(arguments):
        return False

    for word in arguments:
        if word.startswith("+sweep=") and _asks_for_cells(word.removeprefix("+sweep="), arguments):
            return False

    return True


def _asks_for_cells(sweep: str, arguments: Sequence[str]) -> bool:
    """Whether the file of a sweep makes it a sweep without `-m`, by its mode or what it varies."""
    user_files = [folder / "sweep" / f"{sweep}.yaml" for folder in user_folders(arguments)]
    for file in [*user_files, sweep_file(sweep)]:
        if file is not None and file.is_file():
            options = OmegaConf.load(file)
            mode = OmegaConf.select(options, "hydra.mode")
            varied = OmegaConf.select(options, "hydra.sweeper.params")
            if mode == RunMode.MULTIRUN.name or varied or "grids" in options:
                return True

    return False


def _for_cells_alone(words: Sequence[str], folders: tuple[Path, ...]) -> list[str]:
    """A sweep's overrides. Fields of a group without a fixed option become a choice of one value:
    otherwise Hydra would also set them in the cells' shared composition, whose option may lack the
    field.
    """
    # An override that is swept, even over one value, applies only to the cells.
    fixed = {word.partition("=")[0] for word in words if "," not in word}
    fixed.add("hydra")  # a launcher's fields are not those of a cell
    cells = []
    for word in words:
        name, _, value = word.partition("=")
        group, dot, _ = name.partition(".")
        is_for_cells = bool(dot) and group not in fixed
        is_known = is_for_cells and bool(options_with_field(name, words, folders))
        if is_known and _ONE_VALUE.fullmatch(value):
            cells.append(f"{name}=choice({value})")
        else:
            cells.append(word)

    return cells


def _run_in_mode(mode: RunMode, overrides: Sequence[str]) -> None:
    """Does what `hydra.main` does once it knows the mode."""
    words = [*overrides, f"hydra.mode={mode.name}"]

    with initialize_config_dir(str(conf_dir()), job_name="job", version_base=VERSION_BASE):
        application = GlobalHydra.instance().hydra
        assert application is not None
        if mode is RunMode.RUN:
            application.run("config", run_job, words)
        else:
            application.multirun("config", run_job, words)


def foreign_launcher(words: Sequence[str]) -> str | None:
    """The override that chooses a launcher which can't plan, if any."""
    for word in words:
        if "hydra/launcher=" in word and word.partition("=")[2] not in OWN_LAUNCHERS:
            return word

    return None


def _check_keep_going(arguments: Sequence[str]) -> None:
    """Raises `UserError` for `--keep-going` with a launcher that does not have it."""
    launcher = foreign_launcher(arguments)
    if launcher and KEEPS_GOING in arguments:
        raise UserError(
            f"{KEEP_GOING} does not work with {launcher}",
            "leave it out, or use:  hydra/launcher=memeval or hydra/launcher=ray",
        )


def words_to_plan(arguments: Sequence[str]) -> list[str]:
    """The arguments; those of a single run without the overrides that a later one replaces.

    Raises `UserError` for a single run with several values, as the run itself does.
    """
    if not _is_single_run(arguments) or _names_launcher(arguments):
        return list(arguments)

    parser = OverridesParser.create()
    with explaining_config_errors():
        for word in as_hydra_words(arguments):
            is_override = "=" in word and not word.startswith("-")
            # As a list: only then does the error name the word.
            if is_override and parser.parse_overrides([word])[0].is_sweep_override():
                raise several_values_error(word)

    return last_of_each(arguments)


def compose_plan(words: Sequence[str]) -> tuple["Plan", Start]:
    """The plan of the cells that these arguments compose, and the function that starts the
    processes to compute it. Nothing is run.

    Raises `UserError`, and `RefusedError` if cells can't be run.
    """
    # Imported here: it takes longer to import than Hydra.
    from memeval.runs.plan import Plan

    # Only memeval's launchers can plan, and only for sweeps: a single cell is a sweep of one.
    overrides = [word for word in words if word not in MULTIRUN]
    if foreign_launcher(overrides):
        overrides = [word for word in overrides if not word.startswith(LAUNCHER_PREFIXES)]

    planned: list[tuple[Plan, Start]] = []
    before = sys.argv
    try:
        with (
            explaining_config_errors(),
            planning(lambda plan, start: planned.append((plan, start))),
        ):
            hydra_application([*reorder_arguments(overrides), MULTIRUN[1]])()
    finally:
        sys.argv = before  # Hydra's application reads its arguments there

    # One plan per batch: a sweeper may hand over its cells in several.
    cells = chain.from_iterable(plan.cells for plan, _ in planned)
    return Plan(list(cells)), planned[-1][1]
