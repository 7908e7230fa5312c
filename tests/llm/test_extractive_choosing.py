"""The offline reader chooses by what the context says, never by position."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.llm.contract import ChoosePrompt
from memeval.llm.extractive import ExtractiveModel
from memeval.records import ChoiceLabels, Role

CONTEXT = (
    "[1:56 pm on 8 May 2023] Ann: I adopted a grey cat called Tofu yesterday. He sleeps all day.",
    "[9:10 am on 9 June 2023] Bob: Last week I started a pottery class with my sister Clara.",
    "[9:10 am on 9 June 2023] Ann: I moved to Lisbon because my company opened an office there.",
    "[7:00 pm on 1 July 2023] Bob: I have been learning the violin for three years.",
)
CITIES = ("Oslo", "Rome", "Bern", "Lima", "Cairo", "Seoul", "Quito", "Lisbon", "Turin", "Delhi")


def chosen(
    question: str, choices: tuple[str, ...], context: tuple[str, ...] = CONTEXT, **changes: object
) -> str:
    prompt = ChoosePrompt(question, context, choices, **changes)  # type: ignore[arg-type]
    return asyncio.run(ExtractiveModel().complete(prompt, role=Role.ANSWER)).text


@pytest.mark.parametrize(
    ("question", "choices", "right"),
    [
        ("Where did Ann move?", CITIES, "Lisbon"),
        (
            "When did Ann adopt Tofu?",
            ("8 May 2023", "17 May 2023", "7 May 2023", "9 June 2023", "2021"),
            "7 May 2023",
        ),
        (
            "When did Ann adopt Tofu?",
            ("2023-06-09", "2022-05-07", "2023-05-07", "2023-07-01"),
            "2023-05-07",
        ),
        (
            "What class did Bob start?",
            ("a cooking class", "a pottery class", "a dance class"),
            "a pottery class",
        ),
        (
            "How long has Bob been learning the violin?",
            ("2 years", "five years", "3 years", "10 years"),
            "3 years",
        ),
        (
            "Who did Bob take the class with?",
            ("his brother Carl", "his sister Clara", "his wife Dora"),
            "his sister Clara",
        ),
    ],
)
def test_choice_stated_by_the_context_is_found_at_any_position(
    question: str, choices: tuple[str, ...], right: str
) -> None:
    for turn in range(len(choices)):
        turned = (*choices[turn:], *choices[:turn])
        assert turned[int(chosen(question, turned))] == right


def test_chinese_is_compared_by_pairs_of_characters() -> None:
    context = ("核心交换机的电源模块故障导致链路反复震荡。", "数据库的磁盘空间已满。")
    choices = ("光纤被挖断", "磁盘空间已满", "电源模块故障", "配置错误")
    assert (
        chosen("核心交换机链路震荡的原因是什么？", choices, context, labels=ChoiceLabels.LETTERS)
        == "C"
    )
    assert chosen("数据库出现了什么问题？", choices, context, labels=ChoiceLabels.LETTERS) == "B"
    assert chosen("哪一项与电源模块有关？", choices, (), labels=ChoiceLabels.LETTERS) == "C"


def test_multi_select_returns_letters_in_order() -> None:
    context = ("The alerts came from the power supply and from the fan.",)
    choices = ("the disk", "the power supply", "the cable", "the fan")
    assert (
        chosen(
            "Where did the alerts come from?",
            choices,
            context,
            labels=ChoiceLabels.LETTERS,
            multi_select=True,
        )
        == "B,D"
    )
    assert chosen("Where did the alerts come from?", choices, context) in {"1", "3"}


def test_not_answerable_is_chosen_if_the_context_says_nothing() -> None:
    choices = ("a red scarf", "Not answerable", "a blue hat")
    assert chosen("What did Zelda knit for her uncle?", choices) == "1"
    assert chosen("What did Zelda knit for her uncle?", choices, ()) == "1"
    assert (
        chosen("What class did Bob start?", ("Not answerable", "a pottery class"), CONTEXT) == "1"
    )


@pytest.mark.slow
def test_without_a_context_no_position_is_preferred() -> None:
    rng, places = random.Random(5), []
    for number in range(2000):
        choices = tuple(f"{word} {number}" for word in rng.sample(CITIES, 10))
        places.append(chosen("Where did she go?", choices, ()))
    counts = Counter(places)
    assert len(counts) == 10 and min(counts.values()) > 140 and max(counts.values()) < 260


def test_without_a_context_the_words_of_the_question_decide() -> None:
    assert (
        chosen(
            "Which class about pottery did Bob take?",
            ("the violin", "one on cooking", "a pottery class"),
            (),
        )
        == "2"
    )


@pytest.mark.slow
@given(
    st.text(max_size=40),
    st.lists(st.text(min_size=1, max_size=15), min_size=2, max_size=10, unique=True),
    st.text(max_size=60),
)
def test_any_prompt_gets_one_of_its_labels_and_always_the_same(
    question: str, choices: list[str], context: str
) -> None:
    for chunks in ((), (context,)):
        label = chosen(question, tuple(choices), chunks)
        assert label in {str(place) for place in range(len(choices))}
        assert chosen(question, tuple(choices), chunks) == label


_SCORES = """
from memeval.llm.extractive.choosing import choice_scores
context = tuple(
    f"Ann: {line}" for line in (
        "We drove along the northern coast with the old blue van and a borrowed tent.",
        "My sister painted the kitchen green and hung three copper lamps above the table.",
        "The museum showed clay lamps, copper coins and a painted wooden van from Norway.",
    )
)
words = " ".join(context).split()
choices = [" ".join(words[start : start + 12]) for start in range(30)]
question = "What painted and wooden things did Ann see in the museum and on the northern coast?"
print(choice_scores(question, choices, context))
"""


def test_scores_do_not_depend_on_the_hash_seed() -> None:
    printed = set()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", _SCORES],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        printed.add(run.stdout)

    assert len(printed) == 1
