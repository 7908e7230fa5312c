from __future__ import annotations

import pytest

from memeval.metrics.refusal import is_refusal, officially_refuses


@pytest.mark.parametrize(
    "text",
    [
        "No information available",
        "Not mentioned in the conversation.",
        "I don't know.",
        "I do not know who she met.",
        "Sorry, I can't answer that.",
        "I'm sorry, but I don’t have enough information to answer.",
        "There is no mention of a car accident.",
        "No information provided.",
        "No specific memory found.",
        "No direct evidence.",
        "Not specified in memories.",
        "The memories do not specify Audrey's preferred type of meat.",
        "The conversation doesn't say when he left.",
        "Unknown",
        "**Unknown.**",
        "Unknown, no specific location mentioned.",
        "It cannot be determined from the text.",
        "Her age is not stated in the conversation.",
        "It is impossible to tell.",
        "Based on the context, there is not enough information to answer the question.",
        "I looked at May. I looked at June. I looked at July. I looked at August. There is insufficient information to answer.",
        "N/A",
        "It isn't clear.",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Not much",
        "She did not go to the party",
        "He doesn't know how to swim",
        'She said "I do not know him" to the police',
        "John told her he didn't know the answer",
        "No",
        "No, there's no evidence of religious beliefs.",
        "No, she has never been to Rome.",
        "Never",
        "None",
        "An unknown artist",
        "The Great Unknown",
        "She can't eat gluten",
        "He is not sure about the job and wants to leave",
        "Not enough sleep",
        "No information desk volunteers were hired, so she was",
        "They gave no answers away",
        "Recipe, not specific food.",
        "In May there was no record of rain. In June there was. In July too. So she left. She went in June.",
    ],
)
def test_answers(text: str) -> None:
    assert not is_refusal(text)


def test_the_official_rule_knows_two_phrases_and_no_others() -> None:
    assert officially_refuses("Sorry: NO INFORMATION AVAILABLE!")
    assert officially_refuses("that was not mentioned")
    assert not officially_refuses("no information")
    assert not officially_refuses("I don't know")
