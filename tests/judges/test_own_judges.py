"""Custom judges: by class path or entry point, and the errors if neither leads to a judge."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed import install

from memeval.errors import UserError
from memeval.judges.contract import Judge, JudgeContext
from memeval.judges.registry import build_judge, judge_type
from memeval.pipeline.execute.judging import judge_answer
from memeval.records import EvalQuestion, Label, Status, Verdict
from memeval.results import VerdictRow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "judges_example"
PAGE = (ROOT / "docs" / "adding_a_judge.md").read_text(encoding="utf-8")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))


def test_entry_point_adds_a_judge_but_cannot_replace_a_built_in_one(
    example: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = dict.fromkeys(("states", "keyword"), "my_judges:Contains")
    install(tmp_path, "my-judges", {"memeval.judges": points})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert judge_type("states").name == "contains"
    with pytest.raises(
        UserError, match=r"judge=keyword is defined by two packages: .* and my-judges 1"
    ):
        judge_type("keyword")
    with pytest.raises(UserError, match=r"unknown judge 'statess'\. Did you mean: states"):
        judge_type("statess")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("my_judges", "judge.class must be package.module:Class, but is 'my_judges'"),
        ("no_such:Judge", "judge 'mine': no module named 'no_such'"),
        ("my_judges:Nothing", "judge 'mine': module 'my_judges' has no class 'Nothing'"),
        ("my_judges:Path", "my_judges:Path is "),
        ("memeval.judges.model:ModelJudge", "model:ModelJudge does not define name of Judge"),
    ],
)
def test_class_path_that_leads_to_no_judge_is_refused(
    example: None, path: str, message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        judge_type("mine", path)


def test_a_judge_that_cannot_be_built_is_refused(
    example: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any) -> None:
        raise ValueError("no dictionary")

    monkeypatch.setattr(judge_type("x", "my_judges:Contains"), "__init__", broken)
    location = re.escape("judge 'x': my_judges:Contains can't be created: test_own_judges.py:")
    with pytest.raises(UserError, match=location + r"\d+: ValueError: no dictionary"):
        context = JudgeContext(lambda: pytest.fail("no model is needed"))
        build_judge("x", context, "my_judges:Contains")


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda: Verdict("odd", Label.CORRECT, 1.2, graded=True), "in [0, 1], but is 1.2"),
        (lambda: Verdict("odd", Label.CORRECT, graded=True), "a graded verdict needs a score"),
        (lambda: Verdict("odd", "good", 1.0), "'good' is not a valid Label"),
        (lambda: True, "judge() must return a Verdict, but returned bool"),
        (lambda: sys.exit("no licence"), "SystemExit: no licence"),
    ],
)
def test_an_odd_verdict_fails_its_question_only(returned: Callable[[], Any], error: str) -> None:
    row = _judged(returned)
    assert row.status is Status.JUDGE_FAILED
    assert error in (row.error or "")


def test_an_error_of_a_judge_names_its_line() -> None:
    row = _judged(lambda: Path("a/" * 200).read_text(encoding="utf-8"))
    assert re.fullmatch(r"test_own_judges\.py:\d+: F.*Error: .*'(a/){199}a'", row.error or "")


def test_a_verdict_of_plain_text_and_numpy_is_stored() -> None:
    votes = ["wrong", "wrong", "correct"]
    row = _judged(lambda: Verdict("odd", "wrong", np.float32(0.5), votes=votes, graded=True))
    assert VerdictRow.from_json(row.to_json()) == row
    assert row.verdict is not None
    assert row.verdict.label is Label.WRONG


def test_a_score_that_rounding_carries_over_1_is_1() -> None:
    score = 0.05 + 0.55 + 0.3 + 0.1
    assert score > 1
    assert Verdict("odd", Label.CORRECT, score, graded=True).credit == 1


def _judged(returned: Callable[[], Any]) -> VerdictRow:
    class Odd(Judge):
        name = "odd"

        async def judge(self, *_: Any, **__: Any) -> Any:
            return returned()

    question = EvalQuestion(question_id="case/q0", text="Who?", category="fact", gold=("Ana",))
    return asyncio.run(judge_answer(Odd(), question, "Ana", {}))


def test_example_on_the_page_equals_the_tested_files() -> None:
    for fence, path in (
        ("python", "my_judges.py"),
        ("text", "patient.txt"),
        ("yaml", "my_conf/judge/patient.yaml"),
    ):
        assert f"```{fence}\n{(EXAMPLE / path).read_text(encoding='utf-8')}```" in PAGE


def run(command: str, home: Path, folder: Path = EXAMPLE) -> subprocess.CompletedProcess[str]:
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    few = ["dataset.limit_cases=1", "dataset.limit_questions=5", "tracking=none"]
    environment = {**os.environ, "MEMEVAL_HOME": str(home)}
    return subprocess.run(
        [*words, *few],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", re.findall(r"^python -m .*$", PAGE, re.MULTILINE))
def test_commands_on_the_page_run(command: str, tmp_path: Path) -> None:
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr

    (summary,) = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("outputs/runs/*/run.json")
    )
    judge = "patient" if "patient" in command else "contains"
    assert summary["params"]["judge"] == judge
    assert f"judge={judge} (" in summary["tags"]["protocol"]
    assert f"class=my_judges:{judge.capitalize()}@" in summary["tags"]["protocol"]


@pytest.mark.slow
def test_edited_judge_judges_again_but_reuses_the_answers(tmp_path: Path) -> None:
    folder, home = shutil.copytree(EXAMPLE, tmp_path / "example"), tmp_path / "home"
    command = "python -m memeval judge.class=my_judges:Contains"
    assert run(command, home, folder).returncode == 0
    assert "already done: reused" in run(command, home, folder).stderr

    module = folder / "my_judges.py"
    edited = module.read_text(encoding="utf-8").replace("looked for", "searched for")
    module.write_text(edited, encoding="utf-8")
    again = run(command, home, folder)
    assert again.returncode == 0, again.stderr
    assert "answer 5/5 (5 reused)" in again.stderr
    assert "judge 5/5" in again.stderr and "judge 5/5 (" not in again.stderr


@pytest.mark.slow
def test_judge_of_free_text_answers_does_not_apply_to_choices(tmp_path: Path) -> None:
    done = run(
        "python -m memeval judge.class=my_judges:Contains dataset=demo_locomo_mc10", tmp_path
    )
    assert done.returncode == 2
    assert "judge=contains does not apply to dataset=demo_locomo_mc10" in done.stderr
