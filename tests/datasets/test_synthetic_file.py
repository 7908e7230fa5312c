"""Synthetic cases as a file in LoCoMo's schema: written, read back, and refused if damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memeval.datasets.contract import Dataset
from memeval.datasets.locate import build
from memeval.datasets.synthetic.file import LOCOMO_IDS, sample, write_cases
from memeval.errors import UserError
from memeval.testing.datasets import DatasetContract

NOWHERE = Path("/nowhere")


def samples() -> list[dict[str, Any]]:
    return [sample(case) for case in build("synthetic", NOWHERE, tokens=1_500, n_cases=2).cases()]


def written(folder: Path, records: Sequence[Any]) -> Path:
    path = folder / "made.json"
    path.write_text(json.dumps(list(records)), encoding="utf-8")
    return path


class TestFile(DatasetContract):
    """A file written by `data make synthetic` also conforms to the contract."""

    counts: ClassVar = {"cases": 2, "sessions": 10, "turns": 168, "questions": 60}
    first = ("synthetic-1/q0", "When did Malin visit the clock museum?")
    tenth = ("synthetic-1/q9", "What is Quentin's band name?")
    last = ("synthetic-2/q29", "How many pieces has Yorick bought for the thimble collection?")

    @pytest.fixture(autouse=True)
    def file(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.path = written(tmp_path_factory.mktemp("made"), samples())

    def build(self, **given: Any) -> Dataset:
        return build("synthetic", NOWHERE, **{"path": str(self.path), **given})

    def raw(self) -> Sequence[Any]:
        return samples()


def test_written_cases_are_read_back_unchanged(tmp_path: Path) -> None:
    made = list(build("synthetic", NOWHERE, tokens=5_000, n_cases=2).cases())
    path = tmp_path / "made.json"
    with path.open("w", encoding="utf-8") as file:
        assert write_cases(made, file) == (2, 60)
    assert list(build("synthetic", NOWHERE, path=str(path)).cases()) == made


def test_locomo_adapter_reads_the_same_turns_under_its_categories(tmp_path: Path) -> None:
    made = list(build("synthetic", NOWHERE, tokens=5_000, n_cases=2).cases())
    plain = list(build("demo", NOWHERE, path=str(written(tmp_path, map(sample, made)))).cases())
    assert [case.sessions for case in plain] == [case.sessions for case in made]
    for ours, theirs in zip(
        (q for case in made for q in case.questions),
        (q for case in plain for q in case.questions),
        strict=True,
    ):
        assert (theirs.text, theirs.evidence, theirs.gold, theirs.answerable) == (
            ours.text,
            ours.evidence,
            ours.gold[:1],
            ours.answerable,
        )
        assert theirs.category == LOCOMO_IDS[str(ours.category)]


def change(*path: str | int, to: Any) -> Callable[[Any], None]:
    def apply(records: Any) -> None:
        for key in path[:-1]:
            records = records[key]
        records[path[-1]] = to

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            change(1, "sample_id", to="synthetic-1"),
            "record 1: field 'sample_id' is 'synthetic-1', which occurs twice",
        ),
        (
            change(0, "qa", 3, "ability", to="XX"),
            "synthetic-1 qa[3]: field 'ability' is 'XX', not one of",
        ),
        (
            change(0, "qa", 0, "category", to=4),
            "synthetic-1 qa[0]: field 'category' is 4, but ability TR has category 2",
        ),
        (
            change(0, "qa", 0, "answers", to=["never"]),
            "synthetic-1 qa[0]: field 'answers' does not begin with the field 'answer'",
        ),
        (
            change(0, "qa", 0, "evidence", to=["D99:1"]),
            "synthetic-1 qa[0]: field 'evidence' contains ['D99:1'], which are not all turn ids",
        ),
        (change(0, "qa", 0, "evidence", to=[]), "synthetic-1 qa[0]: field 'evidence' is empty"),
        (change(0, "qa", to=[]), "record 0: field 'qa' contains no questions"),
        (
            change(0, "conversation", "session_2_date_time", to="1:00 pm on 1 May, 1999"),
            "synthetic-1: field 'session_2_date_time' is earlier than that of the session "
            "before it",
        ),
    ],
)
def test_a_damaged_record_is_named(
    tmp_path: Path, damage: Callable[[Any], None], message: str
) -> None:
    records = samples()
    damage(records)
    path = written(tmp_path, records)
    with pytest.raises(UserError) as error:
        build("synthetic", NOWHERE, path=str(path)).open()
    assert str(error.value).startswith(f"{path}: {message}")
