"""ForgetEval's format: what is read, what is refused, and when a case passes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sample_records import record

from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.metrics.lifecycle import FORGETEVAL, trace_metrics
from memeval.records import ForgetRequest, Traces

CASE: dict[str, Any] = {
    "id": "made_up_01",
    "family": "supersession",
    "setup_facts": ["Tomas lives in Ostrava.", "The ferry leaves at nine."],
    "mutations": [["supersede", "Tomas lives", "Tomas moved to Brno."], ["purge", "ferry"]],
    "final_query": "Where does Tomas live?",
    "must_contain": ["Brno"],
    "must_not_contain": ["lives in Ostrava"],
}


@pytest.mark.parametrize(
    "text", [json.dumps([CASE]), json.dumps(CASE) + "\n", "\ufeff" + json.dumps([CASE])]
)
def test_case_becomes_sessions_and_operations(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cases.json"
    path.write_text(text, encoding="utf-8")
    (case,) = build("forgeteval", tmp_path, path=str(path), probed=True).cases()
    said = [[turn.text for turn in session.turns] for session in case.sessions]
    assert said == [CASE["setup_facts"], ["Tomas moved to Brno."]]
    deleted = ("lives in Ostrava",)
    outdated = ForgetRequest(words="This is out of date: Tomas lives.", about="Tomas lives")
    purged = ForgetRequest(words="Delete this for good: ferry.", about="ferry")
    assert [(one.after, one.forget, one.values) for one in case.operations] == [
        ("s1", outdated, deleted),
        ("s2", purged, deleted),
    ]
    (question,) = case.questions
    assert (question.gold, question.answerable) == (("Brno",), True)
    assert question.traces == Traces(
        kind=FORGETEVAL,
        right=("Brno",),
        deleted=deleted,
        probes=("Where does Tomas live?", "lives in Ostrava"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mutations": [["forget", "x"]]}, "a mutation must be"),
        ({"mutations": [["supersede", "x"]]}, "a mutation must be"),
        ({"mutations": [[]]}, "a mutation must be"),
        ({"mutations": [["purge", " "]]}, "a mutation must be"),
        ({"setup_facts": []}, "setup_facts"),
        ({"final_query": 7}, "final_query"),
        ({"family": None}, "family"),
    ],
)
def test_invalid_case_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([{**CASE, **change}]), encoding="utf-8")
    with pytest.raises(UserError, match=message) as refused:
        build("forgeteval", tmp_path, path=str(path)).open()

    assert "\n" not in str(refused.value.args[0])


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 5000, b'{"id": 1}', b"[null]"])
def test_a_file_that_holds_no_cases_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cases.json"
    path.write_bytes(content)
    with pytest.raises(UserError):
        build("forgeteval", tmp_path, path=str(path)).open()


def test_duplicate_case_id_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([CASE, CASE]), encoding="utf-8")
    with pytest.raises(UserError, match="two cases have the id"):
        build("forgeteval", tmp_path, path=str(path)).open()


@pytest.mark.parametrize(
    ("seen", "passes"),
    [
        ({"search": ("a", "b")}, 1.0),
        ({"search": ("a",)}, 0.0),
        ({"search": ("a", "b", "old")}, 0.0),
        ({"search": ("a", "b"), "probe": ("old",)}, 0.0),
        ({"search": ("a", "b"), "probe": ()}, 1.0),
    ],
)
def test_case_passes_with_all_required_and_no_deleted_facts(
    seen: dict[str, tuple[str, ...]], passes: float
) -> None:
    traces = Traces(kind=FORGETEVAL, right=("a", "b"), deleted=("old",))
    assert trace_metrics("whatever", seen, traces) == {FORGETEVAL: passes}
    assert trace_metrics("whatever", {}, traces) == {}


def test_cases_whose_mutations_a_system_cannot_express_are_counted(tmp_path: Path) -> None:
    records = [
        record(metrics={FORGETEVAL: 0.0}),
        record(metrics={FORGETEVAL: 1.0}),
        record(metrics={}),
        record(metrics={}, hypothesis=None),
    ]
    measured = build("forgeteval", tmp_path, path="cases.json").measures(records)
    assert measured == {"forgeteval_pass_not_applicable": 1.0}


@pytest.mark.real_data
def test_the_published_cases_are_read(data_dir: Path) -> None:
    dataset = build("forgeteval", data_dir, path=str(data_dir / "forgeteval" / "cases_dev.json"))
    cases = list(dataset.cases())
    assert len(cases) == 16
    assert Counter(case.questions[0].category for case in cases) == {
        "supersession": 2,
        "purge": 10,
        "amnesia": 2,
        "decay": 1,
        "drift": 1,
    }
    assert len(cases[4].sessions) == 3
