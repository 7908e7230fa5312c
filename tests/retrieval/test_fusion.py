from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.retrieval.entities import content_words, entities, key_of
from memeval.retrieval.entity_graph import EntityGraph
from memeval.retrieval.fusion import FusedIndex, reciprocal_rank_fusion

RANKINGS = st.lists(st.lists(st.integers(0, 12), unique=True, max_size=8), max_size=4)
TEXTS = [
    "a puppy called Biscuit",
    "hiking in Norway",
    "a bakery in Lisbon",
    "Biscuit eats bread from the bakery",
]


def test_scores_follow_the_formula_of_reciprocal_rank_fusion() -> None:
    fused = dict(reciprocal_rank_fusion([[3, 1], [1, 2]]))
    assert fused == pytest.approx({1: 1 / 62 + 1 / 61, 3: 1 / 61, 2: 1 / 62})
    assert [position for position, _ in reciprocal_rank_fusion([[3, 1], [1, 2]])] == [1, 3, 2]


def test_ties_are_ordered_by_position() -> None:
    assert [position for position, _ in reciprocal_rank_fusion([[5, 0], [2, 7]])] == [2, 5, 0, 7]


@given(RANKINGS, st.integers(1, 100))
def test_every_position_occurs_once_and_scores_descend(rankings: list[list[int]], k: int) -> None:
    fused = reciprocal_rank_fusion(rankings, k)
    assert sorted(position for position, _ in fused) == sorted(
        {position for ranking in rankings for position in ranking}
    )
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(RANKINGS)
def test_the_order_of_the_rankings_does_not_matter(rankings: list[list[int]]) -> None:
    assert dict(reciprocal_rank_fusion(rankings)) == pytest.approx(
        dict(reciprocal_rank_fusion(rankings[::-1]))
    )


@given(st.lists(st.integers(0, 30), unique=True))
def test_single_ranking_is_unchanged(ranking: list[int]) -> None:
    assert [position for position, _ in reciprocal_rank_fusion([ranking])] == ranking


def search(texts: list[str], query: str, depth: int) -> list[tuple[int, float]]:
    async def play() -> list[tuple[int, float]]:
        index = await FusedIndex.open(CharTfidfEmbedder(width=512), texts, texts)
        try:
            return await index.search(query, depth)
        finally:
            index.close()

    return asyncio.run(play())


def test_text_found_by_words_and_by_meaning_is_first() -> None:
    found = search(TEXTS, "Biscuit and the bakery", 4)
    assert found[0][0] == 3
    assert search(TEXTS, "Biscuit and the bakery", 2) == found[:2]
    assert search([], "anything", 3) == []


def test_text_without_a_query_term_gains_nothing_from_bm25() -> None:
    assert max(score for _, score in search(TEXTS, "zzz", 4)) <= 1 / 61


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Ann: I adopted a puppy called Biscuit", {"Ann", "puppy", "Biscuit"}),
        (
            "Bob: My sister Clara is a violinist in Lisbon.",
            {"Bob", "sister", "Clara", "violinist", "Lisbon"},
        ),
        (
            "Rafi: We cycled through the Lake District.",
            {"Rafi", "Lake", "District", "Lake District"},
        ),
        ("Ann: Wow, that is great!", {"Ann"}),
        ("", set()),
    ],
)
def test_entities_are_speakers_names_and_nouns(line: str, names: set[str]) -> None:
    assert names <= set(entities(line).values())
    assert not {"Wow", "great", "I", ""} & {*entities(line), *entities(line).values()}


def test_words_of_a_question_match_entities_of_a_line() -> None:
    assert set(content_words("Which violinists does she know?")) & set(
        entities("Bob: my sister is a violinist")
    )


def test_graph_weighs_neighbours_by_shared_chunks() -> None:
    graph = EntityGraph(
        ["Ann: a puppy called Biscuit", "Ann: a bakery in Lisbon\nBob: the bakery", "Bob: a boat"]
    )
    biscuit, puppy, ann, bakery = (key_of([name]) for name in ("Biscuit", "puppy", "Ann", "bakery"))
    weights = graph.one_hop({biscuit: 1.0})
    assert weights[biscuit] == 1.0
    assert weights[puppy] == pytest.approx(0.5)
    assert weights[ann] == pytest.approx(0.5 / 2**0.5)
    assert bakery in graph.names
    assert bakery not in weights
    # Four lines in all; Biscuit is in one of them, Ann in two.
    first, second = graph.ranking({biscuit: 1.0, ann: 0.5})
    assert first == (0, pytest.approx(math.log(1 + 4 / 1) + 0.5 * math.log(1 + 4 / 2)))
    assert second == (1, pytest.approx(0.5 * math.log(1 + 4 / 2)))


def test_empty_graph_finds_nothing() -> None:
    graph = EntityGraph([])
    assert graph.ranking(graph.one_hop({})) == []
