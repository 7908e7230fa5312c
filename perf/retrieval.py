"""What retrieval costs: `python perf/retrieval.py [bm25] [vectors] [mem0] [locomo]`, all of them by
default.

Wall times on a shared machine are upper bounds; compare within one run. `locomo` needs
MEMEVAL_DATA_DIR. With OPENBLAS_NUM_THREADS=1, mem0 searches up to three times as fast on busy
cores: the threads of a small product wait for each other.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memeval.records import MemoryChunk, OracleQuery, Query
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.systems.base import MemorySystem, ReaderReply, SystemContext
from memeval.systems.registry import build_system

WORDS = [f"word{number}" for number in range(8000)]


class Clock:
    """Seconds of the block that `timed` surrounded."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Clock]:
    clock, start = Clock(), time.perf_counter()
    yield clock
    clock.seconds = time.perf_counter() - start


def texts_of(count: int) -> list[str]:
    """Turns of 20 words, a speaker's name in half of them, words as frequent as in speech."""
    chance = random.Random(0)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
    return [
        f"{chance.choice(['ann', 'bob'])}: {' '.join(chance.choices(WORDS, weights, k=20))}"
        for _ in range(count)
    ]


def bm25() -> None:
    from rank_bm25 import BM25Okapi

    from memeval.retrieval.bm25 import Bm25Index
    from memeval.text.words import search_terms

    print("\nBM25: ms a query          build s    index   full ranking   rank_bm25")
    for size in (400, 700, 5_000, 50_000):
        texts = texts_of(size)
        queries = [f"ann {text[5:60]}" for text in texts[:: max(1, size // 50)]][:50]
        with timed() as building:
            index = Bm25Index(texts)
        reference = BM25Okapi([search_terms(text) for text in texts])
        with timed() as scoring:
            for query in queries:
                index.scores(query)
        with timed() as ranking:
            for query in queries:
                index.ranking(query)
        few = queries[: 50 if size < 50_000 else 5]
        with timed() as okapi:
            for query in few:
                reference.get_scores(search_terms(query))
        cost = [
            1000 * scoring.seconds / len(queries),
            1000 * ranking.seconds / len(queries),
            1000 * okapi.seconds / len(few),
        ]
        print(
            f"{size:>8} documents  {building.seconds:>14.2f} {cost[0]:>8.3f} {cost[1]:>14.3f} "
            f"{cost[2]:>11.3f}"
        )


def vectors() -> None:
    from memeval.retrieval.vectors import VectorIndex

    print("\nvectors   width     add s   ms a query   recall@20 against exact")
    rng = np.random.default_rng(0)
    for count, width in [
        (700, 512),
        (700, 2048),
        (700, 4096),
        (700, 8192),
        (50_000, 512),
        (60_000, 512),
    ]:
        rows = _sparse_rows(rng, count, width)
        queries = _sparse_rows(rng, 40, width)
        with timed() as adding:
            index = VectorIndex(rows)
            index.query(queries[0], 1)
        with timed() as asking:
            found = [index.query(query, 20)[0] for query in queries]
        exact = [np.argsort(-(rows @ query), kind="stable")[:20] for query in queries]
        recall = np.mean(
            [
                len(set(one) & set(other.tolist())) / 20
                for one, other in zip(found, exact, strict=True)
            ]
        )
        print(
            f"{count:>7} {width:>7} {adding.seconds:>9.2f} "
            f"{1000 * asking.seconds / len(queries):>12.2f} {recall:>12.4f}"
        )
        index.close()


def _sparse_rows(rng: np.random.Generator, count: int, width: int) -> Any:
    rows = np.abs(rng.normal(size=(count, width))).astype(np.float32)
    rows[rng.random((count, width)) > 0.03] = 0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class SilentReader:
    """Reads nothing: what is timed is the memory."""

    async def answer(self, query: Query, context: Sequence[str]) -> ReaderReply:
        return ReaderReply("", None, 0)


def _parts(loop: asyncio.AbstractEventLoop, width: int, case_id: str = "case") -> SystemContext:
    def run_sync(awaitable: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), loop).result()

    nobody: Any = None
    return SystemContext(
        SilentReader(), nobody, CharTfidfEmbedder(width=width), 10, 0, case_id, run_sync
    )


async def _run(system: MemorySystem, method: str, *args: Any) -> Any:
    bound = getattr(system, method)
    if system.in_thread and not asyncio.iscoroutinefunction(bound):
        return await asyncio.to_thread(bound, *args)
    result = bound(*args)
    return await result if isinstance(result, Awaitable) else result


async def _ingest(system: MemorySystem, chunks: Sequence[MemoryChunk]) -> None:
    await _run(system, "reset")
    for chunk in chunks:
        await _run(system, "ingest", chunk)
    await _run(system, "consolidate")


def mem0() -> None:
    async def measure() -> None:
        warm = build_system("mem0", {}, _parts(asyncio.get_running_loop(), 16))
        with timed() as starting:
            await _ingest(warm, [])
        warm.close()
        print(f"\nmem0, infer=false: import and start {starting.seconds:.2f} s, once a process")
        print("chunks   width   ms an add   ms a search")
        for count, width in [
            (200, 2048),
            (700, 512),
            (700, 2048),
            (700, 4096),
            (700, 8192),
            (2000, 2048),
        ]:
            texts = texts_of(count)
            chunks = [
                MemoryChunk(f"D1:{n}", text, None, "s1", (f"D1:{n}",), ("ann",))
                for n, text in enumerate(texts)
            ]
            system = build_system("mem0", {}, _parts(asyncio.get_running_loop(), width))
            with timed() as adding:
                await _ingest(system, chunks)
            with timed() as asking:
                for text in texts[:100]:
                    await _run(system, "answer", Query(text[:60]))
            print(
                f"{count:>6} {width:>7} {1000 * adding.seconds / count:>11.2f} "
                f"{10 * asking.seconds:>13.2f}"
            )
            system.close()

    asyncio.run(measure())


def locomo() -> None:
    from memeval.datasets.granularity import Granularity, chunks
    from memeval.datasets.locate import build

    path = Path(os.environ.get("MEMEVAL_DATA_DIR", "data")) / "locomo" / "locomo10.json"
    if not path.exists():
        print("\nLoCoMo: set MEMEVAL_DATA_DIR")
        return
    cases = [
        (case, chunks(case, Granularity("turn")))
        for case in build("locomo", Path(), path=str(path), categories=(1, 2, 3, 4)).cases()
    ]
    total = sum(len(cut) for _, cut in cases), sum(len(case.questions) for case, _ in cases)
    print(f"\nLoCoMo: {total[0]} turns, {total[1]} questions, one after the other, reader left out")
    print(
        f"{'system':<16} {'ingest s':>8} {'questions s':>12} {'ms a question':>14} "
        f"{'recall@5':>9} {'@10':>6} {'@20':>6}"
    )

    async def measure(name: str, settings: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        ingest = ask = 0.0
        hits: dict[int, list[float]] = {5: [], 10: [], 20: []}
        for case, cut in cases:
            system = build_system(
                name, settings, _parts(loop, CharTfidfEmbedder().width, case.case_id)
            )
            with timed() as clock:
                await _ingest(system, cut)
            ingest += clock.seconds
            with timed() as clock:
                answers = [
                    await _run(system, "answer", OracleQuery(one.text, evidence=one.evidence))
                    for one in case.questions
                ]
            ask += clock.seconds
            for question, answer in zip(case.questions, answers, strict=True):
                for depth in hits if answer.ranking is not None and question.evidence else ():
                    found = {turn for turns in answer.ranking[:depth] for turn in turns}
                    hits[depth].append(len(found & set(question.evidence)) / len(question.evidence))
            system.close()
        recall = [f"{np.mean(values):>6.3f}" if values else "     -" for values in hits.values()]
        title = " ".join([name, *(f"{key}={value}" for key, value in settings.items())])
        print(
            f"{title:<16} {ingest:>8.2f} {ask:>12.2f} {1000 * ask / total[1]:>14.2f}    "
            f"{' '.join(recall)}",
            flush=True,
        )

    for name in ("no_memory", "oracle", "long_context", "bm25", "dense", "rag", "mem0"):
        asyncio.run(measure(name, {}))
    asyncio.run(measure("rag", {"rerank": "lexical"}))
    asyncio.run(measure("mem0", {"threshold": 0.0}))


if __name__ == "__main__":
    known = {"bm25": bm25, "vectors": vectors, "mem0": mem0, "locomo": locomo}
    for part in sys.argv[1:] or known:
        known[part]()
