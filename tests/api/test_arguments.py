"""Arguments of a wrong type, or names too long for a file, raise a one-line `UserError`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import memeval as typed_memeval
from memeval.api.arguments import check_types
from memeval.errors import UserError

memeval: Any = typed_memeval
"""Untyped, so that a test can pass what a type checker would reject."""


@pytest.fixture(scope="module")
def run(home: Path) -> typed_memeval.Run:
    return memeval.run(
        "dataset=demo", "dataset.limit_questions=2", "tracking=none", system="bm25", progress=False
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda run: memeval.gate("bm25", "b.json"),
            "gate: run must be a finished run, as returned",
        ),
        (lambda run: memeval.gate(run, 3), "gate: baseline must be a string or a path, not 3"),
        (
            lambda run: memeval.gate(run, "b.json", margin="2"),
            "margin must be a number, not",
        ),
        (
            lambda run: memeval.gate(run, "b.json", must_pass="demo-1/q0"),
            "must_pass must be a list of strings, not 'demo-1/q0'",
        ),
        (lambda run: memeval.bless(run.summary, "b.json"), "bless: run must be a finished run"),
        (lambda run: memeval.bless(run, 300 * "b"), f"too long for a file name: {59 * 'b'}…"),
        (
            lambda run: memeval.run("dataset=json", f"dataset.path={300 * 'b'}"),
            f"too long for a file name: {59 * 'b'}…",
        ),
        (lambda run: memeval.run(top_k=[3, 5]), "one run, but top_k=[3, 5] makes several"),
        (lambda run: memeval.run(system=("bm25",)), "system=[bm25] is a list, but system takes"),
        (lambda run: memeval.bless(run, "b.json", must_pass=[3]), "must be a list of strings"),
        (lambda run: memeval.bless(run, "b.json", metric=3), "metric must be a string or None"),
        (lambda run: memeval.table(None), "or a list of finished runs or strings or paths, not"),
        (lambda run: memeval.table([run, 3]), "table: runs must be"),
        (lambda run: memeval.table([]), "table needs runs, or a filter"),
        (lambda run: memeval.table(run, columns=3), "columns must be a string or a list of strin"),
        (lambda run: memeval.compare(run, {"a": 1}), "compare: runs must be a finished run"),
        (lambda run: memeval.compare(run, metric=[3]), "metric must be a string or a list of stri"),
        (lambda run: memeval.compare(last="2"), "last must be a whole number or None, not '2'"),
        (lambda run: memeval.compare(adjust="none"), "unknown adjustment 'none'"),
        (
            lambda run: memeval.calibrate(run, None),
            "labels must be a string or a path, not",
        ),
        (memeval.load_run, "load_run: which must be a string or a path"),
        (lambda run: memeval.load_runs(since=7), "since must be a time or a span of time or a str"),
        (lambda run: memeval.evaluate(3), "evaluate: answers must be a string or a path, not 3"),
        (lambda run: memeval.judge_probe(items=3), "or a list of strings or paths, not 3"),
        (lambda run: memeval.explain(3, "claim"), "explain: run must be"),
        (lambda run: run.table(3), "table: columns must be a list of strings, not 3"),
        (
            lambda run: memeval.Sweep([run], [], (), run.folder).table("accuracy,f1"),
            "table: columns must be a list of strings, not 'accuracy,f1'",
        ),
        (lambda run: memeval.load_runs(since="1y"), "since='1y' is not a span of time"),
        (lambda run: memeval.table(run, last=0), "last must be at least 1, not 0"),
        (lambda run: memeval.export([run], "hf"), "export: run must be a finished run"),
        (
            lambda run: memeval.export(run, "hf", output=3),
            "output must be a string or a path or None",
        ),
        (
            lambda run: memeval.evaluate(run.folder / "hypotheses.jsonl", judged_by="Ana"),
            "recorded verdicts of 'Ana' need judge=recorded",
        ),
        (lambda run: memeval.gate(run, "b.json", margin=-1), "margin must be between 0 and 100"),
        (lambda run: run.context(3), "unknown question '3'."),
        (
            lambda run: run.prompt(run.records()["question_id"][0], 5),
            "has no repeat 5, only 0",
        ),
    ],
)
def test_wrong_argument_is_reported_on_one_line(
    run: typed_memeval.Run, call: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        call(run)

    assert message in raised.value.message and "\n" not in raised.value.message
    assert "--" not in raised.value.message


def test_valid_arguments_are_passed_on(run: typed_memeval.Run) -> None:
    assert (
        memeval.table([run.key], columns=["accuracy"]).text()
        == memeval.table(run, columns="accuracy").text()
    )
    assert memeval.load_runs(since="1d", dataset=None)[0].key == run.key
    assert memeval.load_runs(since=pd.Timestamp.now() - pd.Timedelta(days=1))[0].key == run.key
    columns = pd.Series(["accuracy", "f1"])
    assert run.table(columns).text() == run.table(["accuracy", "f1"]).text()
    with pytest.raises(TypeError, match=r"^table\(\) got an unexpected keyword argument 'colums'"):
        memeval.table(run, colums="accuracy")


def test_types_are_compared_whether_annotations_are_strings_or_not() -> None:
    def shown(number: int) -> int:
        return number

    for annotation in ("int", int):
        shown.__annotations__["number"] = annotation
        with pytest.raises(UserError, match=r"^shown: number must be a whole number, not '3'$"):
            check_types(shown)("3")  # type: ignore[arg-type]
