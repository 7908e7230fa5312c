"""A mistake in a user's data set class is reported on one line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forking import run_command_line

from memeval.datasets.contract import Dataset
from memeval.datasets.info import LoadedDataset
from memeval.datasets.registry import dataset_info
from memeval.errors import UserError
from memeval.pipeline.execute.metrics import measure_answer
from memeval.pipeline.execute.turns import CaseTurns
from memeval.records import CategoryId, EvalCase, EvalQuestion, Session, Status, Turn
from memeval.results import AnswerRow

EXAMPLE = Path(__file__).parents[1] / "datasets_example"
ASKED = EvalQuestion("q", "What?", "fact", ("x",), evidence=("t1",))
CASE = EvalCase("a", (Session("s", None, (Turn("t1", "Ann", "x", None),)),), (ASKED,))


class Own(Dataset):
    def __init__(self, made: Callable[[], Any]) -> None:
        super().__init__(Path(), dataset_info("demo"))
        self.made = made

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return {}

    def open(self) -> LoadedDataset:
        raise KeyError("size")

    def read(self) -> Iterator[EvalCase]:
        yield self.made()

    def answer_metrics(self, answer: str, question: EvalQuestion) -> Mapping[str, float | None]:
        return {"share": 1 / len(answer)}


def with_question(**members: Any) -> Callable[[], EvalCase]:
    return lambda: replace(CASE, questions=(replace(ASKED, **members),))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: {}["case"], r"failed: test_own_classes.py:\d+: KeyError: 'case'"),
        (lambda: {"case_id": "a"}, "must give cases of type EvalCase, not dict"),
        # The judge accepted each of its letters: an accuracy of 100 %.
        (with_question(gold="x"), r": case a: questions\[0\].gold: expected `array`, got `str`"),
        (with_question(text=5), r": case a: questions\[0\].text: expected `str`, got `int`"),
        (
            with_question(evidence=("t1", "t2")),
            ": case a: question q: its evidence names turns .*: t2",
        ),
        # Each answer counted as wrong.
        (with_question(choices=("x", "y")), ": case a: question q: right_choices must"),
        (
            with_question(choices=("x", "y"), right_choices=(2,)),
            ": case a: question q: right_choices",
        ),
        (with_question(choices=("x", "y"), right_choices=(0, 1)), ": case a: .*multi_select=True"),
    ],
)
def test_cases_of_a_class_are_checked(made: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"test_own_classes:Own.read\(\) ?{message}"):
        list(Own(made).cases())


def test_sound_case_is_given_unchanged() -> None:
    assert list(Own(lambda: CASE).cases()) == [CASE]
    lists: Any = {"sessions": list(CASE.sessions), "questions": list(CASE.questions)}
    assert list(Own(lambda: replace(CASE, **lists)).cases()) == [CASE]


def test_methods_that_fail_are_named() -> None:
    own = Own(lambda: CASE)
    with pytest.raises(UserError, match=r"Own.open\(\) failed: .*: KeyError: 'size'"):
        own.load()

    row = AnswerRow(id="q", status=Status.OK, hypothesis="")
    with pytest.raises(UserError, match=r"Own.answer_metrics\(\) failed: .*: ZeroDivisionError"):
        measure_answer(row, ASKED, CaseTurns.of(CASE), own)


def test_measures_that_fail_end_the_command_with_one_line(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    with (folder / "my_tickets.py").open("a", encoding="utf-8") as file:
        file.write("\n\nTickets.measures = lambda self, rows: rows[99]\n")

    words = ["--config-dir", "my_conf", "dataset=tickets", "tracking=none", "plots=false"]
    env = {**os.environ, "MEMEVAL_HOME": str(tmp_path / "home")}
    done = run_command_line(words, cwd=folder, env=env)
    assert done.returncode == 2
    assert "my_tickets:Tickets.measures() failed: my_tickets.py" in done.stderr
    assert "no model call is made twice" in done.stderr and "Traceback" not in done.stderr
