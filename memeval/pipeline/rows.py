"""Between records and the rows that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from memeval.llm.metering import totals
from memeval.llm.reply import MOST_TOKENS
from memeval.records import Label, Role, Status, Usage, Verdict

_USAGE_FIELDS = tuple(field.name for field in fields(Usage))
_STATUSES = frozenset(status.value for status in Status)
_ROLES = frozenset(role.value for role in Role)
_MOST_CALLS = 1_000_000

RETRYABLE = frozenset({Status.INGEST_FAILED, Status.ANSWER_FAILED, Status.ANSWER_FILTERED, Status.JUDGE_FAILED})
"""Statuses that the same command tries again."""


def usage_rows(usages: Iterable[Usage]) -> list[dict[str, Any]]:
    """Usages added up, as JSON."""
    return [{name: getattr(usage, name) for name in _USAGE_FIELDS} | {"role": usage.role.value} for usage in totals(usages)]


def usages_of(row: Mapping[str, Any], run_key: str) -> list[Usage]:
    """A stored row's usages; those of a row that another run paid for count as cached."""
    foreign = row.get("origin") != run_key
    usages = (Usage(**{**entry, "role": Role(entry["role"])}) for entry in row.get("usage", ()))
    return [replace(usage, cached=True) if foreign else usage for usage in usages]


def _sound_usages(entries: object) -> bool:
    """Whether the usages of a stored row hold counts, roles and names, and nothing else."""
    return isinstance(entries, list) and all(isinstance(entry, dict) and _is_sound_usage(entry) for entry in entries)


def _is_sound_usage(entry: Mapping[str, Any]) -> bool:
    if set(entry) != set(_USAGE_FIELDS) or entry["role"] not in _ROLES:
        return False
    named = all(isinstance(entry[name], str) for name in ("model", "provider"))
    marked = all(isinstance(entry[name], bool) for name in ("estimated", "cached"))
    said = all(entry[name] is None or _is_count(entry[name]) for name in ("prompt_tokens", "completion_tokens"))
    return named and marked and said and _is_count(entry["cached_tokens"]) and _is_count(entry["calls"])


def _is_count(value: object) -> bool:
    """A sum over the calls of one row: as many as there may be, none of them larger than a call can be."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS * _MOST_CALLS


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    row: dict[str, Any] = {"judge": verdict.judge, "label": verdict.label.value, "score": verdict.score, "reason": verdict.reason}
    return row | ({"chosen": list(verdict.chosen)} if verdict.chosen is not None else {})


def is_final(row: Mapping[str, Any] | None) -> bool:
    """Whether a stored row need not be made again: one that is damaged, or was edited into what no row is, must be."""
    if row is None or row.get("status") not in _STATUSES or not _sound_usages(row.get("usage", [])):
        return False
    return Status(row["status"]) not in RETRYABLE


def is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a record holds an answer: none that was cut or withheld in part."""
    return row["hypothesis"] is not None and row["status"] not in (Status.ANSWER_CUT, Status.ANSWER_FILTERED)


def label_value(row: Mapping[str, Any]) -> float | None:
    """1.0 for a right answer, 0.0 for a wrong or abstained one, None where it could not be scored."""
    verdict = row.get("verdict")
    if row["status"] != Status.OK or not verdict or verdict["label"] == Label.UNSCORED:
        return None
    return 1.0 if verdict["label"] == Label.CORRECT else 0.0
