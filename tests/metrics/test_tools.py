"""The figures of tools, from records and ingests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memeval.metrics.tools import METRICS, evidence_seen
from memeval.pipeline.measure.figures import measure_cell, measure_repeat
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.spending import measure_tools
from memeval.results import IngestRow, Record
from memeval.results.rows import StepTimes, Written, WrittenSession
from memeval.results.steps import AgentStep, StepCall


def call(*turns: str, name: str = "search", fault: str | None = None) -> StepCall:
    shown = None if fault else turns
    return StepCall(name=name, arguments="a", result="r", tokens=1, fault=fault, turn_ids=shown)


def record(*calls: StepCall, **more: object) -> Record:
    steps = (AgentStep(calls=calls), AgentStep())
    members = {"question_id": "q", "steps": steps, "evidence": ("t1", "t2"), **more}
    return Record(**members)  # type: ignore[arg-type]


def test_tool_metrics_of_a_question() -> None:
    found = record(call("t1", "t9"), call("t1"), call(fault="tool_failed"), step_limit=True)
    values = {metric.name: metric.of_question(found) for metric in METRICS if metric.of_record}
    assert values == {
        "steps": 2.0,
        "tool_calls": 3.0,
        "tool_errors": 1.0,
        "without_call": 0.0,
        "at_step_limit": 1.0,
        "evidence_seen": 0.5,
        "write_recall": None,
    }


def test_unmeasured_tool_metrics_are_none() -> None:
    direct = Record("q", evidence=("t1",))
    assert {metric.of_question(direct) for metric in METRICS if metric.of_record} == {None}
    assert evidence_seen(Record("q", steps=(AgentStep(),))) is None
    assert measure_tools([direct], [Ingest("c", 0, IngestRow("c", 1, 0), ())]) == {}


def test_tool_metrics_of_a_repeat() -> None:
    first = record(call("t1"), times=StepTimes(tools_ms=(2.0,)), metrics={"write_recall": 1.0})
    second = record(
        call("t1", "t2"),
        call(name="nothing", fault="unknown_tool"),
        question_id="r",
        times=StepTimes(tools_ms=(4.0, None)),
        metrics={"write_recall": 0.0},
    )
    wrote = Written(steps=2, calls=5, faults=1, writes=4, limited=0, read_characters=200)
    known = Written(
        steps=2, calls=4, faults=0, writes=4, limited=0, read_characters=200, items=4, characters=50
    )
    rows = [Ingest(case, 0, IngestRow(case, 1, 0, written=known), ()) for case in "bc"]

    def until(*names: str) -> Ingest:
        sessions = tuple(WrittenSession(name, steps=1, calls=1, writes=1) for name in names)
        return Ingest("b", 0, IngestRow("b", 1, 0, written=replace(known, sessions=sessions)), ())

    figures = measure_tools([first, second], rows)
    assert figures == {
        "latency_ms/tool/search/p50": 3.0,
        "latency_ms/tool/search/p95": pytest.approx(3.9),
        "write_calls": 8.0,
        "write_errors": 0.0,
        "writes": 8.0,
        "write_items": 8.0,
        "write_kept": 0.25,
    }
    due = {
        "steps": 2.0,
        "tool_calls": 1.5,
        "tool_errors": 0.5,
        "without_call": 0.0,
        "at_step_limit": 0.0,
        "evidence_seen": 0.75,
        "write_recall": 0.5,
    }
    # Also of questions that are not in the accuracy.
    measured = measure_repeat([first, second], rows, frozenset({"other"}))
    assert {name: measured[name] for name in due} == due

    # At a second checkpoint, a memory lists what it stored at the first one again.
    again = measure_tools([], [*rows, until("s2")])
    assert (again["writes"], again["write_items"], again["write_kept"]) == (12.0, None, None)

    # A memory that can't be saved is written from the start for each checkpoint.
    again = measure_tools([], [until("s1", "s2", "s1"), until("s1"), until("s3")])
    assert (again["writes"], again["write_items"]) == (8.0, None)

    # One memory that cannot say what it stores makes the total unknown.
    rows.append(Ingest("d", 0, IngestRow("d", 1, 0, written=wrote), ()))
    figures = measure_tools([], rows)
    assert figures["write_items"] is None
    assert figures["write_kept"] is None


def test_tool_metrics_of_repeats_are_averaged_by_question() -> None:
    """As in a comparison: a question that failed in one repeat has the weight of any other."""
    first, failed = record(call(), call()), Record("q", repeat=1)
    second = [record(call(), question_id="r", repeat=repeat) for repeat in range(2)]
    repeats = [measure_repeat(own, []) for own in ([first, second[0]], [failed, second[1]])]
    assert [repeat["tool_calls"] for repeat in repeats] == [1.5, 1.0]
    assert measure_cell(repeats, [first, failed, *second])["tool_calls"] == 1.5
