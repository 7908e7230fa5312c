"""How MLflow's page names and shows a run: its name, and the columns of the table of runs."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from memeval.config.identity import is_runtime, recorded_stages
from memeval.results import RunSummary, is_imported
from memeval.text.redaction import redacted
from memeval.tracking.payload import (
    ROUNDED,
    RUN_KEY,
    legal_name,
    milliseconds,
    param_name,
    rounded_figures,
)

VIEW = "memeval"
"""Key of the shared view, as in the page's URL: `?viewStateShareKey=memeval`."""
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
COMPARED = ("system", "granularity", "top_k", "compression_turn", "judge", "llm.model", "llm")
"""Config groups that a run's name shows, the most informative first."""
NAME_COLUMN = "attributes.`Run Name`"
LONGEST_NAME, LONGEST_VALUE = 40, 30
"""Maximum characters of a run's name, and of a value in it: MLflow's table cuts longer ones."""
LONGEST_COLUMNS = 5_000
"""Maximum characters of a view's columns in JSON. The tag has each of them three times, and MLflow
accepts 20,000 characters.
"""
MARGIN, LETTER = 30, 7
"""Pixels around the text of a column, and per letter of it."""
LONGEST_FIGURE, LONGEST_SETTING = 18, 14
"""Characters of a share with its interval, `37.6 [28.1, 48.2]`, and of settings' usual values."""

_NAMED_ELSEWHERE = frozenset(
    """
    dataset system granularity top_k compression_turn judge prompt llm llm.model num_runs
    sweep sweep_name
    """.split()
)
"""Overrides that a run's name shows in another way, or that its experiment shows."""


def run_name(summary: RunSummary) -> str:
    """A run's name until its sweep has ended: the system, and its changed settings.

    Other differences follow if they fit, the most informative first.
    """
    sample = []
    if (questions := summary.asked) is not None:
        sample.append(f"n={questions:.0f}")
    if len(summary.repeats) > 1:
        sample.append(f"x{len(summary.repeats)}")

    if is_imported(summary):
        return join_name([summary.name, *sample])

    value = {group: summary.params.get(setting_of(group, summary) or "") for group in COMPARED}
    parts = [str(value["system"] or summary.name), *changed_settings(summary)]
    if value["compression_turn"] not in (None, "never"):
        parts.append(f"compress={value['compression_turn']}")

    for group, before in (("granularity", ""), ("top_k", "k=")):
        if value[group] is not None:
            parts.append(f"{before}{value[group]}")

    model = value["llm.model"] or value["llm"]
    parts += [str(part) for part in (model, value["judge"]) if part is not None]

    return join_name([*parts, *sample])


def join_name(parts: Sequence[str]) -> str:
    """As many of the first parts as fit into a name; a first part that is too long is cut."""
    name = redacted(parts[0])
    if len(name) > LONGEST_NAME:
        return name[: LONGEST_NAME - 1] + "…"

    for part in parts[1:]:
        longer = f"{name} {redacted(part)}"
        if len(longer) > LONGEST_NAME:
            break
        name = longer

    return name


def changed_settings(summary: RunSummary) -> Iterator[str]:
    """The overrides of the run's command that the rest of its name does not show."""
    stages = recorded_stages(summary.identity)
    try:
        words = shlex.split(summary.command)
    except ValueError:
        return

    for before, word in pairwise(words):
        path, equals, value = word.lstrip("+~").partition("=")
        if not equals or before == "--config-dir" or word.startswith("-"):
            continue

        named_elsewhere = path.removesuffix(".name") in _NAMED_ELSEWHERE
        if not named_elsewhere and not is_runtime(path, stages):
            if len(value) > LONGEST_VALUE:
                value = value[: LONGEST_VALUE - 1] + "…"

            yield f"{path.removeprefix('system.')}={value}"


def experiment_tags(summary: RunSummary, present: Mapping[str, str]) -> dict[str, str]:
    """Tags of an experiment that make MLflow's page useful.

    They are its kind, its primary metric, and a shared view of the cells (without their repeats),
    sorted by accuracy. An existing view keeps its columns; the figures of this run are added.
    """
    columns = viewed_columns(present.get(VIEW_TAG, ""))
    settings = [column for column in columns if not _is_figure(column)]
    figures = [f"tags.`{legal_name(name)}`" for name in rounded_figures(summary)]
    view = view_tag(
        settings or setting_columns(summary),
        [*filter(_is_figure, columns), *figures],
        created_ms=milliseconds(summary.started_at),
    )
    return {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": "accuracy",
        VIEW_TAG: view,
    }


def view_tag(
    settings: Sequence[str],
    figures: Sequence[str],
    *,
    created_ms: int,
    longest_name: int = LONGEST_NAME,
) -> str:
    """A shared view as MLflow stores it; MLflow's menu of saved views lists it by its name.

    Settings come before figures: both are columns by MLflow's names for them. `created_ms` is the
    time that the menu shows, in milliseconds since 1970. Columns are as wide as their contents:
    names of runs have up to `longest_name` characters. Of too many columns, the first are shown.
    """
    columns: list[str] = []
    room = LONGEST_COLUMNS
    for column in dict.fromkeys([*settings, *figures]):
        room -= len(json.dumps(json.dumps(column)))
        if room > 0:
            columns.append(column)

    widths = {column: _width(column) for column in columns}
    state = {
        "selectedColumns": columns,
        "orderByKey": "metrics.`accuracy`",
        "orderByAsc": False,
        # Only cells have this tag; without the filter, their repeats would be separate rows.
        "searchFilter": f"tags.`{RUN_KEY}` LIKE '%'",
        "columnOrder": [NAME_COLUMN, *columns],
        "columnWidths": {NAME_COLUMN: 2 * MARGIN + LETTER * longest_name, **widths},
    }
    view = {"name": VIEW, "createdAt": created_ms, "updatedAt": created_ms}
    return json.dumps({**view, "state": json.dumps(state, sort_keys=True)})


def _width(column: str) -> int:
    """Pixels for the header of a column, or for its usual values if they are longer."""
    header = column.partition("`")[2].rstrip("`")
    if header == f"{ROUNDED}accuracy":
        longest = LONGEST_FIGURE
    elif _is_figure(column):
        longest = len(header)
    else:
        longest = max(len(header), LONGEST_SETTING)

    return MARGIN + LETTER * longest


def _is_figure(column: str) -> bool:
    return column.startswith(f"tags.`{ROUNDED}")


def setting_columns(summary: RunSummary) -> list[str]:
    """The columns of settings before a comparison finds which settings differ."""
    settings = [setting_of(group, summary) for group in ("system", "top_k", "llm.model")]
    return list(map(param_column, filter(None, settings)))


def param_column(setting: str) -> str:
    """The column of a setting, by MLflow's name for it."""
    return f"params.`{param_name(setting)}`"


def figures_of_view(tag: str) -> list[str]:
    return list(filter(_is_figure, viewed_columns(tag)))


def viewed_columns(tag: str) -> list[str]:
    """The columns of a shared view; none if it can't be read."""
    try:
        columns = json.loads(json.loads(tag)["state"])["selectedColumns"]
        return [column for column in columns if isinstance(column, str)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def setting_of(group: str, summary: RunSummary) -> str | None:
    """The setting that says which option of a group was chosen; None if none was."""
    for key in (f"{group}.name", group, f"{group}.{group}"):
        if key in summary.params:
            return key

    return None
