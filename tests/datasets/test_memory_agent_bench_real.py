"""The adapter on the published Conflict_Resolution.json."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memeval.datasets.fetch import verify
from memeval.datasets.locate import build
from memeval.datasets.registry import DATASETS
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase

MEMORY_AGENT_BENCH = DATASETS["memory_agent_bench"]

pytestmark = pytest.mark.real_data

SOURCES = [
    f"factconsolidation_{hops}_{size}"
    for hops in ("mh", "sh")
    for size in ("6k", "32k", "64k", "262k")
]


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> list[EvalCase]:
    dataset = build("memory_agent_bench", data_dir)
    assert dataset.open().pinned
    return list(dataset.cases())


def test_published_file_verifies_as_registered(data_dir: Path) -> None:
    found = verify(MEMORY_AGENT_BENCH, data_dir)
    assert found.right and found.problems == () and found.repairs == ()


def test_eight_rows_of_a_hundred_questions(cases: list[EvalCase]) -> None:
    assert [case.questions[0].category for case in cases] == SOURCES
    assert [len(case.questions) for case in cases] == [100] * 8
    assert Counter(question.facets["hops"] for case in cases for question in case.questions) == {
        "sh": 400,
        "mh": 400,
    }


def test_first_tenth_and_last_question(cases: list[EvalCase]) -> None:
    questions = [question for case in cases for question in case.questions]
    entries = [
        (questions[place].question_id, questions[place].text, questions[place].gold)
        for place in (0, 9, -1)
    ]
    assert entries[0] == (
        "factconsolidation_mh_6k_no0",
        "What is the country of citizenship of the spouse of the author of Our Mutual Friend?",
        ("Belgium",),
    )
    assert [entry[0] for entry in entries] == [
        "factconsolidation_mh_6k_no0",
        "factconsolidation_mh_6k_no9",
        "factconsolidation_sh_262k_no99",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "turns"),
    [(512, [11, 56, 111, 445, 11, 56, 111, 445]), (4096, [2, 7, 14, 55, 2, 7, 14, 55])],
)
def test_no_fact_is_split_or_lost(data_dir: Path, size: int, turns: list[int]) -> None:
    found = list(build("memory_agent_bench", data_dir, chunk_tokens=size).cases())
    assert [len(case.sessions[0].turns) for case in found] == turns
    for case, facts in zip(found, (455, 2_310, 4_580, 18_332) * 2, strict=True):
        texts = [turn.text for turn in case.sessions[0].turns]
        assert all(count_tokens(text) <= size for text in texts)
        lines = "\n".join(texts).splitlines()
        assert lines[0] == "Here is a list of facts:"
        assert [line.partition(". ")[0] for line in lines[1:]] == [
            str(number) for number in range(facts)
        ]
