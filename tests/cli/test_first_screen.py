"""A new user's first screen: one difference is shown, one is not, and the order is plausible."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from command_line import completed

from memeval.results import Record, read_records

pytestmark = pytest.mark.slow

Records = dict[str, Record]
CONTROLS = ("oracle", "no_memory")
SHOWN = 0.008


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Records]:
    """Headline records of the first sweep and the two controls, by system and question id."""
    home = tmp_path_factory.mktemp("first")
    systems = ",".join(("rag", "bm25", "mem0", *CONTROLS))
    completed(home, "-m", f"system={systems}", "tracking=none", "plots=false")
    found = {}
    for folder in (home / "outputs" / "runs").iterdir():
        summary = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        found[summary["params"]["system"]] = {
            record.question_id: record
            for record in read_records(folder / "records.jsonl")
            if record.category != 5
        }

    return found


def by_conversation(first: Records, second: Records) -> list[float]:
    """How many more questions the first run has right, per conversation."""
    sums: dict[str, float] = defaultdict(float)
    for question_id, record in first.items():
        other = second[question_id]
        assert record.score is not None and other.score is not None
        sums[record.case_id] += record.score - other.score

    return list(sums.values())


def adjusted(*comparisons: list[float]) -> list[float]:
    """Exact two-sided p of sign flips over conversations, adjusted by the largest sum of all
    comparisons.

    Independent of memeval's own code, because the text of the first screen depends on it.
    """
    sums = np.array(comparisons)
    signs = np.array(list(product((1, -1), repeat=sums.shape[1])))
    flipped = np.abs(signs @ sums.T).max(axis=1)
    return [float(np.mean(flipped >= abs(sum(one)) - 1e-9)) for one in comparisons]


def test_one_difference_is_shown_and_one_is_not(runs: dict[str, Records]) -> None:
    to_bm25 = by_conversation(runs["rag"], runs["bm25"])
    to_mem0 = by_conversation(runs["rag"], runs["mem0"])
    assert len(to_bm25) == 10
    shown, not_shown = adjusted(to_bm25, to_mem0)
    assert sum(to_bm25) > 0 and shown <= SHOWN
    assert sum(to_mem0) != 0 and not_shown > 0.05


def test_difference_not_shown_has_disagreeing_conversations(runs: dict[str, Records]) -> None:
    sums = by_conversation(runs["rag"], runs["mem0"])
    assert min(sums) < 0 < max(sums)


def test_oracle_is_above_no_memory_in_every_conversation(runs: dict[str, Records]) -> None:
    sums = by_conversation(*(runs[name] for name in CONTROLS))
    (shown,) = adjusted(sums)
    assert min(sums) > 0 and shown <= SHOWN


def test_oracle_is_the_best_and_no_memory_the_worst(runs: dict[str, Records]) -> None:
    right = {name: sum(record.score or 0 for record in run.values()) for name, run in runs.items()}
    assert max(right, key=lambda name: right[name]) == "oracle"
    assert min(right, key=lambda name: right[name]) == "no_memory"
