"""A config from overrides, for the commands that run one configuration without Hydra's own
application.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memeval.config.schema import RunConfig
from memeval.errors import UserError


def compose_config(words: Sequence[str]) -> RunConfig:
    """The config that overrides make.

    `--config-dir FOLDER` among the words brings options of the user's own.

    Raises `UserError` for anything that Hydra or the schema does not take.
    """
    from hydra import compose, initialize_config_dir

    from memeval.config.checks import check_overrides
    from memeval.config.integers import as_hydra_words
    from memeval.config.paths import conf_dir
    from memeval.config.plugins import check_folder
    from memeval.config.resolve import check_choices, resolve
    from memeval.config.served import register
    from memeval.runs.compose.errors import explained
    from memeval.runs.compose.only import name_questions

    register()
    folder, overrides = _config_dir(words)
    check_overrides(overrides)
    if folder:
        check_folder(folder)

    search = [f"hydra.searchpath=[file://{folder}]"] if folder else []

    with explained(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = resolve(compose("config", overrides=[*search, *as_hydra_words(overrides)]))

    check_choices(config, overrides)
    return name_questions(config)


def _config_dir(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    rest, folder = list(words), None
    for option in ("--config-dir", "-cd"):
        if option in rest:
            at = rest.index(option)
            if at + 1 == len(rest):
                raise UserError(f"{option} needs a folder")

            folder = Path(rest[at + 1]).resolve()
            if not folder.is_dir():
                raise UserError(f"{option}: the folder {rest[at + 1]} does not exist")

            del rest[at : at + 2]

    return folder, rest
