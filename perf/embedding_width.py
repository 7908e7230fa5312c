"""Evidence recall@5 and time of the offline embedder by width, against scikit-learn's unhashed
tf-idf.

    python perf/embedding_width.py DATA_DIR/locomo/locomo10.json [WIDTH ...]

One document per turn (`{speaker}: {text}`), exact cosine search within the conversation, questions
of categories 1-4 with evidence.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder

DEPTH = 5
WIDTHS = (512, 1024, 2048, 4096, 8192, 16384)


@dataclass(frozen=True)
class Conversation:
    """Turns of one conversation, and its questions with the positions of their evidence."""

    turns: list[str]
    questions: list[str]
    evidence: list[set[int]]


def conversation(raw: dict[str, Any]) -> Conversation:
    """The turns in order of sessions, and the questions whose repaired evidence exists."""
    talk = raw["conversation"]
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    turns = [turn for number in numbers for turn in talk[f"session_{number}"]]
    place = {turn["dia_id"]: position for position, turn in enumerate(turns)}
    found = Conversation([f"{turn['speaker']}: {turn['text']}" for turn in turns], [], [])
    for item in raw["qa"]:
        ids = {
            f"D{int(a)}:{int(b)}"
            for text in item["evidence"]
            for a, b in re.findall(r"D:?(\d+):(\d+)", text)
        }
        positions = {place[name] for name in ids if name in place}
        if item["category"] != 5 and positions:
            found.questions.append(item["question"])
            found.evidence.append(positions)
    return found


def recall(similarity: NDArray[Any], evidence: Sequence[set[int]]) -> list[float]:
    """Per question, the share of its evidence among the `DEPTH` most similar turns."""
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :DEPTH]
    return [
        len(wanted & set(row.tolist())) / len(wanted)
        for row, wanted in zip(best, evidence, strict=True)
    ]


def hashed(width: int) -> Callable[[Conversation], NDArray[Any]]:
    """Similarity of questions (rows) to turns (columns) by our embedder."""

    def similarity(case: Conversation) -> NDArray[Any]:
        embedder = CharTfidfEmbedder(width).fitted(case.turns)
        turns = asyncio.run(embedder.embed(case.turns))
        questions = asyncio.run(embedder.embed(case.questions))
        return questions @ turns.T

    return similarity


def unhashed(case: Conversation) -> NDArray[Any]:
    """The same by scikit-learn, one column per n-gram."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    turns = vectorizer.fit_transform(case.turns)
    similarity: NDArray[Any] = (vectorizer.transform(case.questions) @ turns.T).toarray()
    return similarity


def query_ms(width: int, case: Conversation) -> float:
    """Milliseconds to embed one question, the median over the conversation."""
    embedder = CharTfidfEmbedder(width).fitted(case.turns)
    times = []
    for question in case.questions:
        start = time.perf_counter()
        asyncio.run(embedder.embed([question]))
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def main(path: str, widths: Sequence[int]) -> None:
    cases = [conversation(raw) for raw in json.loads(Path(path).read_text(encoding="utf-8"))]
    methods: list[tuple[str, Callable[[Conversation], NDArray[Any]]]] = [("unhashed", unhashed)]
    methods += [(str(width), hashed(width)) for width in widths]
    print(
        f"{sum(len(case.questions) for case in cases)} questions, "
        f"{sum(len(case.turns) for case in cases)} turns"
    )
    print(f"{'width':>9} {'recall@5':>9} {'all, s':>7} {'query, ms':>10}")
    for label, similarity in methods:
        start = time.perf_counter()
        scores = [score for case in cases for score in recall(similarity(case), case.evidence)]
        taken = time.perf_counter() - start
        query = f"{query_ms(int(label), cases[0]):10.2f}" if label.isdigit() else f"{'':>10}"
        print(f"{label:>9} {np.mean(scores):9.4f} {taken:7.2f} {query}")


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]] or WIDTHS)
