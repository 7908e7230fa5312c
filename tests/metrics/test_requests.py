"""Requests to a memory count once, however often they are repeated because the memory cannot be
saved.
"""

from __future__ import annotations

from collections.abc import Sequence

from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.run_notes import notes_of_rows
from memeval.pipeline.measure.spending import measure_operations, requests_of
from memeval.records import IngestHealth, OperationKind, Role, Usage
from memeval.results import IngestRow
from memeval.results.rows import OperationDone

CALL = Usage(Role.INGEST, "m", "p", prompt_tokens=10, completion_tokens=1)


def forgotten(number: int | None, items: int | None = 2, ms: float = 4.0) -> OperationDone:
    return OperationDone(OperationKind.FORGET, items, ms, vanished=1, usage=(CALL,), number=number)


def ingest(name: str, done: Sequence[OperationDone], case: str = "c", seed: int = 0) -> Ingest:
    row = IngestRow(
        f"ingest {case}@{name}",
        1,
        0,
        health=IngestHealth(2, 1, 1),
        operations=tuple(done),
        notes={"service_usage": "unknown"},
    )
    return Ingest(case, seed, row, (CALL,) * len(done))


REBUILT = [
    # The order of the questions determines that of the rows.
    ingest("end", [forgotten(0, ms=9.0), forgotten(1, ms=9.0), forgotten(2)]),
    ingest("s4", [forgotten(0)]),
    ingest("s5", [forgotten(0, ms=9.0), forgotten(1)]),
]
CONTINUED = [
    ingest("s4", [forgotten(0)]),
    ingest("s5", [forgotten(1)]),
    ingest("end", [forgotten(2)]),
]


def test_rebuilt_memory_has_the_same_figures_as_a_continued_one() -> None:
    figures = measure_operations(REBUILT)
    assert figures == measure_operations(CONTINUED)
    assert figures == measure_operations(REBUILT[::-1])
    assert figures["operations/forget/items"] == 6
    assert figures["operations/forget/vanished"] == 3
    assert figures["operations/forget/tokens"] == 33
    assert figures["operations/forget/ms"] == 4.0


def test_requests_of_different_cases_and_seeds_count_separately() -> None:
    rows = [ingest("s4", [forgotten(0)], case, seed) for case in ("a", "b") for seed in (0, 1)]
    assert len(requests_of(rows)) == 4


def test_operations_without_numbers_are_all_counted() -> None:
    rows = [ingest("s4", [forgotten(None)]), ingest("s5", [forgotten(None), forgotten(None)])]
    assert measure_operations(rows)["operations/forget/items"] == 6


def test_notes_count_requests_and_conversations() -> None:
    rows = [
        ingest("s4", [forgotten(0, None)]),
        ingest("s5", [forgotten(0, None), forgotten(1, None)]),
        ingest("s4", [forgotten(0, None)], case="d"),
    ]
    notes_shown = [note.text for note in notes_of_rows([], rows, None)]
    assert "forget is not supported by this system: 3 of 3 requests" in notes_shown[1]
    assert "service usage: unknown (2 of 2 conversations, at ingest)" in notes_shown
    assert "in 2 of 2 conversations" in notes_shown[0]
