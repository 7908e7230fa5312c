"""How MLflow's page calls and shows a run: its name, and the columns of the table of runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise

from memeval.redaction import redacted
from memeval.results import RunSummary
from memeval.tracking.payload import PREFIX, RUN_KEY, is_runtime, stages_of

VIEW = "memeval"
"""Key of the shared view, as in the page's address: `?viewStateShareKey=memeval`."""
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
COMPARED = ("system", "granularity", "top_k", "compression_turn", "judge", "llm.model", "llm")
NAME_COLUMN = "attributes.`Run Name`"
LONGEST_NAME, LONGEST_VALUE = 250, 30

_NAMED_ELSEWHERE = frozenset(
    """
    dataset system granularity top_k compression_turn judge prompt llm llm.model num_runs
    sweep sweep_name
    """.split()
)
"""Overrides that a run's name shows in another way, or that its experiment shows."""


def run_name(summary: RunSummary) -> str:
    """What distinguishes runs, the most telling first: a table shows the first thirty characters.

    The system and what was changed of its settings, the memory, the sample, the judge, the model.
    """
    questions = summary.metrics.get("n_questions")
    sample = [f"n={questions:.0f}"] if questions is not None else []
    if len(summary.repeats) > 1:
        sample.append(f"x{len(summary.repeats)}")

    if summary.tags.get("imported") == "true":
        return redacted(" ".join([summary.name, *sample]))[:LONGEST_NAME]

    value = {group: summary.params.get(setting_of(group, summary) or "") for group in COMPARED}
    parts = [str(value["system"]), *changed_settings(summary)]
    if value["compression_turn"] not in (None, "never"):
        parts.append(f"compress={value['compression_turn']}")

    parts += [str(value["granularity"]), f"k={value['top_k']}", *sample]
    parts += [str(value["judge"]), str(value["llm.model"] or value["llm"])]

    return redacted(" ".join(parts))[:LONGEST_NAME]


def changed_settings(summary: RunSummary) -> Iterator[str]:
    """The overrides of the run's command that the rest of its name does not show."""
    stages = stages_of(summary)
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
            shown = value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 1] + "…"
            yield f"{path.removeprefix('system.')}={shown}"


def experiment_tags(summary: RunSummary, present: Mapping[str, str]) -> dict[str, str]:
    """Tags of an experiment that make MLflow's page useful.

    What kind it is, and a shared view of the cells (without their repeats) by accuracy. A view
    that is there keeps its columns; those of this run are added.
    """
    columns = [*viewed_columns(present.get(VIEW_TAG, "")), *columns_of(summary)]
    view = {
        "selectedColumns": list(dict.fromkeys(columns)),
        "orderByKey": "metrics.`accuracy`",
        "orderByAsc": False,
        # Only cells have this tag: their repeats would be rows of their own.
        "searchFilter": f"tags.`{RUN_KEY}` LIKE '%'",
        # The page takes the widths of columns that the order names, and cuts names at 20 characters
        # by default.
        "columnOrder": [NAME_COLUMN],
        "columnWidths": {NAME_COLUMN: 380},
    }
    return {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": "accuracy",
        VIEW_TAG: json.dumps(view),
    }


def columns_of(summary: RunSummary) -> list[str]:
    """The columns of the shared view: settings, sample, figures by category, cost."""
    settings = [key for group in COMPARED if (key := setting_of(group, summary))]
    categories = [f"accuracy/{row.name}" for row in summary.categories if row.headline]
    metrics = ["n_questions", "accuracy", *categories, "accuracy_std", "token_f1", "recall_at_10"]
    metrics += ["context_tokens", "tokens/total", "cost_usd/total", "coverage"]

    return [
        *(f"params.`{key}`" for key in settings),
        f"tags.`{PREFIX}rounded.accuracy`",
        *(f"metrics.`{name}`" for name in metrics),
    ]


def viewed_columns(view: str) -> list[str]:
    """The columns of a shared view; none where it can't be read."""
    try:
        columns = json.loads(view)["selectedColumns"]
        return [column for column in columns if isinstance(column, str)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def setting_of(group: str, summary: RunSummary) -> str | None:
    """The setting that says which option of a group was chosen; None if none was."""
    candidates = (f"{group}.name", group, f"{group}.{group}")
    return next((key for key in candidates if key in summary.params), None)
