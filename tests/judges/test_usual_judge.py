"""The judge that `judge=auto` chooses, from the declarations of judges and data sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import install

import memeval
from memeval.config.options import options
from memeval.datasets.registry import adapter_class
from memeval.judges.registry import applicable_judges, usual_judge
from memeval.records import AnswerKind

BY_WORDS = ("contains", "exact_match", "keyword", "llm", "mem0", "token_f1")
USUAL = {
    "alert_storm": ("keyword", "llm"),
    "beam": ("keyword", "beam"),
    "convomem": ("keyword", "convomem"),
    "demo": ("keyword", "llm"),
    "forgeteval": ("lifecycle", "lifecycle"),
    "incidents": ("keyword", "llm"),
    "json": ("keyword", "llm"),
    "lifecycle": ("lifecycle", "lifecycle"),
    "locomo": ("keyword", "llm"),
    "locomo_mc10": ("accuracy", "accuracy"),
    "longmemeval": ("keyword", "longmemeval"),
    "memory_agent_bench": ("memory_agent_bench", "memory_agent_bench"),
    "netops": ("keyword", "llm"),
    "opseval": ("token_f1", "opseval"),
    "personamem": ("accuracy", "accuracy"),
    "synthetic": ("exact_match", "exact_match"),
}
"""The usual judge offline and with a model, by the data set's name without `demo_`."""
DECLARING = """
from memeval.judges.contract import Judge
from memeval.records import AnswerKind


class Patient(Judge):
    name = "patient"
    benchmark = "patience"

    async def judge(self, question, answer, metrics, tried=0):
        return self.verdict(answer, right=True, score=1.0)


class Loud(Judge):
    name = "loud"
    answers = frozenset({AnswerKind.VALUES})

    async def judge(self, question, answer, metrics, tried=0):
        return self.verdict(answer, right=answer.isupper(), score=float(answer.isupper()))
"""


@pytest.mark.parametrize("dataset", options("dataset"))
def test_usual_and_applicable_judges_of_every_data_set(dataset: str) -> None:
    name = dataset.removeprefix("demo_")
    offline, with_model = USUAL["longmemeval" if name.startswith("longmemeval_") else name]
    adapter = adapter_class(dataset)
    kind, benchmark = adapter.answers[0], adapter.benchmark

    assert usual_judge(kind, benchmark, has_model=False) == offline
    assert usual_judge(kind, benchmark, has_model=True) == with_model
    expected = {offline} if offline == "accuracy" else {*BY_WORDS, offline, with_model}
    assert set(applicable_judges(kind, benchmark)) == expected


def test_data_set_without_a_benchmark_is_judged_by_a_rule() -> None:
    assert usual_judge(AnswerKind.WORDS, None, has_model=True) == "keyword"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with two judges, and one that can't be imported."""
    judges = {
        "patient": "declaring_judges:Patient",
        "loud": "declaring_judges:Loud",
        "gone": "declaring_nothing:Gone",
    }
    files = {"declaring_judges.py": DECLARING}
    install(tmp_path, "declaring-judges", {"memeval.judges": judges}, files)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("package")
def test_installed_judge_becomes_the_usual_judge_of_its_benchmark() -> None:
    for has_model in (False, True):
        assert usual_judge(AnswerKind.WORDS, "patience", has_model=has_model) == "patient"
    assert "patient" not in applicable_judges(AnswerKind.CHOICES, "patience")
    # Other benchmarks have their own judge, or none.
    assert usual_judge(AnswerKind.WORDS, "another", has_model=True) == "keyword"
    assert "patient" not in applicable_judges(AnswerKind.WORDS, "another")


@pytest.mark.usefixtures("package")
def test_judge_applies_only_to_the_answer_kinds_that_it_declares() -> None:
    assert "loud" in applicable_judges(AnswerKind.VALUES, "another")
    assert "loud" not in applicable_judges(AnswerKind.WORDS, "another")


def test_code_of_data_sets_names_no_judge() -> None:
    folder = Path(memeval.__file__).parent / "datasets"
    for path in [folder / "contract.py", *folder.glob("*/adapter.py")]:
        text = path.read_text(encoding="utf-8")
        assert not [name for name in ("keyword", "llm", "mem0", "contains") if f'"{name}"' in text]
