"""Speed of the offline reader by size of context, and its answers on LoCoMo where the data is
given.

    python perf/reader.py [DATA_DIR/locomo/locomo10.json [--fit]]

Times are of the whole `complete` call, in milliseconds. `fresh` contexts differ from question to
question and share chunks, as after a retrieval; a `kept` context is the same for all questions, as
the whole conversation is. Without a file, the conversation is made up. `--fit` prints the weights
of the span features, fitted again.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memeval.datasets.locomo.metrics import locomo_f1
from memeval.llm.contract import AnswerPrompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.extractive.answers import DEPTH, NO_ANSWER, read
from memeval.llm.extractive.questions import ExpectedAnswer, analyse
from memeval.llm.extractive.ranking import index, rank
from memeval.llm.extractive.scoring import NAMES, candidates
from memeval.metrics.keywords import keyword_pass
from memeval.records import Role

SIZES = (1, 10, 100, 700)
QUESTIONS = 60


def made_up(seed: int = 0) -> tuple[list[str], list[str]]:
    """700 chunks of random words with dates, and questions about them."""
    draw = random.Random(seed)
    words = [
        "".join(draw.choices("abcdefghijklmnoprstuvw", k=draw.randint(3, 9))) for _ in range(3000)
    ]

    def sentence() -> str:
        return " ".join(draw.choices(words, k=draw.randint(4, 16))).capitalize() + draw.choice(
            ".!?"
        )

    def chunk() -> str:
        day, speaker = draw.randint(1, 28), draw.choice(("Ann", "Bob"))
        words_said = " ".join(sentence() for _ in range(3))
        return f"[1:56 pm on {day} May 2023] {speaker}: {words_said}"

    chunks = [chunk() for _ in range(700)]
    return chunks, [f"What did Ann {' '.join(draw.choices(words, k=5))}?" for _ in range(QUESTIONS)]


Case = tuple[list[str], dict[str, str], list[dict[str, Any]]]


def real(path: str) -> Iterator[Case]:
    """Per conversation: its chunks, chunks by turn id, and its questions."""
    for case in json.loads(Path(path).read_text(encoding="utf-8")):
        talk = case["conversation"]
        chunks: dict[str, str] = {}
        for number in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key)):
            date = talk[f"session_{number}_date_time"].replace(",", "")
            for turn in talk[f"session_{number}"]:
                caption = (
                    f" [shares an image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
                )
                chunks[turn["dia_id"]] = f"[{date}] {turn['speaker']}: {turn['text']}{caption}"
        yield list(chunks.values()), chunks, case["qa"]


def answer_ms(model: ExtractiveModel, question: str, context: Sequence[str]) -> float:
    """Milliseconds of one call."""
    prompt = AnswerPrompt(question, tuple(context))
    start = time.perf_counter()
    asyncio.run(model.complete(prompt, role=Role.ANSWER))
    return 1000 * (time.perf_counter() - start)


def speed(chunks: Sequence[str], questions: Sequence[str]) -> None:
    model, draw = ExtractiveModel(), random.Random(1)
    print(f"first reading of {len(chunks)} chunks: {answer_ms(model, questions[0], chunks):.0f} ms")
    print(f"{'chunks':>6} {'context':>8} {'median':>8} {'p95':>8}")
    for size in SIZES:
        kept = draw.sample(list(chunks), min(size, len(chunks)))
        for label in ("fresh", "kept"):
            times = [
                answer_ms(
                    model, text, draw.sample(list(chunks), len(kept)) if label == "fresh" else kept
                )
                for text in questions
            ]
            print(f"{size:6} {label:>8} {np.median(times):8.2f} {np.percentile(times, 95):8.2f}")


@dataclass(frozen=True)
class Item:
    """One question of LoCoMo with three contexts that hold its answer more or less surely, and one
    that can't.
    """

    category: int
    question: str
    gold: str
    contexts: dict[str, tuple[str, ...]]


def items(path: str) -> list[list[Item]]:
    """Per conversation, its questions."""
    cases = list(real(path))
    return [
        case_items(case, cases[(number + 3) % len(cases)][0]) for number, case in enumerate(cases)
    ]


def case_items(case: Case, another: Sequence[str]) -> list[Item]:
    from rank_bm25 import BM25Okapi

    chunks, by_id, questions = case
    said = [
        re.findall("[a-z0-9]+", chunk.split("] ", 1)[1].split(" [shares an image:")[0].lower())
        for chunk in chunks
    ]
    ranker = BM25Okapi(said)
    made = []
    for item in questions:
        ids = [
            f"D{int(a)}:{int(b)}"
            for text in item["evidence"]
            for a, b in re.findall(r"D:?(\d+):(\d+)", text)
        ]
        scores = ranker.get_scores(re.findall("[a-z0-9]+", item["question"].lower()))
        contexts = {
            "evidence": tuple(by_id[name] for name in dict.fromkeys(ids) if name in by_id),
            "bm25 top 10": tuple(
                chunks[index] for index in np.argsort(-scores, kind="stable")[:10]
            ),
            "whole": tuple(chunks),
            "another": tuple(another),
        }
        made.append(Item(item["category"], item["question"], str(item.get("answer", "")), contexts))
    return made


def answers(cases: Sequence[Sequence[Item]]) -> None:
    """Official F1, share that passes the keyword score, and share of abstentions, by context and
    category.
    """
    print(f"{'context':>12} {'category':>8} {'n':>5} {'F1':>7} {'keyword':>8} {'abstains':>9}")
    for context in ("evidence", "bm25 top 10", "whole", "another"):
        for category in range(1, 6):
            rows = [
                graded(item, context)
                for case in cases
                for item in case
                if item.category == category
            ]
            f1, keyword, abstains = np.mean(rows, axis=0)
            shown = f"{keyword:8.3f}" if category != 5 else f"{'':8}"
            print(f"{context:>12} {category:8} {len(rows):5} {f1:7.3f} {shown} {abstains:9.3f}")


def graded(item: Item, context: str) -> tuple[float, float, float]:
    text = read(item.question, item.contexts[context]).answer
    return (
        locomo_f1(text, item.gold, item.category),
        keyword_pass(text, item.gold),
        text == NO_ANSWER,
    )


def fit(cases: Sequence[Sequence[Item]], penalty: float = 0.001) -> dict[str, float]:
    """The weights of `memeval/llm/extractive/scoring.toml`: those with the highest expected
    official F1 of a softmax over the candidate spans.

    Fitted on every other conversation, with evidence and BM25 turns as contexts, for the questions
    that are answered by a span.
    """
    from scipy.optimize import minimize

    examples = []
    for item in chain.from_iterable(cases[::2]):
        # The answer to a question of category 5 is a refusal, and not a span.
        contexts = ("evidence", "bm25 top 10") if item.category != 5 else ()
        examples += [training(item, name) for name in contexts]

    examples = [example for example in examples if example is not None]
    features, gain = (
        np.concatenate([example[0] for example in examples]),
        np.concatenate([example[1] for example in examples]),
    )
    sizes = [len(example[1]) for example in examples]
    starts, owner = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    spread = features.std(axis=0) + 1e-6

    def loss(vector: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        scores = features @ (vector / spread)
        raised = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        chance = raised / np.add.reduceat(raised, starts)[owner]
        expected = np.add.reduceat(chance * gain, starts)
        slope = features.T @ (chance * (gain - expected[owner])) / spread / len(sizes)
        return penalty * float(vector @ vector) - float(
            expected.mean()
        ), 2 * penalty * vector - slope

    best = (
        minimize(
            loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 300}
        ).x
        / spread
    )
    return {
        name: round(float(weight), 2)
        for name, weight in zip(NAMES, best, strict=True)
        if abs(weight) >= 0.005
    }


def training(item: Item, context: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Features and official F1 of each candidate span; None for questions that are answered
    otherwise or without candidates.
    """
    question, read_context = analyse(item.question), index(item.contexts[context])
    ranking = rank(question, read_context, DEPTH)
    if (
        question.kind
        in (
            ExpectedAnswer.WHEN,
            ExpectedAnswer.YES_NO,
            ExpectedAnswer.EITHER,
            ExpectedAnswer.COUNT,
            ExpectedAnswer.DURATION,
        )
        or not ranking.best
    ):
        return None
    found = candidates(question, read_context, ranking)
    if len(found.starts) == 0:
        return None
    return found.features, np.array(
        [
            locomo_f1(found.text(number), item.gold, item.category)
            for number in range(len(found.starts))
        ]
    )


def main(arguments: Sequence[str]) -> None:
    if not arguments:
        speed(*made_up())
        return
    cases = items(arguments[0])
    if "--fit" in arguments:
        for name, weight in fit(cases).items():
            print(f"{json.dumps(name)} = {weight}")

        return
    speed(cases[0][0].contexts["whole"], [item.question for item in cases[0]][:QUESTIONS])
    for label, half in (("fitted on", cases[::2]), ("held out", cases[1::2])):
        print(f"\nconversations {label}")
        answers(half)


if __name__ == "__main__":
    main(sys.argv[1:])
