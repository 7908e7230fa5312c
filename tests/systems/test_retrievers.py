"""bm25, dense and rag: what is particular to each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build as dataset_of
from memeval.records import Answer, MemoryChunk, Query, Retrieved
from memeval.systems.retrieval import bm25

from .conftest import DATES, Builder, by_session, conversation

SHARED = Path(os.environ.get("MEMEVAL_DATA_DIR", "data"))
LOCOMO = SHARED / "locomo" / "locomo10.json"
REFERENCE = (
    Path(os.environ.get("MEMEVAL_REFERENCE_DIR", SHARED.parent / "reference"))
    / "locomo_bm25_conv26.jsonl"
)


def test_bm25_ranks_every_chunk_and_scores_what_is_shown(build: Builder) -> None:
    driver = build("bm25", top_k=2)
    driver.remember(conversation())
    answer = driver.ask(Query("the bakery and Biscuit"))
    assert answer.ranking is not None
    assert answer.retrieved is not None
    assert sorted(answer.ranking) == sorted(chunk.turn_ids for chunk in conversation())
    assert all(unit.score is not None for unit in answer.retrieved)


@pytest.mark.parametrize(("most", "top_k", "ranked"), [(3, 2, 3), (3, 4, 4)])
def test_bm25_ranks_a_limited_number_but_all_that_is_shown(
    build: Builder, monkeypatch: pytest.MonkeyPatch, most: int, top_k: int, ranked: int
) -> None:
    query = Query("the bakery and Biscuit")
    whole, cut = build("bm25", top_k=top_k), build("bm25", top_k=top_k)
    cut.remember(conversation())
    whole.remember(conversation())
    whole_ranking = whole.ask(query).ranking or ()
    monkeypatch.setattr(bm25, "MAX_RANKED", most)
    monkeypatch.setattr(type(cut.system), "ranking_depth", top_k)
    answer = cut.ask(query)
    assert answer.ranking == whole_ranking[:ranked]
    assert len(answer.retrieved or ()) == top_k


class WorstFirst(bm25.Bm25):
    """Changes what `recall` returns."""

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        return (await super().recall(query, depth))[::-1]


class OnlyLast(bm25.Bm25):
    """Changes what the reader gets."""

    async def answer_from(self, query: Query, ranked: Sequence[Retrieved]) -> Answer:
        return await super().answer_from(query, ranked[-1:])


@pytest.mark.parametrize("changed", [WorstFirst, OnlyLast])
def test_a_class_of_ones_own_answers_from_what_it_recalls(build: Builder, changed: type) -> None:
    query = Query("the bakery and Biscuit")
    usual, own = build("bm25", top_k=1), build("bm25", top_k=1)
    own.system.__class__ = changed
    for driver in (usual, own):
        driver.remember(conversation())
    ranking, answer = usual.ask(query).ranking or (), own.ask(query)
    assert [chunk.turn_ids for chunk in answer.retrieved or ()] == [ranking[-1]]
    assert (answer.ranking or ())[:1] == (ranking[-1],)


def test_bm25_indexes_dates_only_if_asked(build: Builder) -> None:
    query = Query("june")
    plain, dated = build("bm25"), build("bm25", index_date=True)
    for driver in (plain, dated):
        driver.remember(by_session(conversation()) + by_session(conversation())[:1])
    assert (dated.ask(query).retrieved or ())[0].turn_ids[0] == "D2:1"
    assert (plain.ask(query).retrieved or ())[0].score == 0


def test_dense_finds_a_word_in_another_form(build: Builder) -> None:
    driver = build("dense", top_k=1)
    driver.remember(conversation())
    assert "hiking" in driver.ask(Query("Who hikes?")).text


def test_rag_shows_passages_with_the_date_of_their_session(build: Builder) -> None:
    driver = build("rag", chunk_size=60, overlap=20, top_k=2)
    driver.remember(conversation())
    answer = driver.ask(Query("Where is Clara a violinist?"))
    assert answer.retrieved is not None
    assert "D1:4" in answer.retrieved[0].turn_ids
    assert answer.retrieved[0].text.startswith("[1:56 pm on 8 May 2023] ")
    assert all(len(unit.text.split("] ", 1)[1]) <= 60 for unit in answer.retrieved)


def test_rag_reranks_the_best_two_times_top_k(build: Builder) -> None:
    query = Query("Is Portugal where Ann's Biscuit was born?")
    plain, reranked = (
        build("rag", chunk_size=60, overlap=0, top_k=2, reranker=name)
        for name in ("none", "lexical")
    )
    for driver in (plain, reranked):
        driver.remember(conversation())
    before, after = plain.ask(query).ranking or (), reranked.ask(query).ranking or ()
    assert before != after
    assert sorted(before[:4]) == sorted(after[:4])
    assert before[4:] == after[4:]


@pytest.mark.parametrize("system", ["rag", "graphrag_lite"])
@pytest.mark.parametrize(("compress_after", "left"), [(4, 2), (7, 5), (99, 0)])
def test_window_is_shown_in_full_without_repeating_hits(
    build: Builder, system: str, compress_after: int, left: int
) -> None:
    chunks = conversation()
    for shows_window in (False, True):
        driver = build(system, top_k=1, show_window=shows_window)
        driver.remember(chunks, compress_after=compress_after, retain=2)
        answer = driver.ask(Query("puppy"))
        found = [chunk.text for chunk in answer.retrieved or ()]
        window = [chunk.text for chunk in chunks[left:]] if shows_window else []
        seen = driver.reader.contexts[-1]
        assert len(found) == 1
        assert seen == [*found, *(text for text in window if text not in found)]


@pytest.mark.parametrize("system", ["rag", "graphrag_lite", "cogcanvas"])
def test_latest_chunks_of_the_window_have_priority(build: Builder, system: str) -> None:
    driver = build(system, top_k=1, show_window=True)
    driver.remember(conversation(), compress_after=7, retain=2)
    found = len(driver.ask(Query("puppy")).retrieved or ())
    (order,), (context,) = driver.reader.orders, driver.reader.contexts
    assert len(context) > found + 2
    # With a `context_tokens` limit, the last chunks of this order are left out.
    assert order == [*range(found), *range(len(context) - 1, found - 1, -1)]


def test_a_later_compression_replaces_the_window(build: Builder) -> None:
    chunks = conversation()
    driver = build("rag", top_k=1, show_window=True)
    driver.call("reset")
    for number, chunk in enumerate(chunks, 1):
        driver.call("ingest", chunk)
        if number in (3, 6):
            driver.call("compress", chunks[number - 1 : number])
    driver.call("consolidate")
    driver.ask(Query("puppy"))
    assert driver.reader.contexts[-1][1:] == [chunk.text for chunk in chunks[5:]]


def test_saved_memory_keeps_the_window(build: Builder, folder: Path) -> None:
    driver = build("rag", top_k=1, show_window=True)
    driver.remember(conversation(), compress_after=4)
    driver.call("save", folder)
    loaded = build("rag", top_k=1, show_window=True)
    loaded.call("load", folder)
    loaded.ask(Query("puppy"))
    driver.ask(Query("puppy"))
    assert loaded.reader.contexts == driver.reader.contexts


def test_a_passage_does_not_span_sessions(build: Builder) -> None:
    driver = build("rag", chunk_size=5000, overlap=0)
    driver.remember(conversation())
    answer = driver.ask(Query("bakery"))
    assert answer.retrieved is not None
    assert sorted(len(unit.turn_ids) for unit in answer.retrieved) == [4, 5]
    assert DATES[0] != DATES[1]


@pytest.mark.real_data
@pytest.mark.skipif(
    not (LOCOMO.exists() and REFERENCE.exists()),
    reason="needs MEMEVAL_DATA_DIR with locomo, and the reference next to it",
)
@pytest.mark.parametrize("granularity", ["turn", "session"])
def test_bm25_reproduces_the_reference_ranks_of_conv_26(build: Builder, granularity: str) -> None:
    rows = [json.loads(line) for line in REFERENCE.read_text(encoding="utf-8").splitlines()]
    expected = {
        row["question_id"]: row["top20"] for row in rows if row["granularity"] == granularity
    }
    case = next(
        case
        for case in dataset_of("locomo", Path(), path=str(LOCOMO), images="none").cases()
        if case.case_id == "conv-26"
    )
    units = chunks(case, GranularityConfig(granularity))
    names = {unit.turn_ids: _reference_name(unit, granularity) for unit in units}
    driver = build("bm25", top_k=20)
    driver.remember(units)
    asked = [question for question in case.questions if question.question_id in expected]
    assert len(asked) == len(expected) > 190
    for question in asked:
        ranking = driver.ask(Query(question.text)).ranking or ()
        assert [names[turns] for turns in ranking[:20]] == expected[question.question_id], (
            question.question_id
        )


def _reference_name(unit: MemoryChunk, granularity: str) -> str:
    return unit.turn_ids[0] if granularity == "turn" else unit.session_id.upper()
