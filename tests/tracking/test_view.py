"""What MLflow's page shows of a run: names that tell runs apart, columns, params that compare."""

from __future__ import annotations

import json

import pytest
from sample_runs import summary

from memeval.tracking import payload
from memeval.tracking.view import VIEW_TAG, experiment_tags, run_name

COMMAND = "python -m memeval dataset=locomo system=rag "


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (COMMAND, "rag turn k=10 n=1540 keyword extractive"),
        (
            COMMAND + "system.rerank=none embedder.model=ada top_k=10",
            "rag rerank=none embedder.model=ada turn k=10 n=1540 keyword extractive",
        ),
        (COMMAND + "--config-dir a=b llm.timeout_s=9", "rag turn k=10 n=1540 keyword extractive"),
        ("an 'unclosed quote a=b", "rag turn k=10 n=1540 keyword extractive"),
        (COMMAND + f"judge.class={'x' * 300}", f"rag judge.class={'x' * 29}… turn k=10 n=1540"),
    ],
)
def test_a_name_begins_with_what_differs(command: str, name: str) -> None:
    assert run_name(summary("rag", command=command)).startswith(name)


def test_fields_that_change_no_result_are_tags() -> None:
    stages = {"system.retries": "runtime", "system.chunk_size": "prepare"}
    cell = summary(
        params={
            "llm.model": "m",
            "llm.timeout_s": 60.0,
            "llm.headers.api-key": "MY_KEY",
            "system.retries": 3,
            "system.chunk_size": 256,
            "prompt.file": "words.txt",
        },
        identity={"inputs": {"stages": stages}},
    )
    assert set(payload.params(cell)) == {"llm.model", "system.chunk_size", "prompt.file"}
    tags = payload.tags(cell, "")
    assert tags["memeval.runtime.llm.timeout_s"] == "60.0"
    assert tags["memeval.runtime.llm.headers.api-key"] == "MY_KEY"
    assert tags["memeval.runtime.system.retries"] == "3"


def test_rounded_figures_are_beside_the_exact_ones() -> None:
    figures = {"accuracy": 0.34567, "accuracy_ci95_low": 0.3, "accuracy_ci95_high": 0.4}
    cell = summary(metrics={**figures, "tokens/total": 1330666.0, "cost_usd/total": 0.0312})
    tags = payload.tags(cell, "")
    assert tags["memeval.rounded.accuracy"] == "34.6 % [30.0, 40.0]"
    assert tags["memeval.rounded.tokens"] == "1,330,666"
    assert tags["memeval.rounded.cost"] == "$0.0312"
    assert payload.metrics(cell.metrics)["accuracy"] == 0.34567
    assert payload.rounded_figures(summary(metrics={"accuracy": None})) == {}


def test_a_description_begins_with_the_cell_in_a_sentence() -> None:
    figures = {"accuracy": 0.345, "accuracy_ci95_low": 0.3, "accuracy_ci95_high": 0.4}
    cell = summary(metrics={**figures, "n_questions": 1540})
    assert payload.description(cell, "# name\n\n| table |\n", "mine").splitlines()[::2] == [
        "mine",
        "**34.5 %** of 1,540 questions are answered right (95 % interval 30.0, 40.0).",
        "| table |",
    ]
    without = summary(metrics={"accuracy": 0.345, "n_questions": 3}, valid=False)
    assert payload.description(without, "").endswith(
        "right. **Invalid: too few answers were scored.**"
    )
    assert payload.description(summary(metrics={}), "# name\ntext") == "text"


def test_the_view_has_the_sample_and_the_categories_and_keeps_columns_of_others() -> None:
    before = json.dumps({"selectedColumns": ["metrics.`accuracy/other`"]})
    view = json.loads(experiment_tags(summary("rag"), {VIEW_TAG: before})[VIEW_TAG])
    columns = view["selectedColumns"]
    assert columns[0] == "metrics.`accuracy/other`"
    assert {"metrics.`n_questions`", "metrics.`accuracy/temporal`"} < set(columns)
    assert "tags.`memeval.rounded.accuracy`" in columns
    assert "metrics.`accuracy/adversarial`" not in columns
    again = experiment_tags(summary("rag"), {VIEW_TAG: json.dumps(view)})
    assert json.loads(again[VIEW_TAG])["selectedColumns"] == columns
    assert VIEW_TAG in experiment_tags(summary("rag"), {VIEW_TAG: "damaged"})
