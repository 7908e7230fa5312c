"""`writer=tools` from the command line: offline, at an endpoint, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, completed, memeval
from doubles.endpoint import ScriptedEndpoint


def lines(home: Path, pattern: str) -> list[Mapping[str, Any]]:
    """The rows of the files that a pattern names."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(home.glob(pattern))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


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

    # One memory per writer, whatever the reader.
    assert len(list(tmp_path.glob("data/prepared/*/bm25-*"))) == 2
    (dump,) = tmp_path.glob("data/prepared/*/bm25-*/*.dump.jsonl")
    notes = [json.loads(line) for line in dump.read_text(encoding="utf-8").splitlines()]
    assert {note["kind"] for note in notes} == {"note"}


def test_the_files_of_a_writer_hold_its_notes_only(tmp_path: Path) -> None:
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
    rows = lines(tmp_path, "outputs/runs/*/records.jsonl")
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["name"] for row in lines(tmp_path, "data/prepared/*/files-*/*.dump.jsonl")} == {
        "notes.txt"
    }


def test_at_an_endpoint_each_session_is_written_and_paid_once(tmp_path: Path) -> None:
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
        # Three questions; the rest are two replies per session.
        assert paid > 3
        assert (paid - 3) % 2 == 0
        assert str(paid) in planned.out

        completed(tmp_path, *words, "fresh=prepare", OPENAI_API_KEY="sk-1")
        assert endpoint.count("/chat/completions") == paid

    first = next(body for _, body in endpoint.requests if "tools" in body)
    assert {tool["function"]["name"] for tool in first["tools"]} == {"search_memory", "add_memory"}
    assert "<session-" in first["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("system=oracle",), "writer=tools: system=oracle has no tools"),
        (("compression_turn=middle",), "compression_turn=middle cuts the window"),
        (("writer.max_session_tokens=5",), "writer.max_session_tokens must be at least 100"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    ended = memeval(tmp_path, "writer=tools", *words, *SMALL)
    assert ended.status == 2
    assert told in ended.told
