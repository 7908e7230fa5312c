"""The time of retrieval: `python perf/retrieval.py [bm25] [vectors] [mem0] [locomo]`, all of them
by default.

Wall times on a shared machine are upper bounds; compare within one invocation. `locomo` needs
MEMEVAL_DATA_DIR. With OPENBLAS_NUM_THREADS=1, mem0 searches up to three times as fast on busy
cores: the threads of a small product wait for each other.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memeval.config.settings import read_settings
from memeval.records import EvalCase, EvalQuestion, MemoryChunk, OracleQuery, Query
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.systems.base import MemorySystem, ReaderReply, SystemContext
from memeval.systems.registry import system_class

WORDS = [f"word{number}" for number in range(8000)]
DEPTHS = (5, 10, 20)
BM25_SIZES = (400, 700, 5_000, 50_000)
VECTOR_SIZES = ((700, 512), (700, 2048), (700, 4096), (700, 8192), (50_000, 512), (60_000, 512))
"""Number and width of the vectors."""
MEM0_SIZES = ((200, 2048), (700, 512), (700, 2048), (700, 4096), (700, 8192), (2000, 2048))
"""Number of chunks and width of their vectors."""


class Clock:
    """The time of the block that `timed` surrounded."""

    seconds = 0.0

    def ms_per(self, count: int) -> float:
        return 1000 * self.seconds / count


@contextmanager
def timed() -> Iterator[Clock]:
    clock, started = Clock(), time.perf_counter()
    yield clock
    clock.seconds = time.perf_counter() - started


def generate_turns(count: int) -> list[str]:
    """Turns of 20 words, each by `ann` or `bob`; words are as frequent as in speech."""
    rng = random.Random(0)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]

    def turn() -> str:
        speaker = rng.choice(["ann", "bob"])
        return f"{speaker}: {' '.join(rng.choices(WORDS, weights, k=20))}"

    return [turn() for _ in range(count)]


def bm25() -> Iterator[str]:
    from rank_bm25 import BM25Okapi

    from memeval.retrieval.bm25 import Bm25Index
    from memeval.text.words import search_terms

    def reference_scores(query: str) -> None:
        reference.get_scores(search_terms(query))

    yield "\nBM25: ms per query        build s    index   full ranking   rank_bm25"
    for size in BM25_SIZES:
        turns = generate_turns(size)
        queries = [f"ann {turn[5:60]}" for turn in turns[:: max(1, size // 50)]][:50]
        # rank_bm25 is slow for many documents.
        few = queries[: 50 if size < 50_000 else 5]
        with timed() as building:
            index = Bm25Index(turns)

        reference = BM25Okapi(list(map(search_terms, turns)))
        scores_ms, ranking_ms = query_ms(index.scores, queries), query_ms(index.ranking, queries)
        yield (
            f"{size:>8} documents  {building.seconds:>14.2f} {scores_ms:>8.3f} "
            f"{ranking_ms:>14.3f} {query_ms(reference_scores, few):>11.3f}"
        )


def query_ms(search: Callable[[str], object], queries: Sequence[str]) -> float:
    """Milliseconds per query."""
    with timed() as searching:
        for query in queries:
            search(query)

    return searching.ms_per(len(queries))


def vectors() -> Iterator[str]:
    from memeval.retrieval.vectors import VectorIndex

    yield "\nvectors   width     add s   ms per query   recall@20 against exact"
    rng = np.random.default_rng(0)
    for count, width in VECTOR_SIZES:
        rows = sparse_rows(rng, count, width)
        queries = sparse_rows(rng, 40, width)
        with timed() as adding:
            index = VectorIndex(rows)
            index.query(queries[0], 1)

        with timed() as searching:
            rankings = [index.query(query, 20)[0] for query in queries]

        shares = []
        for query, ranking in zip(queries, rankings, strict=True):
            exact = np.argsort(-(rows @ query), kind="stable")[:20]
            shares.append(len(set(ranking) & set(exact.tolist())) / 20)

        index.close()
        yield (
            f"{count:>7} {width:>7} {adding.seconds:>9.2f} {searching.ms_per(len(queries)):>14.2f} "
            f"{np.mean(shares):>12.4f}"
        )


def sparse_rows(rng: np.random.Generator, count: int, width: int) -> Any:
    """Random unit vectors, of which 97 % of the elements are 0."""
    rows = np.abs(rng.normal(size=(count, width))).astype(np.float32)
    rows[rng.random((count, width)) > 0.03] = 0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class SilentReader:
    """Reads nothing, because only the memory is timed."""

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        return ReaderReply("", None, 0)


def build(name: str, width: int, case_id: str = "case", **settings: Any) -> MemorySystem:
    """A system with our embedder; to be called in an event loop."""
    loop = asyncio.get_running_loop()

    def run_sync(awaitable: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), loop).result()

    no_model: Any = None
    embedder = CharTfidfEmbedder(width=width)
    context = SystemContext(SilentReader(), no_model, embedder, 10, 0, case_id, run_sync)
    system = system_class(name)
    return system(read_settings(system.settings_type, settings), context)


async def call(system: MemorySystem, method: str, *args: Any) -> Any:
    """Calls a method as the pipeline does: in a thread, if the system wants one."""
    bound = getattr(system, method)
    if system.in_thread and not inspect.iscoroutinefunction(bound):
        return await asyncio.to_thread(bound, *args)

    result = bound(*args)
    if isinstance(result, Awaitable):
        return await result

    return result


async def ingest(system: MemorySystem, chunks: Iterable[MemoryChunk]) -> None:
    await call(system, "reset")
    for chunk in chunks:
        await call(system, "ingest", chunk)

    await call(system, "consolidate")


def mem0() -> Iterator[str]:
    seconds = asyncio.run(start_mem0())
    yield f"\nmem0, infer=false: import and start {seconds:.2f} s, once per process"
    yield "chunks   width   ms per add   ms per search"
    for count, width in MEM0_SIZES:
        yield asyncio.run(measure_mem0(count, width))


async def start_mem0() -> float:
    system = build("mem0", 16)
    with timed() as starting:
        await ingest(system, [])

    system.close()
    return starting.seconds


async def measure_mem0(count: int, width: int) -> str:
    turns = generate_turns(count)
    chunks = []
    for number, text in enumerate(turns):
        turn_id = f"D1:{number}"
        chunks.append(MemoryChunk(turn_id, text, None, "s1", (turn_id,), ("ann",)))

    system = build("mem0", width)
    with timed() as adding:
        await ingest(system, chunks)

    queries = turns[:100]
    with timed() as searching:
        for text in queries:
            await call(system, "answer", Query(text[:60]))

    system.close()
    search_ms = searching.ms_per(len(queries))
    return f"{count:>6} {width:>7} {adding.ms_per(count):>12.2f} {search_ms:>15.2f}"


def locomo() -> Iterator[str]:
    from memeval.config.schema import GranularityConfig
    from memeval.datasets.granularity import chunks
    from memeval.datasets.locate import build as build_dataset

    path = Path(os.environ.get("MEMEVAL_DATA_DIR", "data")) / "locomo" / "locomo10.json"
    if not path.exists():
        yield "\nLoCoMo: set MEMEVAL_DATA_DIR"
        return

    dataset = build_dataset("locomo", Path(), path=str(path), categories=(1, 2, 3, 4))
    cases = list(dataset.cases())
    turns = [chunks(case, GranularityConfig("turn")) for case in cases]
    questions = sum(len(case.questions) for case in cases)
    yield f"\nLoCoMo, without the reader: {sum(map(len, turns))} turns, {questions} questions"
    yield (
        f"{'system':<20} {'ingest s':>8} {'questions s':>12} {'ms per question':>15} "
        f"{'recall@5':>8} {'@10':>6} {'@20':>6}"
    )
    for name in ("no_memory", "oracle", "long_context", "bm25", "dense", "rag", "mem0"):
        yield asyncio.run(measure_system(cases, turns, name))

    yield asyncio.run(measure_system(cases, turns, "rag", reranker="lexical"))
    yield asyncio.run(measure_system(cases, turns, "mem0", threshold=0.0))


async def measure_system(
    cases: Sequence[EvalCase], turns: Sequence[Sequence[MemoryChunk]], name: str, **settings: Any
) -> str:
    """A system's times and recall over all cases."""
    ingest_s = answer_s = 0.0
    questions, answers = [], []
    for case, chunks in zip(cases, turns, strict=True):
        system = build(name, CharTfidfEmbedder().width, case.case_id, **settings)
        with timed() as ingesting:
            await ingest(system, chunks)

        with timed() as answering:
            for question in case.questions:
                query = OracleQuery(question.text, evidence=question.evidence)
                answers.append(await call(system, "answer", query))

        system.close()
        ingest_s += ingesting.seconds
        answer_s += answering.seconds
        questions += case.questions

    words = [name, *map("{}={}".format, settings.keys(), settings.values())]
    recall = [mean_recall(questions, answers, depth) for depth in DEPTHS]
    return (
        f"{' '.join(words):<20} {ingest_s:>8.2f} {answer_s:>12.2f} "
        f"{1000 * answer_s / len(questions):>14.2f}    {' '.join(recall)}"
    )


def mean_recall(questions: Sequence[EvalQuestion], answers: Sequence[Any], depth: int) -> str:
    """Mean recall of the evidence among the first `depth` chunks, over answers with a ranking."""
    shares = []
    for question, answer in zip(questions, answers, strict=True):
        if answer.ranking is None or not question.evidence:
            continue

        found = set().union(*answer.ranking[:depth]) & set(question.evidence)
        shares.append(len(found) / len(question.evidence))

    return f"{np.mean(shares):>6.3f}" if shares else "     -"


MEASUREMENTS = {"bm25": bm25, "vectors": vectors, "mem0": mem0, "locomo": locomo}

if __name__ == "__main__":
    for name in sys.argv[1:] or MEASUREMENTS:
        for line in MEASUREMENTS[name]():
            print(line, flush=True)
