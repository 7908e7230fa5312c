"""Evidence recall@5 and time of the offline embedder by width, against scikit-learn's unhashed
tf-idf.

    python perf/embedding_width.py DATA_DIR/locomo/locomo10.json [WIDTH ...]

A document is a turn (`{speaker}: {text}`). The search is an exact cosine search within the
conversation, for the questions of categories 1-4 with evidence.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measured import locomo_evidence, locomo_sessions
from numpy.typing import NDArray

from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder

DEPTH = 5
WIDTHS = (512, 1024, 2048, 4096, 8192, 16384)


Similarity = Callable[["Conversation"], NDArray[Any]]
"""Similarity of a conversation's questions (rows) to its turns (columns)."""


@dataclass(frozen=True)
class Conversation:
    """Turns of one conversation, and its questions with the positions of their evidence."""

    turns: list[str]
    questions: list[str]
    evidence: list[set[int]]


def conversation(raw: dict[str, Any]) -> Conversation:
    """The turns in order of sessions, and the questions with evidence that exists."""
    case = Conversation([], [], [])
    positions: dict[str, int] = {}
    for _, turns in locomo_sessions(raw["conversation"]):
        for turn in turns:
            positions[turn["dia_id"]] = len(case.turns)
            case.turns.append(f"{turn['speaker']}: {turn['text']}")

    for question in raw["qa"]:
        ids = positions.keys() & set(locomo_evidence(question))
        if question["category"] != 5 and ids:
            case.questions.append(question["question"])
            case.evidence.append(set(map(positions.__getitem__, ids)))

    return case


def recall(similarity: NDArray[Any], evidence: Sequence[set[int]]) -> list[float]:
    """Per question, the share of its evidence among the `DEPTH` most similar turns."""
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :DEPTH]
    shares = []
    for row, positions in zip(best, evidence, strict=True):
        found = positions & set(row.tolist())
        shares.append(len(found) / len(positions))

    return shares


def hashed_similarity(width: int) -> Similarity:
    """Similarity by our embedder."""

    def similarity(case: Conversation) -> NDArray[Any]:
        embedder = CharTfidfEmbedder(width).fitted(case.turns)
        turns = asyncio.run(embedder.embed(case.turns))
        questions = asyncio.run(embedder.embed(case.questions))
        return questions @ turns.T

    return similarity


def unhashed_similarity(case: Conversation) -> NDArray[Any]:
    """Similarity by scikit-learn, with one dimension per n-gram."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    turns = vectorizer.fit_transform(case.turns)
    similarity: NDArray[Any] = (vectorizer.transform(case.questions) @ turns.T).toarray()
    return similarity


def query_ms(width: int, case: Conversation) -> float:
    """Milliseconds to embed one question: the median over the conversation."""
    embedder = CharTfidfEmbedder(width).fitted(case.turns)
    times = []
    for question in case.questions:
        started = time.perf_counter()
        asyncio.run(embedder.embed([question]))
        times.append(time.perf_counter() - started)

    return 1000 * float(np.median(times))


def measure(cases: Sequence[Conversation], similarity: Similarity) -> str:
    """Mean recall over all questions, and the seconds that it took."""
    started = time.perf_counter()
    scores = []
    for case in cases:
        scores += recall(similarity(case), case.evidence)

    return f"{np.mean(scores):9.4f} {time.perf_counter() - started:7.2f}"


def main(path: str, widths: Sequence[int]) -> None:
    cases = list(map(conversation, json.loads(Path(path).read_text(encoding="utf-8"))))
    questions = sum(len(case.questions) for case in cases)
    turns = sum(len(case.turns) for case in cases)
    print(
        f"{questions} questions, {turns} turns",
        f"{'width':>9} {'recall@5':>9} {'all, s':>7} {'query, ms':>10}",
        f"{'unhashed':>9} {measure(cases, unhashed_similarity)}",
        sep="\n",
    )
    for width in widths:
        results = measure(cases, hashed_similarity(width))
        print(f"{width:>9} {results} {query_ms(width, cases[0]):10.2f}")


if __name__ == "__main__":
    main(sys.argv[1], list(map(int, sys.argv[2:])) or WIDTHS)
