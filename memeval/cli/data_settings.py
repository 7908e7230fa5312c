"""A data set with settings from the command line of `data`, such as `dataset.field=value`."""

from collections.abc import Sequence
from typing import Any

from memeval.config.paths import data_dir
from memeval.config.plugins import option_file
from memeval.datasets.contract import Dataset
from memeval.datasets.locate import build
from memeval.datasets.registry import GROUP
from memeval.errors import UserError

PREFIX = "dataset."
OF_RUNS = frozenset({"name", "defaults", "categories", "allow_unpinned"})
"""Fields of an option that don't determine the contents of the data set."""


def chosen_dataset(name: str, words: Sequence[str]) -> Dataset:
    """The adapter of a data set, not yet opened, with `chosen_settings`."""
    return build(name, data_dir(), **chosen_settings(name, words))


def chosen_settings(name: str, words: Sequence[str]) -> dict[str, Any]:
    """The given settings of a data set, and the values of `dataset=NAME` for the others.

    They also include questions that a run does not ask by default.
    """
    from omegaconf import OmegaConf

    settings: Any = {}
    file = option_file(GROUP, name)
    if file is not None:
        settings = OmegaConf.to_container(OmegaConf.load(file))

    for field in OF_RUNS:
        settings.pop(field, None)

    return {**settings, **read_words(words)}


def read_words(words: Sequence[str]) -> dict[str, Any]:
    """The values of `dataset.field=value` (or `field=value`), read as YAML.

    Raises `UserError` for anything else.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    for word in words:
        if not word.partition("=")[0] or "=" not in word:
            raise UserError(f"'{word}' is not a setting", "use:  dataset.field=value")

    try:
        values: Any = OmegaConf.to_container(
            OmegaConf.from_dotlist([word.removeprefix(PREFIX) for word in words])
        )
    except (OmegaConfBaseException, YAMLError) as error:
        raise UserError(
            f"{' '.join(words)}: {str(error).splitlines()[0]}", "use:  dataset.field=value"
        ) from error

    return {str(name): value for name, value in values.items()}
