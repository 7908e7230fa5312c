"""Small rows in MemoryAgentBench's schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memeval.datasets.locate import build
from memeval.datasets.memory_agent_bench.adapter import MemoryAgentBench

FACTS = (
    "Here is a list of facts:\n0. St. John is the mayor of Lindow.\n1. Kim plays golf.\n2. Milo "
    "is the mayor of Lindow.\n"
)


def row(source: str = "factconsolidation_sh_6k", **changes: Any) -> dict[str, Any]:
    """A row with two questions; `metadata__x` changes a field of the metadata."""
    metadata: dict[str, Any] = {
        "source": source,
        "qa_pair_ids": [f"{source}_no0", f"{source}_no1"],
        "question_dates": None,
    }
    metadata |= {
        key.removeprefix("metadata__"): value
        for key, value in changes.items()
        if key.startswith("metadata__")
    }
    plain = {
        "context": FACTS + source,
        "questions": ["Who is the mayor of Lindow?", "What does Kim play?"],
        "answers": [["Milo", "Milo Adler"], ["golf"]],
        "metadata": metadata,
    }
    return plain | {
        key: value for key, value in changes.items() if not key.startswith("metadata__")
    }


def write(folder: Path, content: Any, name: str = "Conflict_Resolution.json") -> Path:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(
            content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
        )
    return path


def memory_agent_bench(path: Path, **settings: Any) -> MemoryAgentBench:
    given = {"split": "all", **settings}
    dataset = build("demo_memory_agent_bench", Path("/nowhere"), path=str(path), **given)
    assert isinstance(dataset, MemoryAgentBench)
    return dataset
