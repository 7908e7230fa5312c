"""Rows derived from LoCoMo's file."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from mc10_samples import mc10, original, write_original

from memeval.datasets.locate import build
from memeval.datasets.locomo_mc10.derive import NOT_ANSWERABLE
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion

DEMO = DATASETS["demo"]


@pytest.fixture(autouse=True)
def _no_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps other data away: LoCoMo's file is looked up in the data folder, too."""
    monkeypatch.setenv("MEMEVAL_DATA_DIR", str(tmp_path))


def derived(**settings: Any) -> list[EvalCase]:
    """Cases derived from the demonstration set."""
    return list(build("demo_locomo_mc10", Path(), derive=True, **settings).cases())


def questions(cases: list[EvalCase]) -> list[EvalQuestion]:
    return [question for case in cases for question in case.questions]


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold())) - {"a", "an", "the", "and"}


def test_every_question_has_ten_choices_and_one_that_is_right() -> None:
    asked = questions(derived())
    assert len(asked) == DEMO.counts["questions"]
    for question in asked:
        assert len(question.choices) == 10
        (right,) = question.right_choices
        assert question.choices[right] == (
            question.gold[0] if question.category != 5 else NOT_ANSWERABLE
        )
        wrong = [choice for place, choice in enumerate(question.choices) if place != right]
        right_words = words(question.choices[right])
        assert not any(
            words(choice) <= right_words or right_words <= words(choice) for choice in wrong
        ), question.question_id
    assert {question.right_choices[0] for question in asked} == set(range(10))


def test_wrong_choices_come_mostly_from_the_same_category() -> None:
    asked = questions(derived())
    golds = {
        category: {question.gold[0] for question in asked if question.category == category}
        for category in (1, 2, 3, 4)
    }
    for question in asked:
        if question.category in (1, 2, 4):
            assert (
                sum(choice in golds[int(question.category)] for choice in question.choices) >= 9
            ), question.question_id


def test_adversarial_question_offers_its_false_answer() -> None:
    (question,) = [one for one in questions(derived()) if one.question_id == "demo-1_q19"]
    assert "bright orange" in question.choices and not question.answerable
    assert not any(
        NOT_ANSWERABLE in one.choices for one in questions(derived()) if one.category != 5
    )


def test_derive_seed_decides_the_choices() -> None:
    first, again, other = derived(), derived(), derived(derive_seed=1)
    assert first == again != other
    assert [one.text for one in questions(first)] == [one.text for one in questions(other)]
    opened = [
        build("demo_locomo_mc10", Path(), derive=True, derive_seed=seed).open()
        for seed in (0, 0, 1)
    ]
    assert opened[0].sha256 == opened[1].sha256 != opened[2].sha256


def test_derived_data_set_says_so() -> None:
    opened = build("demo_locomo_mc10", Path(), derive=True).open()
    assert opened.derived and opened.path.name == "demo.json"
    assert opened.notes[0].startswith(
        "DERIVED: these rows are not LoCoMo-MC10's. They were made from demo.json (sha256 "
    )


def test_deriving_needs_the_registered_locomo(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="data set 'locomo' is not on this machine"):
        mc10(tmp_path, derive=True).open()
    path = write_original(tmp_path, [original()])
    with pytest.raises(UserError, match=r"locomo10\.json is not the registered file"):
        mc10(tmp_path, derive=True).open()
    assert not mc10(tmp_path, derive=True, allow_unpinned=True).open().pinned
    assert (
        not mc10(tmp_path / "elsewhere", derive=True, allow_unpinned=True, path=str(path))
        .open()
        .pinned
    )


def test_a_small_file_gives_as_many_choices_as_it_can(tmp_path: Path) -> None:
    write_original(tmp_path, [original()])
    (case,) = mc10(tmp_path, derive=True, allow_unpinned=True).cases()
    place, time, adversarial = case.questions
    assert set(place.choices) == {"Oslo", "7 May 2023"} and place.evidence == ("D1:1",)
    assert set(time.choices) == {"Oslo", "7 May 2023"} and time.category == 2
    assert set(adversarial.choices) == {NOT_ANSWERABLE, "Tofu", "Oslo", "7 May 2023"}
    assert [turn.text for turn in case.sessions[1].turns] == [
        "My cat is called Tofu.",
        "Mine has no name, it is grey.",
    ]


def test_written_file_reads_back_as_the_derived_data(tmp_path: Path) -> None:
    derived = build("demo_locomo_mc10", tmp_path, derive=True, derive_seed=4)
    path = tmp_path / "mc10.jsonl"
    with path.open("w", encoding="utf-8") as file:
        assert derived.write(file) == (DEMO.counts["cases"], DEMO.counts["questions"])
    read = build("demo_locomo_mc10", tmp_path, path=str(path))
    loaded = read.open()
    assert loaded.derived and any(
        note.startswith("DERIVED: ") and "derive_seed=4" in note for note in loaded.notes
    )
    questions = [question for case in read.cases() for question in case.questions]
    assert questions == [question for case in derived.cases() for question in case.questions]
    with pytest.raises(UserError, match="is already a file"):
        read.write(io.StringIO())
