"""Filing of a run: experiment, tags, note, sweep. None of these changes a result."""

import os
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from memeval.config.leaves import flatten
from memeval.config.schema import RunConfig, TrackingConfig
from memeval.errors import UserError
from memeval.text.shown import one_line

EXPERIMENT_VARIABLE = "MLFLOW_EXPERIMENT_NAME"
LONGEST_EXPERIMENT = 200
LONGEST_KEY, LONGEST_TAG, LONGEST_NOTE, MAX_TAGS = 200, 4000, 4000, 50
RESERVED = ("memeval", "mlflow", "rounded")
"""First parts of tag names that are reserved for memeval and MLflow."""

LONGEST_LABEL = 40
_KEY = re.compile(r"[\w\-. /]+")
BY_TAG = "use:  tags.paper=table2"


class Filing(Struct, frozen=True):
    """A run's experiment in MLflow, and the user's own labels of the run."""

    experiment: str | None = None
    """None: the experiment that already contains the run, or the one named after its data set."""
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    sweep_id: str | None = None
    """The invocation with `-m` that includes the run; None for a single run."""
    group_by_sweep: bool = False
    """Whether the run becomes a child of its sweep's run."""


def read_filing(config: RunConfig, sweep: str | None = None) -> Filing:
    """Filing from config and environment; `sweep` is an invocation's digest. Raises `UserError`."""
    sweep_id = None
    # The name is for people. The digest distinguishes two commands that run one named sweep.
    if sweep is not None:
        sweep_id = f"{config.sweep_name or 'sweep'}-{sweep}"

    return Filing(
        experiment=read_experiment(config.tracking),
        tags=_tags(config.tags),
        note=_note(config.note),
        sweep_id=sweep_id,
        group_by_sweep=config.tracking.group == "sweep",
    )


def check_filing(config: RunConfig) -> None:
    """Raises `UserError` for a name, tags or a note in the config that can't be filed."""
    if config.tracking.experiment is not None:
        _check_experiment("tracking.experiment", config.tracking.experiment)

    _tags(config.tags)
    _note(config.note)
    _check_label(config.label)


def _check_label(label: str | None) -> None:
    if label is None:
        return
    if not label.strip() or label != label.strip() or label.startswith("@"):
        raise UserError(
            "label must not be empty, nor begin or end with a space, nor begin with @",
            "for example:  label=v2",
        )

    _check_text("label", label, LONGEST_LABEL)


def read_experiment(tracking: TrackingConfig) -> str | None:
    """The experiment of the config, else of the environment. Raises `UserError`."""
    if tracking.experiment is not None:
        return tracking.experiment

    name = os.environ.get(EXPERIMENT_VARIABLE) or None
    if name is not None:
        _check_experiment(EXPERIMENT_VARIABLE, name)

    return name


def _check_experiment(option: str, name: str) -> None:
    if not name.strip() or name != name.strip():
        raise UserError(f"{option} must not be empty, nor begin or end with a space")
    if not name.isprintable():
        raise UserError(f"{option} contains a control character: '{one_line(name, 60)}'")
    if len(name) > LONGEST_EXPERIMENT:
        raise UserError(
            f"{option} has {len(name)} characters; an experiment's name may have at most "
            f"{LONGEST_EXPERIMENT}"
        )


def _tags(given: Mapping[str, Any] | None) -> dict[str, str]:
    tags = flatten(given or {})
    if len(tags) > MAX_TAGS:
        raise UserError(f"tags has {len(tags)} tags; at most {MAX_TAGS} are allowed")

    return {_key(key): _tag(key, value) for key, value in tags.items()}


def _key(key: str) -> str:
    shown = one_line(key, 60)
    if key.partition(".")[0].lower() in RESERVED:
        raise UserError(
            f"tags.{shown}: names that begin with memeval, mlflow or rounded are reserved", BY_TAG
        )
    # MLflow refuses names that change when they are read as paths.
    is_path = {"", ".", ".."}.isdisjoint(key.split("/"))
    if not _KEY.fullmatch(key) or not is_path or len(key) > LONGEST_KEY:
        raise UserError(
            f"tags.{shown}: the name of a tag must consist of letters, digits, '_', '-', '.', '/' "
            f"and spaces, {LONGEST_KEY} at most",
            BY_TAG,
        )

    return key


def _tag(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float) or value == "":
        raise UserError(f"tags.{one_line(key, 60)} must be a string, a number or a boolean", BY_TAG)

    text = str(value)
    _check_text(f"tags.{one_line(key, 60)}", text, LONGEST_TAG)
    return text


def _note(note: str | None) -> str | None:
    if note is None or not note.strip():
        return None

    # A note may have several lines.
    _check_text("note", note, LONGEST_NOTE, allowed="\n")
    return note.strip()


def _check_text(option: str, text: str, limit: int, allowed: str = "") -> None:
    if len(text) > limit:
        raise UserError(f"{option} has {len(text)} characters; at most {limit} are allowed")
    if not all(character.isprintable() or character in allowed for character in text):
        raise UserError(f"{option} contains a control character: '{one_line(text, 60)}'")
