"""Run folders with chosen scores, as the pipeline leaves them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from memeval.records import Label, Status, Verdict
from memeval.results import RECORDS_FILE, CategoryResult, Record, RunSummary
from memeval.results.files import file_digest
from memeval.results.judge import JudgeIdentity
from memeval.results.run import Run

Scores = Mapping[str, Sequence[float | None]]
"""The scores of each question `<case>/<question>`, one per repeat; None if it was not scored."""

EXAMPLE = {
    "A": "1110 1101 1011 1111 0110",
    "B": "1010 0101 1001 1101 0100",
    "C": "1110 0101 1010 1111 1110",
}
"""The made-up example: 5 conversations of 4 questions."""


def example(name: str) -> Scores:
    """The scores of one run of the example."""
    scores = {}
    for case, digits in enumerate(EXAMPLE[name].split()):
        for question, digit in enumerate(digits):
            scores[f"conv-{case}/q{question}"] = [float(digit)]

    return scores


def in_conversations(right: Sequence[int], asked: int = 4) -> Scores:
    """The given number of right answers in each conversation, out of `asked` questions."""
    scores = {}
    for case, ones in enumerate(right):
        for question in range(asked):
            scores[f"conv-{case}/q{question}"] = [float(question < ones)]

    return scores


def made_record(question_id: str, score: float | None, repeat: int, **changes: Any) -> Record:
    """A record with the given score."""
    case_id, _, question = question_id.partition("/")
    category = 1 + int(question.removeprefix("q")) % 2
    label = Label.WRONG if score == 0 else Label.CORRECT
    members: dict[str, Any] = {
        "question_id": question_id,
        "case_id": case_id,
        "category": category,
        "category_name": ["multi_hop", "temporal"][category - 1],
        "repeat": repeat,
        "seed": repeat,
        "question": 'Where is "it", "status": then?',
        "gold": ("7 May",),
        "answerable": True,
        "status": Status.JUDGE_FAILED if score is None else Status.OK,
        "hypothesis": "8 May",
        "verdict": None if score is None else Verdict("keyword", label, score),
        "metrics": {"token_f1": score, "recall_at_5": 0.5},
        "context_tokens": 100,
    }
    return Record(**{**members, **changes})


def made_run(
    runs: Path,
    system: str,
    scores: Scores,
    *,
    params: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    of_records: Mapping[str, Any] | None = None,
    weights: Sequence[float] = (1.0,),
    **changes: Any,
) -> Run:
    """Writes a run folder below `runs`; `weights` are those of the first questions, repeated."""
    records = [
        made_record(question_id, score, repeat, **{"weight": weight, **(of_records or {})})
        for (question_id, repeats), weight in zip(scores.items(), cycle(weights), strict=False)
        for repeat, score in enumerate(repeats)
    ]
    key = changes.pop("run_key", f"{system.encode().hex():0<16}"[:16])
    folder = runs / key
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record.to_json(), ensure_ascii=False) + "\n" for record in records]
    (folder / RECORDS_FILE).write_text("".join(lines), encoding="utf-8")

    members: dict[str, Any] = {
        "run_key": key,
        "name": f"{system} turn k=10 keyword short extractive",
        "dataset": "locomo",
        "sweep": "made_up",
        "command": f"python -m memeval system={system}",
        "params": {
            "dataset": "locomo",
            "dataset.labels": "original",
            "system": system,
            "judge": "keyword",
            "llm": "extractive",
            **(params or {}),
        },
        "tags": {"data_sha256": "79fa87e9", **(tags or {})},
        "metrics": {"accuracy": 0.5, "coverage": 1.0, "n_questions": float(len(scores))},
        "categories": tuple(
            CategoryResult(
                category=category,
                name=name,
                n=10,
                scored=10,
                asked=10,
                headline=True,
                accuracy=0.5,
                accuracy_std=None,
                ci95_low=None,
                ci95_high=None,
                token_f1=None,
            )
            for category, name in (("1", "multi_hop"), ("2", "temporal"))
        ),
        "judge": JudgeIdentity("keyword"),
        "repeats": (),
        "notes": (),
        "valid": True,
        "started_at": "2026-11-21T20:00:00+01:00",
        "finished_at": "2026-11-21T20:00:17+01:00",
        "files": {RECORDS_FILE: file_digest(folder / RECORDS_FILE)},
    }
    summary = RunSummary(**{**members, **changes})
    summary.write(folder)
    return Run(folder, summary)
