"""`writer=tools` on the command line: offline, at an endpoint, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, completed, memeval
from doubles.endpoint import ScriptedEndpoint

from memeval.report.page.questions import question_data
from memeval.report.page.runs import PageRun


def lines(home: Path, pattern: str) -> list[Mapping[str, Any]]:
    """The rows of all files that match a pattern."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(home.glob(pattern))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.mark.slow
def test_notes_take_the_place_of_the_chunks_and_are_written_once(tmp_path: Path) -> None:
    words = ("-m", "writer=chunks,tools", "reader=direct,tools", "system=bm25", *SMALL)
    done = completed(tmp_path, *words)
    assert "writer" in done.out

    written = [row["written"] for row in lines(tmp_path, "outputs/answers/*") if "written" in row]
    assert len(written) == 2
    for row in written:
        assert row["writes"] == row["items"] > 0
        assert row["faults"] == 0
        assert 0 < row["characters"] <= row["read_characters"]
        assert row["quoted"]

    by_tools = [
        json.loads(file.read_text(encoding="utf-8"))["metrics"]
        for file in tmp_path.glob("outputs/runs/*/run.json")
    ]
    assert sum("write_recall" in metrics for metrics in by_tools) == 2
    assert sum("evidence_seen" in metrics for metrics in by_tools) == 2
    assert max(metrics.get("write_recall", 0) for metrics in by_tools) > 0

    # One memory per writer, shared by the readers.
    assert len(list(tmp_path.glob("data/prepared/*/bm25-*"))) == 2
    (dump,) = tmp_path.glob("data/prepared/*/bm25-*/*.dump.jsonl")
    notes = [json.loads(line) for line in dump.read_text(encoding="utf-8").splitlines()]
    assert {note["kind"] for note in notes} == {"note"}


def test_calls_of_a_writer_are_recorded_and_shown(tmp_path: Path) -> None:
    words = ("writer=tools", "reader=tools", "system=files", *SMALL)
    completed(tmp_path, *words)
    again = completed(tmp_path, *words, "fresh=answer")
    assert "1 reused" in again.err

    (written,) = [
        row["written"] for row in lines(tmp_path, "outputs/answers/*") if "written" in row
    ]
    assert len({session["session_id"] for session in written["sessions"]}) > 1
    for name in ("steps", "calls", "writes"):
        assert sum(session[name] for session in written["sessions"]) == written[name]

    shown = completed(tmp_path, "show", "@last", "demo-1/q0").out
    assert "  step 1\n  call of grep: {" in shown
    assert "evidence D1:6" in shown
    first = written["sessions"][0]
    done = f"2 replies, {first['calls']} calls, {first['writes']} writes"
    assert f"  writer, session {first['session_id']}: {done}\n" in shown
    # Each call is kept by reference in the row, and in full in the memory, which runs share.
    texts = {row["id"]: row.get("text") for row in lines(tmp_path, "outputs/answers/*.texts.jsonl")}
    calls = [call for step in first["made"] for call in step.get("calls", ())]
    assert len(calls) == first["calls"] == len(first["times"]["tools_ms"])
    assert len(first["times"]["replies_ms"]) == first["steps"]
    assert json.loads(texts[calls[0]["arguments"]])["path"] == "notes.txt"
    assert texts[calls[0]["result"]] == "notes.txt has 1 lines."
    assert texts[first["made"][-1]["text"]] == "done"
    (memory,) = lines(tmp_path, "data/prepared/*/files-*/*/memory.json")
    saved = memory["written"]["sessions"][0]["made"][0]["calls"]
    assert [call["arguments"] for call in saved] == [texts[call["arguments"]] for call in calls]
    assert any("D1:6" in call["turn_ids"] for call in calls)
    assert f"call of {calls[0]['name']}" in shown

    (folder,) = tmp_path.glob("outputs/runs/*")
    (block,) = question_data([PageRun.read(folder)]).blocks
    (writer,) = json.loads(gzip.decompress(base64.b64decode(block)))["writers"]
    assert [session for session, _ in writer] == [
        session["session_id"] for session in written["sessions"]
    ]
    rows = lines(tmp_path, "outputs/runs/*/records.jsonl")
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["name"] for row in lines(tmp_path, "data/prepared/*/files-*/*.dump.jsonl")} == {
        "notes.txt"
    }


@pytest.mark.slow
def test_each_session_is_written_and_paid_for_once(tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = (
            "writer=tools",
            "llm=openai",
            "llm.model=m",
            f"llm.base_url={endpoint.base_url}",
            "judge=keyword",
            *SMALL,
        )
        planned = completed(tmp_path, "plan", *words, OPENAI_API_KEY="sk-1")
        assert endpoint.count() == 0
        completed(tmp_path, *words, OPENAI_API_KEY="sk-1")
        paid = endpoint.count("/chat/completions")
        # Three calls for the questions; the rest are two per session.
        assert paid > 3
        assert (paid - 3) % 2 == 0
        assert str(paid) in planned.out

        completed(tmp_path, *words, "fresh=prepare", OPENAI_API_KEY="sk-1")
        assert endpoint.count("/chat/completions") == paid

        # Runs with another top_k share the memory: the writer's searches are the same.
        completed(tmp_path, *words, "fresh=prepare", "top_k=1", OPENAI_API_KEY="sk-1")
        assert endpoint.count("/chat/completions") <= paid + 3

    first = next(body for _, body in endpoint.requests if "tools" in body)
    assert {tool["function"]["name"] for tool in first["tools"]} == {"search_memory", "add_memory"}
    assert "<session-" in first["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("system=oracle",), "writer=tools: system=oracle has no tools"),
        (("compression_turn=middle",), "compression_turn=middle cuts the window"),
        (("writer.max_session_tokens=5",), "writer.max_session_tokens must be at least 100"),
    ],
)
def test_invalid_combinations_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    ended = memeval(tmp_path, "writer=tools", *words, *SMALL)
    assert ended.status == 2
    assert message in ended.message


REFUSING = '''
from memeval.records import Answer
from memeval.systems.base import MemorySystem
from memeval.systems.tools import Tool, ToolResult, object_schema


class Refusing(MemorySystem):
    """Stores nothing that a model writes, and says so."""

    @classmethod
    def uses_llm_at_ingest(cls, settings):
        return False

    def reset(self): ...

    def ingest(self, chunk): ...

    def answer(self, query):
        return Answer("unused")

    def tools(self):
        text = object_schema(required=["text"], text={"type": "string"})
        add = Tool("add_note", "Adds a note.", text, self.add, writes=True)
        return [add, Tool("find_notes", "Finds notes.", text, self.find)]

    def add(self, text):
        raise ValueError("keys must not hold blanks")

    def find(self, text):
        return ToolResult("No notes were found.", ())
'''


def test_a_run_in_which_nothing_was_stored_and_found_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "refusing.py").write_text(REFUSING, encoding="utf-8")
    words = ("reader=tools", "writer=tools", "system.class=refusing:Refusing", *SMALL)
    ended = memeval(tmp_path, *words, PYTHONPATH=str(tmp_path))
    assert ended.status == 1
    assert "its search found nothing" in ended.out
    (written,) = [
        row["written"] for row in lines(tmp_path, "outputs/answers/*") if "written" in row
    ]
    count = written["calls"]
    message = f"The writer stored nothing: of its {count} calls, {count} failed or were not run."
    assert message in ended.out
