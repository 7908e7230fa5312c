"""What the generated lifecycle cases of a memory say and ask."""

from __future__ import annotations

import pytest

from memeval.datasets.chance import seeded_random
from memeval.datasets.invented import WORDS, Values
from memeval.datasets.lifecycle.case import LifecycleSettings, make_case, tenant_fact
from memeval.metrics.lifecycle import AnswerOutcome, outcome
from memeval.records import EvalCase, EvalQuestion
from memeval.text.value_search import occurs_in

LANGUAGES = tuple(WORDS.languages)


def settings(seed: int, language: str) -> LifecycleSettings:
    return LifecycleSettings(seed=seed, languages=(language,), tokens=0, later_tokens=0)


def of_kind(case: EvalCase, kind: str) -> list[EvalQuestion]:
    return [question for question in case.questions if question.category == kind]


def test_a_value_that_overlaps_a_drawn_one_is_not_drawn() -> None:
    values = Values(seeded_random("values"), "en")
    assert values.claim("Harrow") and values.claim("Selby")
    for value in ("Selby", "Harrow Hill", "arrow"):
        assert not values.claim(value)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_person_known_only_to_another_user_is_never_named(language: str) -> None:
    """Otherwise the question about the other user's value could be answered here."""
    for seed in range(40):
        number = seed % 4 + 1
        case = make_case(number, settings(seed, language))
        other = tenant_fact(number - 1 or 2, settings(seed, language))
        assert not [turn.text for turn in case.turns if other.name in turn.text]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_right_and_deleted_values_never_overlap(language: str) -> None:
    for seed in range(20):
        case = make_case(1, settings(seed, language))
        asked = [(question.text, question.asked_after) for question in case.questions]
        assert len(set(asked)) == len(asked)
        traces = [question.traces for question in case.questions if question.traces]
        unwanted = {value for trace in traces for value in trace.deleted}
        right = {value for trace in traces for value in trace.right}
        assert not [(a, b) for a in unwanted for b in right if occurs_in(a, b) or occurs_in(b, a)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_deleted_values_are_those_asked_to_be_forgotten(language: str) -> None:
    words, case = WORDS.languages[language], make_case(1, settings(0, language))
    forgotten = {one.values: one.forget.about for one in case.operations if one.forget}
    traces = [question.traces for question in case.questions if question.traces]
    assert {one.deleted for one in traces if one.deleted} == forgotten.keys()
    assert all(one.probes[: len(one.deleted)] == one.deleted for one in traces)

    # Somebody whose name begins like that of the person with the deleted address has another.
    plain = next(one for one in of_kind(case, "deleted") if one.facets["form"] == "plain")
    assert plain.traces is not None
    person = forgotten[plain.traces.deleted].removesuffix(f" {words.attributes['address']['word']}")
    namesake = plain.text.replace(person, person + words.longer)
    assert namesake in [question.text for question in of_kind(case, "neighbour")]


@pytest.mark.parametrize(
    ("language", "day"), [("en", "30 March 2023"), ("de", "30. März 2023"), ("zh", "2023年3月30日")]
)
def test_days_are_written_in_the_style_of_the_language(language: str, day: str) -> None:
    case = make_case(1, settings(0, language))
    assert [turn.text for turn in case.turns if day in turn.text]
    (expired,) = of_kind(case, "expired")
    assert expired.traces is not None
    assert expired.traces.known == (day,)


@pytest.mark.parametrize(
    ("language", "answer", "is_right"),
    [
        ("en", "No, it is no longer valid: it expired on 30 March 2023.", True),
        ("en", "Yes, it has not expired yet.", False),
        ("en", "It hasn’t expired.", False),
        ("de", "Nein, er ist abgelaufen.", True),
        ("de", "Er ist noch nicht abgelaufen.", False),
        ("zh", "已经过期了。", True),
        ("zh", "还没有过期。", False),
    ],
)
def test_denied_expiry_does_not_count_as_right(language: str, answer: str, is_right: bool) -> None:
    (expired,) = of_kind(make_case(1, settings(0, language)), "expired")
    assert expired.traces is not None
    found = outcome(answer, expired.traces)
    assert found == (AnswerOutcome.RIGHT if is_right else AnswerOutcome.STALE)
