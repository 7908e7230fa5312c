"""LongMemEval on the command line, against recorded figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from command_line import completed, records, runs
from doubles.endpoint import ScriptedEndpoint

from memeval.datasets.longmemeval.judge import KINDS

pytestmark = pytest.mark.real_data

APART = "\n#####\n"
OWN = "".join(f"=== {kind} ===\n{{question}}{APART}{{answer}}{APART}{{gold}}\n" for kind in KINDS)
"""A template from which a scripted judge can read back question and answer."""


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_recorded_judgements_give_the_official_figures(tmp_path: Path, data_dir: Path) -> None:
    """All 500 answers of a real model with their recorded verdicts: per type, task-averaged,
    overall, abstention.
    """
    items = {
        row["question_id"]: row
        for row in json.loads(
            (data_dir / "longmemeval/longmemeval_oracle_evidence_turns_500.json").read_text(
                encoding="utf-8"
            )
        )
    }
    outputs = data_dir.parent / "outputs/longmemeval"
    judged = read(outputs / "llama31_8b_oracle.judged_by_gpt_4o_mini.jsonl")
    labels = {row["question_id"]: row["autoeval_label"]["label"] for row in judged}
    by_text = {
        (items[row["question_id"]]["question"].strip(), row["hypothesis"].strip()): labels[
            row["question_id"]
        ]
        for row in judged
    }
    assert len(labels) == len(by_text) == len(items) == 500

    def reply(body: Mapping[str, Any]) -> str:
        assert (body["temperature"], body["max_tokens"]) == (0.0, 10)
        question, answer, _ = body["messages"][-1]["content"].split(APART)
        return "Yes" if by_text[question.strip(), answer.strip()] else "No"

    template = tmp_path / "own.txt"
    template.write_text(OWN, encoding="utf-8")
    with ScriptedEndpoint(reply) as endpoint:
        completed(
            tmp_path,
            "evaluate",
            str(outputs / "llama31_8b_oracle.jsonl"),
            "dataset=longmemeval_oracle",
            f"dataset.path={data_dir / 'longmemeval/longmemeval_oracle_evidence_turns_500.json'}",
            "judge=longmemeval",
            f"judge.prompt_file={template}",
            "llm=openai",
            f"llm.base_url={endpoint.base_url}",
            "tracking=none",
        )
    (run,) = runs(tmp_path)
    types: dict[str, list[bool]] = {}
    for question_id, label in labels.items():
        types.setdefault(items[question_id]["question_type"], []).append(label)
    metrics = run["metrics"]
    assert run["statuses"] == {"ok": 500}
    assert {kind: metrics[f"accuracy/{kind}"] for kind in types} == pytest.approx(
        {kind: fmean(found) for kind, found in types.items()}
    )
    assert metrics["accuracy_macro"] == pytest.approx(
        fmean(fmean(found) for found in types.values())
    )
    assert metrics["accuracy"] == pytest.approx(fmean(labels.values()))
    abstaining = fmean(label for question_id, label in labels.items() if "_abs" in question_id)
    assert (
        metrics["abstention_accuracy"]
        == metrics["accuracy/ability/ABS"]
        == pytest.approx(abstaining)
    )
    assert metrics["knowledge_update_accuracy"] == pytest.approx(fmean(types["knowledge-update"]))
    scores = [
        label
        for question_id, label in labels.items()
        if "_abs" not in question_id and items[question_id]["question_type"] == "multi-session"
    ]
    assert metrics["accuracy/ability/MR"] == pytest.approx(fmean(scores))


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["session", "turn"])
@pytest.mark.parametrize(
    ("tokens", "ties", "wanted_as"),
    [
        ("space", "reversed", "official_split_space|official_argsort_reversed"),
        ("alnum", "position", "lower_alnum|stable_desc"),
    ],
)
def test_bm25_in_the_official_form_matches_the_reference(
    tmp_path: Path, data_dir: Path, granularity: str, tokens: str, ties: str, wanted_as: str
) -> None:
    completed(
        tmp_path,
        *(
            "system=bm25",
            "dataset=longmemeval_s",
            "dataset.roles=user",
            f"granularity={granularity}",
            "granularity.speakers=false",
        ),
        *(f"system.tokens={tokens}", f"system.ties={ties}", "tracking=none"),
        MEMEVAL_DATA_DIR=str(data_dir),
    )
    path = data_dir.parent / "reference/longmemeval_bm25_dev31.json"
    reference = json.loads(path.read_text(encoding="utf-8"))["per_question"][
        f"{granularity}|{wanted_as}"
    ]
    wanted = {
        row["question_id"]: named(row["metrics"]) for row in reference if row["skipped"] is None
    }
    found = {
        row["question_id"]: {k: v for k, v in row["metrics"].items() if k.startswith("official/")}
        for row in records(tmp_path)
    }
    assert {question_id for question_id, own in found.items() if own} == set(wanted) and len(
        wanted
    ) == 26
    for question_id, own in wanted.items():
        assert found[question_id] == pytest.approx(own, rel=0, abs=1e-12), question_id
    (run,) = runs(tmp_path)
    for name in next(iter(wanted.values())):
        assert run["metrics"][name] == pytest.approx(fmean(own[name] for own in wanted.values()))


def named(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {
        f"official/{of}/{name.replace('@', '_at_')}": value
        for of, found in metrics.items()
        for name, value in found.items()
    }
