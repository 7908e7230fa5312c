"""Measures of choosing among numbered choices, by position: is a choice taken for what it says, or
for where it stands?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memeval.metrics.statistics import mean
from memeval.records import Label

Record = Mapping[str, Any]
"""A row of `records.jsonl`."""

READ, UNREAD = "ok", "unparsed"
"""Statuses of replies that could be read, and that could not."""


def position_measures(records: Sequence[Record]) -> dict[str, float | None]:
    """The metrics of the section on choosing in docs/metrics.md."""
    replied = [
        record for record in records if record.get("choices") and record["status"] in (READ, UNREAD)
    ]
    pairs = read_pairs(replied)
    measures: dict[str, float | None] = {
        "accuracy_all_types": mean(
            float(_right(record)) for record in replied if record["status"] == READ
        ),
        "unparsed_rate": mean(float(record["status"] == UNREAD) for record in replied),
        "position_bias": position_bias(pairs),
        "random_accuracy": mean(1 / len(record["choices"]) for record in replied),
    }
    for position in sorted({right for right, _ in pairs}):
        there = (
            record
            for record in replied
            if record["status"] == READ and record["right_choices"] == [position]
        )
        measures[f"accuracy_at_position/{position}"] = mean(
            float(_right(record)) for record in there
        )
    return measures


def _right(record: Record) -> bool:
    """By the judge, which knows choices that are there twice."""
    return bool(record["verdict"]["label"] == Label.CORRECT)


def read_pairs(records: Iterable[Record]) -> list[tuple[int, int]]:
    """Position of the right choice and of the chosen one, of each question with one right choice
    whose reply could be read.
    """
    read = (
        record
        for record in records
        if record["status"] == READ and record.get("chosen") and len(record["right_choices"]) == 1
    )
    return [
        (record["right_choices"][0], record["chosen"][0])
        for record in read
        if len(record["chosen"]) == 1
    ]


def position_bias(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Total variation distance between how often each position is chosen and how often it is right,
    in [0, 1]; None without a reply.

    Half the sum over positions of |share chosen - share right|. 0: each position is chosen as often
    as it is right, which also holds where all is right. Always choosing one position gives about
    0.9 among ten. Chance alone makes it about 1.7 / sqrt(n) for n guesses among ten.
    """
    if not pairs:
        return None
    right, chosen = (Counter(column) for column in zip(*pairs, strict=True))
    return sum(abs(chosen[position] - right[position]) for position in right | chosen) / (
        2 * len(pairs)
    )
