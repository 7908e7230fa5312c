"""Between records and the rows that are stored, and what a stored row may hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from hashlib import sha256
from math import isfinite
from typing import Any

from memeval.llm.metering import totals
from memeval.llm.reply import MOST_TOKENS
from memeval.records import Label, Role, Status, Usage, Verdict

_USAGE_FIELDS = tuple(field.name for field in fields(Usage))
_MOST_CALLS = 1_000_000

RETRYABLE = frozenset(
    {Status.INGEST_FAILED, Status.ANSWER_FAILED, Status.ANSWER_FILTERED, Status.JUDGE_FAILED}
)
"""Statuses that the same command tries again."""


def usage_rows(usages: Iterable[Usage]) -> list[dict[str, Any]]:
    """Usages added up, as JSON."""
    return [
        {name: getattr(usage, name) for name in _USAGE_FIELDS} | {"role": usage.role.value}
        for usage in totals(usages)
    ]


def usages_of(row: Mapping[str, Any], run_key: str) -> list[Usage]:
    """A stored row's usages; those of a row that another run paid for count as cached."""
    foreign = row.get("origin") != run_key
    usages = (Usage(**{**entry, "role": Role(entry["role"])}) for entry in row.get("usage", ()))
    return [replace(usage, cached=True) if foreign else usage for usage in usages]


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    row: dict[str, Any] = {
        "judge": verdict.judge,
        "label": verdict.label.value,
        "score": verdict.score,
        "reason": verdict.reason,
    }
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


def answer_digest(text: str) -> str:
    """What a verdict keeps of the answer that it is about."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_about(verdict: Mapping[str, Any] | None, answer: Mapping[str, Any]) -> bool:
    """Whether a verdict judges this very answer: an answer whose row was lost may be made anew, and read otherwise.

    Verdicts of version 0.1 do not tell, and are taken.
    """
    return verdict is not None and verdict.get("judged") in (
        None,
        answer_digest(answer.get("hypothesis") or ""),
    )


INGEST_PREFIX = "ingest "
"""Ids of the rows that tell what an ingest took begin so."""


def check_answer_row(row: Mapping[str, Any]) -> None:
    """Raises `ValueError` naming what a row of the answers' file, of a question or an ingest, holds that its readers can't take."""
    _need(_is_status(row.get("status")), "status")
    _need(_is_list_of(row.get("usage", []), _is_usage), "usage")
    _need(_is_mapping_of(row.get("times", {}), _is_number_or_none), "times")
    _need(isinstance(row.get("origin"), str | None), "origin")
    if row["id"].startswith(INGEST_PREFIX) and "chunks" in row:
        _need(_is_count(row["chunks"]) and _is_count(row.get("compressions")), "chunks")
        return

    _need(isinstance(row.get("notes", {}), dict), "notes")
    if row["status"] != Status.OK:
        _need(isinstance(row.get("error"), str), "error")
        _need(isinstance(row.get("hypothesis"), str | None), "hypothesis")
        return
    _need(isinstance(row.get("hypothesis"), str), "hypothesis")
    _need(isinstance(row.get("raw"), str | None), "raw")
    _need(_is_mapping_of(row.get("metrics"), _is_number_or_none), "metrics")
    _need(row.get("retrieved") is None or _is_list_of(row["retrieved"], _is_texts), "retrieved")
    for name in ("evidence_ranks", "session_evidence_ranks"):
        _need(row.get(name) is None or _is_list_of(row[name], _is_rank), name)
    _need(row.get("context_tokens") is None or _is_count(row["context_tokens"]), "context_tokens")


def check_verdict_row(row: Mapping[str, Any]) -> None:
    """Raises `ValueError` naming what a row of the verdicts' file holds that its readers can't take."""
    _need(_is_status(row.get("status")), "status")
    _need(_is_list_of(row.get("usage", []), _is_usage), "usage")
    _need(_is_mapping_of(row.get("times", {}), _is_number_or_none), "times")
    _need(isinstance(row.get("origin"), str | None), "origin")
    _need(isinstance(row.get("judged"), str | None), "judged")
    if row["status"] not in (Status.OK, Status.UNPARSED):
        _need(isinstance(row.get("error"), str), "error")
        return

    verdict = row.get("verdict")
    _need(isinstance(verdict, dict), "verdict")
    assert isinstance(verdict, dict)
    _need(isinstance(verdict.get("judge"), str), "verdict.judge")
    _need(
        isinstance(verdict.get("label"), str)
        and verdict["label"] in {label.value for label in Label},
        "verdict.label",
    )
    _need(
        (verdict["label"] == Label.UNSCORED) == (row["status"] == Status.UNPARSED), "verdict.label"
    )
    _need(_is_number_or_none(verdict.get("score")), "verdict.score")
    _need(isinstance(verdict.get("reason", ""), str), "verdict.reason")
    _need(
        verdict.get("chosen") is None or _is_list_of(verdict["chosen"], _is_count), "verdict.chosen"
    )
    _need(_is_list_of(verdict.get("votes", []), _is_label), "verdict.votes")
    _need(_is_count(verdict.get("tries", 0)), "verdict.tries")


def problem_of(
    row: Mapping[str, Any], check: Callable[[Mapping[str, Any]], None]
) -> ValueError | None:
    """What keeps a new row from being stored, so that it would be read again; None where nothing does."""
    try:
        json.dumps(row)
        check(row)
    except (ValueError, TypeError, RecursionError) as error:
        return ValueError(f"what came back can't be stored: {error}")
    return None


def _need(holds: bool, name: str) -> None:
    if not holds:
        raise ValueError(f"field '{name}' is missing, or is not what it should be")


def _is_status(value: Any) -> bool:
    return isinstance(value, str) and value in {status.value for status in Status}


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and value in {label.value for label in Label}


def _is_count(value: Any) -> bool:
    """A sum over the calls of one row: as many as there may be, none of them larger than a call can be."""
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value <= MOST_TOKENS * _MOST_CALLS
    )


def _is_rank(value: Any) -> bool:
    return value is None or (_is_count(value) and value > 0)


def _is_number_or_none(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_list_of(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(check, value))


def _is_mapping_of(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(check, value.values()))


def _is_usage(entry: Any) -> bool:
    if not isinstance(entry, dict) or not set(entry) <= {*_USAGE_FIELDS, "role"}:
        return False
    role, counts = (
        entry.get("role"),
        [entry.get(name) for name in ("prompt_tokens", "completion_tokens")],
    )
    sums = [entry.get("cached_tokens", 0), entry.get("calls", 1)]
    return (
        isinstance(role, str)
        and role in {known.value for known in Role}
        and all(isinstance(entry.get(name), str) for name in ("model", "provider"))
        and all(count is None or _is_count(count) for count in counts)
        and {"prompt_tokens", "completion_tokens"} <= set(entry)
        and all(map(_is_count, sums))
        and all(isinstance(entry.get(name, False), bool) for name in ("estimated", "cached"))
    )


def is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a record holds an answer: none that was cut or withheld in part."""
    return row["hypothesis"] is not None and row["status"] not in (
        Status.ANSWER_CUT,
        Status.ANSWER_FILTERED,
    )


def label_value(row: Mapping[str, Any]) -> float | None:
    """1.0 for a right answer, 0.0 for a wrong or abstained one, None where it could not be scored."""
    verdict = row.get("verdict")
    if row["status"] != Status.OK or not verdict or verdict["label"] == Label.UNSCORED:
        return None
    return 1.0 if verdict["label"] == Label.CORRECT else 0.0
