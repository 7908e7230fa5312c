"""The control systems: no_memory, oracle, long_context, random_k and constant."""

from __future__ import annotations

import pytest

from memeval.llm.tokens import count_tokens
from memeval.records import OracleQuery, Query

from .conftest import Builder, by_session, conversation


def test_no_memory_shows_nothing(build: Builder) -> None:
    driver = build("no_memory")
    driver.remember(conversation())
    driver.ask(Query("Who?"))
    assert driver.reader.contexts == [[]]


def test_the_oracle_shows_exactly_the_evidence_in_order_of_time(build: Builder) -> None:
    driver = build("oracle", top_k=1)
    driver.remember(conversation())
    answer = driver.ask(OracleQuery("What about Biscuit?", evidence=("D2:3", "D1:1")))
    assert answer.ranking == (("D1:1",), ("D2:3",))
    assert driver.reader.contexts[-1] == [
        chunk.text for chunk in conversation() if chunk.turn_ids[0] in ("D1:1", "D2:3")
    ]


def test_oracle_finds_sessions_that_contain_the_evidence(build: Builder) -> None:
    driver = build("oracle")
    driver.remember(by_session(conversation()))
    answer = driver.ask(OracleQuery("What about Biscuit?", evidence=("D2:3",)))
    assert answer.retrieved is not None
    assert [unit.turn_ids for unit in answer.retrieved] == [("D2:1", "D2:2", "D2:3", "D2:4")]


def test_the_oracle_refuses_a_plain_query(build: Builder) -> None:
    driver = build("oracle")
    driver.remember(conversation())
    with pytest.raises(TypeError, match="OracleQuery"):
        driver.ask(Query("Who?"))


def test_long_context_shows_everything_in_order_of_time(build: Builder) -> None:
    driver = build("long_context")
    driver.remember(conversation())
    answer = driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1] == [chunk.text for chunk in conversation()]
    assert driver.reader.orders[-1] == [*reversed(range(len(conversation())))]
    assert answer.notes == {}


def test_long_context_over_budget_drops_the_oldest_chunks_and_notes_it(build: Builder) -> None:
    chunks = conversation()
    tokens = [count_tokens(chunk.text) for chunk in chunks]
    driver = build("long_context", max_context_tokens=sum(tokens[-3:]) + 1)
    driver.remember(chunks)
    answer = driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1] == [chunk.text for chunk in chunks[-3:]]
    assert answer.notes == {"cut_chunks": len(chunks) - 3, "cut_tokens": sum(tokens[:-3])}


def test_chunk_that_does_not_fit_is_left_out_entirely(build: Builder) -> None:
    driver = build("long_context", max_context_tokens=1)
    driver.remember(conversation())
    assert driver.ask(Query("Who?")).notes["cut_chunks"] == len(conversation())
    assert driver.reader.contexts[-1] == []


def test_random_k_draws_per_question_and_reproducibly(build: Builder) -> None:
    driver = build("random_k", top_k=2)
    driver.remember(conversation())
    first, second = driver.ask(Query("Who?")), driver.ask(Query("When?"))
    assert first.retrieved is not None and len(first.retrieved) == 2
    assert first.ranking is not None and second.ranking is not None
    assert sorted(first.ranking) == sorted(chunk.turn_ids for chunk in conversation())
    assert first.ranking != second.ranking
    assert driver.ask(Query("Who?")).ranking == first.ranking


def test_constant_gives_the_same_answer_without_the_reader(build: Builder) -> None:
    driver = build("constant")
    driver.remember(conversation())
    assert driver.ask(Query("Who?")).text == "No information available"
    assert driver.ask(Query("Who?", choices=("Ann", "Bob"))).text == "0"
    assert driver.reader.contexts == []
    assert build("constant", text="blue").ask(Query("Who?")).text == "blue"
