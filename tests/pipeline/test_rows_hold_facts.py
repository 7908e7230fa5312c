"""Rows record what happened, against a real endpoint: what was retrieved, shown, sent and replied.

Figures are computed from them later.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import QUESTIONS, SMALL, Command, records, summary
from doubles.endpoint import ScriptedEndpoint

import memeval as api
from memeval.results.store import sealed_line

LONG_REPLY = "Let me think about it step by step.\n\nAnswer: 7 May 2023"


@pytest.fixture
def in_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    return tmp_path


def newest_run(home: Path) -> api.Run:
    runs = sorted((home / "outputs" / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return api.load_run(runs[-1])


def test_prompts_replies_and_chunks_are_recorded(memeval: Command, in_home: Path) -> None:
    with ScriptedEndpoint(reply=lambda body: LONG_REPLY) as endpoint:
        model = ("llm=openai", f"llm.base_url={endpoint.base_url}", "llm.model=m")
        memeval(*SMALL, *model, "judge=keyword", "system=bm25", "top_k=3")
        sent = [body["messages"] for _, body in endpoint.requests]
    run, rows = newest_run(in_home), records(in_home)

    prompts = [run.prompt(row["question_id"]) for row in rows]
    key = json.dumps
    assert sorted(map(key, prompts)) == sorted(map(key, sent)), "as it was sent, to the letter"
    for row in rows:
        context = run.context(row["question_id"])
        assert context and context in str(run.prompt(row["question_id"])[-1]["content"])
        assert row["hypothesis"] == "7 May 2023" and row["raw"] == LONG_REPLY
        assert row["finish_reason"] == "stop"
        assert [usage["calls"] for usage in row["usage"]] == [1]
        times = row["times"]
        assert times["answer_ms"] >= times["model_ms"] > 0
        assert times["retrieval_ms"] >= 0 and times["place_ms"] >= 0

    chunks = run.retrieved()
    assert len(chunks) == 3 * QUESTIONS and list(chunks["rank"][:3]) == [1, 2, 3]
    assert all(text.startswith("[") for text in chunks["text"]), "as it was shown, date included"
    assert chunks["score"].notna().all()
    for row in rows:
        shown = chunks[chunks["question_id"] == row["question_id"]]["text"]
        assert run.context(row["question_id"]) == "\n".join(shown)


@pytest.mark.slow
def test_retrieval_latency_excludes_the_model_call(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.2) as endpoint:
        memeval(
            *SMALL,
            "llm=openai",
            f"llm.base_url={endpoint.base_url}",
            "llm.model=m",
            "embedder=openai",
            f"embedder.base_url={endpoint.base_url}",
            "system=rag",
        )
    metrics = summary(tmp_path)["metrics"]
    assert metrics["latency_ms/answer/p50"] >= 200
    assert 0 <= metrics["latency_ms/retrieval/p50"] < metrics["latency_ms/answer/p50"] - 150


@pytest.mark.slow
def test_offline_run_records_the_context_but_no_prompt(memeval: Command, in_home: Path) -> None:
    memeval(*SMALL, "system=long_context")
    run, rows = newest_run(in_home), records(in_home)
    assert all("prompt" not in row for row in rows) and run.prompt(rows[0]["question_id"]) == []
    contexts = {run.context(row["question_id"]) for row in rows}
    assert None not in contexts and len(contexts) == 3, "one per conversation"
    (texts,) = (in_home / "outputs" / "answers").glob("*.texts.jsonl")
    stored = [json.loads(line) for line in texts.read_bytes().splitlines()]
    assert len({entry["id"] for entry in stored}) == len(stored), "each text is stored once"


@pytest.mark.slow
def test_answers_are_reused_if_their_texts_are_lost(memeval: Command, in_home: Path) -> None:
    memeval(*SMALL, "system=bm25")
    before = records(in_home)
    (texts,) = (in_home / "outputs" / "answers").glob("*.texts.jsonl")
    texts.write_bytes(texts.read_bytes()[:30])
    run = newest_run(in_home)
    assert run.retrieved()["text"].isna().all() and run.context(before[0]["question_id"]) is None
    again = memeval(*SMALL, "system=bm25", "judge=exact_match")
    assert f"answer {QUESTIONS}/{QUESTIONS} ({QUESTIONS} reused)" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        '{"id":"ID","status":"odd"}',
        '{"id":"ID","status":["ok"]}',
        '{"id":"ID","status":"ok","hypothesis":7}',
        '{"id":"ID","status":"ok","hypothesis":"x","ranking":["D1:1"]}',
        '{"id":"ID","status":"ok","hypothesis":"x","usage":[{"role":"king"}]}',
        '{"id":"ID","status":"ok","hypothesis":"x","ranking":[999999]}',
    ],
)
def test_invalid_row_is_skipped_and_made_again(
    memeval: Command, tmp_path: Path, content: str
) -> None:
    memeval(*SMALL, "system=bm25")
    before = records(tmp_path)
    (answers,) = (
        path
        for path in (tmp_path / "outputs" / "answers").glob("*.jsonl")
        if ".texts" not in path.name
    )
    row = json.loads(content.replace("ID", before[0]["question_id"]))
    header = json.loads(answers.read_bytes().splitlines()[0])["header"]
    for judge in ("judge=exact_match", "judge=token_f1"):
        with answers.open("ab") as file:
            file.write(sealed_line(header, row))
        again = memeval(*SMALL, "system=bm25", judge)
        assert "skipped" in again.stdout + again.stderr
    assert [row["hypothesis"] for row in records(tmp_path)] == [row["hypothesis"] for row in before]


def values(home: Path) -> dict[str, Any]:
    """The metrics that do not depend on the clock."""
    timed = ("latency_ms", "duration_s", "retry_wait_s")
    metrics = summary(home)["metrics"]
    return {name: value for name, value in metrics.items() if not name.startswith(timed)}


def test_another_evidence_recall_applies_to_finished_answers(
    memeval: Command, tmp_path: Path
) -> None:
    """Answer rows contain no metrics: they are computed from the run's gold."""
    with ScriptedEndpoint(reply=lambda body: "an answer") as endpoint:
        model = ("llm=openai", f"llm.base_url={endpoint.base_url}", "llm.model=m", "system=bm25")
        model = (*model, "judge=keyword")
        memeval(*SMALL, *model)
        calls, first = endpoint.count(), values(tmp_path)
        for path in (tmp_path / "outputs" / "answers").glob("*.jsonl"):
            assert b"token_f1" not in path.read_bytes()
        memeval(*SMALL, *model, "dataset.evidence_recall=official")
        assert endpoint.count() == calls
        assert values(tmp_path).keys() - first.keys() == {"official/evidence_recall"}
