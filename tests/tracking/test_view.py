"""How MLflow's UI shows a run: distinguishing names, columns, and params that can be compared."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from mlflow.utils.validation import MAX_EXPERIMENT_TAG_VAL_LENGTH
from sample_runs import summary

from memeval.tracking import payload
from memeval.tracking.sweep_end import short_names
from memeval.tracking.view import LONGEST_NAME, VIEW_TAG, experiment_tags, run_name, view_tag

COMMAND = "python -m memeval dataset=locomo system=rag "


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (COMMAND, "rag turn k=10 extractive keyword n=1540"),
        (
            COMMAND + "system.rerank=none embedder.model=ada top_k=10",
            "rag rerank=none embedder.model=ada turn",
        ),
        (COMMAND + "--config-dir a=b llm.timeout_s=9", "rag turn k=10 extractive keyword n=1540"),
        ("an 'unclosed quote a=b", "rag turn k=10 extractive keyword n=1540"),
        (COMMAND + f"judge.class={'x' * 300}", "rag"),
    ],
)
def test_run_name_begins_with_what_differs_and_fits_the_table(command: str, name: str) -> None:
    assert run_name(summary("rag", command=command)) == name


def test_run_name_never_contains_none() -> None:
    cell = summary("rag", params={"system": "rag", "granularity": None, "top_k": None})
    assert "None" not in run_name(cell)
    assert run_name(summary("rag", params={}, name="x" * 50)) == "x" * 39 + "…"


def test_names_of_a_sweep_are_distinct_and_fit_the_table() -> None:
    prefix = "rag model=meta-llama/Meta-Llama-3.1-Instruct-Turbo-"
    names = short_names([f"{prefix}{size}" for size in ("8B", "70B", "405B")])
    assert len(set(names)) == 3 and max(map(len, names)) <= LONGEST_NAME
    assert [name[:3] for name in names] == ["rag"] * 3
    assert [name.rpartition("-")[2] for name in names] == ["8B", "70B", "405B"]
    assert short_names(["a" * 50] * 2) == ["a" * 19 + "…" + "a" * 20, "a" * 37 + " #2"]


def test_params_of_choices_sort_before_settings_that_follow_from_them() -> None:
    # MLflow's compare page begins with the first three names that differ.
    settings = ["system.k1", "top_k", "system", "llm.model", "llm.judge.model", "embedder.width"]
    assert sorted(map(payload.param_name, settings)) == [
        "llm.model",
        "system",
        "top_k",
        "with/embedder.width",
        "with/llm.judge.model",
        "with/system.k1",
    ]


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
    assert set(payload.params(cell)) == {
        "llm.model",
        "with/system.chunk_size",
        "with/prompt.file",
    }
    tags = payload.tags(cell, "")
    assert tags["memeval.runtime.llm.timeout_s"] == "60.0"
    assert tags["memeval.runtime.llm.headers.api-key"] == "MY_KEY"
    assert tags["memeval.runtime.system.retries"] == "3"


def test_rounded_figures_are_tags_next_to_exact_metrics() -> None:
    figures = {"accuracy": 0.34567, "accuracy_ci95_low": 0.3, "accuracy_ci95_high": 0.42}
    costs = {"cost_usd/total": 0.0, "cost_usd_uncached/total": 0.67, "context_tokens": 1330.6}
    times = {
        "latency_ms/retrieval/p50": 0.0412,
        "latency_ms/retrieval/p95": 12.34,
        "latency_ms/answer/p50": 1234.5,
    }
    cell = summary(metrics={**figures, **costs, **times, "recall_at_10": 0.5, "recall_at_5": None})
    tags = payload.tags(cell, "")
    shown = {name.removeprefix("rounded."): tags[name] for name in tags if "rounded." in name}
    assert {name for name in shown if name not in {row.name for row in cell.categories}} == {
        "accuracy",
        "recall_10",
        "cost",
        "retrieval p50",
        "retrieval p95",
        "answer p50",
        "context",
    }
    assert shown["accuracy"] == "34.6 [30.0, 42.0]" and shown["recall_10"] == "50.0"
    assert shown["cost"] == "$0.67", "of a fresh run: what was billed depends on what ran before"
    assert (shown["retrieval p50"], shown["answer p50"]) == ("0.0412 ms", "1.23 s")
    assert payload.metrics(cell.metrics)["accuracy"] == 0.34567
    assert payload.rounded_figures(summary(metrics={}, categories=())) == {}


def test_description_begins_with_the_result_in_a_sentence() -> None:
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
    half = [replace(row, scored=row.asked - 1) for row in cell.categories]
    asked = sum(row.asked for row in half if row.headline)
    unscored = asked - sum(row.headline for row in half)
    partly = payload.description(replace(cell, categories=tuple(half)), "")
    assert f"of the scored answers ({unscored:,} of {asked:,}) are right" in partly
    assert payload.description(summary(metrics={}), "# name\ntext") == "text"


def columns_of(tags: dict[str, str]) -> list[str]:
    view = json.loads(tags[VIEW_TAG])
    state = json.loads(view["state"])
    assert view["name"] == "memeval", "MLflow's menu of views lists it"
    assert set(state["columnWidths"]) == set(state["columnOrder"])
    columns: list[str] = state["selectedColumns"]
    return columns


def test_view_has_settings_first_and_only_rounded_figures() -> None:
    columns = columns_of(experiment_tags(summary("rag"), {}))
    assert columns[:3] == ["params.`system`", "params.`top_k`", "tags.`rounded.accuracy`"]
    assert "tags.`rounded.temporal`" in columns and "tags.`rounded.adversarial`" not in columns
    assert not [column for column in columns if column.startswith("metrics.")]


def test_a_view_keeps_the_columns_of_other_runs_and_of_the_last_comparison() -> None:
    before = view_tag(["params.`seed`"], ["tags.`rounded.other`"], created_ms=0)
    first = experiment_tags(summary("rag"), {VIEW_TAG: before})
    columns = columns_of(first)
    assert columns[:3] == ["params.`seed`", "tags.`rounded.other`", "tags.`rounded.accuracy`"]
    assert columns_of(experiment_tags(summary("rag"), first)) == columns
    assert columns_of(experiment_tags(summary("rag"), {VIEW_TAG: "damaged"}))


@pytest.mark.parametrize("name", ["category-{:03}", "種-{:03}"])
def test_a_view_of_hundreds_of_categories_fits_an_experiments_tag(name: str) -> None:
    figures = [f"tags.`rounded.{name.format(number)}`" for number in range(300)]
    view = view_tag(["params.`system`"], figures, created_ms=0)
    assert len(view) <= MAX_EXPERIMENT_TAG_VAL_LENGTH
    columns = columns_of({VIEW_TAG: view})
    assert len(columns) > 10 and columns == ["params.`system`", *figures][: len(columns)]
