"""A run's results in the form, and within the limits, that MLflow accepts.

Nothing here talks to MLflow.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from operator import itemgetter
from pathlib import Path

from memeval.config.identity import is_runtime, recorded_stages, result_settings
from memeval.metrics.accuracy import right_phrase
from memeval.metrics.formats import NONE, percent
from memeval.metrics.metric import ROWS, TAGS, with_interval_of
from memeval.metrics.registry import metrics_at, texts_at
from memeval.results import RECORDS_FILE, Record, RunSummary, read_records
from memeval.results.fields import as_plain
from memeval.results.summary import OWN_TAG, as_yaml
from memeval.text.names import digest_name, text_digest
from memeval.text.redaction import redacted, without_known_in

PARAM_LIMIT, TAG_LIMIT = 6000, 8000
PREFIX = "memeval."
RUN_KEY, CONTENT, COMPLETE, SWEEP, ORIGIN = (
    PREFIX + name for name in ("run_key", "content", "complete", "sweep", "origin")
)
"""Tags of a logged cell: its run key, its content, its completeness, its sweep, its home."""
SWEEP_ID, GROUP, NOTE, RUNTIME_TAG = (
    PREFIX + name for name in ("sweep_id", "group", "note", "runtime.")
)
"""Tags of the sweeps (invocations with `-m`) that include a cell, of its parent's sweep and of the
user's own note; and the prefix of tags of runtime settings.
"""
DESCRIPTION = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run or an experiment."""
TABLE_FILE = "records_table.json"
CHOICES = frozenset({"llm.model"})
"""Settings of options that distinguish runs as much as the options themselves."""
OF_OPTIONS = "with/"
"""Prefix of the params that contain the settings of options; it sorts after all groups."""
ROUNDED = "rounded."
"""Prefix of the tags that show figures rounded for reading."""
Cell = str | int | float | None
"""A value in the table of records."""
CUT = " … (cut)"
DESCRIBED = "run_key name params metrics categories repeats notes valid statuses".split()


def legal_name(name: str) -> str:
    """A name that MLflow accepts for a metric, a param or a tag.

    Characters that it refuses become `_`.
    """
    path = re.sub(r"[^\w\-. /]", "_", name)
    # MLflow refuses a name that changes when it is normalised as a path.
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]

    return "/".join(parts)[:250] or "_"


def experiment_name(dataset: str) -> str:
    """The name of a data set's experiment: the data set's own name.

    If MLflow or its page would not accept that name, a digest of it.
    """
    if 0 < len(dataset) <= 200 and dataset.isprintable():
        return dataset

    return digest_name(dataset)


def param_name(setting: str) -> str:
    """The name of a setting as a param.

    MLflow's compare page begins with the first three params that differ, in alphabetical order.
    Options of groups, such as `system` and `top_k`, come first: a setting that only some options
    have differs whenever the option does, and adds no information.
    """
    if "." not in setting.removesuffix(".name") or setting in CHOICES:
        return legal_name(setting)

    return legal_name(f"{OF_OPTIONS}{setting}")


def params(summary: RunSummary) -> dict[str, str]:
    """The resolved settings in YAML notation, except those that change no result."""
    settings = result_settings(summary.params, summary.identity)
    return {
        param_name(key): cut(redacted(as_yaml(value)), PARAM_LIMIT)
        for key, value in settings.items()
    }


def metrics(values: Mapping[str, float | None]) -> dict[str, float]:
    """The metrics that were measured; None and numbers that are not finite are left out."""
    return {
        legal_name(name): float(value)
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    }


def tags(summary: RunSummary, report: str, own_note: str = "") -> dict[str, str]:
    """The run's tags: memeval's own, which begin with `memeval.`, and those that MLflow's page
    shows: description, source, commit.
    """
    all_tags: dict[str, str] = {}
    for key, value in summary.tags.items():
        if key.startswith((PREFIX, "mlflow.")):
            all_tags[key] = value
        elif not key.startswith(OWN_TAG):
            all_tags[PREFIX + key] = value

    all_tags |= {
        f"{PREFIX}command": summary.command,
        f"{PREFIX}valid": str(summary.valid).lower(),
        f"{PREFIX}status": summary.status,
    }
    # Settings that change no result: as params they would fill the columns that compare runs.
    stages = recorded_stages(summary.identity)
    for setting, chosen in summary.params.items():
        if is_runtime(setting, stages):
            all_tags[RUNTIME_TAG + setting] = as_yaml(chosen)

    all_tags |= {
        **rounded_figures(summary),
        DESCRIPTION: description(summary, report, own_note),
        "mlflow.source.name": summary.command,
        "mlflow.source.type": "LOCAL",
    }
    if commit := summary.tags.get("git_commit"):
        all_tags["mlflow.source.git.commit"] = commit

    return {legal_name(key): cut(redacted(value), TAG_LIMIT) for key, value in all_tags.items()}


def rounded_figures(summary: RunSummary) -> dict[str, str]:
    """The figures of the shared view, rounded for reading, in addition to the exact metrics.

    Shares are in per cent.
    """
    shown = {"accuracy": with_interval_of("accuracy", summary)}
    for row in summary.categories:
        if row.headline:
            shown[row.name] = percent(row.accuracy)

    shown |= texts_at(TAGS, summary)
    return {f"{ROUNDED}{name}": text for name, text in shown.items() if text not in ("", NONE)}


def description(summary: RunSummary, report: str, own_note: str = "") -> str:
    """The page's description: the user's own note, the cell in a sentence, its report."""
    # The page shows the run's name already.
    if report.startswith("# "):
        report = report.partition("\n")[2]

    return note("\n\n".join(filter(None, [own_note, sentence(summary), report.strip("\n")])))


def sentence(summary: RunSummary) -> str:
    """A cell's accuracy in a sentence; empty if it was not measured."""
    if summary.metrics.get("accuracy") is None or summary.metrics.get("n_questions") is None:
        return ""

    value, _, interval = with_interval_of("accuracy", summary).partition(" [")
    certainty = warning = ""
    if interval:
        certainty = f" (95 % interval {interval.rstrip(']')})"

    if summary.is_stopped:
        warning = " **Stopped before all questions were done.**"
    elif not summary.valid and summary.found_nothing:
        warning = " **Invalid: no question got any context from the memory.**"
    elif not summary.valid:
        warning = " **Invalid: too few answers were scored.**"

    return f"**{value} %** of {right_phrase(summary)}{certainty}.{warning}"


def note(report: str) -> str:
    """A report as the page's description, cut at the end of a line if it is too long.

    Plots are left out, because their paths are not valid there.
    """
    lines = [line for line in report.splitlines() if not line.startswith("![")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    mark = "\n\n*Cut here: the whole report is among the artifacts.*"
    if len(text) <= TAG_LIMIT:
        return text

    # At the end of a line, because half a row would break the whole table.
    return text[: text.rindex("\n", 0, TAG_LIMIT - len(mark))] + mark


def fingerprint(summary: RunSummary) -> str:
    """A digest of a cell's results, which does not depend on its sweep, command or time."""
    described = {name: value for name, value in as_plain(summary).items() if name in DESCRIBED}
    described["notes"] = list(map(str, summary.notes))
    # The order of the rows is only for display: a run that was logged in another order is the same.
    rows = sorted(described["categories"], key=itemgetter("category"))
    described["categories"] = sorted(rows, key=itemgetter("headline"), reverse=True)
    # Neither times nor commands: with them, the same results would be logged again as a second run.
    text = json.dumps(described, sort_keys=True, ensure_ascii=False)

    return text_digest(text)


def records_table(folder: Path) -> str:
    """The records as a table that MLflow's page opens.

    In pandas' `split` layout, one row per question and repeat.
    """
    rows = list(map(row, read_records(folder / RECORDS_FILE)))
    columns = list(dict.fromkeys(chain.from_iterable(rows)))
    data = [list(map(cells.get, columns)) for cells in rows]

    return json.dumps(without_known_in({"columns": columns, "data": data}), ensure_ascii=False)


def row(record: Record) -> dict[str, Cell]:
    """Columns of a record. MLflow's page matches the rows of runs by the first column, and shows
    the second column side by side.
    """
    label = score = reason = None
    if record.verdict is not None:
        label, score = record.verdict.label.value, record.verdict.score
        reason = record.verdict.reason

    return {
        "question_id": record.question_id,
        "hypothesis": record.hypothesis,
        "question": record.question,
        "gold": "; ".join(record.gold),
        "label": label,
        "score": score,
        "reason": reason,
        "category": record.category_name or str(record.category),
        "repeat": record.repeat,
        "status": record.status.value,
        "error": record.error,
        **{metric.titles[ROWS]: record.metrics.get(metric.name) for metric in metrics_at(ROWS)},
        "context_tokens": record.context_tokens,
        "answer_ms": record.times.answer_ms,
    }


def cut(value: str, limit: int) -> str:
    """A value within MLflow's limit, with a mark if it was cut."""
    return value if len(value) <= limit else value[: limit - len(CUT)] + CUT


def milliseconds(time: str) -> int:
    """An ISO time in milliseconds since 1970, as MLflow expects it."""
    return round(1000 * datetime.fromisoformat(time).timestamp())
