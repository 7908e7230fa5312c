"""How replies to numbered choices are read, by single cases and on real replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memeval.metrics.choice import read_index

CHOICES = (
    "20 May 2023",
    "10",
    "6 May 2023",
    "1990",
    "4 years",
    "7 May 2023",
    "Sweden",
    "July 2023",
    "A tale; of two",
    "2",
)


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ("5", 5),
        (" 5\n", 5),
        ("5.", 5),
        ("(4)", 4),
        ("[6]", 6),
        ("**3**", 3),
        ('"4"', 4),
        ("#7", 7),
        ("５", 5),
        ("Choice 5", 5),
        ("5, not 2", 5),
        ("5 is right, 1 is wrong", 5),
        ("5. Not the others.", 5),
        ("5 is the date of the move", 5),
        ("The answer is 5 because 1 is wrong", 5),
        ("Option 2.", 2),
        ("Index: 8", 8),
        ("3. 8 May 2023", 3),
        ("5) 7 May 2023", 5),
        ("5 7 May 2023", 5),
        ("9. 2", 9),
        ("7 - because she said so", 7),
        ("6, since he moved there", 6),
        ("9 is right", 9),
        ("8. July 2023", 8),
        ("Answer: 7", 7),
        ("Answer: **7**", 7),
        ("Answers: 7", 7),
        ("<answer>7</answer>", 7),
        ("答案：7", 7),
        ("答案是7", 7),
        ("answer (index): 4", 4),
        ("The answer is 5", 5),
        ("The correct answer is 9. Two weeks", 9),
        ("It was in May.\n\nFinal answer: 2\n", 2),
        ("1. Look for Sweden\n2. Look for May\nThe correct answer choice is 6.", 6),
        ("Answer 3? No. The answer is 4.", 4),
        ("3\nAnother answer, 5, is wrong", 3),
    ],
)
def test_an_index_is_read(reply: str, index: int) -> None:
    assert read_index(reply, CHOICES) == index


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ("10", 1),
        ("1990", 3),
        ("4 years", 4),
        ("7 May 2023", 5),
        ("7 may  2023.", 5),
        ("Sweden", 6),
        ("'Sweden'", 6),
        ("Answer: Sweden", 6),
        ("She grew up there.\nThe answer is Sweden.", 6),
    ],
)
def test_the_exact_text_of_a_choice_is_read(reply: str, index: int) -> None:
    assert read_index(reply, CHOICES) == index


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Answer:",
        "1990 was the year",
        "1 is wrong",
        "1 is wrong.",
        "Choice 1 is clearly not right",
        "1, which is wrong",
        "1 (wrong)",
        "(1) is incorrect because she moved",
        "Answer: 1 is false",
        "1 can't be it",
        "1. is not it",
        "2 July 2023",
        "3.5 years",
        "7:30 in the evening",
        "1st of May",
        "5%",
        "-1",
        "2, 5",
        "2,5",
        "Choice 4 or 5",
        "answer choices 1 and 3",
        "11",
        "The answer is not 3",
        "She moved to Sweden",
        "Sweden, I think",
        "None of the conversations says so.",
        "1. Look for Sweden\n2. Look for May",
        "I looked at all of it.\n\n6. Sweden",
        "July 2023 or 20 May 2023",
    ],
)
def test_reply_that_names_no_choice_is_unparsed(reply: str) -> None:
    assert read_index(reply, CHOICES) is None


def test_index_out_of_range_is_read_only_as_a_text() -> None:
    assert read_index("7", ("red", "blue")) is None
    assert read_index("7", ("red", "7")) == 1


def test_duplicate_choices_read_as_the_first_unless_only_case_differs() -> None:
    assert read_index("2021", ("2020", "2021", "2022", "2021")) == 1
    assert read_index("the sun", ("The Sun", "the sun")) == 1
    assert read_index("THE SUN", ("The Sun", "the sun")) is None


WORDY = (
    "The Friday before 2 May",
    "Best Buy",
    "Final Fantasy",
    "the answer to life",
    "Option trading",
    "Is it?",
    "3 - 4 weeks",
    "2. Liga",
)
"""Choices that begin with words that may precede an index, or that look like one."""
FRAMES = (
    *(
        "{}",
        "{}.",
        '"{}"',
        "**{}**",
        "({})",
        "Answer: {}",
        "Answer: {}.",
        "**Answer:** {}",
        "**Final answer: {}**",
        "Answer - {}",
    ),
    *(
        "The answer is {}",
        "The answer is “{}”.",
        "The correct answer is: **{}**",
        "Answer choice: {}",
        "Answer:\n{}\n",
        "Answer — {}",
    ),
    *(
        "Answer: Answer: {}",
        "I looked.\nAnswer: {}\nThis answer is in session 3.",
        "{index}. {}",
        "Choice {index}: {}",
    ),
    *(
        "({index}) {}",
        "**{index}. {}**",
        "Answer: {index}. {}",
        "The answer is {index} {}",
        "Answer: {index} - {}.",
    ),
)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("choices", [CHOICES[:9], WORDY])
def test_each_text_is_found_in_each_frame(choices: tuple[str, ...], frame: str) -> None:
    found = [
        read_index(frame.format(text, index=index), choices) for index, text in enumerate(choices)
    ]
    assert found == list(range(len(choices)))


@pytest.mark.parametrize(
    ("reply", "choices", "index"),
    [
        ("Answer: Best Buy", ("Buy", "Best Buy"), 1),
        ("Answer: the Sun", ("Sun", "The Sun"), 1),
        ("Answer: the Sun", ("Sun", "Moon"), 0),
        ("Answer: Best Buy", ("Buy", "Sell"), None),
        ("Answer: 1", ("1", "2"), 1),
        ("2", ("1", "2"), 1),
        ("Answer: 1 - 2 days", ("1 - 2 days", "3 days"), 0),
        ("1. Liga", ("1. Liga", "Liga"), 1),
        ("Answer: (unknown)", ("unknown", "(unknown)"), 1),
        ("Answer: Best Buy, I think", ("Sell", "Best Buy"), None),
        ("Answer: not the Friday before 2 May", WORDY, None),
    ],
)
def test_whole_text_is_compared_before_leading_words_are_skipped(
    reply: str, choices: tuple[str, ...], index: int | None
) -> None:
    assert read_index(reply, choices) == index


REAL = "locomo_mc10/mc10_real_items_0_49.json"

FIRST, SECOND = "215822", "230737"
"""Two runs of one harness, the first with room for reasoning."""


@pytest.fixture(scope="module")
def items(data_dir: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((data_dir / REAL).read_text(encoding="utf-8"))
    return rows


def readings(items: list[dict[str, Any]], run: str) -> list[tuple[int, int | None, int | None]]:
    """Right index, our reading, and the recorded reading."""
    return [
        (
            item["correct_choice_index"],
            read_index(item["responses"][run]["raw"], item["choices"]),
            item["responses"][run]["parsed_index"],
        )
        for item in items
    ]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("run", "recorded", "ours", "lenient", "unparsed"),
    [(FIRST, 12, 30, 37, 5), (SECOND, 16, 17, 19, 1)],
)
def test_accuracy_depends_on_how_replies_are_read(
    items: list[dict[str, Any]], run: str, recorded: int, ours: int, lenient: int, unparsed: int
) -> None:
    rows = readings(items, run)
    assert len(rows) == 50
    assert sum(theirs == right for right, _, theirs in rows) == recorded
    assert sum(read == right for right, read, _ in rows) == ours
    assert sum(item["responses"][run]["reported_correct"] for item in items) == lenient
    assert sum(read is None for _, read, _ in rows) == unparsed


@pytest.mark.real_data
@pytest.mark.parametrize("run", [FIRST, SECOND])
def test_every_index_that_was_recorded_is_read(items: list[dict[str, Any]], run: str) -> None:
    assert [row for row in readings(items, run) if row[2] is not None and row[1] != row[2]] == []


@pytest.mark.real_data
def test_substring_matches_reported_as_right_are_read_as_other_choices(
    items: list[dict[str, Any]],
) -> None:
    found = {
        item["question_id"]: read_index(item["responses"][SECOND]["raw"], item["choices"])
        for item in items
        if item["responses"][SECOND]["reported_correct"]
    }
    assert (found["conv-26_q1"], found["conv-26_q17"]) == (
        7,
        8,
    )  # '7. April 5, 2022' for 2022, '8. July 2023' where 8 is July 2022


@pytest.mark.real_data
def test_replies_that_are_not_read(items: list[dict[str, Any]]) -> None:
    unread = {
        run: [
            item["question_id"]
            for item, row in zip(items, readings(items, run), strict=True)
            if row[1] is None
        ]
        for run in (FIRST, SECOND)
    }
    assert unread[FIRST] == [
        "conv-26_q20",
        "conv-26_q28",
        "conv-26_q36",
        "conv-26_q41",
        "conv-26_q45",
    ]
    assert unread[SECOND] == ["conv-26_q44"]


@pytest.mark.real_data
@pytest.mark.parametrize("frame", FRAMES)
def test_each_real_choice_is_found_in_each_frame_by_text_or_index(
    items: list[dict[str, Any]], frame: str
) -> None:
    for item in items:
        choices = [str(choice) for choice in item["choices"]]
        for index, text in enumerate(choices):
            read = read_index(frame.format(text, index=index), choices)
            # Without an index, a digit names the choice of that number, and a duplicate text names
            # its first choice.
            alone = int(text) if len(text) == 1 else choices.index(text)
            expected = index if "{index}" in frame else alone
            assert read == expected, (item["question_id"], text)
