"""Composes a config from overrides, for the commands that run one configuration without Hydra's own
application; and resolves `only=wrong:RUN`, the questions that a finished run got wrong.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.runs.compose.words import CONFIG_DIR, split_values
from memeval.text.shown import one_line


def compose_config(words: Sequence[str]) -> RunConfig:
    """The config that these overrides compose.

    `--config-dir FOLDER` among the words adds the user's own options.

    Raises `UserError` for anything that Hydra or the schema rejects, for a launcher, and for a
    sweep's file whose varied settings are not all among the words.
    """
    from hydra import compose, initialize_config_dir
    from omegaconf import open_dict

    from memeval.config.checks import check_overrides
    from memeval.config.integers import as_hydra_words
    from memeval.config.paths import conf_dir
    from memeval.config.plugins import check_folder
    from memeval.config.resolve import check_choices, resolve
    from memeval.config.served import register
    from memeval.runs.compose.errors import explaining_config_errors

    register()
    folder, overrides = _config_dir(words)
    check_overrides(overrides)
    for word in overrides:
        if word.startswith("hydra/launcher="):
            raise UserError(f"{one_line(word)} is for sweeps, but this is a single configuration")

    search = []
    if folder:
        check_folder(folder)
        search = [f"hydra.searchpath=[file://{folder.resolve()}]"]

    hydra_words = [*search, *as_hydra_words(overrides)]
    with explaining_config_errors(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        composed = compose("config", overrides=hydra_words, return_hydra_config=True)
        with open_dict(composed):
            varied = composed.pop("hydra").sweeper.params or {}

        config = resolve(composed)

    check_choices(config, overrides)
    _check_not_varied(varied, hydra_words)
    return name_questions(config)


def _check_not_varied(varied: Mapping[str, str], words: Sequence[str]) -> None:
    from memeval.config.grids import words_of_cell

    given = {_name_in(word) for word in words}
    for name, values in varied.items():
        field = _name_in(name)
        choosing = {field}
        if field == "cell":
            # A setting of the cells chooses one of them as well.
            choosing.update(map(_name_in, words_of_cell(values.partition(",")[0]) or ()))

        if given.isdisjoint(choosing):
            raise UserError(
                f"the sweep makes several runs, one for each {field}; only one run is possible "
                "here",
                f"choose one:  {name}=...",
                "to make all of them:  python -m memeval -m +sweep=...",
            )


def _name_in(word: str) -> str:
    """The setting of an override, which may begin with a plus."""
    return word.partition("=")[0].lstrip("+")


def _config_dir(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    rest, folder = split_values(words), None
    for option in CONFIG_DIR:
        if option in rest:
            position = rest.index(option)
            if position + 1 == len(rest):
                raise UserError(f"{option} needs a folder")

            folder = Path(rest[position + 1])
            del rest[position : position + 2]

    return folder, rest


WRONG = "wrong:"
EXAMPLE = "for example:  only=wrong:16e712a2; to list runs:  python -m memeval list"


def name_questions(config: RunConfig) -> RunConfig:
    """The config with the questions that `dataset.only` selects; unchanged if it is not set.

    If `dataset.question_ids` is set as well, only those of its questions that were wrong are asked.
    Raises `UserError` for an unknown run, one of another data set, or one without a wrong answer.
    """
    only = config.dataset.get("only")
    if only is None:
        return config

    from memeval.comparison.finding import finished_runs, named_run
    from memeval.config.paths import outputs_dir
    from memeval.runs.display.terminal import report_damage

    word = str(only)
    if not word.startswith(WRONG) or word == WRONG:
        raise UserError(f"dataset.only must be {WRONG}RUN, not '{one_line(word)}'", EXAMPLE)

    run = named_run(word.removeprefix(WRONG), finished_runs(outputs_dir() / "runs", report_damage))
    only = f"{WRONG}{run.key}"

    def refusal(why: str) -> UserError:
        return UserError(f"dataset.only={only}: {one_line(run.name)} {why}")

    # A file of your own is filed under its own name.
    dataset = run.summary.params.get("dataset", run.summary.dataset)
    if dataset != config.dataset["name"]:
        asked = one_line(run.summary.dataset)
        raise refusal(f"asked dataset={asked}, not {config.dataset['name']}")
    if run.summary.only_retrieves:
        raise refusal("only retrieved, so no answer is right or wrong")

    named = config.dataset.get("question_ids")
    wrong = dict.fromkeys(row.question_id for row in run.read_records() if row.is_right is False)
    chosen = [question for question in wrong if named is None or question in named]
    if not chosen:
        raise refusal("got no question wrong")

    config.dataset = {**config.dataset, "only": only, "question_ids": chosen}
    return config
