"""Sessions that occur in several histories are sent to the embedder once."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from command_line import completed, runs
from doubles.endpoint import ScriptedEndpoint

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build

pytestmark = pytest.mark.slow

HISTORIES = 9
"""Enough for sessions to recur: two do among the first twelve."""


@pytest.mark.parametrize(
    "model", [(), ("llm=openai", "judge=keyword")], ids=["a history at a time", "several at once"]
)
def test_each_text_is_embedded_once(tmp_path: Path, model: tuple[str, ...]) -> None:
    with ScriptedEndpoint(latency_s=0.02) as endpoint:
        words = (
            "dataset=demo_longmemeval",
            "system=dense",
            "embedder=openai",
            "granularity=session",
            "tracking=none",
            *model,
        )
        completed(tmp_path, *words, OPENAI_BASE_URL=endpoint.base_url, OPENAI_API_KEY="of the test")
        sent = Counter(
            text
            for path, body in endpoint.requests
            if path.endswith("/embeddings")
            for text in body["input"]
        )
    (run,) = runs(tmp_path)
    assert run["statuses"] == {"ok": 8}
    assert set(sent.values()) == {1}
    assert len([text for text in sent if "sourdough" in text]) == 1, (
        "a session that four histories share"
    )


@pytest.mark.real_data
def test_recurring_sessions_with_different_dates_are_embedded_once(
    tmp_path: Path, data_dir: Path
) -> None:
    cases = list(islice(build("longmemeval_s", data_dir).cases(), HISTORIES))
    units = [
        chunk.content for case in cases for chunk in chunks(case, GranularityConfig("session"))
    ]
    words = (
        "dataset=longmemeval_s",
        f"dataset.limit_cases={HISTORIES}",
        "system=dense",
        "embedder=openai",
        "tracking=none",
    )
    with ScriptedEndpoint() as endpoint:
        reach = {
            "OPENAI_BASE_URL": endpoint.base_url,
            "OPENAI_API_KEY": "of the test",
            "MEMEVAL_DATA_DIR": str(data_dir),
        }
        completed(tmp_path, *words, "granularity=session", **reach)
        sent = Counter(
            text
            for path, body in endpoint.requests
            if path.endswith("/embeddings")
            for text in body["input"]
        )
    assert set(sent.values()) == {1}
    assert len(units) > len(set(units)), "sessions recur among these histories"
    assert set(sent) == set(units) | {
        question.text for case in cases for question in case.questions
    }
