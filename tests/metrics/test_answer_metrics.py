from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.datasets.locomo.metrics import locomo_f1, locomo_metrics
from memeval.metrics.answer import METRICS, answer_metrics
from memeval.metrics.keywords import contains_gold, keyword_overlap, keyword_pass, keywords
from memeval.metrics.mem0 import bleu1, mem0_f1, words
from memeval.metrics.tokens import contains, exact_match, normalise, token_f1
from memeval.records import EvalQuestion

GOLDEN = [
    (4, "the dogs and cats", "a dog, cat", 1, 0),
    (1, "pottery, camping, painting, swimming", "camping and pottery", 0.666667, 0.571429),
    (1, "pottery, camping", "pottery, camping, painting, swimming", 0.5, 0.666667),
    (2, "May 7th, 2023", "7 May 2023", 0.666667, 0.666667),
    (3, "yes", "Yes; because she likes it", 1, 0),
    (4, "She is running running", "runs", 0.4, 0),
    (4, "$1,000", "1000", 1, 0),
    (4, "self-care is important", "self care", 0, 0),
    (4, "the", "the", 0, 1),
    (4, "yes yes", "yes", 0.666667, 1),
    (4, "café", "cafe", 0, 0),
    (5, "Not mentioned in the conversation", "", 1, None),
    (5, "No information", "", 0, None),
    (5, "I don't know", "", 0, None),
]

TEXT = st.text(st.sampled_from("abcdefgh AB.,;!?'\"-()$0123é the and "), max_size=40)


@pytest.mark.parametrize(("category", "prediction", "gold", "official", "mem0"), GOLDEN)
def test_f1_scores_equal_the_golden_table(
    category: int, prediction: str, gold: str, official: float, mem0: float | None
) -> None:
    assert locomo_f1(prediction, gold, category) == pytest.approx(official, abs=5e-7)
    if mem0 is not None:
        assert mem0_f1(prediction, gold) == pytest.approx(mem0, abs=5e-7)


def test_a_category_that_locomo_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="no category 6"):
        locomo_f1("a", "a", 6)


@given(TEXT, TEXT)
def test_scores_lie_between_0_and_1_and_f1_is_symmetric(one: str, other: str) -> None:
    for metric in METRICS:
        assert 0.0 <= metric.compare(one, other) <= 1.0
    assert token_f1(one, other) == token_f1(other, one)
    assert mem0_f1(one, other) == mem0_f1(other, one)


@given(TEXT)
def test_text_scores_full_marks_against_itself(text: str) -> None:
    assert exact_match(text, text) == 1.0
    assert token_f1(text, text) == float(bool(normalise(text)))
    assert bleu1(text, text) == pytest.approx(float(bool(words(text))))


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None)  # the first example imports NLTK, which takes seconds
@given(TEXT, TEXT)
def test_bleu1_equals_nltk(prediction: str, gold: str) -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    predicted, expected = words(prediction), words(gold)
    official = (
        sentence_bleu(
            [expected],
            predicted,
            weights=(1, 0, 0, 0),
            smoothing_function=SmoothingFunction().method1,
        )
        if predicted
        else 0.0
    )
    assert bleu1(prediction, gold) == pytest.approx(float(official), abs=1e-12)


def test_metrics_import_neither_nltk_nor_pandas() -> None:
    code = (
        "import sys; from memeval.metrics.mem0 import bleu1; from memeval.metrics.tokens import "
        "token_f1;"
        "assert 'nltk' not in sys.modules; assert bleu1('a b', 'a c') == token_f1('b c', 'c d') "
        "== 0.5;"
        "assert not {'nltk', 'nltk.stem', 'pandas', 'numpy', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_words_do_not_depend_on_an_installed_punkt_model() -> None:
    assert [*words("J.K. Rowling met Mr. Smith. He left.")] == [
        "j.k.",
        "rowling",
        "met",
        "mr.",
        "smith",
        ".",
        "he",
        "left",
        ".",
    ]
    assert [*words("In the U.S. he can't")] == ["in", "the", "u.s.", "he", "ca", "n't"]


@pytest.mark.parametrize(
    ("answer", "gold", "overlap", "exact", "passed"),
    [
        ("She went to the Grand Canyon", "grand canyon", 1.0, True, True),
        ("canyon", "The Grand Canyon", 0.5, False, False),
        ("dogs, cats and fish", "dogs cats birds fish lizards", 0.6, False, True),
        ("5", "5", 0.0, True, True),
        ("anything", "a", 0.0, True, True),
        ("red red", "red red blue", 2 / 3, False, True),
    ],
)
def test_keyword_overlap_and_keyword_pass(
    answer: str, gold: str, overlap: float, exact: bool, passed: bool
) -> None:
    assert keyword_overlap(answer, gold) == pytest.approx(overlap)
    assert (contains_gold(answer, gold), keyword_pass(answer, gold)) == (exact, passed)


def test_keywords_drop_stop_words_and_single_letters() -> None:
    assert Counter(keywords("The 7 dogs, a cat & the dogs of I")) == Counter(
        ["dogs", "dogs", "cat"]
    )


@pytest.mark.parametrize(
    ("answer", "gold", "inside"),
    [
        ("She went there on the 7 May, 2023.", "7 May 2023", True),
        ("Their party was fine", "art", False),
        ("none of them", "one", False),
        ("one of them", "One!", True),
        ("The Café Luna", "Caf", False),
        ("他在三月去了巴黎旅行", "巴黎", True),
        ("Is it? Yes", "?", True),
        ("yes", "?", False),
        ("yes", "", False),
        ("27 May 2023", "7 May 2023", False),
    ],
)
def test_contains_matches_whole_words(answer: str, gold: str, inside: bool) -> None:
    assert contains(answer, gold) == float(inside)


@given(TEXT, TEXT)
def test_answer_equal_to_the_gold_contains_it(answer: str, gold: str) -> None:
    assert contains(gold, gold) == 1.0
    assert contains(answer, gold) >= exact_match(answer, gold)


def question(*gold: str, category: int = 4, answerable: bool = True) -> EvalQuestion:
    return EvalQuestion(
        question_id="q", text="?", category=category, gold=gold, answerable=answerable
    )


def test_answer_metrics_take_the_best_gold_for_each_metric() -> None:
    scores = answer_metrics("7 May", question("May 7th", "7 May 2023", "on the 7 May"))
    assert list(scores) == [
        "token_f1",
        "mem0_f1",
        "bleu1",
        "keyword_overlap",
        "keyword_pass",
        "exact_match",
        "contains",
    ]
    assert scores["token_f1"] == pytest.approx(0.8)
    assert scores["exact_match"] == 0.0
    assert answer_metrics("The 7 May!", question("x", "7 may"))["exact_match"] == 1.0


def test_only_locomo_metrics_use_the_official_rule_of_the_category() -> None:
    asked = question("pottery, camping, painting, swimming", category=1)
    assert locomo_metrics("pottery, camping", asked)["token_f1"] == pytest.approx(1 / 2)
    assert answer_metrics("pottery, camping", asked)["token_f1"] == pytest.approx(2 / 3)


def test_unanswerable_question_is_scored_only_by_locomos_official_rule() -> None:
    adversarial = question(category=5, answerable=False)
    for text, score in (("Not mentioned.", 1.0), ("I don't know", 0.0)):
        scores = locomo_metrics(text, adversarial)
        assert scores.pop("token_f1") == score
        assert set(scores.values()) == {None}
    assert set(answer_metrics("Not mentioned.", adversarial).values()) == {None}
    assert set(answer_metrics("x", question()).values()) == {None}
