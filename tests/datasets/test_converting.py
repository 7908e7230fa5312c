"""`data make chatgpt` and `data make csv`, on invented rows."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from memeval.cli.data import data
from memeval.datasets.json.chatgpt import conversations
from memeval.datasets.locate import build
from memeval.errors import UserError

PAGE = Path(__file__).parents[2] / "docs" / "datasets" / "converting.md"


def node(
    parent: str | None, role: str | None = None, *parts: Any, kind: str = "text", **meta: Any
) -> dict[str, Any]:
    message = None
    if role:
        content = {"content_type": kind, "parts": list(parts)}
        message = {"author": {"role": role}, "content": content, "metadata": meta}

    return {"parent": parent, "message": message, "children": []}


def conversation(**changes: Any) -> dict[str, Any]:
    """A conversation whose first answer was asked for again."""
    mapping = {
        "root": node(None),
        "system": node("root", "system", "You are helpful."),
        "hidden": node("system", "user", "About me", is_visually_hidden_from_conversation=True),
        "ask": node("hidden", "user", "Which tree grows in the yard?"),
        "first": node("ask", "assistant", "An oak."),
        "second": node("ask", "assistant", "A lime tree."),
        "picture": node("second", "user", {"asset": 1}, "Look.", kind="multimodal_text"),
        "tool": node("picture", "tool", "result"),
        "code": node("tool", "assistant", "print(1)", kind="code"),
    }
    plain = {
        "title": "Trees",
        "create_time": 1709542800.5,
        "current_node": "code",
        "mapping": mapping,
    }
    return plain | changes


def export(folder: Path, *conversations: Any) -> Path:
    path = folder / "conversations.json"
    path.write_text(json.dumps(list(conversations)), encoding="utf-8")
    return path


def test_an_export_becomes_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = conversation(create_time=1709629200)
    source = export(tmp_path, later, conversation(), conversation(mapping={"code": node(None)}))
    target = tmp_path / "chats.json"
    assert data(["make", "chatgpt", str(target), str(source)]) == 0
    told = capsys.readouterr().out
    assert "left out: 2 messages of other branches" in told
    assert "left out: 1 conversations without a text" in told
    assert "left out: 8 messages of the system, of tools, or without a text" in told
    assert "no questions yet" in told

    (case,) = json.loads(target.read_bytes())["cases"]
    assert [(session["id"], session["time"]) for session in case["sessions"]] == [
        ("conversation 1", "2024-03-04T09:00:00Z"),
        ("conversation 0", "2024-03-05T09:00:00Z"),
    ]
    assert [
        (turn["id"], turn["speaker"], turn["text"]) for turn in case["sessions"][0]["turns"]
    ] == [
        ("1/ask", "user", "Which tree grows in the yard?"),
        ("1/second", "ChatGPT", "A lime tree."),
        ("1/picture", "user", "Look."),
    ]


def test_a_long_conversation_is_read_in_linear_time(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        mapping = {"0": node(None, "user", "Hello 0")}
        for number in range(1, count):
            mapping[str(number)] = node(str(number - 1), "user", f"Hello {number}")

        exported = [{**conversation(), "mapping": mapping, "current_node": str(count - 1)}]
        started = time.process_time()
        (session,), _ = conversations(exported, tmp_path)
        assert len(session["turns"]) == count
        return time.process_time() - started

    # A tree of four times the nodes took sixteen times as long.
    assert seconds(32_000) < 8 * max(seconds(8_000), 0.02)


def test_what_is_made_of_a_private_export_is_for_its_owner_alone(tmp_path: Path) -> None:
    source, target = export(tmp_path, conversation()), tmp_path / "chats.json"
    before = os.umask(0)
    try:
        assert data(["make", "chatgpt", str(target), str(source)]) == 0
    finally:
        os.umask(before)

    assert target.stat().st_mode & 0o777 == 0o600


def test_questions_come_from_a_table(tmp_path: Path) -> None:
    source = export(tmp_path, conversation())
    table = tmp_path / "questions.csv"
    table.write_text("question,answer,evidence\nWhich tree?,lime|lime tree,0/second\nWho?,,\n")
    target = tmp_path / "chats.jsonl"
    assert data(["make", "chatgpt", str(target), str(source), str(table)]) == 0
    dataset = build("json", Path("/nowhere"), path=str(target))
    assert dataset.open().name == "chats"
    (case,) = dataset.cases()
    assert [(one.gold, one.evidence) for one in case.questions] == [
        (("lime", "lime tree"), ("t1",)),
        ((), ()),
    ]


FAULTY = {
    "no node": (conversation(current_node="x"), "conversation 0: field 'mapping' has no node 'x'"),
    "no mapping": ({"current_node": "x"}, "conversation 0: field 'mapping' is missing"),
    "a circle": (
        conversation(mapping={"code": node("ask"), "ask": node("code")}),
        "leads in a circle at node 'code'",
    ),
    "no object": (5, "conversation 0 is an integer, not an object"),
    "no time": (conversation(create_time=1e300), "'create_time' is not a time in seconds"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_damaged_export_is_refused(tmp_path: Path, name: str) -> None:
    content, message = FAULTY[name]
    target = tmp_path / "chats.json"
    with pytest.raises(UserError, match=re.escape(message)):
        data(["make", "chatgpt", str(target), str(export(tmp_path, content))])

    assert not target.exists()


def test_a_part_without_its_list_is_one_text(tmp_path: Path) -> None:
    message = node("root", "user")
    content = {"content_type": "text", "parts": "An oak."}
    message["message"] = {"author": {"role": "user"}, "content": content, "metadata": {}}
    mapping = {"root": node(None), "ask": message}
    source = export(tmp_path, conversation(mapping=mapping, current_node="ask"))
    target = tmp_path / "chats.json"
    data(["make", "chatgpt", str(target), str(source)])

    (case,) = json.loads(target.read_text(encoding="utf-8"))["cases"]
    assert [turn["text"] for turn in case["sessions"][0]["turns"]] == ["An oak."]


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"PK\x03\x04\x14", "a zip archive"), (b"\x1f\x8b\x08\xff", "a gzip file")],
)
def test_an_archive_is_to_be_unpacked(tmp_path: Path, content: bytes, kind: str) -> None:
    source = tmp_path / "export.zip"
    source.write_bytes(content)
    with pytest.raises(UserError, match=kind) as error:
        data(["make", "chatgpt", str(tmp_path / "chats.json"), str(source)])

    assert "unpack it" in error.value.hints[0]


def test_tables_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = re.findall(r"^```csv\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    turns, questions = tmp_path / "turns.csv", tmp_path / "questions.csv"
    turns.write_text(tables[0], encoding="utf-8")
    questions.write_text(tables[1], encoding="utf-8")
    target = tmp_path / "mine.json"
    assert data(["make", "csv", str(target), str(turns), str(questions)]) == 0
    assert "1 cases, 1 sessions, 2 turns, 2 questions" in capsys.readouterr().out
    (case,) = json.loads(target.read_bytes())["cases"]
    assert case["questions"][0]["answer"] == ["3 June", "on 3 June"]
    assert case["questions"][1]["answer"] == []


def test_the_file_that_is_there_is_read(tmp_path: Path) -> None:
    turns, target = tmp_path / "turns.csv", tmp_path / "mine.json"
    turns.write_text("speaker,text\nIda,hello\n", encoding="utf-8")
    assert data(["make", "csv", str(turns), str(target)]) == 0
    assert turns.read_text(encoding="utf-8") == "speaker,text\nIda,hello\n"
    assert json.loads(target.read_bytes())["cases"][0]["sessions"][0]["turns"] == [
        {"speaker": "Ida", "text": "hello"}
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a,b\n1,2\n", "line 1 has no column 'text' or 'question'"),
        ("text,speaker,mood\nx,y,z\n", "column 'mood' is not one of case_id, session"),
        ("text,mood\nx,y\n", "column 'speaker' is missing"),
        ("question,answer\nx,y\n", "line 2: no turn is of the case 'case'"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, table: str, message: str) -> None:
    source = tmp_path / "table.csv"
    source.write_text(table, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        data(["make", "csv", str(tmp_path / "mine.json"), str(source)])


def test_mistakes_in_a_table_are_named_after_it_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "turns.csv"
    source.write_text("speaker,text,time\nIda,hello,8/5/2024\n", encoding="utf-8")
    assert data(["make", "csv", str(tmp_path / "mine.json"), str(source)]) == 2
    assert "session 0, turn 0: field 'time' is '8/5/2024'" in capsys.readouterr().out


def test_a_converter_needs_a_source(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="data make csv needs a file to read"):
        data(["make", "csv", str(tmp_path / "mine.json")])
