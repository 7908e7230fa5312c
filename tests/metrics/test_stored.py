"""What a memory stored of a conversation, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from memeval.metrics.stored import stored_measures
from memeval.pipeline.execute.memory import count_items
from memeval.pipeline.measure.figures import measure_cell, measure_repeat
from memeval.pipeline.measure.records import Ingest
from memeval.records import EvalCase, Session, Turn
from memeval.results.rows import IngestRow, StoredItems
from memeval.statistics.means import scored_mean

SAID = ["We went on Monday", "We saw a heron", "We went home", "We slept and we slept"]


def conversation() -> EvalCase:
    turns = tuple(Turn(f"t{number}", "Ines", text, None) for number, text in enumerate(SAID))
    return EvalCase("c", (Session("s", None, turns),), ())


def item(text: Any, *turn_ids: str) -> dict[str, Any]:
    return {"kind": "fact", "text": text, "turn_ids": list(turn_ids)}


def test_items_are_counted() -> None:
    items = [
        item("They saw a heron.", "t1"),
        item("they  saw a HERON.", "t1", "t2"),
        item("We went", "t3"),
        item("Nothing of the sort", "elsewhere"),
        {"kind": "note"},
    ]
    assert count_items(items, conversation()) == StoredItems(
        turns=4,
        items=5,
        # The second item repeats the first.
        repeated=1,
        # `went` is in two of four turns; no turn has `sort`; a note without text states nothing.
        without_fact=3,
        placed=3,
        late=2,
    )


@pytest.mark.parametrize("turn_ids", [None, "t1", [["t1"]], 3])
def test_item_with_malformed_turn_ids_is_counted_but_not_placed(turn_ids: Any) -> None:
    counted = count_items([{"text": "a heron", "turn_ids": turn_ids}], conversation())
    assert (counted.items, counted.placed) == (1, 0)


def test_shares_are_over_all_items_and_unmeasured_ones_are_left_out() -> None:
    first = StoredItems(turns=10, items=8, repeated=4, without_fact=0, placed=0, late=0)
    second = StoredItems(turns=30, items=2, repeated=0, without_fact=0, placed=0, late=0)
    measured = stored_measures([("a", 0, first), ("b", 0, second)])
    assert measured["stored_items_per_turn"] == 0.25
    assert measured["stored_repeated"] == pytest.approx(0.4)
    low, high = measured["stored_repeated_ci95_low"], measured["stored_repeated_ci95_high"]
    assert low is not None and high is not None and low < 0.4 < high
    assert measured["stored_without_fact"] == 0.0
    assert "stored_growth" not in measured

    nothing = StoredItems(turns=10, items=0, repeated=0, without_fact=0, placed=0, late=0)
    assert stored_measures([("a", 0, nothing)]) == {"stored_items_per_turn": 0.0}
    assert stored_measures([]) == {}
    # For a case with checkpoints, the memory with the most turns counts, in whichever order they
    # come.
    for rows in ([("a", 0, second), ("a", 0, first)], [("a", 0, first), ("a", 0, second)]):
        assert stored_measures(rows)["stored_items_per_turn"] == pytest.approx(2 / 30)


def test_interval_over_repeats_is_that_of_all_their_items() -> None:
    counts = {("a", 0): (10, 1), ("a", 1): (30, 9), ("b", 0): (20, 6), ("b", 1): (20, 10)}
    ingests = []
    for (case, seed), (items, repeated) in counts.items():
        stored = StoredItems(
            turns=40, items=items, repeated=repeated, without_fact=0, placed=0, late=0
        )
        row = IngestRow(id=f"ingest {case}", chunks=40, compressions=0, stored=stored)
        ingests.append(Ingest(case, seed, row, ()))

    repeats = [measure_repeat([], ingests[::2]), measure_repeat([], ingests[1::2])]
    measured = measure_cell(repeats, [], ingests=ingests)
    expected = scored_mean([10 / 40, 16 / 40], ["a", "b"], [40.0, 40.0])
    assert expected is not None
    assert measured["stored_repeated"] == expected.mean
    assert measured["stored_repeated_ci95_low"] == expected.low
    assert measured["stored_repeated_ci95_high"] == expected.high
    assert measured["stored_items_per_turn"] == 0.5


def test_ingest_row_keeps_the_stored_items() -> None:
    stored = StoredItems(turns=4, items=5, repeated=1, without_fact=3, placed=3, late=2)
    row = IngestRow(id="ingest c", chunks=4, compressions=0, stored=stored)
    assert IngestRow.from_json(row.to_json()) == row
    assert "stored" not in IngestRow(id="ingest c", chunks=4, compressions=0).to_json()
