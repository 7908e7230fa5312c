"""hybrid: search by meaning and by words, fused."""

from __future__ import annotations

from pathlib import Path

from memeval.records import Query

from .conftest import Builder, conversation


def test_rare_word_and_another_word_form_are_found(build: Builder) -> None:
    driver = build("hybrid", top_k=1)
    driver.remember(conversation())
    assert "Clara" in driver.ask(Query("Who is a violinist?")).text
    assert "hiking" in driver.ask(Query("Who hikes?")).text


def test_scores_descend(build: Builder) -> None:
    driver = build("hybrid", top_k=9)
    driver.remember(conversation())
    scores = [
        unit.score or 0.0 for unit in driver.ask(Query("the bakery and Biscuit")).retrieved or ()
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] <= 2 / 61


def test_chunk_that_both_rankings_place_first_is_first(build: Builder) -> None:
    query = Query("What will the bakery sell?")
    drivers = {name: build(name) for name in ("bm25", "dense", "hybrid")}
    for driver in drivers.values():
        driver.remember(conversation())
    first = {name: (driver.ask(query).ranking or ())[0] for name, driver in drivers.items()}
    assert first == dict.fromkeys(first, ("D2:2",))


def test_reranker_moves_only_the_best_two_times_top_k(build: Builder) -> None:
    query = Query("Is Portugal where Ann's Biscuit was born?")
    plain, reranked = (build("hybrid", top_k=2, reranker=name) for name in ("none", "lexical"))
    for driver in (plain, reranked):
        driver.remember(conversation())
    before, after = plain.ask(query).ranking or (), reranked.ask(query).ranking or ()
    assert sorted(before[:4]) == sorted(after[:4])
    assert before[4:] == after[4:]
    assert reranked.ask(Query("")).ranking == plain.ask(Query("")).ranking


def test_rrf_k_can_change_without_a_new_ingest(build: Builder, folder: Path) -> None:
    driver, other = build("hybrid", rrf_k=1), build("hybrid", rrf_k=60)
    driver.remember(conversation())
    driver.call("save", folder)
    other.call("load", folder)
    query = Query("the bakery and Biscuit")
    steep, flat = (
        [unit.score or 0.0 for unit in one.ask(query).retrieved or ()] for one in (driver, other)
    )
    assert steep[0] > 10 * flat[0]
