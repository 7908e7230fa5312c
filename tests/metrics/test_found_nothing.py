"""A run in which no question got anything from its memory differs from a run that found little."""

from __future__ import annotations

from typing import Any

import pytest
from sample_records import record

from memeval.pipeline.measure.figures import found_nothing
from memeval.pipeline.measure.records import Ingest
from memeval.records import Status
from memeval.results import IngestRow
from memeval.results.rows import RetrievedChunk
from memeval.results.steps import AgentStep
from memeval.results.texts import reference

INGESTS = [Ingest("c", 0, IngestRow("ingest c", 3, 0), ())]
CHUNK = (RetrievedChunk(turn_ids=("t1",), text="ref"),)
BY_TOOLS = (AgentStep(text="It is Quill."),)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"retrieved": (), "context_tokens": 0}, True),
        ({"retrieved": (), "context_tokens": 7}, False),
        ({"retrieved": (), "context_tokens": 7, "steps": BY_TOOLS}, True),
        # The agent's window was shown before the first call.
        ({"retrieved": (), "context_tokens": 7, "steps": BY_TOOLS, "context": "ref"}, False),
        ({"retrieved": (), "steps": BY_TOOLS, "context": reference("")}, True),
        ({"retrieved": CHUNK, "context_tokens": 7, "context": "ref"}, False),
        # Chunks that name the right turns but have no text.
        ({"retrieved": CHUNK, "context_tokens": 0, "context": "ref"}, True),
        ({"retrieved": CHUNK, "context_tokens": 0, "status": Status.RETRIEVED}, True),
        # The system answered by itself, so what it read is unknown.
        ({"retrieved": CHUNK, "context_tokens": 0}, False),
        ({"retrieved": CHUNK, "context_tokens": 0, "steps": BY_TOOLS, "context": "ref"}, False),
        ({"retrieved": None, "context_tokens": 0, "context": "ref"}, False),
    ],
)
def test_found_nothing_depends_on_what_reached_the_reader(
    members: dict[str, Any], expected: bool
) -> None:
    row = record(**members)
    assert found_nothing([row], INGESTS) == expected
    assert not found_nothing([row, record(retrieved=CHUNK, context_tokens=7)], INGESTS)
