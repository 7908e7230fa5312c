"""How the letters of a reply are read, and compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.metrics.letters import exact_set, jaccard, read_letters

CHOICES = ("RIPv1", "IGRP", "EIGRP", "OSPF, version 3", "a router", "RIPv2")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("C", (2,)),
        (" c ", (2,)),
        ("C.", (2,)),
        ("(C)", (2,)),
        ("**C**", (2,)),
        ("C: EIGRP", (2,)),
        ("C) EIGRP, because it is", (2,)),
        ("C - EIGRP", (2,)),
        ("C\n\nA: wrong\nB: wrong", (2,)),
        ("Answer: C", (2,)),
        ("The correct answer is **C**.", (2,)),
        ("The answer is C. Some answers differ.", (2,)),
        ("I first thought the answer: A. No, the answer is: B", (1,)),
        ("答案:C", (2,)),
        ("正确答案是 C。", (2,)),
        ("C是正确的", (2,)),
        ("选项 C", (2,)),
        ("Option C", (2,)),
        ("A, C", (0, 2)),
        ("C,A", (0, 2)),
        ("A，C", (0, 2)),
        ("A、C", (0, 2)),
        ("A和C", (0, 2)),
        ("A and C", (0, 2)),
        ("Both A and C", (0, 2)),
        ("Both are wrong", None),
        ("A, B, and C", (0, 1, 2)),
        ("AC", (0, 2)),
        ("AC, D", (0, 2, 3)),
        ("A C D", (0, 2, 3)),
        ("Answers: A, C\n\nB: wrong", (0, 2)),
        ("EIGRP", (2,)),
        ("Answer: eigrp.", (2,)),
        ("A router", (4,)),
        ("C EIGRP", (2,)),
        ("OSPF, version 3", (3,)),
        ("A, B, D are correct", (0, 1, 3)),
        ("A, B, and D are all true.", (0, 1, 3)),
        ("A and C are right, B is wrong", (0, 2)),
        ("C is correct", (2,)),
        ("The answer is A, B, D because all hold", (0, 1, 3)),
        ("A、C都对", (0, 2)),
        ("A、B、C、D全选", (0, 1, 2, 3)),
        ("答案：A、B、D都是", (0, 1, 3)),
        ("选择A、B、D选项", (0, 1, 3)),
        ("正确答案是A、B、D三项。", (0, 1, 3)),
        ("C, a protocol that scales", (2,)),
        ("B, I think", (1,)),
        ("A. I am sure", (0,)),
        ('{"answer": "A"}', (0,)),
        ("【答案】B", (1,)),
        ("<answer>A, C</answer>", (0, 2)),
    ],
)
def test_chosen_letters_of_a_reply_are_read(reply: str, expected: tuple[int, ...]) -> None:
    assert read_letters(reply, CHOICES, multi_select=False) == expected
    assert read_letters(reply, CHOICES, multi_select=True) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "?",
        "A router forwards packets",
        "I think it depends",
        "A or B",
        "G",
        "A, G",
        "Answer: A and Z",
        "AA",
        "bad",
        "The answer is not A",
        "Because of EIGRP",
        "A类地址",
        "EIGRP is the one",
        "A, C are the protocols that scale",
        "A, C, G are correct",
        "A, C and maybe D",
        "A, C, possibly D",
        "A、C可能还有D",
        "A. C",
        "A.B.C",
        "答案：A. B. D",
        "A, C错误",
        "A、C都不对",
        "A、B都是错的",
        "A, B are wrong",
        "A, B, are not correct",
        "A是错误的",
    ],
)
@pytest.mark.parametrize("multi_select", [False, True])
def test_ambiguous_reply_is_not_read(reply: str, multi_select: bool) -> None:
    assert read_letters(reply, CHOICES, multi_select=multi_select) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("A\nC\nD", (0, 2, 3)),
        ("A. RIPv1\nC. EIGRP", (0, 2)),
        ("- A: RIPv1\n- C: EIGRP", (0, 2)),
        ("* A\n* C", (0, 2)),
        ("• **A. RIPv1**\n• **C. EIGRP**", (0, 2)),
        ("RIPv1\nEIGRP", (0, 2)),
        ("EIGRP, RIPv1", (0, 2)),
        ("OSPF, version 3; RIPv2", (3, 5)),
    ],
)
def test_lists_of_lines_or_texts_are_read_only_with_multi_select(
    reply: str, expected: tuple[int, ...]
) -> None:
    assert read_letters(reply, CHOICES, multi_select=True) == expected
    assert read_letters(reply, CHOICES, multi_select=False) != expected


@pytest.mark.parametrize(
    "reply", ["A. The SCAN is \nset.\nB. one VIP", "The SCAN is \nset.\none VIP"]
)
def test_a_choice_may_be_written_on_several_lines(reply: str) -> None:
    choices = ("The SCAN is \nset.", "one VIP", "none")
    assert read_letters(reply, choices, multi_select=True) == (0, 1)


FORMATS = ("JSON", "XML", "YAML", "INI, old")


@pytest.mark.parametrize(
    "reply",
    [
        "A. JSON, C. YAML",
        "A. JSON and C. YAML",
        "A. JSON, and C. YAML.",
        "A) JSON; C) YAML",
        "(A) JSON / (C) YAML",
        "A: JSON、C: YAML",
        "A (JSON), C (YAML)",
        "A - JSON, C - YAML",
        "a. json, c. yaml",
        "**A. JSON**, **C. YAML**",
        "A. JSON C. YAML",
        "A JSON, C YAML",
        "A. JSON, C",
        "A, C. YAML",
        "Answer: A. JSON, C. YAML",
        "Answer: Answer: A, C",
        "The correct answers are: A. JSON and C. YAML",
        "A. JSON\nC. YAML",
    ],
)
def test_labels_with_their_texts_are_read_whole(reply: str) -> None:
    assert read_letters(reply, FORMATS, multi_select=True) == (0, 2)


@pytest.mark.parametrize(
    "reply",
    [
        "A. JSON, C. YML",
        "A. JASON, C. YAML",
        "A. JSON, Z. YAML",
        "A. JSON, B. YAML",
        "A. a format, C. another format",
        "A. JSON, also C.",
        "A (the first), C",
        "A. JSON, C. YAML, E. TOML",
        "Answer: A. JSON or C. YAML",
        "Answer: A. the first, C. the third",
        "A, B, C, D, E",
        "AAC",
    ],
)
@pytest.mark.parametrize("multi_select", [False, True])
def test_list_with_a_wrong_label_or_text_is_not_read(reply: str, multi_select: bool) -> None:
    assert read_letters(reply, FORMATS, multi_select=multi_select) is None


def test_choice_text_with_a_comma_is_read_with_its_label() -> None:
    assert read_letters("A. JSON, D. INI, old", FORMATS, multi_select=True) == (0, 3)
    assert read_letters("D. INI, old", FORMATS, multi_select=False) == (3,)
    assert read_letters("C. YAML, because A is for programs", FORMATS, multi_select=False) == (2,)


def test_a_text_that_two_choices_share_chooses_neither() -> None:
    assert read_letters("same", ("same", "same", "other"), multi_select=False) is None
    assert read_letters("A", ("same", "same", "other"), multi_select=False) == (0,)


def test_a_label_beats_the_text_of_another_choice() -> None:
    assert read_letters("A", ("B", "A"), multi_select=False) == (0,)


@given(
    st.sets(st.integers(0, 5), min_size=1),
    st.sampled_from([",", ", ", " and ", "、", "和", " ", ";"]),
)
def test_a_written_list_is_read_back(chosen: set[int], separator: str) -> None:
    written = separator.join("ABCDEF"[position] for position in sorted(chosen, reverse=True))
    assert read_letters(written, CHOICES, multi_select=True) == tuple(sorted(chosen))


@given(st.text(max_size=60), st.booleans())
def test_letters_read_are_sorted_unique_and_valid(reply: str, multi_select: bool) -> None:
    found = read_letters(reply, CHOICES, multi_select=multi_select)
    assert found is None or (
        list(found) == sorted(set(found)) and set(found) <= set(range(len(CHOICES))) and found
    )


@pytest.mark.parametrize(
    ("chosen", "right", "exact", "partial"),
    [
        ((0,), (0,), 1, 1),
        ((2, 0), (0, 2), 1, 1),
        ((0,), (0, 2), 0, 0.5),
        ((0, 1), (0, 2), 0, 1 / 3),
        ((1,), (0,), 0, 0),
        ((), (), 1, 1),
    ],
)
def test_exact_set_and_jaccard(
    chosen: tuple[int, ...], right: tuple[int, ...], exact: float, partial: float
) -> None:
    assert exact_set(chosen, right) == exact
    assert jaccard(chosen, right) == pytest.approx(partial)
