"""Speed of the offline reader by size of context, and its answers on LoCoMo where the data is given.

    python benchmarks/reader.py [DATA_DIR/locomo/locomo10.json]

Times are of the whole `complete` call, in milliseconds. `fresh` contexts differ from question to question and share units, as after
a retrieval; a `kept` context is the same for all questions, as the whole conversation is. Without a file, the conversation is made up.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memeval.llm.contract import AnswerPrompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.extractive.answers import NO_ANSWER
from memeval.records import Role

SIZES = (1, 10, 100, 700)
QUESTIONS = 60


def made_up(seed: int = 0) -> tuple[list[str], list[str]]:
    """700 units of random words with dates, and questions about them."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefghijklmnoprstuvw", k=draw.randint(3, 9))) for _ in range(3000)]

    def sentence() -> str:
        return " ".join(draw.choices(words, k=draw.randint(4, 16))).capitalize() + draw.choice(".!?")

    units = [
        f"[1:56 pm on {draw.randint(1, 28)} May 2023] {draw.choice(('Ann', 'Bob'))}: {' '.join(sentence() for _ in range(3))}"
        for _ in range(700)
    ]
    return units, [f"What did Ann {' '.join(draw.choices(words, k=5))}?" for _ in range(QUESTIONS)]


def real(path: str) -> Iterator[tuple[list[str], dict[str, str], list[dict[str, Any]]]]:
    """Per conversation: its units, units by turn id, and its questions."""
    for case in json.loads(Path(path).read_text(encoding="utf-8")):
        talk = case["conversation"]
        units: dict[str, str] = {}
        for number in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key)):
            date = talk[f"session_{number}_date_time"].replace(",", "")
            for turn in talk[f"session_{number}"]:
                caption = f" [shares an image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
                units[turn["dia_id"]] = f"[{date}] {turn['speaker']}: {turn['text']}{caption}"
        yield list(units.values()), units, case["qa"]


def answer_ms(model: ExtractiveModel, question: str, context: Sequence[str]) -> float:
    """Milliseconds of one call."""
    prompt = AnswerPrompt(question, tuple(context))
    start = time.perf_counter()
    asyncio.run(model.complete(prompt, role=Role.ANSWER))
    return 1000 * (time.perf_counter() - start)


def speed(units: Sequence[str], questions: Sequence[str]) -> None:
    model, draw = ExtractiveModel(), random.Random(1)
    print(f"first reading of {len(units)} units: {answer_ms(model, questions[0], units):.0f} ms")
    print(f"{'units':>6} {'context':>8} {'median':>8} {'p95':>8}")
    for size in SIZES:
        kept = draw.sample(list(units), min(size, len(units)))
        for label in ("fresh", "kept"):
            times = [answer_ms(model, text, draw.sample(list(units), len(kept)) if label == "fresh" else kept) for text in questions]
            print(f"{size:6} {label:>8} {np.median(times):8.2f} {np.percentile(times, 95):8.2f}")


def answers(path: str) -> None:
    """Share of abstentions by category: with the evidence turns, with the whole conversation, and with another conversation instead."""
    cases = list(real(path))
    model = ExtractiveModel()

    def abstains(question: str, context: Sequence[str]) -> bool:
        prompt = AnswerPrompt(question, tuple(context))
        return asyncio.run(model.complete(prompt, role=Role.ANSWER)).text == NO_ANSWER

    print(f"{'category':>8} {'n':>5} {'evidence':>9} {'whole':>9} {'another':>9}")
    for category in range(1, 6):
        rows = []
        for number, (units, by_id, questions) in enumerate(cases):
            other = cases[(number + 3) % len(cases)][0]
            for item in (item for item in questions if item["category"] == category):
                evidence = [by_id[name] for name in item["evidence"] if name in by_id]
                rows.append([abstains(item["question"], context) for context in (evidence, units, other)])
        shares = " ".join(f"{share:9.3f}" for share in np.mean(rows, axis=0))
        print(f"{category:8} {len(rows):5} {shares}")


def main(arguments: Sequence[str]) -> None:
    if not arguments:
        speed(*made_up())
        return
    units, _, questions = next(real(arguments[0]))
    speed(units, [item["question"] for item in questions][:QUESTIONS])
    answers(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
