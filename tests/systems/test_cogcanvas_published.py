"""The published CogCanvas, rule by rule: the expected values were computed with its original
functions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from growth import processor_s

from memeval.llm.memory_prompts import ExtractPrompt
from memeval.llm.prompts import load_builtin
from memeval.records import MemoryChunk, Query
from memeval.systems.cogcanvas.artifacts import Artifact
from memeval.systems.cogcanvas.dates import point_dates, time_expressions
from memeval.systems.cogcanvas.extraction import Extractor, batches, shared_words
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.links import Edges
from memeval.systems.cogcanvas.retrieval import (
    adapted_top_k,
    hybrid,
    plain_words,
    within_budget,
)
from memeval.systems.cogcanvas.settings import CogCanvasSettings
from memeval.testing.model import ScriptedModel

from .conftest import Builder, conversation

SAID = datetime(2023, 5, 8, 13, 56)
PAPER_A = CogCanvasSettings(constraint_window=5, constraint_links=3, constraint_overlap=False)


def artifact(kind: str, batch: int, content: str = "alpha", quote: str = "") -> Artifact:
    return Artifact(
        kind=kind,
        content=content,
        quote=quote,
        speaker="Ann",
        turn_ids=(f"D1:{batch}",),
        time=SAID,
        dates=(),
        people=(),
        chunk_index=batch,
        start=0,
        batch=batch,
    )


def linked(
    new: Artifact,
    old: Sequence[tuple[Artifact, float]],
    rules: CogCanvasSettings | None = None,
) -> list[tuple[int, str]]:
    """The old artifacts that the new one is linked to, and by which rule.

    Each old artifact is given with its cosine to the new one.
    """
    width = len(old)
    vectors = np.vstack([np.eye(width), [cosine for _, cosine in old]])
    artifacts = [*(other for other, _ in old), new]
    canvas = Canvas(artifacts, vectors.astype(np.float64), rules or CogCanvasSettings())  # type: ignore[arg-type]
    return sorted(
        (target, edges.rule)
        for edges in canvas.edges
        for source, target in edges.pairs.tolist()
        if source == width
    )


def by_rule(links: Sequence[tuple[int, str]], rule: str) -> list[int]:
    return [target for target, other in links if other == rule]


# Rules of the graph


@pytest.mark.parametrize(
    ("content", "quote", "cosine", "is_linked"),
    [
        ("alpha", "", 0.51, True),
        ("beta", "", 0.49, False),
        ("gamma budget", "", 0.31, True),
        ("gamma budget", "", 0.29, False),
        ("beta", "The budget", 0.31, False),
    ],
)
def test_rule_1_links_references_by_cosine_or_shared_words(
    content: str, quote: str, cosine: float, is_linked: bool
) -> None:
    new = artifact("reminder", 2, "delta", "The Budget.")
    old = artifact("reminder", 1, content, quote)
    assert linked(new, [(old, cosine)]) == ([(0, "reference")] if is_linked else [])


def test_artifacts_of_one_call_are_not_linked() -> None:
    assert linked(artifact("todo", 1), [(artifact("decision", 1), 0.9)]) == []


@pytest.mark.parametrize(("turn", "cause"), [(6, 1), (7, 4)])
def test_rule_2_links_a_todo_to_its_decision(turn: int, cause: int) -> None:
    decisions = {1: 0.60, 4: 0.48, 5: 0.46, 7: 0.90}
    old = [(artifact("decision", at), cosine) for at, cosine in decisions.items()]
    causes = by_rule(linked(artifact("todo", turn, "omega"), old), "todo")
    assert [list(decisions)[position] for position in causes] == [cause]


def test_rule_3_links_an_insight_to_its_sources() -> None:
    old = [
        (artifact("key_fact", 3, "omega"), 0.46),
        (artifact("decision", 4, "omega"), 0.44),
        (artifact("key_fact", 5, "three lesson"), 0.31),
        (artifact("reminder", 5, "omega"), 0.46),
        (artifact("key_fact", 2, "omega"), 0.46),
    ]
    assert by_rule(linked(artifact("insight", 6, "a lesson"), old), "insight") == [0, 2]


def test_rule_4_links_a_decision_to_its_latest_constraints() -> None:
    kinds = [("key_fact", 2), ("key_fact", 3), ("reminder", 4), ("key_fact", 4)]
    old = [(artifact(kind, at, "budget"), -0.2) for kind, at in kinds]
    assert by_rule(linked(artifact("decision", 5, "budget"), old), "constraint") == [2, 3]
    assert by_rule(linked(artifact("decision", 5, "omega"), old), "constraint") == []
    assert by_rule(linked(artifact("decision", 5, "omega"), old, PAPER_A), "constraint") == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(("kind", "rule"), [("event", "person"), ("relationship", "relationship")])
@pytest.mark.parametrize(
    ("content", "cosine", "is_linked"),
    [("shared", -0.3, True), ("other", 0.5000001, True), ("other", 0.49, False)],
)
def test_rules_5_and_6_link_events_and_relationships_to_a_person(
    kind: str, rule: str, content: str, cosine: float, is_linked: bool
) -> None:
    old = [(artifact("person_attribute", 1, content), cosine)]
    assert by_rule(linked(artifact(kind, 50, "shared"), old), rule) == [0] * is_linked


def test_rule_7_links_a_decision_to_earlier_events() -> None:
    old = [(artifact("event", at, "budget"), -0.2) for at in (1, -5, -6)]
    assert by_rule(linked(artifact("decision", 5, "budget"), old), "event") == [0, 1]


def test_temporal_switches_only_rules_4_and_7() -> None:
    artifacts = [
        artifact("key_fact", 1, "budget"),
        artifact("event", 1, "budget"),
        artifact("decision", 2, "budget"),
        artifact("insight", 3, "budget"),
    ]
    vectors = np.eye(4)
    vectors[3] = [0, 0, 0.9, 0.1]
    canvas = Canvas(artifacts, vectors.astype(np.float64), CogCanvasSettings())  # type: ignore[arg-type]
    assert canvas.edges_by_rule() == {"constraint": 1, "event": 1, "insight": 1, "reference": 1}
    seed = {2: 1.0}
    assert canvas.expand(seed, 1, temporal=True) == {0: 0.8, 1: 0.8, 2: 1.0, 3: 0.8}
    assert canvas.expand(seed, 1, temporal=False) == {2: 1.0, 3: 0.8}


# Graph expansion


def canvas_with(edges: Sequence[tuple[int, int, str]], size: int) -> Canvas:
    """A graph with exactly these edges: no rule adds any, because all artifacts are from one
    call.
    """
    artifacts = [artifact("key_fact", 0, f"content {number}") for number in range(size)]
    canvas = Canvas(artifacts, np.eye(size), CogCanvasSettings())  # type: ignore[arg-type]
    canvas.connect(
        [Edges(kind, "reference", np.array([[newer, older]])) for newer, older, kind in edges]
    )
    return canvas


def test_the_published_expansion_of_a_path_reaches_twice_as_far() -> None:
    path = canvas_with([(number, number + 1, "references") for number in range(7)], 8)
    assert path.expand_as_published({0: 1.0}, 3, temporal=True) == pytest.approx(
        {0: 1.0, 1: 0.8, 2: 0.64, 3: 0.512, 4: 0.4096, 5: 0.262144, 6: 0.134218}, abs=1e-6
    )
    ours = path.expand({0: 1.0}, 3, temporal=True)
    assert ours == pytest.approx({0: 1.0, 1: 0.8, 2: 0.64, 3: 0.512}), (
        "by the best path, hops are hops"
    )


@pytest.mark.parametrize(
    ("hops", "scores"),
    [
        (1, [("s1", 0.9), ("s2", 0.8), ("y", 0.72), ("x", 0.72)]),
        (2, [("s1", 0.9), ("y", 0.72), ("x", 0.72), ("z", 0.576), ("s2", 0.576)]),
    ],
)
def test_published_expansion_keeps_the_score_of_the_first_visit(
    hops: int, scores: list[tuple[str, float]]
) -> None:
    names = ["s1", "s2", "x", "y", "z"]
    edges = [
        ("s2", "x", "references"),
        ("y", "s1", "references"),
        ("x", "s1", "caused_by"),
        ("x", "z", "references"),
    ]
    numbered = [(names.index(a), names.index(b), kind) for a, b, kind in edges]
    reached = canvas_with(numbered, 5).expand_as_published({0: 0.9, 1: 0.8}, hops, temporal=True)
    by_name = {names[node]: score for node, score in reached.items()}
    assert by_name == pytest.approx(dict(scores))


def test_published_expansion_of_a_dense_graph_is_fast() -> None:
    # With real embeddings nearly every artifact is linked to all earlier ones, because the
    # speakers' names are a common word. A search from each of them takes 20 s.
    size = 600
    artifacts = [artifact("key_fact", number) for number in range(size)]
    canvas = Canvas(artifacts, np.ones((size, 1)), CogCanvasSettings())  # type: ignore[arg-type]
    assert canvas.edge_counts["all"] == size * (size - 1) / 2

    def expand(hops: int) -> None:
        reached = canvas.expand_as_published({0: 1.0, 1: 0.9}, hops, temporal=True)
        assert len(reached) == size

    assert processor_s(expand, 4) < 4


# Retrieval


def test_fusion_uses_unscaled_cosines() -> None:
    dense = np.array([0.30, 0.60, 0.50, -0.10, 0.05])
    words = np.array([2.5, 0.0, 0.0, 0.0, 0.0])
    fused = hybrid(dense, words)
    assert fused.tolist() == pytest.approx([0.51, 0.42, 0.35, -0.07, 0.035])


def test_bm25_words_have_no_case_or_punctuation() -> None:
    assert plain_words("The  Budget: Ann's\nlist!") == "the budget anns list"


@pytest.mark.parametrize(("budget", "count"), [(145, 2), (155, 3), (14, 0), (15, 0), (25, 1)])
def test_budget_stops_at_the_first_text_that_is_too_long(budget: int, count: int) -> None:
    assert within_budget(["x" * 40, "x" * 400, "x" * 40], budget) == count


@pytest.mark.parametrize(
    ("question", "top_k", "adapted"),
    [
        ("When did Ann move?", 10, 12),
        ("Why did Ann move?", 10, 15),
        ("Where did Ann go after the party?", 10, 15),
        ("Who lives in Chicago?", 10, 10),
        ("When did Ann move?", 20, 20),
    ],
)
def test_a_small_top_k_grows_with_the_question(question: str, top_k: int, adapted: int) -> None:
    assert adapted_top_k(question, top_k) == adapted


# Extraction


@pytest.mark.parametrize(
    ("expression", "day"),
    [
        ("last week", "1 May 2023"),
        ("last month", "8 April 2023"),
        ("next month", "7 June 2023"),
        ("last monday", "1 May 2023"),
        ("last friday", "5 May 2023"),
        ("2 weeks ago", "24 April 2023"),
        ("4 years ago", "9 May 2019"),
        ("last night", None),
        ("next friday", None),
        ("two days ago", None),
        ("in 2 weeks", None),
        ("99999999 years ago", None),
    ],
)
def test_point_date_of_a_relative_expression(expression: str, day: str | None) -> None:
    assert point_dates(f"it was {expression}", SAID) == ((day,) if day else ())
    assert point_dates(expression, None) == ()


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("8 May, 2023", ["2023"]),
        ("the sunday before 25 May 2023", ["the sunday before 25 May 2023"]),
        ("nothing of the kind", []),
        ("we met last week, on 3 June 2022", ["last week", "3 June 2022"]),
    ],
)
def test_time_expressions_are_found_in_a_text(text: str, expressions: list[str]) -> None:
    assert [expression for _, expression in time_expressions(text)] == expressions


FIRST = "Caroline attended a support group"


@pytest.mark.parametrize(
    ("content", "is_dropped"),
    [("group", True), ("Caroline attended a support meeting", False), (FIRST.upper(), True)],
)
def test_gleaning_drops_artifacts_that_repeat_the_words_of_earlier_ones(
    content: str, is_dropped: bool
) -> None:
    assert (shared_words(content, FIRST) > 0.8) is is_dropped

    def reply(prompt: Any) -> str:
        is_second = prompt.system_text == load_builtin("glean").system
        quote = "My sister Clara" if is_second else "went hiking in Norway"
        return json.dumps([item(quote, content=content if is_second else FIRST)])

    contents = [found.content for found in extracted(conversation(), reply)]
    assert contents == ([FIRST] if is_dropped else [FIRST, content])


def item(quote: str, **more: Any) -> Mapping[str, Any]:
    return {"type": "event", "content": quote, "quote": quote, "chunk": 1, **more}


def extracted(chunks: Sequence[MemoryChunk], reply: Any, **rules: Any) -> list[Artifact]:
    return asyncio.run(extractor(ScriptedModel(reply), **rules).extract(batches(chunks, 10, 1000)))


def extractor(model: ScriptedModel, **rules: Any) -> Extractor:
    return Extractor(
        model=model,
        seed=0,
        settings=CogCanvasSettings(**rules),
    )


def test_an_unknown_type_is_skipped_and_a_missing_one_is_a_key_fact() -> None:
    def reply(prompt: Any) -> str:
        return json.dumps(
            [
                item("hiking in Norway", type="rumour"),
                item("My sister Clara", type=None),
                item("I quit my job", type="Key Fact"),
            ]
        )

    found = extracted(conversation(), reply, gleaning=False)
    assert [(one.kind, one.quote) for one in found] == [
        ("key_fact", "My sister Clara"),
        ("key_fact", "I quit my job"),
    ]


def test_prompt_shows_the_latest_artifacts_of_earlier_calls() -> None:
    def reply(prompt: Any) -> str:
        return json.dumps([item(chunk.split(": ", 1)[1]) for chunk in prompt.chunks])

    model = ScriptedModel(reply)
    rules = extractor(model, gleaning=False, earlier=2)
    asyncio.run(rules.extract(batches(conversation(), 3, 1000)))
    known = [prompt.known for _, prompt in model.prompts if isinstance(prompt, ExtractPrompt)]
    assert known[0] == ()
    assert known[1] == (
        "(event) Wow, congratulations! I went hiking in Norway last week",
        "(event) Norway must be lovely, I have only been to Portugal",
    )
    assert known[2][-1] == "(event) I quit my job at the bank to open a bakery"
    assert all(prompt.system_text == load_builtin("extract").system for _, prompt in model.prompts)  # type: ignore[attr-defined]


def test_temporal_fallback_adds_events_for_unquoted_expressions() -> None:
    def reply(prompt: Any) -> str:
        return json.dumps([item("a puppy called Biscuit yesterday", chunk=1)])

    found = extracted(conversation(), reply, gleaning=False, temporal_fallback=True, dates="point")
    assert [(one.kind, one.quote, one.dates) for one in found] == [
        ("event", "a puppy called Biscuit yesterday", ("7 May 2023",)),
        ("event", "last week", ("1 May 2023",)),
    ]
    assert found[1].content == (
        "TIME: 1 May 2023 (originally: last week) - "
        "Wow, congratulations! I went hiking in Norway last week"
    )
    assert all("2023" not in one.quote for one in found), "dates before chunks are no content"


def test_only_artifacts_of_its_own_chunk_quote_a_time_expression() -> None:
    quote = "Wow, congratulations! I went hiking in Norway last week"

    def reply(prompt: Any) -> str:
        return json.dumps([item(quote, chunk=2)])

    found = extracted(conversation(), reply, gleaning=False, temporal_fallback=True, dates="point")
    assert {one.quote for one in found} == {quote, "yesterday"}


# What is shown


def test_the_compact_form_is_type_date_and_content() -> None:
    note = artifact("event", 1, "Ann adopted Biscuit", "I adopted him")
    assert note.compact_text == "[E] Ann adopted Biscuit"


def test_compact_form_shows_no_quote_and_no_session_date(build: Builder) -> None:
    def reply(messages: Any) -> str:
        return json.dumps(
            [item("a puppy called Biscuit yesterday", content="Ann has a puppy", chunk=1)]
        )

    driver = build("cogcanvas", {"show": "compact"}, model=ScriptedModel(reply))
    driver.remember(conversation())
    answer = driver.ask(Query("Who has a puppy?"))
    assert driver.reader.contexts[-1] == ["[E] **7 May 2023**: Ann has a puppy"]
    assert answer.retrieved is not None and answer.retrieved[0].turn_ids == ("D1:1",)


def test_top_k_of_the_system_overrides_that_of_the_run(build: Builder) -> None:
    chunks = [
        MemoryChunk(
            f"D1:{n}", f"Ann: the boat number {n} is red", SAID, "s", (f"D1:{n}",), ("Ann",)
        )
        for n in range(1, 41)
    ]
    query = Query("Which boat is red?")
    for settings, shown in (({}, 15), ({"top_k": 20}, 20), ({"top_k": None}, 3)):
        driver = build("cogcanvas", settings, top_k=3)
        driver.remember(chunks)
        driver.ask(query)
        assert len(driver.reader.contexts[-1]) == shown, settings
