"""A run's results in the form, and within the limits, that MLflow accepts.

Nothing here talks to MLflow.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from memeval.names import digest_name
from memeval.redaction import redacted, without_known_in
from memeval.results import RECORDS_FILE, Record, RunSummary, read_records

PARAM_LIMIT, TAG_LIMIT = 6000, 8000
PREFIX = "memeval."
TABLE_FILE = "records_table.json"
VIEW = "memeval"
"""Key of the shared view, as in the page's address: `?viewStateShareKey=memeval`."""

COMPARED = ("system", "granularity", "top_k", "compression_turn", "judge", "llm")
CUT = " … (cut)"
DESCRIBED = (
    "run_key",
    "name",
    "params",
    "metrics",
    "categories",
    "repeats",
    "notes",
    "valid",
    "statuses",
)


def legal(name: str) -> str:
    """A name that MLflow accepts for a metric, a param or a tag.

    Characters that it refuses become `_`.
    """
    path = re.sub(r"[^\w\-. /]", "_", name)
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]

    return "/".join(parts)[:250] or "_"


def experiment_name(dataset: str) -> str:
    """The experiment of a data set: its name.

    A digest of the name where MLflow or its page would not accept it.
    """
    return dataset if 0 < len(dataset) <= 200 and dataset.isprintable() else digest_name(dataset)


def params(summary: RunSummary) -> dict[str, str]:
    """The resolved settings as YAML writes them."""
    return {
        legal(key): cut(redacted(as_yaml(value)), PARAM_LIMIT)
        for key, value in summary.params.items()
    }


def as_yaml(value: str | int | float | bool | None) -> str:
    """A setting's value as YAML writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"

    return str(value)


def metrics(values: Mapping[str, float | None]) -> dict[str, float]:
    """The metrics that were measured; None and numbers that are not finite are left out."""
    return {
        legal(name): float(value)
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    }


def tags(summary: RunSummary, report: str) -> dict[str, str]:
    """The run's tags, ours under `memeval.`.

    Also those that MLflow's page shows: description, source, commit.
    """
    ours = {
        key if key.startswith((PREFIX, "mlflow.")) else PREFIX + key: value
        for key, value in summary.tags.items()
    }
    ours |= {
        f"{PREFIX}command": summary.command,
        f"{PREFIX}valid": "true" if summary.valid else "false",
    }

    shown = {
        "mlflow.note.content": note(report),
        "mlflow.source.name": summary.command,
        "mlflow.source.type": "LOCAL",
    }
    if commit := summary.tags.get("git_commit"):
        shown["mlflow.source.git.commit"] = commit

    return {legal(key): cut(redacted(value), TAG_LIMIT) for key, value in {**ours, **shown}.items()}


def note(report: str) -> str:
    """The report as the page's description, cut at a line where it is too long.

    Without its plots, whose paths mean nothing there.
    """
    lines = [line for line in report.splitlines() if not line.startswith("![")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    mark = "\n\n*Cut here: the whole report is among the artifacts.*"
    if len(text) <= TAG_LIMIT:
        return text

    return text[: text.rindex("\n", 0, TAG_LIMIT - len(mark))] + mark


def fingerprint(summary: RunSummary) -> str:
    """A digest of a cell's results.

    It does not depend on which sweep asked for the cell, under which command and when.
    """
    described = {name: value for name, value in asdict(summary).items() if name in DESCRIBED}
    text = json.dumps(described, sort_keys=True, ensure_ascii=False)

    return hashlib.sha256(text.encode()).hexdigest()


def page(summary: RunSummary) -> dict[str, str]:
    """Tags of an experiment that make MLflow's page useful.

    What kind it is, and a shared view of the cells (without their repeats) by accuracy.
    """
    settings = [key for group in COMPARED if (key := setting_of(group, summary))]
    rows = [f"accuracy/{row.name}" for row in summary.categories if row.headline]
    names = [
        "accuracy",
        "accuracy_ci95_low",
        "accuracy_ci95_high",
        "accuracy_std",
        *rows,
        "token_f1",
        "recall_at_10",
    ]
    names += ["context_tokens", "tokens/total", "cost_usd/total", "coverage"]
    columns = [
        *(f"params.`{key}`" for key in settings),
        *(f"metrics.`{name}`" for name in names),
    ]
    cells = f"tags.`{PREFIX}run_key` LIKE '%'"
    view = {
        "selectedColumns": columns,
        "orderByKey": "metrics.`accuracy`",
        "orderByAsc": False,
        "searchFilter": cells,
    }
    return {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": "accuracy",
        f"mlflow.sharedViewState.{VIEW}": json.dumps(view),
    }


def setting_of(group: str, summary: RunSummary) -> str | None:
    """The setting that says which option of a group was chosen; None where there is none."""
    candidates = (f"{group}.name", group, f"{group}.{group}")
    return next((key for key in candidates if key in summary.params), None)


def records_table(folder: Path) -> str:
    """The records as a table that MLflow's page opens.

    In pandas' `split` layout, one row per question and repeat.
    """
    rows = [row(record) for record in read_records(folder / RECORDS_FILE)]
    columns = list(dict.fromkeys(name for cells in rows for name in cells))
    data = [list(map(cells.get, columns)) for cells in rows]

    return json.dumps(without_known_in({"columns": columns, "data": data}), ensure_ascii=False)


def row(record: Record) -> dict[str, str | float | None]:
    """What of a record is worth a column.

    The page compares runs by the first column, and shows the second one side by side.
    """
    verdict = record.verdict
    return {
        "question_id": record.question_id,
        "hypothesis": record.hypothesis,
        "question": record.question,
        "gold": "; ".join(record.gold),
        "label": verdict.label.value if verdict else None,
        "score": verdict.score if verdict else None,
        "reason": verdict.reason if verdict else None,
        "category": record.category_name or str(record.category),
        "repeat": record.repeat,
        "status": record.status.value,
        "error": record.error,
        "token_f1": record.metrics.get("token_f1"),
        "recall_at_10": record.metrics.get("recall_at_10"),
        "context_tokens": record.context_tokens,
        "answer_ms": record.times.answer_ms,
    }


def cut(value: str, limit: int) -> str:
    """A value within MLflow's limit, with a mark where it was cut."""
    return value if len(value) <= limit else value[: limit - len(CUT)] + CUT


def milliseconds(time: str) -> int:
    """An ISO time as MLflow counts it."""
    return round(1000 * datetime.fromisoformat(time).timestamp())
