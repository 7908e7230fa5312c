"""cogcanvas against an endpoint that really extracts: artifacts by type, edges by rule, no reply
cut; and ablation runs, which all send different prompts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from doubles.endpoint import ScriptedEndpoint

import memeval
from memeval.config.grids import cells
from memeval.retrieval.dense import VECTORS_FILE
from memeval.retrieval.vectors import load_vectors
from memeval.systems.cogcanvas.artifacts import ARTIFACTS_FILE, KINDS, read_artifacts
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.settings import CogCanvasSettings

from .scripted_extractor import extract, pass_of

ROOT = Path(__file__).parents[2]
GRAPH_RULES = {
    "reference",
    "todo",
    "insight",
    "constraint",
    "person",
    "relationship",
    "event",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.setenv("MEMEVAL_PLOTS", "false")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    return tmp_path


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(extract) as served:
        yield served


def play(endpoint: ScriptedEndpoint, *words: str) -> memeval.Run:
    return memeval.run(
        *words,
        "dataset.limit_cases=1",
        "tracking=none",
        "llm=openai",
        "llm.model=scripted",
        f"llm.base_url={endpoint.base_url}",
        "llm.max_tokens=2048",
        "judge=keyword",
        progress=False,
    )


def canvases(home: Path) -> Iterator[tuple[Counter[str], Counter[str], dict[str, int]]]:
    """For each memory: artifacts by type, edges by rule, and the counters of the extraction."""
    for path in (home / "data" / "prepared").rglob(ARTIFACTS_FILE):
        artifacts, counts = read_artifacts(path.parent)
        vectors = load_vectors(path.parent / VECTORS_FILE, len(artifacts), "artifacts")
        edges = Canvas(artifacts, vectors, CogCanvasSettings()).edges_by_rule()
        yield Counter(artifact.kind for artifact in artifacts), edges, counts


def check(endpoint: ScriptedEndpoint, home: Path) -> tuple[Counter[str], Counter[str]]:
    ((kinds, edges, counts),) = canvases(home)
    assert set(edges) <= GRAPH_RULES
    assert counts.get("cut", 0) == counts.get("unreadable", 0) == counts.get("dropped", 0) == 0
    readings = Counter(pass_of(body) for _, body in endpoint.requests)
    assert counts["calls"] == readings[1] + readings[2]
    assert readings[1] == readings[2] > 0
    return kinds, edges


@pytest.mark.slow
def test_demo_set_yields_the_expected_artifacts_and_edges(
    endpoint: ScriptedEndpoint, home: Path
) -> None:
    run = play(
        endpoint,
        "system=cogcanvas",
        "dataset=demo",
        "dataset.limit_cases=3",
        "dataset.limit_questions=3",
    )
    assert run.metrics["coverage"] == 1.0
    kinds, edges = check(endpoint, home)
    assert kinds == {
        "key_fact": 86,
        "event": 21,
        "person_attribute": 15,
        "todo": 3,
        "decision": 3,
        "insight": 2,
        "relationship": 1,
    }
    assert edges == {
        "person": 163,
        "event": 30,
        "constraint": 6,
        "reference": 5,
        "relationship": 1,
    }


@pytest.mark.slow
@pytest.mark.real_data
def test_locomo_yields_the_expected_artifacts_and_edges(
    endpoint: ScriptedEndpoint, home: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_DATA_DIR", str(data_dir))
    run = play(
        endpoint,
        "system=cogcanvas",
        "dataset=locomo",
        "granularity=round",
        "dataset.limit_cases=3",
        "dataset.limit_questions=3",
    )
    assert run.metrics["coverage"] == 1.0
    kinds, edges = check(endpoint, home)
    assert set(kinds) == set(KINDS)
    assert kinds == {
        "key_fact": 439,
        "person_attribute": 58,
        "insight": 38,
        "event": 37,
        "relationship": 9,
        "decision": 8,
        "todo": 6,
        "reminder": 1,
    }
    # Cosines near the threshold may fall on either side on another machine.
    assert edges.pop("reference") == pytest.approx(1128, rel=0.01)
    assert edges == {
        "person": 991,
        "relationship": 198,
        "event": 87,
        "constraint": 16,
        "insight": 2,
    }


def systems_of(sweep: str) -> list[str]:
    params = yaml.safe_load((ROOT / "sweeps" / f"{sweep}.yaml").read_text(encoding="utf-8"))
    return [
        dict(word.split("=", 1) for word in cell)["system"]
        for cell in cells(tuple(params["grids"]))
    ]


def test_both_sweeps_differ_only_in_compression_turn() -> None:
    rolling, middle = (
        yaml.safe_load((ROOT / "sweeps" / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("cogcanvas_ablation", "cogcanvas_ablation_middle")
    )
    assert rolling["defaults"] == [
        {"override /granularity": "round"},
        {"override /compression_turn": "rolling"},
        {"override /top_k": "15"},
    ]
    assert {"override /compression_turn": "middle"} in middle["defaults"]
    assert (rolling["hydra"], rolling["grids"]) == (middle["hydra"], middle["grids"])
    assert rolling["retain_recent"] == 5


@pytest.mark.parametrize("sweep", ["cogcanvas_ablation", "cogcanvas_ablation_middle"])
@pytest.mark.slow
def test_all_cells_of_an_ablation_send_different_prompts(
    endpoint: ScriptedEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: str
) -> None:
    sent: dict[str, list[str]] = {}
    for system in systems_of(sweep):
        # A separate home, so that nothing is reused from another cell's cache or memory.
        monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path / system))
        before = len(endpoint.requests)
        play(
            endpoint,
            f"+sweep={sweep}",
            f"system={system}",
            "dataset=demo",
            "dataset.limit_questions=8",
        )
        requests = endpoint.requests[before:]
        sent[system] = sorted(json.dumps(body["messages"]) for _, body in requests)

    assert all(sent.values())
    alike = [pair for pair in combinations(sent, 2) if sent[pair[0]] == sent[pair[1]]]
    assert alike == []
