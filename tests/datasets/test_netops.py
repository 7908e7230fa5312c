from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.datasets.chance import draw, seeded_random
from memeval.datasets.netops.base import choose, draft
from memeval.datasets.netops.words import HIDDEN, amount, count_golds, one_word
from memeval.metrics.keywords import keyword_pass


def test_names_become_single_words() -> None:
    assert [
        one_word(name)
        for name in (
            "node-4",
            "R02-M1-N0-C:J12-U11",
            "high disk I/O read usage",
            "JVM (OOM) Heap",
            "a_b",
        )
    ] == [
        "node_4",
        "R02_M1_N0_C_J12_U11",
        "high_disk_I_O_read_usage",
        "JVM_OOM_Heap",
        "a_b",
    ]
    assert not keyword_pass(one_word("node-6"), one_word("node-4"))
    assert not keyword_pass(one_word("high CPU usage"), one_word("high memory usage"))


@given(right=st.integers(1, 400), other=st.integers(1, 12))
def test_keyword_judge_tells_counts_in_words_apart(right: int, other: int) -> None:
    golds = count_golds(right, "alert")
    assert any(keyword_pass(amount(right, "alert"), gold) for gold in golds)
    assert not any(
        keyword_pass("No information available", gold)
        or keyword_pass("often, none of the someone", gold)
        for gold in golds
    )
    if right != other:
        assert not any(keyword_pass(amount(other, "alert"), gold) for gold in golds)


def test_bare_numbers_are_golds_unless_they_hide_in_other_words() -> None:
    assert count_golds(3, "time") == ("three times", "three")
    assert count_golds(38, "day") == ("38 days", "38")
    assert [count_golds(number, "day") for number in sorted(HIDDEN)] == [
        ("one day",),
        ("ten days",),
    ]


def test_seeded_draw_is_pinned() -> None:
    assert draw(seeded_random("a", 1), range(10)) == [7, 0, 5, 2, 6, 9, 8, 3, 1, 4]
    assert draw(seeded_random("a", 1), range(10), 3) == [7, 0, 5]


@given(seed=st.integers(), count=st.integers(0, 12))
def test_draw_takes_each_item_once(seed: int, count: int) -> None:
    drawn = draw(seeded_random(seed), range(8), count)
    assert len(drawn) == len(set(drawn)) == min(count, 8)


@pytest.mark.parametrize("count", [0, 5, 7, 100])
def test_questions_are_chosen_evenly(count: int) -> None:
    drafts = [
        draft(
            ability,
            task,
            f"{ability} {task} {number}",
            ("x",),
            evidence=(),
            asked_at=datetime(2024, 1, 1),
        )
        for ability, tasks in {"IE": "ab", "TR": "c"}.items()
        for task in tasks
        for number in range(10)
    ]
    chosen = choose(seeded_random(1), [*drafts, *drafts], count)
    assert len(chosen) == min(count, 30) == len({question.text for question in chosen})
    if count == 7:
        assert Counter(question.category for question in chosen) == {"IE": 4, "TR": 3}
        assert Counter(question.facets["task"] for question in chosen) == {"a": 2, "b": 2, "c": 3}
