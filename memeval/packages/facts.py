"""Facts in a package about its runs, other than their rows: protocols, environment, prices."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from typing import Any

from memeval.records import Usage
from memeval.results import Record, RunSummary, is_imported
from memeval.results.own_prices import FIELDS
from memeval.results.prices import prices_of
from memeval.text.names import text_digest

_VERSION = "version."


def protocol_of(summary: RunSummary, records: Sequence[Record]) -> dict[str, Any]:
    """Conditions that two runs must share to be compared, as one object."""
    params, tags = summary.params, summary.tags
    ids = sorted({record.question_id for record in records})
    imported = is_imported(summary)
    model = "" if imported else str(params.get("llm.model") or params.get("llm") or "")
    return {
        "dataset": summary.dataset,
        "data_sha256": summary.data_sha256,
        "labels": str(params.get("dataset.labels", "")),
        "questions": len(ids),
        "questions_sha256": digest_of_ids(ids),
        "stages": tags.get("stages", "all"),
        "judge": None if summary.judge is None else summary.judge.to_json(),
        "reader": {
            "model": model,
            "prompt": str(params.get("prompt") or ""),
            "prompt_sha256": tags.get("prompt_sha256", ""),
            "imported": imported,
        },
    }


def digest_of_ids(ids: Iterable[str]) -> str:
    """sha256 of the ids of questions, sorted, one per line."""
    return text_digest("".join(f"{name}\n" for name in sorted(ids)))


def environment_facts(summary: RunSummary, usages: Iterable[Usage]) -> dict[str, Any]:
    """Facts that a run depends on, other than its settings."""
    tags, models = summary.tags, {}
    for usage in usages:
        models[usage.role.value, usage.provider, usage.model] = usage

    packages = {
        name.removeprefix(_VERSION): version
        for name, version in sorted(tags.items())
        if name.startswith(_VERSION)
    }
    return {
        "command": summary.command,
        "packages": packages,
        "git_commit": tags.get("git_commit", ""),
        "git_dirty": tags.get("git_dirty", ""),
        "models": [
            {"role": role, "provider": provider, "model": model, "usd_per_million": _prices(usage)}
            for (role, provider, model), usage in sorted(models.items(), key=lambda item: item[0])
        ],
    }


def _prices(usage: Usage) -> dict[str, float] | None:
    """Price of a million tokens of a model; None if not known, or if it depends on a prompt."""
    prices = prices_of(usage)
    return None if prices is None else dict(zip(FIELDS, prices, strict=True))


def machine_class() -> dict[str, Any]:
    """Kind of this machine, without anything that identifies it."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
