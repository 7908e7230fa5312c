"""What kind of answer a question asks for, and how quantities are read."""

from __future__ import annotations

import pytest

from memeval.llm.extractive.quantities import count, duration
from memeval.llm.extractive.questions import ExpectedAnswer, analyse
from memeval.llm.extractive.words import stem


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did Ann move?", ExpectedAnswer.WHEN),
        ("Which year did Ann move?", ExpectedAnswer.WHEN),
        ("Who helped Ann?", ExpectedAnswer.WHO),
        ("Where does Ann live?", ExpectedAnswer.WHERE),
        ("Which city did Ann visit?", ExpectedAnswer.WHERE),
        ("How many cats does Ann have?", ExpectedAnswer.COUNT),
        ("How long has Ann lived there?", ExpectedAnswer.DURATION),
        ("How old is Ann?", ExpectedAnswer.DURATION),
        ("Why did Ann leave?", ExpectedAnswer.WHY),
        ("How did Ann feel?", ExpectedAnswer.HOW),
        ("What did Ann do when she left?", ExpectedAnswer.DO),
        ("Would Ann like a boat?", ExpectedAnswer.YES_NO),
        ("Does Ann live near the beach or the mountains?", ExpectedAnswer.EITHER),
        ("Which came first, the boat or the house?", ExpectedAnswer.EITHER),
        ("What books has Ann read?", ExpectedAnswer.LIST),
        ("What book did Ann read?", ExpectedAnswer.WHAT),
        ("What is the title of the book?", ExpectedAnswer.NAME),
        ("Tell me about the boat.", ExpectedAnswer.WHAT),
    ],
)
def test_kind_of_a_question(question: str, kind: ExpectedAnswer) -> None:
    assert analyse(question).kind is kind


def test_names_dates_topic_and_terms_of_a_question() -> None:
    asked = analyse("What fantasy books did Ann's sister buy in Lisbon on 3 May, 2023?")
    assert asked.names == {"ann", "lisbon"}
    assert asked.dates == ("3 May 2023",)
    assert asked.topic == ("fantas", "book")
    assert asked.plural
    assert stem("bought") in asked.terms
    assert not {"may", "2023", "3"} & set(asked.terms)


def test_options_of_an_or_question() -> None:
    assert analyse("Does Ann prefer the red boat or the old house?").options == (
        "the red boat",
        "the old house",
    )
    assert analyse("Which did Ann buy first, the red boat or the old house?").options == (
        "the red boat",
        "the old house",
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("went", "go"),
        ("running", "runs"),
        ("adopted", "adopting"),
        ("studies", "study"),
        ("inspiration", "inspired"),
        ("Ann's".lower(), "ann"),
    ],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"), [("cat", "car"), ("glass", "glad"), ("boat", "boot"), ("2022", "2023")]
)
def test_different_words_have_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@pytest.mark.parametrize(
    ("sentence", "question", "expected"),
    [
        (
            "I have lived here for about three years",
            "how long has she lived there?",
            "about three years",
        ),
        ("I've done it since 2016", "how long has she done it?", "since 2016"),
        ("We go twice a week", "how often do they go?", "twice a week"),
        ("We go every other Sunday", "how often do they go?", "every other Sunday"),
        ("He is 12 years old", "how old is he?", "12 years old"),
        ("We talked a lot", "how long did they talk?", None),
    ],
)
def test_duration_that_answers_the_question(
    sentence: str, question: str, expected: str | None
) -> None:
    assert duration(sentence, question) == expected


@pytest.mark.parametrize(
    ("sentence", "question", "expected"),
    [
        ("I have 25 books", "how many books?", "25"),
        ("It cost $1,200.", "how much was it?", "$1,200"),
        ("One of my two dogs", "how many dogs?", "two"),
        ("It took 9 tries and 3 weeks", "how many weeks did it take?", "3 weeks"),
        ("We met at a lake", "how many people?", None),
    ],
)
def test_count_that_answers_the_question(
    sentence: str, question: str, expected: str | None
) -> None:
    assert count(sentence, question) == expected
