"""A run as a log of inspect_ai, in the JSON that `inspect view` opens."""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from memeval import __version__
from memeval.packages.export.rows import Row, measured_metrics, run_identity
from memeval.packages.export.terms import DataTerms
from memeval.records import Label, Status
from memeval.results.files import write_atomically
from memeval.results.run import Run
from memeval.text.names import file_name

VERSION = 2
"""Version of the format."""
LETTERS = {Label.CORRECT: "C", Label.WRONG: "I", Label.ABSTAINED: "N"}
"""inspect_ai's letters for correct, incorrect and no answer; unscored answers have no letter."""
ROLES = ("system", "user", "assistant", "tool")
SHOWN = tuple(
    "accuracy accuracy_ci95_low accuracy_ci95_high coverage token_f1 recall_at_5 "
    "recall_at_10".split()
)
"""Metrics that the head of a log shows; its metadata has all of them."""
METADATA = tuple(
    "case_id category_name answerable status evidence retrieved context_tokens metrics".split()
)
"""Members of a row that a sample has as metadata."""
OFFLINE = "memeval/extractive"
"""The model name of a run without a model."""


def write_inspect(run: Run, rows: Sequence[Row], terms: DataTerms, folder: Path) -> None:
    """Writes the log; its name has the time, the task and the run's key, as inspect_ai's do."""
    log = inspect_log(run, rows, terms)
    created = datetime.fromisoformat(run.summary.started_at).strftime("%Y-%m-%dT%H-%M-%S")
    # inspect_ai lists only files whose names begin with a time, and cuts names at underscores.
    task = file_name(run.summary.dataset).replace("_", "-")
    name = f"{created}_{task}_{file_name(run.key)}.json"
    # In pieces: a log of 100,000 answers takes 130 MB, and a list of its parts a GB.
    pieces = json.JSONEncoder(ensure_ascii=False, indent=1).iterencode(log)
    write_atomically(folder / name, chain(pieces, "\n"))


def inspect_log(run: Run, rows: Sequence[Row], terms: DataTerms) -> dict[str, Any]:
    """The log: a sample per question, an epoch per repeat, and the run's figures as metrics."""
    summary = run.summary
    about = run_identity(run)
    model = str(about["params"].get("llm.model") or OFFLINE)
    ids = list(dict.fromkeys(row["question_id"] for row in rows))
    return {
        "version": VERSION,
        "status": "cancelled" if summary.is_stopped else "success",
        "eval": {
            "eval_id": run.key,
            "run_id": run.key,
            "created": summary.started_at,
            "task": about["dataset"],
            "task_id": run.key,
            "task_args": {"command": about["command"]},
            "dataset": {"name": about["dataset"], "samples": len(ids), "sample_ids": ids},
            "model": model,
            "config": {"epochs": len(summary.repeats) or 1},
            "packages": {"memeval": __version__},
            "metadata": {**about, "data_licence": terms.licence},
        },
        "results": _results(run, rows),
        "stats": {"started_at": summary.started_at, "completed_at": summary.finished_at},
        "samples": [_sample(row, model) for row in rows],
    }


def _results(run: Run, rows: Sequence[Row]) -> dict[str, Any]:
    scored = completed = 0
    judges: dict[str, None] = {}
    for row in rows:
        if row["judge"]:
            judges[row["judge"]] = None

        scored += row["score"] is not None
        completed += Status(row["status"]).is_complete

    figures = measured_metrics(run)
    metrics = {name: {"name": name, "value": figures[name]} for name in SHOWN if name in figures}
    # The run's judge, if it gave verdicts: refusals have their own judge.
    judge = run.summary.judge
    name = next(iter(judges), "memeval")
    if judge is not None and judge.name in judges:
        name = judge.name

    score = {
        "name": name,
        "scorer": name,
        "scored_samples": scored,
        "unscored_samples": len(rows) - scored,
        "metrics": metrics,
    }
    return {
        "total_samples": len(rows),
        "completed_samples": completed,
        "scores": [score],
        "metadata": {"metrics": figures},
    }


def _sample(row: Row, model: str) -> dict[str, Any]:
    reply = {"role": "assistant", "content": row["hypothesis"] or ""}
    stop_reason = "max_tokens" if row["status"] == Status.ANSWER_CUT else "stop"
    sample = {
        "id": row["question_id"],
        "epoch": row["repeat"] + 1,
        "input": row["question"] or "",
        "target": row["gold"],
        "messages": [*_messages(row), reply],
        "output": {"model": model, "choices": [{"message": reply, "stop_reason": stop_reason}]},
        "scores": _scores(row),
        "metadata": {name: row[name] for name in METADATA},
    }
    if row["choices"]:
        sample["choices"] = row["choices"]
    if row["context"] is not None and not row["prompt"]:
        sample["metadata"]["context"] = row["context"]
    if not Status(row["status"]).is_complete:
        message = row["error"] or row["status"]
        sample["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}

    return sample


def _messages(row: Row) -> list[dict[str, str]]:
    """Messages that were sent; without them or their texts, the question alone."""
    sent = []
    for message in row["prompt"]:
        role, content = message["role"], message["content"]
        if role in ROLES and content is not None:
            sent.append({"role": role, "content": content})

    return sent or [{"role": "user", "content": row["question"] or ""}]


def _scores(row: Row) -> dict[str, Any]:
    if row["score"] is None:
        return {}

    value = row["score"]
    if not row["graded"]:
        value = LETTERS[Label(row["label"])]

    explanation = row["reason"] or None
    return {row["judge"]: {"value": value, "answer": row["hypothesis"], "explanation": explanation}}
