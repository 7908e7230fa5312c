"""Facts in a package about its runs, other than their rows: protocols, environment, prices."""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from memeval.results import AnswerRow, IngestRow, Record, RunSummary, VerdictRow, is_imported
from memeval.results.own_prices import FIELDS
from memeval.results.prices import prices_of
from memeval.text.names import text_digest

_VERSION = "version."


def protocol_of(summary: RunSummary, records: Sequence[Record]) -> dict[str, Any]:
    """Conditions that two runs must share to be compared, as one object."""
    params, tags = summary.params, summary.tags
    ids = question_ids(records)
    imported, model = is_imported(summary), ""
    if not imported:
        model = str(params.get("llm.model") or params.get("llm") or "")

    return {
        "dataset": summary.dataset,
        "data_sha256": summary.data_sha256,
        "labels": str(params.get("dataset.labels", "")),
        "questions": len(ids),
        "questions_sha256": digest_of_ids(ids),
        "stages": tags.get("stages", "all"),
        "judge": summary.judge and summary.judge.to_json(),
        "reader": {
            "model": model,
            "prompt": str(params.get("prompt") or ""),
            "prompt_sha256": tags.get("prompt_sha256", ""),
            "imported": imported,
        },
    }


def question_ids(records: Iterable[Record]) -> set[str]:
    return {record.question_id for record in records}


def digest_of_ids(ids: Iterable[str]) -> str:
    """sha256 of the ids of questions, sorted, one per line."""
    return text_digest("".join(f"{name}\n" for name in sorted(ids)))


def environment_facts(
    summary: RunSummary,
    rows: Iterable[AnswerRow | VerdictRow | IngestRow],
    clean: Callable[[str], str] = str,
) -> dict[str, Any]:
    """Facts that a run depends on, other than its settings; `clean` changes names of models."""
    tags, latest = summary.tags, {}
    reported: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        for usage in row.usage:
            called = usage.role.value, usage.provider, clean(usage.model)
            latest[called] = usage
            named = row.notes.get(usage.role.models_note)
            if isinstance(named, list):
                reported.setdefault(called, set()).update(map(str, named))

    models = []
    for called, usage in sorted(latest.items(), key=itemgetter(0)):
        model: dict[str, Any] = dict(zip(("role", "provider", "model"), called, strict=True))
        # Without it, each reply named the requested model or none, or the names are not known.
        if reported.get(called):
            model["reported"] = sorted(set(map(clean, reported[called])))
        prices = prices_of(usage)
        # None if not known, or if they depend on the length of a prompt.
        model["usd_per_million"] = prices and dict(zip(FIELDS, prices, strict=True))
        models.append(model)

    packages = {}
    for name, version in sorted(tags.items()):
        if name.startswith(_VERSION):
            packages[name.removeprefix(_VERSION)] = version

    return {
        "command": summary.command,
        "packages": packages,
        "git_commit": tags.get("git_commit", ""),
        "git_dirty": tags.get("git_dirty", ""),
        "models": models,
    }


def machine_class() -> dict[str, Any]:
    """Kind of this machine, without anything that identifies it."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
