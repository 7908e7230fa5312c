"""What every memory system must do, tested on all built-in classes.

Each has the default settings of its class: names that share a class would repeat the same test.
test_conformance.py tests the settings of each name's YAML.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memeval.records import Answer, OracleQuery, Query, format_time
from memeval.systems.registry import SYSTEMS as REGISTRY
from memeval.systems.registry import built_in

from .conftest import DATES, Builder, by_session, conversation

FIRST_OF_CLASS = {REGISTRY.path_of(name): name for name in sorted(built_in(), reverse=True)}
"""The first name of each class."""
ALL = sorted(
    set(FIRST_OF_CLASS.values()) - {"letta", "http", "mcp", "command"}
)  # the others need a server: their own tests run against one
UNSEARCHED = [
    "constant",
    "full_history",
    "last_k",
    "long_context",
    "native",
    "no_memory",
    "summarization",
    "working_memory",
]
"""Systems that return the same chunks for any question."""
RETRIEVES = [name for name in ALL if name not in (*UNSEARCHED, "memgpt_lite")]
"""Systems that search the conversation; memgpt_lite searches only what a compression dropped
(test_agents).
"""
RANKS = [name for name in RETRIEVES if name != "oracle"]
SHOWS = [name for name in ALL if name != "constant"]
"""Systems that call the reader; `constant` always gives the same answer."""
SHOW_MORE = ["combined", "light", "semantic_recall"]
"""Systems that show more than they retrieved: neighbours, last messages, a form."""
FORMS = ["combined", "working_memory"]
"""Systems that show a form, whose headings bear no date."""
SHOWN_DATES = {format_time(date) for date in DATES}
OWN_TOP_K = {name: {"top_k": None} for name in ALL if name.startswith("cogcanvas")}
"""Systems with their own `top_k`, and the settings that make them use that of the run."""
QUESTION = OracleQuery("Where does Bob's sister play the violin?", evidence=("D1:4",))
OTHERS = [
    QUESTION,
    OracleQuery("What is the puppy called?", evidence=("D1:1", "D2:3")),
    OracleQuery("What does the bakery sell?", evidence=("D2:3",)),
    OracleQuery("Bye", evidence=("D1:5",)),
    OracleQuery("zzz qqq", evidence=()),
    OracleQuery("", evidence=()),
]


@pytest.mark.parametrize("name", ALL)
def test_reset_forgets_the_previous_conversation(build: Builder, name: str) -> None:
    driver = build(name)
    driver.remember(by_session(conversation())[:1])
    driver.remember(by_session(conversation())[1:])
    for query in OTHERS:
        assert "Norway" not in driver.ask(query).text


def shown_sessions(answer: Answer) -> set[str]:
    """Beginnings of the ids of the turns that were found."""
    return {turn[:3] for chunk in answer.retrieved or () for turn in chunk.turn_ids}


@pytest.mark.parametrize("name", RETRIEVES)
def test_two_cases_do_not_mix(build: Builder, name: str) -> None:
    first, second = build(name, case_id="a"), build(name, case_id="b")
    first.remember(conversation()[:5])
    second.remember(conversation()[5:])
    query = OracleQuery("What does the bakery sell?", evidence=("D2:3",))
    assert "D2:" in shown_sessions(second.ask(query))
    assert "D2:" not in shown_sessions(first.ask(query))


@pytest.mark.parametrize("name", ALL)
def test_same_input_gives_same_output(build: Builder, name: str) -> None:
    answers = []
    for _ in range(2):
        driver = build(name)
        driver.remember(conversation())
        answers.append([driver.ask(query) for query in OTHERS])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ALL)
def test_concurrent_questions_do_not_change_answers(build: Builder, name: str) -> None:
    driver = build(name)
    driver.remember(conversation())
    alone = [driver.ask(query) for query in OTHERS]
    assert driver.ask_at_once(OTHERS * 3) == alone * 3


@pytest.mark.parametrize("name", SHOWS)
def test_all_dates_shown_are_those_of_the_conversation(build: Builder, name: str) -> None:
    driver = build(name)
    driver.remember(conversation())
    for query in OTHERS:
        for unit in driver.ask(query).text.split(" | "):
            if unit:
                assert unit.startswith("[") or name in FORMS
                assert set(re.findall(r"\[(.*?)\]", unit)) <= SHOWN_DATES


@pytest.mark.parametrize("name", RETRIEVES)
@pytest.mark.parametrize("granularity", ["turn", "session"])
def test_retrieved_chunks_name_the_turns_they_contain(
    build: Builder, name: str, granularity: str
) -> None:
    turns = {chunk.turn_ids[0]: chunk for chunk in conversation()}
    driver = build(name)
    driver.remember(conversation() if granularity == "turn" else by_session(conversation()))
    answer = driver.ask(QUESTION)
    assert answer.retrieved
    for unit in answer.retrieved:
        shown = re.sub(r"^\[.*?\] ", "", unit.text)
        assert unit.turn_ids
        for turn in unit.turn_ids:
            content = turns[turn].content
            assert (
                any(shown[start : start + 8] in content for start in range(len(shown) - 7))
                or content in shown
            )


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("top_k", [1, 3, 5, 50])
def test_top_k_limits_what_is_retrieved(build: Builder, name: str, top_k: int) -> None:
    driver = build(name, OWN_TOP_K.get(name), top_k=top_k)
    driver.remember(conversation())
    answer = driver.ask(QUESTION)
    assert answer.retrieved is not None
    assert answer.ranking is not None
    assert 0 < len(answer.retrieved) <= top_k
    if name in SHOW_MORE:
        assert {unit.text for unit in answer.retrieved} <= set(driver.reader.contexts[-1])
    else:
        assert driver.reader.contexts[-1] == [unit.text for unit in answer.retrieved]
    assert answer.ranking[: len(answer.retrieved)] == tuple(
        unit.turn_ids for unit in answer.retrieved
    )
    # random_k may rank any chunk first.
    assert "Clara" in answer.retrieved[0].text or name == "random_k"


@pytest.mark.parametrize("name", RANKS)
def test_larger_top_k_only_adds_chunks(build: Builder, name: str) -> None:
    small, large = (build(name, OWN_TOP_K.get(name), top_k=top_k) for top_k in (2, 6))
    for driver in (small, large):
        driver.remember(conversation())
    assert (small.ask(QUESTION).retrieved or ()) == (large.ask(QUESTION).retrieved or ())[:2]


@pytest.mark.parametrize("name", UNSEARCHED)
def test_system_without_search_reports_no_retrieval_and_no_ranking(
    build: Builder, name: str
) -> None:
    driver = build(name)
    driver.remember(conversation())
    answer = driver.ask(QUESTION)
    assert answer.retrieved is None
    assert answer.ranking is None


@pytest.mark.parametrize("name", ALL)
def test_a_loaded_memory_answers_identically(build: Builder, folder: Path, name: str) -> None:
    driver = build(name)
    driver.remember(conversation(), compress_after=6)
    driver.call("save", folder)
    loaded = build(name)
    loaded.call("load", folder)
    assert [loaded.ask(query) for query in OTHERS] == [driver.ask(query) for query in OTHERS]


@pytest.mark.parametrize("name", sorted({*ALL} - {"no_memory", "constant"}))
def test_a_damaged_memory_is_refused(build: Builder, folder: Path, name: str) -> None:
    driver = build(name)
    driver.remember(conversation())
    driver.call("save", folder)
    for path in folder.iterdir():
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises((OSError, ValueError, KeyError, TypeError)):
            build(name).call("load", folder)
        path.write_bytes(whole)


@pytest.mark.parametrize("name", SHOWS)
def test_empty_conversation_has_an_empty_answer(build: Builder, folder: Path, name: str) -> None:
    driver = build(name)
    driver.remember([])
    assert driver.ask(QUESTION).text == ""
    driver.call("save", folder)
    loaded = build(name)
    loaded.call("load", folder)
    assert loaded.ask(QUESTION).text == ""


@pytest.mark.parametrize("name", ALL)
def test_a_conversation_without_dates_shows_none(build: Builder, name: str) -> None:
    undated = [
        type(chunk)(
            chunk.chunk_id, chunk.content, None, chunk.session_id, chunk.turn_ids, chunk.speakers
        )
        for chunk in conversation()
    ]
    driver = build(name)
    driver.remember(undated)
    assert "[" not in driver.ask(QUESTION).text


def test_only_the_oracle_asks_for_evidence(build: Builder) -> None:
    assert [name for name in ALL if build(name).system.wants_evidence] == ["oracle"]


@pytest.mark.parametrize("name", [name for name in ALL if name != "oracle"])
def test_evidence_does_not_change_the_answer(build: Builder, name: str) -> None:
    driver = build(name)
    driver.remember(conversation())
    assert driver.ask(QUESTION) == driver.ask(Query(QUESTION.text))
