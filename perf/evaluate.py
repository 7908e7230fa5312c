"""How long `evaluate` takes for many rows: python perf/evaluate.py 10000 100000

Ten times the rows should take about ten times as long.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from measured import run_memeval

QUESTIONS_PER_CASE = 1000
WORDS = "tea garden walk dog paint music river train school summer book lamp".split()
TALK = {
    "speaker_a": "Ada",
    "speaker_b": "Ben",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "Hello."}],
}


def write_data(path: Path, rows: int) -> list[dict[str, str]]:
    """Writes a data set in LoCoMo's schema with `rows` questions; returns answers, of which every
    other one is right.
    """
    rng = random.Random(0)
    samples, answers = [], []
    for first in range(0, rows, QUESTIONS_PER_CASE):
        case_id = f"case-{first // QUESTIONS_PER_CASE}"
        questions = []
        for number in range(min(QUESTIONS_PER_CASE, rows - first)):
            question = make_question(rng, number)
            questions.append(question)
            answer = question["answer"] if number % 2 else " ".join(rng.sample(WORDS, 4))
            answers.append({"question_id": f"{case_id}/q{number}", "hypothesis": answer})

        samples.append({"sample_id": case_id, "conversation": TALK, "qa": questions})

    path.write_text(json.dumps(samples), encoding="utf-8")
    return answers


def make_question(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "question": f"What of {number}?",
        "answer": " ".join(rng.sample(WORDS, 3)),
        "category": rng.choice([1, 2, 3, 4]),
        "evidence": ["D1:1"],
    }


def measure(rows: int) -> float:
    """Seconds of wall time for this number of rows."""
    with tempfile.TemporaryDirectory() as home:
        data, file = Path(home) / "data.json", Path(home) / "answers.jsonl"
        answers = write_data(data, rows)
        file.write_text("\n".join(map(json.dumps, answers)) + "\n", encoding="utf-8")
        words = [
            "evaluate",
            str(file),
            "dataset=locomo",
            f"dataset.path={data}",
            "dataset.allow_unpinned=true",
            "judge=keyword",
            "tracking=none",
        ]
        return run_memeval(words, home).wall_s


if __name__ == "__main__":
    for rows in map(int, sys.argv[1:] or ["10000", "100000"]):
        print(f"{rows:>8,} rows: {measure(rows):6.1f} s")
