"""Small rows in OpsEval's four schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memeval.datasets.locate import build
from memeval.datasets.opseval.adapter import OpsEval
from memeval.datasets.opseval.schema import FILES


def wired(number: int = 0, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": f"Wired Network-{number}",
        "type": 0,
        "question": f"Which is right, number {number}?",
        "choices": ["one", "two", "three", "four"],
        "answer": "B",
        "solution": f"Two is right in number {number}.",
        "topic": ["Switching"],
    }
    return plain | changes


def five_g(number: int = 0, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": f"5G Communication-{number}",
        "question": f"哪个是对的 {number}\nA: SMF\nB: AMF",
        "choices": ["SMF", "AMF"],
        "qtype": 0,
        "answer": "A",
        "solution": "",
    }
    return plain | changes


def oracle(number: int = 0, **changes: Any) -> dict[str, Any]:
    text = f"Which two are true, {number}?\nA.  first\nB.  second\nC.  third"
    return {
        "question": text,
        "answer": "A,C",
        "solution": "",
        "id": f"Oracle Database-{number}",
    } | changes


def log(number: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "question": f"什么是日志 {number}？",
        "id": f"Log Analysis-{number}",
        "answer": "记录事件的文件。",
    } | changes


ROWS = {
    "wired_network": wired,
    "5g_communication": five_g,
    "oracle_database": oracle,
    "log_analysis": log,
}


def write(folder: Path, split: str = "test", **rows: Any) -> Path:
    """Writes the four files to a folder; a file that is not given has one row.

    Keys are domains, with `g5_communication` for the one that starts with a digit.
    """
    given = {domain.replace("g5_", "5g_"): content for domain, content in rows.items()}
    (folder / split).mkdir(parents=True, exist_ok=True)
    for domain, file in FILES.items():
        content = given.get(domain, [ROWS[domain]()])
        path = folder / split / file
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(
                content if isinstance(content, str) else json.dumps(content, ensure_ascii=False),
                encoding="utf-8",
            )
    return folder


def opseval(folder: Path, **settings: Any) -> OpsEval:
    dataset = build("demo_opseval", Path("/nowhere"), path=str(folder), **settings)
    assert isinstance(dataset, OpsEval)
    return dataset
