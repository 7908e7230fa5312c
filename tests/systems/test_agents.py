"""native, summarization, memgpt_lite and graphrag_lite: what each keeps when the agent's window is
compressed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build as open_data
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.memory_prompts import SummarisePrompt
from memeval.llm.tokens import batches, count_tokens, shorten
from memeval.records import EvalCase, EvalQuestion, MemoryChunk, Query, Role
from memeval.systems.registry import settings_of, system_class

from .conftest import Builder, Driver, ScriptedModel, conversation

BUDGET = 512


def demo() -> tuple[EvalCase, list[MemoryChunk]]:
    case = next(iter(open_data("demo", Path("data")).cases()))
    return case, chunks(case, GranularityConfig("turn"))


def evidence_in(
    questions: Sequence[EvalQuestion], units: Sequence[MemoryChunk]
) -> list[EvalQuestion]:
    """Questions whose evidence is entirely within these chunks."""
    held = {turn for unit in units for turn in unit.turn_ids}
    return [
        question for question in questions if question.evidence and set(question.evidence) <= held
    ]


def rolling(
    driver: Driver, units: Sequence[MemoryChunk], every: int, retain: int = 5
) -> list[list[str]]:
    """Ingests with regular compressions; returns the context after each compression."""
    driver.call("reset")
    contexts = []
    for number, unit in enumerate(units, 1):
        driver.call("ingest", unit)
        if number % every == 0:
            driver.call("compress", units[number - retain : number])
            driver.ask(Query("Who?"))
            contexts.append(driver.reader.contexts[-1])
    driver.call("consolidate")
    return contexts


def test_native_loses_exactly_the_turns_before_the_compression(build: Builder) -> None:
    case, units = demo()
    half, retain = len(units) // 2, 5
    driver = build("native")
    driver.remember(units, compress_after=half, retain=retain)
    driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1] == [unit.text for unit in units[half - retain :]]
    lost = evidence_in(case.questions, units[: half - retain])
    kept = evidence_in(case.questions, units[half - retain :])
    assert min(len(lost), len(kept)) > 5
    shown = set(driver.reader.contexts[-1])
    text_of = {unit.turn_ids[0]: unit.text for unit in units}
    assert not any(text_of[turn] in shown for question in lost for turn in question.evidence)
    assert all(text_of[turn] in shown for question in kept for turn in question.evidence)


def test_native_shows_everything_until_it_is_compressed(build: Builder) -> None:
    driver = build("native")
    driver.remember(conversation())
    answer = driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1] == [unit.text for unit in conversation()]
    assert answer.retrieved is None
    assert answer.ranking is None
    assert answer.notes == {}


def test_native_over_budget_drops_the_oldest_chunks_and_notes_it(build: Builder) -> None:
    units = conversation()
    sizes = [count_tokens(unit.text) for unit in units]
    driver = build("native", max_context_tokens=sum(sizes[-3:]) + 1)
    driver.remember(units, compress_after=4, retain=2)
    answer = driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1] == [unit.text for unit in units[-3:]]
    assert answer.notes == {"cut_chunks": 4, "cut_tokens": sum(sizes[2:-3])}


@pytest.mark.parametrize("retain", [0, 1, 5])
def test_second_compression_keeps_only_the_latest_retained_chunks(
    build: Builder, retain: int
) -> None:
    _, units = demo()
    contexts = rolling(build("native"), units, 20, retain)
    assert contexts == [
        [unit.text for unit in units[number - retain : number]]
        for number in range(20, len(units) + 1, 20)
    ]


def test_summary_stays_within_budget_and_keeps_early_content(build: Builder) -> None:
    _, units = demo()
    driver = build("summarization", summary_tokens=BUDGET)
    contexts = rolling(driver, units[:100], 20)
    assert len(contexts) == 5
    first = {sentence for line in contexts[0][0].splitlines() for sentence in line.split(". ")}
    for number, context in enumerate(contexts, 1):
        assert context[1:] == [unit.text for unit in units[20 * number - 5 : 20 * number]]
        assert 0 < count_tokens(context[0]) <= BUDGET
        assert any(sentence in context[0] for sentence in first)
    dates = [unit.text.split("]")[0] + "]" for unit in units[:95]]
    assert all(date in contexts[-1][0] for date in dates), (
        "a summary that keeps the dates lets none of its sessions go"
    )
    health = driver.call("health")
    assert (health.asked, health.lost) == (100, 0)
    assert driver.ask(Query("Who?")).notes == {}


def test_before_the_first_compression_no_summary_is_shown(build: Builder) -> None:
    driver = build("summarization")
    driver.remember(conversation())
    driver.ask(Query("Who?"))
    assert driver.reader.contexts == [[unit.text for unit in conversation()]]


def test_each_compression_passes_the_previous_summary_on(build: Builder) -> None:
    model = ScriptedModel(lambda messages: f"Summary {len(model.calls)}.")
    driver = build("summarization", model=model)
    units = conversation()
    rolling(driver, units, 4, retain=1)
    prompts = [prompt for prompt, _, _ in model.calls if isinstance(prompt, SummarisePrompt)]
    assert [prompt.previous for prompt in prompts] == ["", "Summary 1."]
    assert [prompt.chunks for prompt in prompts] == [
        tuple(u.text for u in units[:3]),
        tuple(u.text for u in units[3:7]),
    ]
    assert {(role, seed) for _, role, seed in model.calls} == {(Role.INGEST, 7)}
    driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1] == ["Summary 2.", *(unit.text for unit in units[7:])]
    assert driver.reader.orders[-1] == [0, 2, 1], "if space is short, the oldest message goes"


def test_summary_over_budget_is_cut_at_a_sentence_and_noted(build: Builder) -> None:
    driver = build(
        "summarization",
        model=ScriptedModel(lambda messages: "One fact here. " * 40),
        summary_tokens=10,
    )
    driver.remember(conversation(), compress_after=6)
    answer = driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1][0] == "One fact here. One fact here."
    assert answer.notes == {"summary cut": "1 of 1 replies were longer than summary_tokens"}


def test_losses_after_a_load_may_exceed_what_was_ingested_since(
    build: Builder, folder: Path
) -> None:
    """A reply whose first word is longer than the budget is useless, so the window from the
    checkpoint is lost too.
    """
    model = ScriptedModel(lambda messages: "too-long-a-word")
    first, later = (build("summarization", model=model, summary_tokens=2) for _ in range(2))
    *before, last = conversation()
    first.remember(before)
    first.call("save", folder)

    later.call("load", folder)
    later.call("ingest", last)
    later.call("compress", [last])
    health = later.call("health")
    assert (health.asked, health.stored, health.lost) == (len(before), 0, len(before))


def test_long_window_is_summarised_in_batches(build: Builder) -> None:
    model = ScriptedModel(lambda messages: "Short.")
    driver = build("summarization", model=model, batch_tokens=60)
    units = conversation()
    driver.remember(units, compress_after=9, retain=1)
    merged = [prompt.chunks for prompt, _, _ in model.calls if isinstance(prompt, SummarisePrompt)]
    assert [unit for batch in merged for unit in batch] == [unit.text for unit in units[:8]]
    assert len(merged) > 2
    assert all(sum(map(count_tokens, batch)) <= 60 for batch in merged)


def test_item_longer_than_a_batch_is_a_batch_by_itself() -> None:
    assert list(batches(["a", "b c d e", "f"], str, 2)) == [["a"], ["b c d e"], ["f"]]
    assert list(batches([], str, 2)) == []


def test_a_batch_holds_as_many_tokens_and_items_as_it_may() -> None:
    assert list(batches("abcde", str, 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(batches("abcde", str, 9, most=2)) == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("One. Two three.", 9, "One. Two three."),
        ("One. Two three.", 4, "One."),
        ("[1:00 pm] One\nTwo three", 8, "[1:00 pm] One"),
        ("No end in sight", 2, "No end"),
        ("Words", 0, ""),
        ("", 3, ""),
    ],
)
def test_text_is_shortened_at_the_end_of_a_sentence(text: str, tokens: int, expected: str) -> None:
    assert shorten(text, tokens) == expected


def test_loaded_summary_calls_no_model(build: Builder, folder: Path) -> None:
    driver = build("summarization")
    driver.remember(conversation(), compress_after=6)
    driver.call("save", folder)
    loaded = build(
        "summarization",
        model=ScriptedModel(lambda messages: pytest.fail("no model should be asked")),
    )
    loaded.call("load", folder)
    assert loaded.ask(Query("Norway")) == driver.ask(Query("Norway"))
    assert loaded.reader.contexts == driver.reader.contexts


def test_only_summarization_calls_a_model_and_has_a_template() -> None:
    for name in ("native", "memgpt_lite", "graphrag_lite", "summarization"):
        kind, settings = system_class(name), settings_of(name)()
        assert kind.uses_llm_at_ingest(settings) == (name == "summarization")
        assert kind.ingest_templates(settings) == (
            ("summarise",) if name == "summarization" else ()
        )


def test_memgpt_still_finds_what_native_lost(build: Builder) -> None:
    case, units = demo()
    half, retain = len(units) // 2, 5
    driver = build("memgpt_lite", top_k=10)
    driver.remember(units, compress_after=half, retain=retain)
    lost = evidence_in(case.questions, units[: half - retain])
    answers = [driver.ask(Query(question.text)) for question in lost]
    found = [
        set(q.evidence) <= {turn for unit in a.retrieved or () for turn in unit.turn_ids}
        for q, a in zip(lost, answers, strict=True)
    ]
    assert sum(found) >= 0.6 * len(lost)
    place = {unit.text: number for number, unit in enumerate(units)}
    seen = zip(answers, driver.reader.contexts, driver.reader.orders, strict=True)
    for answer, context, order in seen:
        shown = [place[text] for text in context]
        assert shown == sorted(shown), "core and archive are shown in order of time"
        assert shown[10:] == list(range(half - retain, len(units)))
        hits = [chunk.text for chunk in answer.retrieved or ()]
        assert len(hits) == 10
        assert [context[position] for position in order] == [*hits, *context[:9:-1]]
        assert len(answer.ranking or ()) == 20


def test_memgpt_archives_each_chunk_once_over_several_compressions(build: Builder) -> None:
    _, units = demo()
    driver = build("memgpt_lite", top_k=500)
    rolling(driver, units, 20)
    ranking = driver.ask(Query("Where does everybody live?")).ranking or ()
    assert sorted(ranking) == sorted(unit.turn_ids for unit in units[:115])
    assert driver.reader.contexts[-1] == [unit.text for unit in units]


def test_memgpt_shows_no_retrieval_before_a_compression(build: Builder) -> None:
    driver = build("memgpt_lite")
    driver.remember(conversation())
    answer = driver.ask(Query("puppy"))
    assert answer.retrieved is None
    assert answer.ranking is None
    assert driver.reader.contexts[-1] == [unit.text for unit in conversation()]


@pytest.mark.parametrize("name", ["memgpt_lite", "graphrag_lite", "native", "summarization"])
def test_a_compressed_memory_answers_identically_when_loaded(
    build: Builder, folder: Path, name: str
) -> None:
    driver = build(name)
    rolling(driver, conversation(), 3, retain=1)
    driver.call("save", folder)
    loaded = build(name)
    loaded.call("load", folder)
    for question in ("puppy", "Where does Bob's sister live?", ""):
        assert loaded.ask(Query(question)) == driver.ask(Query(question))
        assert loaded.reader.contexts[-1] == driver.reader.contexts[-1]


def test_graphrag_ranks_by_the_names_of_the_question(build: Builder) -> None:
    driver = build("graphrag_lite", top_k=2)
    driver.remember(conversation())
    answer = driver.ask(Query("What do we know of Biscuit?"))
    assert {unit.turn_ids[0] for unit in answer.retrieved or ()} == {"D1:1", "D2:3"}


def test_graphrag_includes_neighbours_one_hop_away(build: Builder) -> None:
    driver = build("graphrag_lite")
    driver.remember(conversation())
    ranking = driver.ask(Query("Where does the violinist live?")).ranking or ()
    assert ranking[0] == ("D1:4",)
    assert ("D2:1",) in ranking, "Bob said both"


def test_graphrag_replaces_an_unknown_name_by_the_most_similar_one(build: Builder) -> None:
    driver = build("graphrag_lite", top_k=1)
    driver.remember(conversation())
    for question in ("Has anybody been to Lissbon?", "Has Biscuit been to Lissbon?"):
        assert "Lisbon" in driver.ask(Query(question)).text

    assert driver.ask(Query("zzz")).retrieved == ()


def test_summary_of_undated_chunks_has_no_date(build: Builder) -> None:
    driver = build("summarization")
    driver.remember([replace(unit, time=None) for unit in conversation()], compress_after=8)
    driver.ask(Query("Who?"))
    assert "[" not in driver.reader.contexts[-1][0]


def test_offline_model_summarises_within_the_budget() -> None:
    prompt = SummarisePrompt(
        "",
        tuple(unit.text for unit in conversation()),
        60,
        user_template="{previous} {units} {budget}",
    )
    reply = asyncio.run(ExtractiveModel().complete(prompt, role=Role.INGEST))
    assert 0 < count_tokens(reply.text) <= 60
    assert reply.usage.role is Role.INGEST
    assert reply.usage.prompt_tokens == sum(
        count_tokens(message["content"]) for message in prompt.messages()
    )
