"""How long `evaluate` takes for many rows: python perf/evaluate.py 10000 100000

Ten times the rows should take about ten times as long.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTIONS_PER_CASE = 1000
WORDS = "tea garden walk dog paint music river train school summer book lamp".split()


def write_rows(folder: Path, rows: int) -> tuple[Path, Path]:
    """A data set in LoCoMo's schema with `rows` questions, and a file that answers half of them
    rightly.
    """
    draw = random.Random(0)
    talk = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "Hello."}],
    }
    samples, answers = [], []
    for case in range(-(-rows // QUESTIONS_PER_CASE)):
        questions = []
        for number in range(min(QUESTIONS_PER_CASE, rows - case * QUESTIONS_PER_CASE)):
            gold = " ".join(draw.sample(WORDS, 3))
            category = draw.choice([1, 2, 3, 4])
            questions.append(
                {
                    "question": f"What of {number}?",
                    "answer": gold,
                    "category": category,
                    "evidence": ["D1:1"],
                }
            )
            said = gold if number % 2 else " ".join(draw.sample(WORDS, 4))
            answers.append({"question_id": f"case-{case}/q{number}", "hypothesis": said})
        samples.append({"sample_id": f"case-{case}", "conversation": talk, "qa": questions})

    data, file = folder / "data.json", folder / "answers.jsonl"
    data.write_text(json.dumps(samples), encoding="utf-8")
    file.write_text("".join(json.dumps(answer) + "\n" for answer in answers), encoding="utf-8")
    return data, file


def measure(rows: int) -> float:
    """Seconds of wall time for this number of rows."""
    with tempfile.TemporaryDirectory() as name:
        data, file = write_rows(Path(name), rows)
        command = [
            sys.executable,
            "-m",
            "memeval",
            "evaluate",
            str(file),
            "dataset=locomo",
            f"dataset.path={data}",
        ]
        command += ["dataset.allow_unpinned=true", "judge=keyword", "tracking=none"]
        started = time.perf_counter()
        environment = {**os.environ, "MEMEVAL_HOME": name}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        return time.perf_counter() - started


if __name__ == "__main__":
    for count in map(int, sys.argv[1:] or ["10000", "100000"]):
        print(f"{count:>8,} rows: {measure(count):6.1f} s")
