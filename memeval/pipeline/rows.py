"""Between records and the rows that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from memeval.llm.metering import totals
from memeval.records import Label, Role, Status, Usage, Verdict

_USAGE_FIELDS = tuple(field.name for field in fields(Usage))

RETRYABLE = frozenset({Status.INGEST_FAILED, Status.ANSWER_FAILED, Status.JUDGE_FAILED})
"""Statuses that the same command tries again."""


def usage_rows(usages: Iterable[Usage]) -> list[dict[str, Any]]:
    """Usages added up, as JSON."""
    return [{name: getattr(usage, name) for name in _USAGE_FIELDS} | {"role": usage.role.value} for usage in totals(usages)]


def usages_of(row: Mapping[str, Any], run_key: str) -> list[Usage]:
    """A stored row's usages; those of a row that another run paid for count as cached."""
    foreign = row.get("origin") != run_key
    usages = (Usage(**{**entry, "role": Role(entry["role"])}) for entry in row.get("usage", ()))
    return [replace(usage, cached=True) if foreign else usage for usage in usages]


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    row: dict[str, Any] = {"judge": verdict.judge, "label": verdict.label.value, "score": verdict.score, "reason": verdict.reason}
    if verdict.chosen is not None:
        row["chosen"] = list(verdict.chosen)
    if verdict.votes:
        row["votes"] = [label.value for label in verdict.votes]
    if verdict.tries:
        row["tries"] = verdict.tries
    return row


def is_final(row: Mapping[str, Any] | None) -> bool:
    """Whether a stored row need not be made again."""
    return row is not None and Status(row["status"]) not in RETRYABLE and not tries_of(row)


def tries_of(row: Mapping[str, Any] | None) -> int:
    """Replies that a model gave as a judge and that could not be read, where the answer is unscored
    for it: the next pass asks for others.

    0 for all other rows: a choice that can't be read is what the system answered, and stays so.
    """
    if row is None or row["status"] != Status.UNPARSED:
        return 0
    return int((row.get("verdict") or {}).get("tries", 0))


def label_value(row: Mapping[str, Any]) -> float | None:
    """1.0 for a right answer, 0.0 for a wrong or abstained one, None where it could not be scored."""
    verdict = row.get("verdict")
    if row["status"] != Status.OK or not verdict or verdict["label"] == Label.UNSCORED:
        return None
    return 1.0 if verdict["label"] == Label.CORRECT else 0.0
