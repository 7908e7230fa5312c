"""Speed of the offline reader by size of context, and the quality of its answers if LoCoMo's file
is given.

    python perf/reader.py [DATA_DIR/locomo/locomo10.json [--fit]]

Times are of whole `complete` calls, in milliseconds. A `fresh` context is another sample of the
chunks for each question, as after a retrieval; a `kept` context is the same for all questions, as
the whole conversation is. Without a file, the conversation is generated. `--fit` fits the weights
of the span features again, and prints them.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from measured import locomo_evidence, locomo_sessions
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
CONTEXTS = ("evidence", "bm25 top 10", "whole", "another")
FITTED_CONTEXTS = ("evidence", "bm25 top 10")
NOT_SPANS = (
    ExpectedAnswer.WHEN,
    ExpectedAnswer.YES_NO,
    ExpectedAnswer.EITHER,
    ExpectedAnswer.COUNT,
    ExpectedAnswer.DURATION,
)
"""Answers that the reader computes, and does not copy from a chunk."""


@dataclass(frozen=True)
class Item:
    """A question of LoCoMo, its contexts (see `CONTEXTS`), and its category and gold answer."""

    category: int
    question: str
    gold: str
    contexts: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Example:
    """The candidate spans of a question in one context."""

    features: NDArray[Any]
    """One row per span."""
    f1: NDArray[Any]
    """Official F1 of each span."""


def main(arguments: Sequence[str]) -> None:
    for line in report(arguments):
        print(line, flush=True)


def report(arguments: Sequence[str]) -> Iterator[str]:
    if not arguments:
        yield from measure_speed(*generate())
        return

    cases = read_items(arguments[0])
    if "--fit" in arguments:
        for name, weight in fit(cases).items():
            yield f"{json.dumps(name)} = {weight}"

        return

    questions = [item.question for item in cases[0][:QUESTIONS]]
    yield from measure_speed(cases[0][0].contexts["whole"], questions)
    for label, half in (("fitted on", cases[::2]), ("held out", cases[1::2])):
        yield f"\nconversations {label}"
        yield from measure_quality(half)


def generate(seed: int = 0) -> tuple[list[str], list[str]]:
    """700 chunks of random words with dates, and questions about them."""
    rng = random.Random(seed)
    words = []
    for _ in range(3000):
        letters = rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(3, 9))
        words.append("".join(letters))

    def sentence() -> str:
        text = " ".join(rng.choices(words, k=rng.randint(4, 16))).capitalize()
        return text + rng.choice(".!?")

    def chunk() -> str:
        day, speaker = rng.randint(1, 28), rng.choice(("Ann", "Bob"))
        return f"[1:56 pm on {day} May 2023] {speaker}: {sentence()} {sentence()} {sentence()}"

    def question() -> str:
        return f"What did Ann {' '.join(rng.choices(words, k=5))}?"

    return [chunk() for _ in range(700)], [question() for _ in range(QUESTIONS)]


def measure_speed(chunks: Sequence[str], questions: Sequence[str]) -> Iterator[str]:
    """The times of calls by size of context."""
    model, rng = ExtractiveModel(), random.Random(1)
    first_ms = answer_ms(model, questions[0], chunks)
    yield f"first reading of {len(chunks)} chunks: {first_ms:.0f} ms"
    yield f"{'chunks':>6} {'context':>8} {'median':>8} {'p95':>8}"
    for size in SIZES:
        kept = rng.sample(chunks, min(size, len(chunks)))
        fresh_ms = []
        for question in questions:
            fresh = rng.sample(chunks, len(kept))
            fresh_ms.append(answer_ms(model, question, fresh))

        kept_ms = [answer_ms(model, question, kept) for question in questions]
        for label, times in (("fresh", fresh_ms), ("kept", kept_ms)):
            yield f"{size:6} {label:>8} {np.median(times):8.2f} {np.percentile(times, 95):8.2f}"


def answer_ms(model: ExtractiveModel, question: str, context: Sequence[str]) -> float:
    """Milliseconds of one call."""
    prompt = AnswerPrompt(question, tuple(context))
    started = time.perf_counter()
    asyncio.run(model.complete(prompt, role=Role.ANSWER))
    return 1000 * (time.perf_counter() - started)


def read_items(path: str) -> list[list[Item]]:
    """The questions of each conversation of a file, with their contexts."""
    cases = json.loads(Path(path).read_text(encoding="utf-8"))
    chunks = list(map(chunks_of, cases))
    items = []
    for number, case in enumerate(cases):
        another = chunks[(number + 3) % len(cases)]
        items.append(list(items_of(case["qa"], chunks[number], tuple(another.values()))))

    return items


def chunks_of(case: Mapping[str, Any]) -> dict[str, str]:
    """A conversation's chunks by turn id, in order."""
    chunks = {}
    for written_date, turns in locomo_sessions(case["conversation"]):
        date = written_date.replace(",", "")
        for turn in turns:
            text = f"[{date}] {turn['speaker']}: {turn['text']}"
            if "blip_caption" in turn:
                text += f" [shares an image: {turn['blip_caption']}]"

            chunks[turn["dia_id"]] = text

    return chunks


def items_of(
    questions: Sequence[Mapping[str, Any]], chunks: Mapping[str, str], another: tuple[str, ...]
) -> Iterator[Item]:
    """A conversation's questions; `another` conversation does not contain their answers."""
    from rank_bm25 import BM25Okapi

    whole = tuple(chunks.values())
    ranker = BM25Okapi(list(map(spoken_words, whole)))
    for question in questions:
        evidence = filter(chunks.__contains__, dict.fromkeys(locomo_evidence(question)))
        scores = ranker.get_scores(words_of(question["question"]))
        best = np.argsort(-scores, kind="stable")[:10]
        contexts = {
            "evidence": tuple(map(chunks.__getitem__, evidence)),
            "bm25 top 10": tuple(map(whole.__getitem__, best)),
            "whole": whole,
            "another": another,
        }
        gold = str(question.get("answer", ""))
        yield Item(question["category"], question["question"], gold, contexts)


def words_of(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def spoken_words(chunk: str) -> list[str]:
    """Words of a chunk without its date and its image."""
    _, _, spoken = chunk.partition("] ")
    return words_of(spoken.partition(" [shares an image:")[0])


def measure_quality(cases: Sequence[Sequence[Item]]) -> Iterator[str]:
    """The official F1, the share of answers that pass the keyword score, and the share of
    abstentions, by context and category.
    """
    yield f"{'context':>12} {'category':>8} {'n':>5} {'F1':>7} {'keyword':>8} {'abstains':>9}"
    for context in CONTEXTS:
        for category in range(1, 6):
            items = [item for item in chain.from_iterable(cases) if item.category == category]
            rows = [score(item, context) for item in items]
            f1, keyword, abstains = np.mean(rows, axis=0)
            passed = " " * 8 if category == 5 else f"{keyword:8.3f}"
            yield f"{context:>12} {category:8} {len(rows):5} {f1:7.3f} {passed} {abstains:9.3f}"


def score(item: Item, context: str) -> tuple[float, float, float]:
    """Official F1, keyword score, and whether the reader abstains."""
    answer = read(item.question, item.contexts[context]).answer
    f1 = locomo_f1(answer, item.gold, item.category)
    return f1, keyword_pass(answer, item.gold), answer == NO_ANSWER


def fit(cases: Sequence[Sequence[Item]], penalty: float = 0.001) -> dict[str, float]:
    """The weights of `memeval/llm/extractive/scoring.toml`: those with the highest expected
    official F1 of a softmax over the candidate spans.

    Fitted on every other conversation, with evidence and BM25 turns as contexts, for the questions
    that are answered by a span.
    """
    from scipy.optimize import minimize

    examples = []
    for item in chain.from_iterable(cases[::2]):
        for context in FITTED_CONTEXTS:
            examples += examples_of(item, context)

    features = np.concatenate([example.features for example in examples])
    f1 = np.concatenate([example.f1 for example in examples])
    sizes = [len(example.f1) for example in examples]
    spread = features.std(axis=0) + 1e-6
    loss = loss_of(features, f1, sizes, spread=spread, penalty=penalty)

    start = np.zeros(features.shape[1])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x / spread
    weights = {}
    for name, weight in zip(NAMES, best, strict=True):
        if abs(weight) >= 0.005:
            weights[name] = round(float(weight), 2)

    return weights


def loss_of(
    features: NDArray[Any],
    f1: NDArray[Any],
    sizes: Sequence[int],
    *,
    spread: NDArray[Any],
    penalty: float,
) -> Callable[[NDArray[Any]], tuple[float, NDArray[Any]]]:
    """The function to minimize: the loss at given weights, and its gradient.

    `sizes` are the numbers of spans of the examples, in the order of the rows.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    example = np.repeat(np.arange(len(sizes)), sizes)

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        scores = features @ (weights / spread)
        exponentials = np.exp(scores - np.maximum.reduceat(scores, starts)[example])
        chance = exponentials / np.add.reduceat(exponentials, starts)[example]
        expected = np.add.reduceat(chance * f1, starts)
        gradient = features.T @ (chance * (f1 - expected[example])) / spread / len(sizes)

        value = penalty * float(weights @ weights) - float(expected.mean())
        return value, 2 * penalty * weights - gradient

    return loss


def examples_of(item: Item, context: str) -> Iterator[Example]:
    """The spans of a question in a context; nothing if it has none, or is not answered by one."""
    # The right answer to a question of category 5 is a refusal.
    if item.category == 5:
        return

    question, chunks = analyse(item.question), index(item.contexts[context])
    ranking = rank(question, chunks, DEPTH)
    if question.kind in NOT_SPANS or not ranking.best:
        return

    spans = candidates(question, chunks, ranking)
    if len(spans.starts) == 0:
        return

    texts = map(spans.text, range(len(spans.starts)))
    f1 = [locomo_f1(text, item.gold, item.category) for text in texts]
    yield Example(features=spans.features, f1=np.array(f1))


if __name__ == "__main__":
    main(sys.argv[1:])
