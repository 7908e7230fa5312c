"""mem0 with a model and an embedder at an endpoint: it extracts memories, and the cost of that is
counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply
from lone_runs import run_cell

from memeval.errors import UserError
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.opening import open_cell
from memeval.report.flags import flags
from memeval.results import RunSummary
from memeval.runs.compose.config import compose_config

pytestmark = pytest.mark.usefixtures("home")

WIDTH = 48
SMALL = [
    "dataset=demo",
    "dataset.limit_cases=1",
    "dataset.limit_questions=2",
    "granularity=session",
    "tracking=none",
]


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(reply, width=WIDTH) as served:
        yield served


def is_extraction(body: Mapping[str, Any]) -> bool:
    return "## New Messages" in str(body["messages"][-1]["content"])


def reply(body: Mapping[str, Any]) -> str:
    """One memory per extraction, in a code fence with text around it, as models write it."""
    if not is_extraction(body):
        return scripted_reply(body)

    new = str(body["messages"][-1]["content"]).split("## New Messages\n")[1]
    words = " ".join(new.split()[:12])
    memories = {"memory": [{"id": "0", "text": f"It is known that {words}"}]}
    return f"Here you are:\n```json\n{json.dumps(memories)}\n```"


def at(endpoint: ScriptedEndpoint) -> list[str]:
    """A model and an embedder at the endpoint; the width of its vectors is not configured."""
    address = endpoint.base_url
    return [
        "llm=openai",
        "llm.model=scripted",
        f"llm.base_url={address}",
        "embedder=openai",
        "embedder.model=scripted",
        f"embedder.base_url={address}",
    ]


def opened(*words: str) -> Cell:
    return open_cell(compose_config([*SMALL, *words]), "")


def run(*words: str) -> RunSummary:
    cell = opened(*words)
    return run_cell(cell)


def extractions(endpoint: ScriptedEndpoint) -> int:
    return sum(
        is_extraction(body) for path, body in endpoint.requests if path.endswith("/completions")
    )


@pytest.mark.slow
def test_model_extracts_memories_with_vectors_of_unknown_width(
    endpoint: ScriptedEndpoint, home: Path
) -> None:
    summary = run("system=mem0", *at(endpoint))

    assert summary.metrics["coverage"] == 1.0
    assert summary.metrics["ingest_lost"] == 0.0
    assert summary.params["system.infer"] is True
    assert "verbatim" not in flags(summary)
    saved = json.loads(next(home.glob("data/prepared/*/*/*/memories.json")).read_text("utf-8"))
    texts = [row["payload"]["data"] for row in saved["memories"]]
    assert len(texts) == extractions(endpoint) > 1
    assert all(text.startswith("It is known that") for text in texts)


@pytest.mark.slow
def test_calls_of_mem0s_own_prompts_count_as_ingest(endpoint: ScriptedEndpoint) -> None:
    summary = run("system=mem0", *at(endpoint))

    own = [body for path, body in endpoint.requests if "chat" in path and is_extraction(body)]
    words = sum(len(message["content"].split()) for body in own for message in body["messages"])
    replied = sum(len(reply(body).split()) for body in own)
    metrics = summary.metrics
    assert metrics["calls/ingest"] == len(own) > 1
    assert metrics["tokens/ingest/prompt"] == words
    assert metrics["tokens/ingest/completion"] == replied
    assert metrics["tokens/embed/prompt"]
    assert metrics["latency_ms/ingest/p50"]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["mem0", "mem0_verbatim"])
def test_verbatim_memories_with_vectors_of_unknown_width_are_stored(
    endpoint: ScriptedEndpoint, system: str
) -> None:
    summary = run(f"system={system}", "system.infer=false", *at(endpoint))

    assert summary.metrics["coverage"] == 1.0
    assert extractions(endpoint) == 0
    assert "verbatim" in flags(summary)


def test_mem0_verbatim_does_not_infer_even_with_a_model(endpoint: ScriptedEndpoint) -> None:
    cell = opened("system=mem0_verbatim", *at(endpoint))

    assert cell.config.system["infer"] is False
    assert cell.source.flags == ("verbatim",)


def test_offline_mem0_stores_verbatim_and_says_so() -> None:
    summary = run("system=mem0")

    assert summary.params["system.infer"] is False
    assert "verbatim" in flags(summary)
    about = [note.text for note in summary.notes if "mem0" in note.text]
    assert about == [
        "mem0 search: by vectors; not installed: keywords (needs fastembed and its model "
        "Qdrant/bm25), entities (needs spaCy with en_core_web_sm) (2 of 2 answers)"
    ]


def test_infer_without_a_model_is_refused() -> None:
    with pytest.raises(UserError, match="system=mem0 needs a language model"):
        opened("system=mem0", "system.infer=true")


def test_cloud_mode_infers_without_a_model_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM0_API_KEY", "key")
    cell = opened("system=mem0", "system.mode=cloud")

    assert cell.config.system["infer"] is True
    assert cell.source.flags == ()


def test_a_graph_that_mem0_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"graph memory of mem0, but mem0ai [0-9.]+ does not"):
        opened("system=mem0", "system.graph_memory=true")
