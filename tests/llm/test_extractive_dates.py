"""Date expressions, resolved against Monday, 8 May 2023."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.llm.extractive.dates import moments, month_text
from memeval.llm.extractive.events import approximate_day

SAID = date(2023, 5, 8)

CASES = {
    "I went there yesterday": "7 May 2023",
    "the day before yesterday": "6 May 2023",
    "we danced last night": "7 May 2023",
    "it happened today": "8 May 2023",
    "see you tomorrow": "9 May 2023",
    "last week was hard": "The week before 8 May 2023",
    "next week it starts": "The week after 8 May 2023",
    "this week": "The week of 8 May 2023",
    "two weekends ago": "Two weekends before 8 May 2023",
    "last weekend": "The weekend before 8 May 2023",
    "last Friday we met": "The Friday before 8 May 2023",
    "last Tues": "The Tuesday before 8 May 2023",
    "next Sunday": "The Sunday after 8 May 2023",
    "three days ago": "5 May 2023",
    "a week ago": "The week before 8 May 2023",
    "two weeks ago": "Two weeks before 8 May 2023",
    "a few days ago": "Few days before 8 May 2023",
    "six months ago": "November 2022",
    "next month": "June 2023",
    "last month": "April 2023",
    "last year": "2022",
    "5 years ago": "2018",
    "in two months": "July 2023",
    "in March": "March 2023",
    "in December": "December 2022",
    "last June": "June 2022",
    "since 2016": "2016",
    "on June 3rd, 2021": "3 June 2021",
    "on the 3rd of June": "3 June 2023",
    "back in June 2019": "June 2019",
    "on 31 June 2022": "June 2022",
}


@pytest.mark.parametrize(("sentence", "expected"), CASES.items())
def test_expression_is_resolved_to_a_date(sentence: str, expected: str) -> None:
    assert [moment.text for moment in moments(sentence, SAID)] == [expected]


@pytest.mark.parametrize(
    "sentence", ["I may go", "march on", "we walked for an hour", "the second one"]
)
def test_no_date_is_found_in_other_words(sentence: str) -> None:
    assert moments(sentence, SAID) == []


def test_relative_expressions_need_a_date_and_absolute_ones_do_not() -> None:
    assert moments("yesterday, last week, in two months", None) == []
    assert [moment.text for moment in moments("born on 3 June 1990", None)] == ["3 June 1990"]


def test_all_expressions_of_a_sentence_in_order() -> None:
    found = moments("I left in 2019 and came back last week", SAID)
    assert [moment.text for moment in found] == ["2019", "The week before 8 May 2023"]


def test_month_text_wraps_into_other_years() -> None:
    assert month_text(2023, 0) == "December 2022"
    assert month_text(2023, 14) == "February 2024"


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*" ".join(CASES).split(), "99999", "999999999999", "0"]), max_size=8),
    st.one_of(st.none(), st.dates()),
)
def test_moments_never_raises_and_returns_nonempty_spans(
    words: list[str], said: date | None
) -> None:
    for moment in moments(" ".join(words), said):
        assert moment.text
        assert moment.start < moment.end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 May 2023", date(2023, 5, 7)),
        ("The week before 8 May 2023", date(2023, 5, 1)),
        ("Two weekends before 8 May 2023", date(2023, 4, 24)),
        ("The Friday before 8 May 2023", date(2023, 5, 5)),
        ("The Monday before 8 May 2023", date(2023, 5, 1)),
        ("The Monday after 8 May 2023", date(2023, 5, 15)),
        ("The Sunday after 8 May 2023", date(2023, 5, 14)),
        ("June 2023", date(2023, 6, 15)),
        ("2022", None),
        ("31 June 2022", None),
    ],
)
def test_approximate_day_of_each_form_of_answer(text: str, expected: date | None) -> None:
    assert approximate_day(text) == expected
