"""The network-operations data sets on the real command line, offline and with models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import memeval
from doubles.endpoint import ScriptedEndpoint

QUIET = ("tracking=none", "plots=false")
RUNBOOKS = ("dataset=demo_incidents", "dataset.runbooks=true", "dataset.categories=[HA,RU]")


def metrics(home: Path, *words: str) -> dict[str, Any]:
    """The metrics of one run in its own home."""
    home.mkdir(parents=True)
    done = memeval(home, *words, *QUIET)
    assert done.status == 0, done.err
    (path,) = home.glob("outputs/runs/*/run.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["metrics"]
    return found


def test_netops_demo_runs_offline(tmp_path: Path) -> None:
    oracle, bm25, nothing = (
        metrics(tmp_path / system, "dataset=demo_netops", f"system={system}")
        for system in ("oracle", "bm25", "no_memory")
    )
    assert oracle["accuracy"] >= 0.9 > bm25["accuracy"] > nothing["accuracy"]
    assert oracle["recall_at_10"] == 1.0 and bm25["recall_at_10"] > 0.9
    assert nothing["accuracy/unknown"] == oracle["accuracy/choice"] == 1.0
    assert {name for name in oracle if name.startswith("n_questions/")} == {
        f"n_questions/{name}" for name in ("alert", "choice", "handling", "unknown", "update")
    }


@pytest.mark.slow
def test_runbooks_of_incidents_run_offline(tmp_path: Path) -> None:
    oracle, nothing = (
        metrics(tmp_path / system, *RUNBOOKS, f"system={system}")
        for system in ("oracle", "no_memory")
    )
    assert oracle["recall_at_10"] == 1.0
    # The offline reader names component and time when asked for the latest handling.
    assert oracle["accuracy/handling"] >= 0.7 and oracle["accuracy/runbook_update"] > 0.9
    assert nothing["accuracy"] == 0.0


@pytest.mark.slow
def test_opseval_runbook_framing_is_another_run_with_recall(tmp_path: Path) -> None:
    for framing in ("runbook", "knowledge"):
        words = ("dataset=demo_opseval", f"dataset.framing={framing}", "system=bm25")
        assert memeval(tmp_path, *words, *QUIET).status == 0

    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("outputs/runs/*/run.json")
    ]
    assert len(runs) == 2
    recalls = {run["params"]["dataset.framing"]: run["metrics"].get("recall_at_10") for run in runs}
    assert recalls == {"runbook": 1.0, "knowledge": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("dataset=demo_netops",),
        RUNBOOKS,
        ("dataset=demo_opseval", "dataset.framing=runbook"),
    ],
    ids=["netops", "incidents", "opseval"],
)
def test_netops_data_sets_run_with_models(tmp_path: Path, words: tuple[str, ...]) -> None:
    with ScriptedEndpoint() as endpoint:
        done = memeval(
            tmp_path,
            *words,
            "system=rag",
            "llm=openai",
            "embedder=openai",
            "judge=llm",
            *QUIET,
            OPENAI_BASE_URL=endpoint.base_url,
            OPENAI_API_KEY="scripted",
        )

    assert done.status == 0, done.err
    assert endpoint.count("/chat/completions") > 0 and endpoint.count("/embeddings") > 0
    (path,) = tmp_path.glob("outputs/runs/*/run.json")
    found = json.loads(path.read_text(encoding="utf-8"))["metrics"]
    assert found["coverage"] == 1.0


@pytest.mark.slow
def test_a_faulty_file_is_refused_with_its_mistakes(tmp_path: Path) -> None:
    chunk = {"id": "rb", "text": "Runbook: swap the cable."}
    question = {"id": "q7", "question": "What to do?", "answer": "swap", "evidence": ["c12"]}
    cases = [
        {"case_id": f"net{number}", "chunks": [chunk], "questions": [question]}
        for number in range(2)
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(cases), encoding="utf-8")

    done = memeval(tmp_path, "dataset=netops", f"dataset.path={path}", *QUIET)
    lines = done.err.splitlines()
    assert done.status == 2 and "Traceback" not in done.err
    assert lines[0] == (
        f"memeval: {path} has 2 mistakes. case 1 'net0', question 'q7': "
        "evidence 'c12' is not a chunk of the case."
    )
    assert "case 2 'net1', question 'q7': evidence 'c12' is not a chunk" in lines[1]
    assert not (tmp_path / "outputs" / "runs").exists()

    question["evidence"] = ["rb"]
    path.write_text(json.dumps(cases), encoding="utf-8")
    assert memeval(tmp_path, "dataset=netops", f"dataset.path={path}", *QUIET).status == 0
