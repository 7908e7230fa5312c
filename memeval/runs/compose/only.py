"""`only=wrong:RUN`: the questions that a finished run got wrong, as `dataset.question_ids`."""

from __future__ import annotations

from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.text.shown import one_line

WRONG = "wrong:"
EXAMPLE = "for example:  only=wrong:16e712a2; the runs:  python -m memeval list"


def name_questions(config: RunConfig) -> RunConfig:
    """The config with the questions that `dataset.only` means; unchanged without it.

    If `dataset.question_ids` names some as well, only those of them that were wrong are asked.
    Raises `UserError` for an unknown run, one of another data set, or one without a wrong answer.
    """
    only = config.dataset.get("only")
    if only is None:
        return config

    from memeval.comparison.finding import finished_runs, named_run
    from memeval.config.paths import outputs_dir
    from memeval.display.errors import report_damage

    word = str(only)
    if not word.startswith(WRONG) or word == WRONG:
        raise UserError(f"dataset.only must be {WRONG}RUN, not '{one_line(word)}'", EXAMPLE)

    run = named_run(word.removeprefix(WRONG), finished_runs(outputs_dir() / "runs", report_damage))
    name = one_line(run.name)
    # A file of your own is filed under its own name.
    named = run.summary.params.get("dataset", run.summary.dataset)
    if named != config.dataset["name"]:
        raise UserError(
            f"dataset.only={WRONG}{run.key}: {name} asked dataset="
            f"{one_line(run.summary.dataset)}, not {config.dataset['name']}"
        )

    named = config.dataset.get("question_ids")
    wrong = dict.fromkeys(row.question_id for row in run.read_records() if row.is_right is False)
    chosen = [question for question in wrong if named is None or question in named]
    if not chosen:
        raise UserError(f"dataset.only={WRONG}{run.key}: {name} got no question wrong")

    config.dataset = {**config.dataset, "only": f"{WRONG}{run.key}", "question_ids": chosen}
    return config
