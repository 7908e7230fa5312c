"""An extraction with unreadable replies is paid for once, not again by each cell that shares it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import SMALL, Command, records
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply


def unreadable(body: Mapping[str, Any]) -> str:
    """Prose in place of an extraction."""
    asked = " ".join(str(message["content"]) for message in body["messages"])
    return "I would rather not." if "the memory of an agent" in asked else scripted_reply(body)


def sweep(endpoint: ScriptedEndpoint, top_k: str, *more: str) -> tuple[str, ...]:
    return (
        "-m",
        "system=cogcanvas",
        *SMALL,
        f"top_k={top_k}",
        "llm=openai",
        "judge=keyword",
        f"llm.base_url={endpoint.base_url}",
        *more,
    )


@pytest.mark.slow
def test_cells_that_share_a_failed_extraction_pay_for_it_once(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(unreadable) as endpoint:
        memeval(*sweep(endpoint, "1", "stop_after_failures=null"), check=False, home=tmp_path / "1")
        alone = endpoint.count()
        memeval(*sweep(endpoint, "1,2,3", "stop_after_failures=null"), check=False)
        assert endpoint.count() == 2 * alone > 0

    rows = records(tmp_path)
    assert {row["status"] for row in rows} == {"ingest_failed"}
    assert all("max_ingest_loss" in row["error"] for row in rows)


def test_unreadable_replies_in_a_row_stop_the_run(memeval: Command) -> None:
    with ScriptedEndpoint(unreadable) as endpoint:
        done = memeval(
            *sweep(endpoint, "1", "stop_after_failures=3", "llm.max_concurrency=1"), check=False
        )
        # One more request may have been sent meanwhile.
        assert 3 <= endpoint.count() <= 4

    assert done.returncode == 1
    assert "the last 3 replies of llm.ingest could not be read" in done.stderr
    assert "stop_after_failures=3" in done.stderr and "Traceback" not in done.stderr
    # No row of the memory exists, but the replies were paid for.
    said = re.search(r"; (\d+) calls billed to these runs, 0 more from the cache; \$", done.stderr)
    assert said is not None, done.stderr
    assert 3 <= int(said[1]) <= endpoint.count()
