"""Run folders as the pipeline leaves them, with figures made up from a seed, for tests and
benchmarks.
"""

from __future__ import annotations

import json
import random
import statistics
from dataclasses import replace
from pathlib import Path

from memeval.results import (
    CONFIG_FILE,
    RECORDS_FILE,
    CategoryResult,
    Note,
    NoteKind,
    RepeatResult,
    RunSummary,
)

LOCOMO = (
    ("1", "multi_hop", 282),
    ("2", "temporal", 321),
    ("3", "open_domain", 96),
    ("4", "single_hop", 841),
    ("5", "adversarial", 446),
)
CONTEXT = {
    "no_memory": 0,
    "bm25": 640,
    "rag": 910,
    "mem0": 410,
    "dense": 655,
    "long_context": 16300,
    "oracle": 85,
}
SKILL = {
    "no_memory": 0.04,
    "bm25": 0.31,
    "rag": 0.345,
    "mem0": 0.28,
    "dense": 0.29,
    "long_context": 0.37,
    "oracle": 0.62,
}


def summary(
    system: str = "bm25",
    top_k: int = 10,
    repeats: int = 1,
    run_key: str | None = None,
    **changes: object,
) -> RunSummary:
    """A finished run on LoCoMo."""
    rng = random.Random(f"{system}{top_k}")
    skill = SKILL[system] * (0.8 + 0.02 * top_k)
    name = f"{system} turn k={top_k} never keyword short extractive"
    accuracies = [skill + rng.uniform(-0.01, 0.01) for _ in range(repeats)]
    std = statistics.stdev(accuracies) if repeats > 1 else None
    categories = tuple(category(rng, skill, repeats, row) for row in LOCOMO)
    metrics: dict[str, float | None] = {
        "accuracy": statistics.mean(accuracies),
        "accuracy_std": std,
        "accuracy_ci95_low": skill - 0.028,
        "accuracy_ci95_high": skill + 0.031,
        "token_f1": skill * 0.8,
        "mem0_f1": skill * 0.7,
        "bleu1": skill * 0.5,
        "n_questions": 1540,
        "coverage": 1.0,
        "context_tokens": CONTEXT[system] * top_k / 10,
        "tokens/ingest/prompt": 0,
        "tokens/answer/prompt": 1_310_455,
        "tokens/answer/completion": 20_211,
        "tokens/answer/cached": 0,
        "tokens/total": 1_330_666,
        "cost_usd/answer": None,
        "cost_usd/total": None,
        "cost_usd_uncached/total": None,
        "latency_ms/answer/p50": 1.9,
        "latency_ms/answer/p95": 4.2,
        "duration_s": 17.3,
        "retry_wait_s": 0.0,
        "abstention_rate": 0.081,
        "abstention_rate/unanswerable": 0.233,
        "design_effect": 1.9,
        **{f"accuracy/{row.name}": row.accuracy for row in categories},
        **{f"token_f1/{row.name}": row.token_f1 for row in categories},
    }
    if system not in {"no_memory", "long_context"}:
        found = {1: 0.24, 5: 0.45, 10: 0.53, 20: 0.6}
        metrics |= {f"recall_at_{k}": value for k, value in found.items()} | {
            "mrr": 0.41,
            "ndcg_at_10": 0.4,
        }
        metrics |= {f"session_recall_at_{k}": value + 0.35 for k, value in found.items()}
    made = RunSummary(
        run_key=run_key or f"{system}-{top_k}-{repeats}",
        name=name,
        dataset="locomo",
        sweep=None,
        command=f"python -m memeval system={system} top_k={top_k} dataset=locomo",
        params={
            "dataset.name": "locomo",
            "dataset.labels": "original",
            "system": system,
            "system.kind": f"memeval.systems.{system}",
            "granularity.name": "turn",
            "top_k": top_k,
            "compression_turn": None,
            "judge.name": "keyword",
            "prompt.name": "short",
            "llm.name": "extractive",
            "num_runs": repeats,
            "min_coverage": 0.99,
        },
        tags={
            "protocol": "locomo-keyword-v1",
            "deterministic": "true",
            "git_commit": "0fec11d",
            "data_sha256": "79fa87e9",
        },
        metrics=metrics,
        categories=categories,
        repeats=tuple(
            RepeatResult(index, 42 + index, {"accuracy": value, "coverage": 1.0})
            for index, value in enumerate(accuracies)
        ),
        notes=(
            Note(NoteKind.REMARK, "The reader is extractive and offline, not a language model."),
        ),
        valid=True,
        started_at="2026-11-21T20:00:00+01:00",
        finished_at="2026-11-21T20:00:17.300+01:00",
        statuses={"ok": 1986 * repeats},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def category(
    rng: random.Random, skill: float, repeats: int, row: tuple[str, str, int]
) -> CategoryResult:
    key, name, n = row
    accuracy = min(0.97, max(0.0, skill * rng.uniform(0.6, 1.3)))
    half = 1.4 / n**0.5
    std = 0.004 if repeats > 1 else None
    low, high = max(0.0, accuracy - half), min(1.0, accuracy + half)
    return CategoryResult(
        key, name, n, n * repeats, n * repeats, key != "5", accuracy, std, low, high, accuracy * 0.8
    )


def write_folder(runs: Path, cell: RunSummary, records: int = 40) -> Path:
    """Writes the run's folder below `runs` and returns it."""
    folder = runs / cell.run_key
    folder.mkdir(parents=True, exist_ok=True)
    cell.write(folder)
    (folder / CONFIG_FILE).write_text("system:\n  name: bm25\n", encoding="utf-8")
    rows = (
        record(index, repeat) for repeat in range(len(cell.repeats)) for index in range(records)
    )
    (folder / RECORDS_FILE).write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    return folder


def record(index: int, repeat: int) -> dict[str, object]:
    failed = index % 20 == 19
    key, name, _ = LOCOMO[index % 5]
    return {
        "question_id": f"conv-{26 + index // 200}/q{index % 200}",
        "case_id": f"conv-{26 + index // 200}",
        "category": key,
        "category_name": name,
        "repeat": repeat,
        "seed": repeat,
        "question": f"When did Caroline go to the LGBTQ support group for the {index}th time?",
        "gold": ["7 May 2023"],
        "hypothesis": None if failed else "7 May 2023 — über\u2028all",
        "status": "answer_failed" if failed else "ok",
        "verdict": None
        if failed
        else {"judge": "keyword", "label": "correct", "score": 1.0, "reason": "exact"},
        "metrics": {} if failed else {"token_f1": 0.8, "recall_at_10": 1.0, "bleu1": None},
        "retrieved": None if failed else [{"turn_ids": [f"D{turn}:3"]} for turn in range(10)],
        "evidence": ["D1:3"],
        "evidence_ranks": [1],
        "context_tokens": 640,
        "usage": [],
        "times": {"answer_ms": 1.9},
        **({"error": "ReadTimeout: no reply | after 60 s"} if failed else {}),
    }
