"""`data import`: realistic and odd files of each form, through the command."""

from __future__ import annotations

import copy
import csv
import io
import json
import stat
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from growth import grows_too_fast

from memeval.cli.data import data
from memeval.datasets.importing import sources
from memeval.datasets.importing.message import ImportLog
from memeval.datasets.importing.slack import read_names
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.text.personal import Redactor


def node(parent: str | None, role: str | None = None, *parts: Any, **more: Any) -> dict[str, Any]:
    """A node of ChatGPT's message tree."""
    message = None
    if role:
        content = {"content_type": "text", "parts": list(parts)}
        message = {"author": {"role": role}, "content": content, "create_time": None} | more

    return {"parent": parent, "message": message, "children": []}


def conversation(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A ChatGPT conversation with a system message, a tool, and a branch."""
    started = 1_715_176_560 + 86_400 * number
    mapping = {
        "root": node(None),
        "system": node("root", "system", "You are helpful."),
        "ask": node("system", "user", f"Which tree is number {number}?", create_time=started + 1),
        "tool": node("ask", "tool", "lime"),
        "first": node("tool", "assistant", "An oak.", create_time=started + 2),
        "second": node("tool", "assistant", "A lime tree. 🌳", create_time=started + 3.5),
    }
    plain = {
        "id": f"conv-{number}",
        "title": f"Tree {number}",
        "create_time": started,
        "mapping": mapping,
        "current_node": "second",
    }
    return plain | changes


def export_zip(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            archive.writestr(name, raw)

    return path


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def imported(target: Path, *words: Any) -> list[dict[str, Any]]:
    """The cases of an import; asserts that it ends with status 0."""
    assert data(["import", *map(str, words), "--into", str(target)]) == 0
    cases: list[dict[str, Any]] = json.loads(target.read_bytes())["cases"]
    return cases


def texts(case: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (turn["speaker"], turn["text"]) for session in case["sessions"] for turn in session["turns"]
    ]


def test_chatgpt_archive_with_300_conversations_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = export_zip(
        tmp_path / "export.zip",
        {
            "conversations.json": [conversation(number) for number in range(300)],
            "user.json": {"email": "x@y.org"},
            "chat.html": b"<html>",
        },
    )
    target = tmp_path / "mine.json"
    cases = imported(target, source)
    assert len(cases) == 300 and cases[7]["case_id"] == "conv-7"
    assert texts(cases[0]) == [
        ("user", "Which tree is number 0?"),
        ("assistant", "A lime tree. 🌳"),
    ]
    assert cases[0]["sessions"][0]["meta"] == {"title": "Tree 0"}
    assert cases[0]["sessions"][0]["turns"][0]["time"] == "2024-05-08T13:56:01Z"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600

    output = capsys.readouterr().out
    for line in (
        "an export of ChatGPT, one case per conversation",
        "read: 600 timestamps as seconds since 1970",
        "left out: 300 messages of other branches",
        "left out: 300 messages of tools",
        "left out: 300 messages of the system",
        "left out: 1 file other than the conversations",
        "left out: 1 file of other kinds",
        "300 cases, 300 sessions, 600 turns, 0 questions",
        "With 10 questions per case, mine would have 3,000 questions in 300 cases, "
        "which can show a difference of",
    ):
        assert line in output


def test_odd_conversations_of_chatgpt_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deleted = conversation(2)
    del deleted["mapping"]["tool"]
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    mapping = {
        "a": node(None, "user", None, {"asset_pointer": "file"}, "Look.", create_time=1e300),
        "b": node("a", "assistant", "thought", **hidden),
        "c": node("b", "assistant", "search()", recipient="browser"),
        "d": {"parent": "c", "message": {"author": None, "content": None}},
        "e": node("d", "user", {"content_type": "audio_transcription", "text": "Spoken."}),
    }
    spoken = conversation(3, mapping=mapping, current_node="e")
    records = [
        None,
        5,
        conversation(1, current_node=None),
        conversation(1, current_node=None),
        deleted,
        spoken,
        conversation(4, mapping={"x": node("y", "user", "a"), "y": node("x")}, current_node="x"),
        conversation(5, mapping=None),
        conversation(6, mapping={}),
    ]
    cases = imported(tmp_path / "mine.json", write(tmp_path / "conversations.json", records))
    by_id = {case["case_id"]: case for case in cases}
    assert texts(by_id["conv-1"])[-1] == ("assistant", "A lime tree. 🌳")
    assert len(texts(by_id["conv-1"])) == 2
    assert texts(by_id["conv-2"]) == [("assistant", "A lime tree. 🌳")]
    assert texts(by_id["conv-3"]) == [("user", "Look."), ("user", "Spoken.")]
    output = capsys.readouterr().out
    for line in (
        "read: 2 conversations up to the newest message",
        "read: 1 conversation starting after a deleted message",
        "left out: 3 conversations without a mapping",
        "left out: 1 conversation whose tree has a cycle",
        "left out: 1 conversation without text",
        "left out: 2 messages seen before",
        "left out: 1 message marked as hidden",
        "left out: 1 call to tools",
        "left out: 1 part with a picture or a file",
        "left out: 1 time that could not be read",
    ):
        assert line in output


def test_deleted_and_weightless_chatgpt_messages_are_left_out(tmp_path: Path) -> None:
    def linked(name: str, above: str | None, *children: str, **more: Any) -> dict[str, Any]:
        return node(above, "user", name, **more) | {"children": list(children)}

    deleted = {"a": linked("a", None, "gone"), "b": linked("b", "gone")}
    downwards = {
        "a": linked("a", None, "b"),
        "b": linked("b", None, weight=0.0),
        "c": linked("c", "b"),
    }
    del downwards["b"]["parent"]
    # Lists of children may be circular; they are followed if a message names no parent.
    circle = {"a": linked("a", None, "b"), "b": linked("b", "a", "a")}
    records = [
        conversation(number, mapping=mapping, current_node=last)
        for number, (mapping, last) in enumerate(
            ((deleted, "b"), (downwards, "c"), (circle, "b")), start=1
        )
    ]
    cases = imported(tmp_path / "mine.json", write(tmp_path / "conversations.json", records))
    assert [[text for _, text in texts(case)] for case in cases] == [
        ["a", "b"],
        ["a", "c"],
        ["a", "b"],
    ]


@pytest.mark.slow
def test_deep_tree_is_imported_in_linear_time(tmp_path: Path) -> None:
    def import_tree(count: int) -> None:
        mapping = {"0": node(None)}
        for number in range(1, count):
            mapping[str(number)] = node(str(number - 1), "user", f"Hello {number}")

        exported = [conversation(mapping=mapping, current_node=str(count - 1))]
        source = write(tmp_path / f"{count}" / "conversations.json", exported)
        (tmp_path / f"{count}.json").unlink(missing_ok=True)
        imported(tmp_path / f"{count}.json", source)

    # The time was once quadratic: 42 s for 30,000 nodes.
    assert not grows_too_fast(import_tree, 16_000)


CLAUDE = {
    "uuid": "c-1",
    "name": "Garden",
    "created_at": "2025-02-01T10:00:00.123456Z",
    "chat_messages": [
        {
            "uuid": "m-1",
            "sender": "human",
            "text": "old field",
            "content": [{"type": "text", "text": "Which soil?"}],
            "attachments": [{"file_name": "plan.pdf", "extracted_content": "secret"}],
            "files": [{"file_name": "plan.pdf"}],
            "created_at": "2025-02-01T10:00:01Z",
        },
        None,
        {
            "uuid": "m-2",
            "sender": "assistant",
            "text": "Loam.",
            "content": [{"type": "thinking", "thinking": "hm"}, None],
            "created_at": "2025-02-01T11:00:02+01:00",
        },
        {"uuid": "m-3", "sender": "human", "text": "", "content": []},
        {"uuid": "m-4", "sender": "nobody", "text": "x"},
    ],
}


def test_claude_export_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = {"uuid": "c-2", "name": "", "chat_messages": []}
    source = export_zip(
        tmp_path / "claude.zip", {"conversations.json": [CLAUDE, empty], "users.json": [{"a": 1}]}
    )
    (case,) = imported(tmp_path / "mine.json", source)
    assert case["case_id"] == "c-1"
    assert texts(case) == [("user", "Which soil?\n[file: plan.pdf]"), ("assistant", "Loam.")]
    times = [turn["time"] for turn in case["sessions"][0]["turns"]]
    assert times == ["2025-02-01T10:00:01Z", "2025-02-01T10:00:02Z"]
    output = capsys.readouterr().out
    for line in (
        "left out: 1 message other than objects",
        "left out: 1 thought of the model",
        "left out: 1 conversation without text",
        "left out: 1 message without text",
        "left out: 1 message without a known role (call a speaker user or assistant)",
        "would have 10 questions in 1 case: too few",
    ):
        assert line in output


MESSAGES = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": [{"type": "text", "text": "Weather?"}], "timestamp": 1715176560},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}],
        "timestamp": 1715176561000,
    },
    {"role": "tool", "content": "rain", "timestamp": "2024-05-08T13:56:02Z"},
    {"role": "assistant", "content": "It rains.", "created_at": "2024-05-08T15:56:03+02:00"},
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("one.json", {"messages": MESSAGES}),
        ("one.json", json.dumps({"messages": MESSAGES}, indent=2).encode("utf-8-sig")),
        ("one.json", json.dumps(MESSAGES).encode("utf-16")),
        ("one.json", [MESSAGES]),
        ("one.jsonl", b"\n".join(json.dumps(message).encode() for message in MESSAGES)),
        ("one.jsonl", json.dumps({"messages": MESSAGES}).encode() + b"\n"),
        ("one.json", {"conversations": [{"messages": MESSAGES}]}),
    ],
)
def test_chat_messages_are_read_in_every_wrapping(
    tmp_path: Path, name: str, content: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = imported(tmp_path / "mine.json", write(tmp_path / name, content))
    assert texts(case) == [
        ("user", "Weather?"),
        ("tool", 'weather({"city": "Ulm"})'),
        ("tool", "rain"),
        ("assistant", "It rains."),
    ]
    times = [turn["time"] for turn in case["sessions"][0]["turns"]]
    assert times == [f"2024-05-08T13:56:0{second}Z" for second in range(4)]
    output = capsys.readouterr().out
    assert "read: 1 timestamp as seconds since 1970" in output
    assert "read: 1 timestamp as milliseconds since 1970" in output
    assert "left out: 1 message of the system" in output


def test_logged_calls_that_repeat_their_conversation_are_one_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [
        {"role": role, "content": text}
        for text, role in [("Hi", "user"), ("Hello!", "assistant"), ("Key?", "user")]
    ]
    calls = [
        {"thread_id": name, "timestamp": f"2024-05-06T09:3{end}:00", "messages": said[start:end]}
        for name, start, end in [("a", 0, 2), ("b", 0, 2), ("a", 0, 3), ("a", 0, 2), ("b", 0, 2)]
    ]
    # A logged reply has more fields than the next call, which repeats it.
    calls[0]["messages"][-1] = {**said[1], "finish_reason": "stop", "tool_calls": None}
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in calls))
    (first, second) = imported(tmp_path / "mine.json", tmp_path / "calls.jsonl")
    texts = [[turn["text"] for turn in session["turns"]] for session in first["sessions"]]
    assert texts == [["Hi", "Hello!", "Key?"], ["Hi", "Hello!"]]
    assert len(second["sessions"]) == 2, "the same words may be said again"
    assert "read: 1 call without the repeated beginning" in capsys.readouterr().out


def test_case_can_be_a_user_of_the_metadata(tmp_path: Path) -> None:
    records = [
        {"id": number, "metadata": {"user_id": f"u{number % 2}"}, "messages": MESSAGES}
        for number in range(6)
    ]
    source = write(
        tmp_path / "chats.jsonl", b"\n".join(json.dumps(one).encode() for one in records)
    )
    by_user = imported(tmp_path / "users.json", source, "--case", "user")
    assert [(case["case_id"], len(case["sessions"])) for case in by_user] == [("u0", 3), ("u1", 3)]
    assert len(imported(tmp_path / "all.json", source, "--case", "all")) == 1
    assert len(imported(tmp_path / "by.json", source)) == 6
    with pytest.raises(UserError, match=r"has the field 'thread'; the fields are .*conversation"):
        data(["import", str(source), "--into", str(tmp_path / "x.json"), "--case", "thread"])


def test_truncated_lines_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"messages": MESSAGES}), "{", json.dumps({"messages": None}), "5", "[]"]
    source = write(tmp_path / "chats.jsonl", ("\n".join(lines) + '\n{"mess').encode())
    (case,) = imported(tmp_path / "mine.json", source)
    assert len(texts(case)) == 4
    output = capsys.readouterr().out
    assert "left out: 2 lines that can't be read as JSON" in output
    assert "left out: 1 conversation without a list of messages" in output


def test_sharegpt_conversations_are_imported(tmp_path: Path) -> None:
    turns = [
        {"from": "system", "value": "x"},
        {"from": "human", "value": "Hi\ud800"},
        {"from": "gpt", "value": "Hello"},
        {"from": "gpt", "value": None},
    ]
    records = [{"id": "a", "conversations": turns}, {"id": "b", "conversations": turns}]
    cases = imported(tmp_path / "mine.json", write(tmp_path / "share.json", records))
    assert [case["case_id"] for case in cases] == ["a", "b"]
    assert texts(cases[0]) == [("user", "Hi\N{REPLACEMENT CHARACTER}"), ("assistant", "Hello")]


def agent_lines(session: str, day: int) -> bytes:
    stamp = f"2025-03-{day:02}T08:00:0"
    events: list[dict[str, Any]] = [
        {"type": "summary", "summary": "x"},
        {
            "type": "user",
            "message": {"role": "user", "content": "Fix the test."},
            "uuid": f"{session}-u1",
        },
        {
            "type": "assistant",
            "uuid": f"{session}-u2",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "name": "bash", "input": {"command": "ls"}},
                ],
            },
        },
        {
            "type": "user",
            "uuid": f"{session}-u3",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "text", "text": "a.py"}]}],
            },
        },
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": "caveat"}},
    ]
    stamped = [
        event | {"sessionId": session, "timestamp": f"{stamp}{second}.5Z", "cwd": "/home/ida"}
        for second, event in enumerate(events)
    ]
    return b"\n".join(json.dumps(event).encode() for event in stamped)


def test_coding_agent_sessions_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "project"
    write(folder / "b.jsonl", agent_lines("later", 2))
    write(folder / "a.jsonl", agent_lines("zero", 1))
    (case,) = imported(tmp_path / "mine.json", folder)
    assert (case["case_id"], len(case["sessions"])) == ("project", 2)
    assert texts(case)[:4] == [
        ("user", "Fix the test."),
        ("assistant", "I look."),
        ("tool", 'bash({"command": "ls"})'),
        ("tool", "a.py"),
    ]
    output = capsys.readouterr().out
    assert "left out: 2 events other than messages" in output
    assert "more cases:  --case NAME or --windows N" in output
    by_session = imported(tmp_path / "sessions.json", folder, "--case", "conversation")
    assert [case["case_id"] for case in by_session] == ["zero", "later"]


def slack_files() -> dict[str, Any]:
    return {
        "users.json": [
            {"id": "U1", "name": "ida", "profile": {"display_name": "Ida", "real_name": "Ida L."}},
            {"id": "U2", "name": "bo", "profile": {"display_name": ""}, "real_name": "Bo"},
        ],
        "channels.json": [{"id": "C1", "name": "net"}],
        "net/2024-05-08.json": [
            {
                "type": "message",
                "user": "U1",
                "ts": "1715176560.000100",
                "text": "Ping <@U2> &amp; you",
            },
            {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1715176561.0001"},
            {
                "user": "U2",
                "ts": "1715176562.000200",
                "text": "pong",
                "thread_ts": "1715176560.000100",
            },
            {"user": "U9", "ts": "1715176563.000200", "text": "who?"},
            None,
        ],
        "net/2024-05-07.json": [{"user": "U1", "ts": "1715090160.0", "text": "earlier"}],
        "ops/2024-05-08.json": [{"username": "robot", "subtype": "bot_message", "text": "up"}],
    }


def test_slack_export_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = export_zip(tmp_path / "slack.zip", slack_files())
    net, ops = imported(tmp_path / "mine.json", source)
    assert (net["case_id"], ops["case_id"]) == ("net", "ops")
    assert texts(net) == [
        ("Ida", "earlier"),
        ("Ida", "Ping @Bo & you"),
        ("U9", "who?"),
        ("Bo", "pong"),
    ]
    # The reply is earlier than the last message of the day, whose session comes first.
    assert [turn["time"][-4:] for one in net["sessions"] for turn in one["turns"]][-2:] == [
        ":03Z",
        ":02Z",
    ]
    assert texts(ops) == [("robot", "up")]
    output = capsys.readouterr().out
    assert "left out: 1 message of the system" in output
    assert "left out: 1 message other than objects" in output
    by_user = imported(tmp_path / "user.json", source, "--case", "user")
    assert [case["case_id"] for case in by_user] == ["Ida", "Bo", "U9", "robot"]
    by_thread = imported(tmp_path / "thread.json", source, "--case", "thread")
    assert read_names([{"id": "U1", "name": "Jo"}, {"id": "U2", "name": "Jo"}], ImportLog()) == {
        "U1": "Jo (U1)",
        "U2": "Jo (U2)",
    }
    assert "net/1715176560.000100" in [case["case_id"] for case in by_thread]


ROWS = [
    ["Sender", "Body", "Sent at", "Ticket"],
    ["Ida", "Der Router ist tot – «sofort» bitte", "13.05.2024 08:30", "T1"],
    ["Bo", "Neuer kommt", "14.05.2024 09:00", "T1"],
    ["Ida", "", "15.05.2024 09:00", "T1"],
    ["Ida", "Danke", "nie", "T2"],
]


def table(rows: Sequence[Sequence[str]], encoding: str = "utf-8", delimiter: str = ",") -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue().encode(encoding)


@pytest.mark.parametrize(
    ("encoding", "delimiter", "message"),
    [
        ("utf-8", ",", "table with ',' between cells"),
        ("utf-8-sig", ";", "table with ';' between cells"),
        ("utf-16", "\t", "file as utf-16"),
        ("utf-16-le", "\t", "file as utf-16-le"),
        ("cp1252", ";", "file as cp1252"),
    ],
)
def test_tables_are_read_in_every_encoding(
    tmp_path: Path,
    encoding: str,
    delimiter: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = write(tmp_path / "mails.csv", table(ROWS, encoding, delimiter))
    columns = "speaker=Sender,text=Body,time=Sent at"
    cases = imported(tmp_path / "mine.json", source, "--map", columns, "--case", "ticket")
    assert [case["case_id"] for case in cases] == ["T1", "T2"]
    assert texts(cases[0])[0] == ("Ida", ROWS[1][1])
    assert cases[0]["sessions"][0]["turns"][1]["time"] == "2024-05-14T09:00:00"
    out = capsys.readouterr().out
    assert message in out
    assert "read: 2 timestamps as %d.%m.%Y %H:%M" in out
    assert "left out: 1 row without a text" in out
    assert "left out: 1 time that could not be read" in out


def test_table_with_preamble_and_newest_rows_first_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest_first = (
        "sep=;\nChats of May;;\n\nRole;Content;Date\n"
        "assistant;three;2024/05/03 10:00\nuser;two;2024-05-02\nassistant;one;2024-05-02\n"
        "user;zero, then one;2024-05-01\n"
    )
    (case,) = imported(tmp_path / "mine.json", write(tmp_path / "a.csv", newest_first.encode()))
    assert [text for _, text in texts(case)] == ["zero, then one", "one", "two", "three"]
    assert case["sessions"][0]["turns"][-1]["time"] == "2024-05-03T10:00:00"
    output = capsys.readouterr().out
    assert "left out: 1 row above the header" in output
    assert "read: 1 session sorted by time" in output
    assert "without times" not in output
    assert "a table of messages, all in one case" in output


def test_times_with_the_year_first_need_no_zeros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(
        tmp_path / "a.csv",
        b"role,content,date\nuser,a,2024/5/6 9:30\nuser,b,2024.5.6 12:05:10\nuser,c,2024-5-7\n"
        b'user,d,"Mon, 6 May 2024"\n',
    )
    asked = write(tmp_path / "q.csv", b"question,answer,time\nWho?,Ann,2024/5/8 7:00\n")
    target = tmp_path / "mine.json"
    (case,) = imported(target, source, asked)
    turns = [turn for session in case["sessions"] for turn in session["turns"]]
    assert [turn.get("time") for turn in turns] == [
        "2024-05-06T09:30:00",
        "2024-05-06T12:05:10",
        "2024-05-07T00:00:00",
        None,
    ]
    assert case["questions"][0]["time"] == "2024-05-08T07:00"
    assert "such as 'Mon, 6 May 2024'; for tables, use --date-format" in capsys.readouterr().out
    assert data(["check", str(target)]) == 0


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("gbk", "我六月一号搬家"), ("shift_jis", "引っ越します"), ("cp1251", "Привет, как дела")],
)
def test_unsupported_encodings_are_refused(tmp_path: Path, encoding: str, text: str) -> None:
    rows = [["role", "content"], ["user", text], ["assistant", "ok"]]
    source = write(tmp_path / "a.csv", table(rows, encoding))
    with pytest.raises(UserError, match="is not UTF-8, UTF-16 or cp1252 text") as refused:
        imported(tmp_path / "mine.json", source)
    assert "iconv" in refused.value.hints[0]


def test_excel_file_with_merged_title_and_csv_name_is_read(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Chats", None, None])
    book.active.merge_cells("A1:C1")
    for row in (["Role", "Content", "Mood"], ["user", "hi", "good"]):
        book.active.append(row)

    book.save(tmp_path / "chats.xlsx")
    (tmp_path / "chats.xlsx").rename(tmp_path / "chats.csv")
    cases = imported(tmp_path / "mine.json", tmp_path / "chats.csv", "--case", "mood")
    assert [case["case_id"] for case in cases] == ["good"]


@pytest.mark.parametrize(
    ("content", "words", "message"),
    (
        (b"role,role,text\nIda,x,hi\n", (), "two columns are called 'role'"),
        (
            b"role,text,date\nIda,hi,2024-05-01\n",
            ("--date-format", "%Q"),
            "no time matches --date-format",
        ),
        (b"role,text\nIda,hi\n", ("--as", "messages"), "unknown format"),
        (b"user_input,reference\nWho?,Ida\n", (), "name the columns question and answer"),
        (b'[{"role": "user", "content": "hi"}]', ("--as", "table"), "no column is the speaker"),
        (b'role,text\nIda,say "hi"\nIda,"hi" you\n', (), "double them"),
        (b"\xd0\xcf\x11\xe0" + bytes(100), (), "in the old format, or has a password"),
        (b"PK\x03\x04" + bytes(100), (), "is it cut off?"),
        (b"", (), "1 file without content"),
    ),
)
def test_invalid_tables_are_refused(
    tmp_path: Path, content: bytes, words: tuple[str, ...], message: str
) -> None:
    source = write(tmp_path / "chats.csv", content)
    with pytest.raises(UserError) as refused:
        data(["import", str(source), "--into", str(tmp_path / "x.json"), *words])

    assert message in "".join((refused.value.message, *refused.value.hints))


def test_table_settings_are_refused_for_other_forms(tmp_path: Path) -> None:
    source = write(tmp_path / "chat.json", [{"role": "user", "content": "hi"}])
    for words in (("--map", "speaker=a"), ("--date-format", "%Y")):
        with pytest.raises(UserError, match=f"{words[0]} is for tables, but this is chat messages"):
            data(["import", str(source), "--into", str(tmp_path / "x.json"), *words])


def test_table_with_another_file_extension_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "chats.txt", b"who,text,sent\nIda,hi,2024-05-06\n")
    (case,) = imported(tmp_path / "mine.json", source, "--map", "speaker=who")
    assert texts(case) == [("Ida", "hi")]
    assert "read: 1 table without times; if a column has them" in capsys.readouterr().out
    with pytest.raises(UserError, match="unknown format") as refused:
        data(["import", str(source), "--into", str(tmp_path / "x.json")])

    assert refused.value.hints[-1].startswith("other files:  write a table (.csv)")


def test_ambiguous_day_and_month_need_a_date_format(tmp_path: Path) -> None:
    rows = [["role", "content", "date"], ["user", "Hi", "8/5/2024 1:30 PM"], ["user", "x", ""]]
    source = write(tmp_path / "chat.csv", table(rows))
    words = ["import", str(source), "--into", str(tmp_path / "mine.json")]
    with pytest.raises(UserError, match="day and month can't be told apart in '8/5/2024") as error:
        data(words)

    assert "--date-format '%m/%d/%Y %I:%M %p'" in error.value.hints[0]
    (case,) = imported(tmp_path / "mine.json", source, "--date-format", "%m/%d/%Y %I:%M %p")
    assert case["sessions"][0]["turns"][0]["time"] == "2024-08-05T13:30:00"


def test_excel_file_without_its_library_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "mine.xlsx"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("xl/workbook.xml", "")

    monkeypatch.setattr("memeval.errors.find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"save it as CSV, or read it with openpyxl, which is not"
    ) as refused:
        data(["import", str(source), "--into", str(tmp_path / "x.json")])

    assert refused.value.hints == ("install it:  pip install 'memeval-bench[excel]'",)


def test_excel_file_is_imported(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from datetime import datetime

    book = openpyxl.Workbook()
    for row in (["Author", "Message", "Date"], ["Ida", "Hi", datetime(2024, 5, 8)], [None] * 3):
        book.active.append(row)

    source = tmp_path / "chat.xlsx"
    book.save(source)
    (case,) = imported(tmp_path / "mine.json", source)
    assert case["sessions"][0]["turns"][0]["time"] == "2024-05-08T00:00:00"
    # A date that is an answer has no time of day.
    book = openpyxl.Workbook()
    for row in (["question", "answer"], ["When?", datetime(2024, 5, 8)]):
        book.active.append(row)

    book.save(tmp_path / "asked.xlsx")
    (case,) = imported(tmp_path / "both.json", source, tmp_path / "asked.xlsx")
    assert case["questions"][0]["answer"] == ["2024-05-08"]

    cut = write(tmp_path / "cut.xlsx", source.read_bytes()[:3000])
    with pytest.raises(UserError, match=r"cut\.xlsx"):
        data(["import", str(cut), "--into", str(tmp_path / "x.json")])


def test_questions_come_from_a_table(tmp_path: Path) -> None:
    turns = [["speaker", "text", "id"], ["Ida", "We meet on 3 June.", "t1"]]
    asked = [
        ["Question", "ANSWER", "evidence"],
        ["When?", "3 June|on 3 June", "t1"],
        ["Who?", "", ""],
    ]
    files = (
        write(tmp_path / "turns.csv", table(turns)),
        write(tmp_path / "questions.csv", table(asked)),
    )
    target = tmp_path / "mine.json"
    imported(target, *files)
    (case,) = build("json", Path("/nowhere"), path=str(target)).cases()
    assert [(one.gold, one.evidence) for one in case.questions] == [
        (("3 June", "on 3 June"), ("t0",)),
        ((), ()),
    ]

    wrong = write(tmp_path / "wrong.csv", table([["question", "anwser"], ["x", "y"]]))
    with pytest.raises(UserError, match="column 'anwser' is not one of case_id"):
        data(["import", str(files[0]), str(wrong), "--into", str(tmp_path / "x.json")])


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_benchmark_files_keep_their_questions(tmp_path: Path, name: str) -> None:
    if name == "locomo":
        source = Path(__file__).parents[2] / "data" / "demo" / "demo.json"
    else:
        item = {
            "question_id": "q1",
            "question_type": "single-session-user",
            "question": "Which soil?",
            "answer": "loam",
            "question_date": "2023/05/30 (Tue) 23:40",
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "haystack_session_ids": ["a"],
            "answer_session_ids": ["a"],
            "haystack_sessions": [
                [{"role": "user", "content": "Loam it is.", "has_answer": True}],
            ],
        }
        source = write(tmp_path / "long.json", [item])

    cases = imported(tmp_path / "mine.json", source)
    asked = [question for case in cases for question in case["questions"]]
    assert asked and all(question["question"] for question in asked)
    assert any(question["evidence"] for question in asked)
    if name == "locomo":
        captions = json.dumps(json.loads(source.read_text())).count('"blip_caption"')
        assert json.dumps(cases).count(" [shares an image: ") == captions > 0

    with pytest.raises(UserError, match="which has no messages") as refused:
        data(["import", str(source), "--into", str(tmp_path / "x.json"), "--windows", "1"])

    assert "cases of --case or --windows" in refused.value.hints[-1]


@pytest.mark.parametrize("cut", [["--case", "user"], ["--case", "all"], ["--windows", "2"]])
def test_sessions_and_ids_may_be_counted_from_1_in_each_conversation_of_a_table(
    tmp_path: Path, cut: list[str]
) -> None:
    rows = [["user_id", "conversation", "session", "id", "speaker", "text", "time"]]
    for conversation in ("a", "b"):
        for session in ("1", "2"):
            time = f"2024-05-0{session} 09:00"
            rows.append(["u", conversation, session, "1", "user", f"{conversation}{session}", time])
            rows.append(["u", conversation, session, "2", "agent", "Right.", ""])

    rows[2][-1] = rows[1][-1]
    rows[4][-1] = rows[3][-1]
    source = write(tmp_path / "counted.csv", table(rows))
    cases = imported(tmp_path / "mine.json", source, *cut)
    sessions = [session for case in cases for session in case["sessions"]]
    texts = [tuple(turn["text"] for turn in session["turns"]) for session in sessions]
    assert sorted(texts) == [(name, "Right.") for name in ("a1", "a2", "b1", "b2")]


def test_the_time_of_a_conversation_dates_its_first_message_if_no_message_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dated = {"role": "user", "content": "Hi.", "timestamp": "2024-05-06T08:00:00Z"}
    undated = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yo."}]
    records = [
        {"id": "a", "created_at": "2024-05-06T10:00:00Z", "messages": undated},
        {"id": "b", "created": 1714989600, "messages": [*undated, dated]},
        {"id": "c", "created": 1714989600, "messages": undated},
    ]
    cases = imported(tmp_path / "mine.json", write(tmp_path / "chats.json", records))
    times = [[turn.get("time") for turn in case["sessions"][0]["turns"]] for case in cases]
    assert times[0] == times[2] == ["2024-05-06T10:00:00Z", None]
    assert times[1] == [None, None, "2024-05-06T08:00:00Z"]
    output = capsys.readouterr().out
    assert "read: 2 conversations dated as a whole, because no message has a time" in output


@pytest.mark.parametrize("name", ["conversations", "data", "chats"])
def test_a_list_of_conversations_may_be_a_field_among_others(tmp_path: Path, name: str) -> None:
    chat = {"id": "a", "messages": [{"role": "user", "content": "Hi."}]}
    export = {"object": "list", "version": 2, "exported_at": 5, "has_more": False, name: [chat]}
    (case,) = imported(tmp_path / "mine.json", write(tmp_path / "export.json", export))
    assert (case["case_id"], texts(case)) == ("a", [("user", "Hi.")])


def test_folders_of_a_coding_agent_are_cases_however_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann/work", "bob/work"):
        write(tmp_path / "logs" / name / "a.jsonl", agent_lines(name, 1))

    cases = imported(tmp_path / "tree.json", tmp_path / "logs")
    assert [case["case_id"] for case in cases] == ["logs/ann/work", "logs/bob/work"]
    folders = (tmp_path / "logs" / "ann" / "work", tmp_path / "logs" / "bob" / "work")
    for into, named in (("a", folders), ("b", [folder / "a.jsonl" for folder in folders])):
        cases = imported(tmp_path / f"{into}.json", *named)
        assert [case["case_id"] for case in cases] == ["work", "work-2"]

    monkeypatch.chdir(tmp_path / "logs" / "ann" / "work")
    for number, words in enumerate((["."], ["a.jsonl"])):
        (case,) = imported(tmp_path / f"{number}.json", *words)
        assert case["case_id"] == "work"

    write(Path("own.json"), {"cases": []})
    for folder, shown in ((".", "own.json"), ("../work", "../work/own.json")):
        with pytest.raises(UserError, match=f"^{shown} already has the format") as refused:
            data(["import", folder, "--into", str(tmp_path / "x.json")])

        assert refused.value.hints == (f"check it:  python -m memeval data check {shown}",)


def test_benchmark_files_are_imported_whole(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "data" / "demo"
    rows = json.loads((folder / "memae.json").read_text())
    cases = imported(tmp_path / "bench.json", folder / "memae.json")
    assert len(cases) == len(rows)
    assert [len(case["questions"]) for case in cases] == [len(row["questions"]) for row in rows]

    cases = imported(tmp_path / "long.json", folder / "longmemeval.json")
    asked = [question for case in cases for question in case["questions"]]
    assert [bool(one["answer"]) for one in asked] == ["_abs" not in one["id"] for one in asked]

    first, *others = json.loads((folder / "demo.json").read_text())
    source = write(tmp_path / "unasked.json", [first | {"qa": []}, *others])
    assert imported(tmp_path / "locomo.json", source)[0]["case_id"] == first["sample_id"]


def test_windows_are_disjoint_in_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = export_zip(
        tmp_path / "export.zip",
        {"conversations.json": [conversation(number) for number in reversed(range(30))]},
    )
    cases = imported(tmp_path / "mine.json", source, "--windows", "12")
    spans = [
        [turn["time"] for session in case["sessions"] for turn in session["turns"]]
        for case in cases
    ]
    assert [len(span) for span in spans] == [5] * 12
    assert all(max(first) <= min(second) for first, second in pairwise(spans))
    assert "one case per window of time" in capsys.readouterr().out
    with pytest.raises(UserError, match="--windows must be from 1 to 60, the number of messages"):
        data(["import", str(source), "--into", str(tmp_path / "x.json"), "--windows", "61"])


def test_a_window_does_not_cut_off_a_first_message_without_a_time(tmp_path: Path) -> None:
    rows = [
        ["conversation", "speaker", "text", "time"],
        ["late", "user", "l1", "2025-01-01"],
        ["late", "agent", "l2", ""],
        ["early", "user", "e1", ""],
        ["early", "agent", "e2", "2024-01-01"],
    ]
    source = write(tmp_path / "turns.csv", table(rows))
    cases = imported(tmp_path / "mine.json", source, "--windows", "2")
    assert [[text for _, text in texts(case)] for case in cases] == [["e1", "e2"], ["l1", "l2"]]
    assert "time" not in cases[0]["sessions"][0]["turns"][0]


def test_overlapping_sessions_and_mixed_time_zones_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        ["speaker", "text", "time", "session", "id"],
        ["Ida", "one", "2024-05-08T10:00:00+02:00", "a", "1"],
        ["Ida", "three", "2024-05-08T12:00:00Z", "a", "1"],
        ["Bo", "two", "2024-05-08T09:00:00", "b", "2"],
        ["Bo", "before", "2024-05-08T08:00:00Z", "b", "3"],
    ]
    (case,) = imported(tmp_path / "mine.json", write(tmp_path / "chat.csv", table(rows)))
    assert [text for _, text in texts(case)] == ["one", "three", "before", "two"]
    output = capsys.readouterr().out
    assert "read: 1 time without a zone as UTC" in output
    assert "read: 1 id already taken" in output
    assert "left out" not in output
    assert [turn["time"] for session in case["sessions"] for turn in session["turns"]] == [
        f"2024-05-08T{hour:02}:00:00Z" for hour in (8, 12, 8, 9)
    ]


@pytest.mark.parametrize("times", [("2024-05-06", "07/05/2024"), ("06/05/2024", "2024-05-07")])
def test_only_messages_or_only_questions_may_need_the_date_format(
    tmp_path: Path, times: tuple[str, str]
) -> None:
    said, asked = times
    files = (
        write(tmp_path / "turns.csv", table([["role", "text", "time"], ["Ida", "Hi.", said]])),
        write(tmp_path / "asked.csv", table([["question", "answer", "time"], ["Who?", "", asked]])),
    )
    (case,) = imported(tmp_path / "mine.json", *files, "--date-format", "%d/%m/%Y")
    assert case["sessions"][0]["turns"][0]["time"] == "2024-05-06T00:00:00"
    assert case["questions"][0]["time"].startswith("2024-05-07")

    chat = write(tmp_path / "chat.json", [{"role": "user", "content": "Hi."}])
    rows = [["question", "answer", "time"], ["Who?", "", "2024-05-07"]]
    iso = write(tmp_path / "iso.csv", table(rows))
    assert imported(tmp_path / "iso.json", chat, iso, "--date-format", "%Y-%m-%d")
    with pytest.raises(UserError, match="no time matches --date-format '%d/%m/%Y'"):
        data(["import", str(chat), str(iso), "--into", "x.json", "--date-format", "%d/%m/%Y"])


def test_question_times_use_the_date_format_of_messages(tmp_path: Path) -> None:
    sent = {"role": "user", "content": "I live in Bonn", "timestamp": "2024-05-06T10:00:00Z"}
    chat = write(tmp_path / "chat.json", {"messages": [sent]})
    rows = [
        ["question", "answer", "time", "choices", "Multi Select"],
        ["Where?", "Bonn", "22/05/2024", "", "FALSE"],
        ["And now?", "Bonn", "23/05/2024", "Bonn|Jena", "TRUE"],
    ]
    asked = write(tmp_path / "asked.csv", table(rows))
    target = tmp_path / "mine.json"
    (case,) = imported(target, chat, asked, "--date-format", "%d/%m/%Y")
    assert [one["time"] for one in case["questions"]] == [
        "2024-05-22T00:00:00Z",
        "2024-05-23T00:00:00Z",
    ]
    (read,) = build("json", Path("/nowhere"), path=str(target)).cases()
    assert [one.multi_select for one in read.questions] == [False, True]


def test_question_with_a_time_zone_makes_its_case_use_utc(tmp_path: Path) -> None:
    turns = [["speaker", "text", "time"], ["Ida", "hi", "2024-05-01 10:00"]]
    rows = [["question", "answer", "time"], ["Who?", "Ida", "2024-05-02T09:00:00+02:00"]]
    (case,) = imported(
        tmp_path / "mine.json",
        write(tmp_path / "chat.csv", table(turns)),
        write(tmp_path / "asked.csv", table(rows)),
    )
    assert case["sessions"][0]["turns"][0]["time"] == "2024-05-01T10:00:00Z"
    assert case["questions"][0]["time"] == "2024-05-02T09:00:00+02:00"


def test_duplicate_field_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = b'{"role": "user", "content": "one", "content": "two"}\n'
    for name, content in (("a.json", b"[" + line + b"]"), ("b.jsonl", 2 * line)):
        (case,) = imported(tmp_path / f"{name}.out", write(tmp_path / name, content))
        assert {text for _, text in texts(case)} == {"two"}
        assert "with a duplicate field, using its last value" in capsys.readouterr().out


def test_a_row_is_named_by_its_line(tmp_path: Path) -> None:
    content = b'sep=,\nquestion,answer,multi_select\n\n"Who\nis it?",Ida,\nWhere?,Bonn,maybe\n'
    asked = write(tmp_path / "asked.csv", content)
    chat = write(tmp_path / "chat.json", [{"role": "user", "content": "hi"}])
    with pytest.raises(UserError, match=r"row 6: .*multi_select.* is 'maybe', not true or false"):
        data(["import", str(chat), str(asked), "--into", str(tmp_path / "x.json")])


SECRET = "sk-proj-aB3dE5fG7hI9jK1lM3nO5p"
PRIVATE = (
    "Mail ida@example.org or IDA@example.org, call +49 171 2345678 or (030) 123-4567. "
    "Card 4111 1111 1111 1111, account DE89 3704 0044 0532 0130 00, host 10.1.2.3 and fe80::1:2. "
    f"Key {SECRET}. Ben Oduya was here on 2024-05-08 at 10:30, order 1234-5678, version 1.2.3."
)


def test_redact_replaces_personal_data_and_keeps_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        {"role": "user", "content": PRIVATE},
        {"role": "user", "content": "ida@example.org"},
    ]
    source = write(tmp_path / "chat.json", {"user": "ida@example.org", "messages": messages})
    names = write(tmp_path / "names.txt", "Ben Oduya\nBen\n".encode("utf-8-sig"))
    target = tmp_path / "mine.json"
    words = ("--redact", "--redact-names", names, "--case", "user")
    (case,) = imported(target, source, *words)
    assert texts(case) == [
        (
            "user",
            "Mail <email-1> or <email-1>, call <phone-1> or <phone-2>. Card <card-1>, "
            "account <iban-1>, host <ip-1> and <ip-2>. Key <secret-1>. <name-1> was here on "
            "2024-05-08 at 10:30, order 1234-5678, version 1.2.3.",
        ),
        ("user", "<email-1>"),
    ]
    assert case["case_id"] == "<email-1>"
    table = tmp_path / "mine.json.redacted"
    assert stat.S_IMODE(table.stat().st_mode) == 0o600
    assert json.loads(table.read_bytes())["<secret-1>"] == SECRET
    output = capsys.readouterr().out
    assert "redacted: 1 card, 1 email, 1 iban, 2 ips, 1 name, 2 phones, 1 secret" in output
    assert SECRET not in output and "ida@" not in output

    # The table of an earlier import must not be overwritten.
    target.unlink()
    with pytest.raises(UserError, match=r"mine.json.redacted already exists"):
        data(["import", str(source), "--into", str(target), *map(str, words)])
    assert not target.exists()


NAMES = ("Ben", "Ben Oduya", "Müller", "O'Neil", "Ann-Marie", "Email", "張偉")


@pytest.mark.parametrize(
    ("text", "redacted"),
    (
        ("card 4111 1111 1111 1111 12/27", "card <card-1> 12/27"),
        ("ES91 2100 0418 4502 0005 1332 call me", "<iban-1> call me"),
        ("gb29 nwbk 6016 1331 9268 19 I say", "<iban-1> I say"),
        ("10.0.0.1:8080 or ::ffff:10.0.0.2", "<ip-1>:8080 or <ip-2>"),
        ("01 23 45 67 89, 06.12.34.56.78, 0612345678", "<phone-1>, <phone-2>, <phone-2>"),
        ("07700900123, 5558675309, 1-555-867-5309", "<phone-1>, <phone-2>, <phone-3>"),
        ("612 345 678, 98765 43210, 0664/123 45 67", "<phone-1>, <phone-2>, <phone-3>"),
        ("+49 171 1234567 2024 05 10 12", "<phone-1> 2024 05 10 12"),
        ("01.05.2024 09:30, 17/05/2024 09:30", "01.05.2024 09:30, 17/05/2024 09:30"),
        ("o'neill@example.org", "<email-1>"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- and on",
            "<secret-1> and on",
        ),
        (
            "ben_oduya, Ben\n Oduya, Mu\u0308ller, Benjamin",
            "<name-1>_oduya, <name-2>, <name-3>, Benjamin",
        ),
        ("O\u2019Neil, o'neil, Ann\u2011Marie", "<name-1>, <name-1>, <name-2>"),
        ("我和張偉說Ben來了", "我和<name-1>說<name-2>來了"),
        ("<Ben> a@b.org is my email", "<<name-1>> <email-1> is my <name-2>"),
        (
            "pages 100-200, 12 000 000, 2024-05-01 10:30",
            "pages 100-200, 12 000 000, 2024-05-01 10:30",
        ),
    ),
)
def test_redactor_recognizes_forms_of_personal_data(text: str, redacted: str) -> None:
    assert Redactor(names=NAMES).redact(text) == redacted


def test_redaction_takes_linear_time() -> None:
    def redact(size: int) -> None:
        for text in ("1 ", "a'", "::", "-----BEGIN PRIVATE KEY-----", "ab12 "):
            Redactor().redact(text * size)

    assert not grows_too_fast(redact, 8_000)


def test_oversized_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = export_zip(tmp_path / "bomb.zip", {"conversations.json": b" " * (1 << 24)})
    target = str(tmp_path / "mine.json")
    with pytest.raises(UserError, match="more than 500 times its size"):
        data(["import", str(bomb), "--into", target])

    # An archive that lies about the size of its content.
    raw = bomb.read_bytes().replace((1 << 24).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    lying = write(tmp_path / "lying.zip", raw)
    with pytest.raises(UserError, match=r"conversations\.json"):
        data(["import", str(lying), "--into", target])

    monkeypatch.setattr(sources, "MAX_FILES", 3)
    many = export_zip(tmp_path / "many.zip", {f"{number}.json": [] for number in range(4)})
    with pytest.raises(UserError, match="contains 4 files; at most 3"):
        data(["import", str(many), "--into", target])


def test_oversized_workbooks_are_refused(tmp_path: Path) -> None:
    files = {"xl/workbook.xml": b"<x/>", "[Content_Types].xml": b" " * (1 << 24)}
    bomb = export_zip(tmp_path / "bomb.xlsx", files)
    with pytest.raises(UserError, match="more than 500 times its size"):
        data(["import", str(bomb), "--into", str(tmp_path / "mine.json")])


def test_archive_with_backslashes_in_its_names_is_read(tmp_path: Path) -> None:
    files = {"export\\conversations.json": [conversation()], "export\\user.json": [{"a": 1}]}
    assert len(imported(tmp_path / "mine.json", export_zip(tmp_path / "e.zip", files))) == 1


def test_names_in_archives_write_nothing_outside(tmp_path: Path) -> None:
    files = {
        "../../outside/conversations.json": [conversation()],
        "__MACOSX/._conversations.json": b"\0\0",
    }
    source = export_zip(tmp_path / "e.zip", files)
    before = set(tmp_path.rglob("*"))
    assert len(imported(tmp_path / "mine.json", source)) == 1
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "mine.json"}
    assert not (tmp_path.parent / "outside").exists()


CUT = json.dumps([conversation()])[:400].encode()
REFUSED = {
    "cut JSON": ("conversations.json", CUT, "is it cut off?"),
    "empty": ("conversations.json", b" \n", "contains no messages"),
    "nothing in it": ("conversations.json", b"[]", "contains no messages"),
    "another form": ("x.json", b'[{"a": 1}]', "unknown format"),
    "our own form": ("x.json", b'{"cases": []}', "already has the format of dataset=json"),
    "not UTF-8": ("x.json", b'[{"role": "user", "content": "\xff\xfe\xfa"}]', "is not UTF-8"),
    "deep": ("x.json", b"[" * 200_000, "is not readable JSON"),
    "cut archive": ("export.zip", b"PK\x03\x04" + b"x" * 50, "can't be read"),
    "gzip": ("x.json", b"\x1f\x8b\x08\xff", "a gzip file"),
    "no speaker": (
        "x.csv",
        b"text,mood\nx,y\n",
        "no column is the speaker; the columns are text, mood",
    ),
    "neither speaker nor text": (
        "x.csv",
        "\ufeffAbsender;Nachricht\r\nKunde;Hallo\r\n".encode(),
        "no column is the speaker or the text; the columns are Absender, Nachricht",
    ),
    "open quote": ("x.csv", b'role,text\nuser,"x\n', "line 2: unexpected end of data"),
    "a log in brackets": (
        "chat.txt",
        b"[09:30:12] Ann: Hello\n",
        "unknown format",
    ),
    "questions alone": (
        "q.csv",
        b"question,answer\nWho?,Ann\n",
        "contains questions, but no messages",
    ),
    "only empty": (
        "c.json",
        json.dumps([{"uuid": "1", "chat_messages": []}]).encode(),
        "left out: 1 conversation without text",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unreadable_files_are_refused(tmp_path: Path, name: str) -> None:
    file, content, message = REFUSED[name]
    with pytest.raises(UserError) as refused:
        data(["import", str(write(tmp_path / file, content)), "--into", str(tmp_path / "m.json")])

    assert message in refused.value.message
    assert not (tmp_path / "m.json").exists()


ODD: tuple[Any, ...] = (None, True, 0, -1, 10**400, 1e308, "", "\ud800", [], {}, [None], {"a": {}})
VALUES = {
    "chatgpt": conversation(),
    "claude": CLAUDE,
    "messages": {"id": "x", "messages": MESSAGES},
    "sharegpt": {"conversations": [{"from": "human", "value": "Hi"}]},
    "telegram": {
        "name": "House",
        "type": "private_group",
        "id": 7,
        "messages": [
            {
                "id": 1,
                "type": "message",
                "date": "2024-05-06T09:30:00",
                "from": "Ida",
                "text": ["x"],
            }
        ],
    },
    "agent": json.loads(agent_lines("zero", 1).splitlines()[2]),
}


def places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    found: list[tuple[Any, ...]] = []
    for key, inner in items:
        found += [(*before, key), *places(inner, (*before, key))]

    return found


@pytest.mark.parametrize("form", VALUES)
def test_odd_values_anywhere_are_left_out(tmp_path: Path, form: str) -> None:
    """Puts values of every kind in every place of a record, next to a valid record."""
    sound = VALUES[form]
    for number, path in enumerate(places(sound)):
        records = [sound]
        for value in ODD:
            record = copy.deepcopy(sound)
            inner = record
            for key in path[:-1]:
                inner = inner[key]

            inner[path[-1]] = value
            records.append(record)

        source = write(
            tmp_path / "x" / "a.jsonl", b"\n".join(json.dumps(one).encode() for one in records)
        )
        assert imported(tmp_path / f"{number}.json", source, "--redact", "--as", form)


def test_long_cell_is_read_and_early_year_dropped(tmp_path: Path) -> None:
    rows = [["role", "text", "time"], ["user", "x" * 200_000, "0005-01-01"]]
    (case,) = imported(tmp_path / "mine.json", write(tmp_path / "chat.csv", table(rows)))
    (turn,) = case["sessions"][0]["turns"]
    assert len(turn["text"]) == 200_000 and "time" not in turn


def test_files_of_several_forms_are_refused(tmp_path: Path) -> None:
    chat = write(tmp_path / "chat.json", {"messages": MESSAGES})
    claude = write(tmp_path / "claude.json", [CLAUDE])
    with pytest.raises(UserError, match="the files have several formats"):
        data(["import", str(chat), str(claude), "--into", str(tmp_path / "mine.json")])
    with pytest.raises(UserError, match=r"unknown form in --as 'chatgtp'. Did you mean: chatgpt"):
        data(["import", str(chat), "--as", "chatgtp", "--into", str(tmp_path / "mine.json")])


def test_target_below_a_file_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "chat.json", [{"role": "user", "content": "hi"}])
    with pytest.raises(UserError, match=r"mine\.json can't be written: Not a directory"):
        data(["import", str(source), "--into", str(source / "mine.json")])


def test_hostile_text_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b[2J\u202e <script>alert(1)</script> {{x}} ${y} =1+1 عربي 👩‍👩‍👧"
    records = [
        {"id": hostile, "title": hostile, "messages": [{"role": "user", "content": hostile}]}
    ]
    (case,) = imported(tmp_path / "mine.json", write(tmp_path / "chat.json", records))
    assert texts(case) == [("user", hostile)]
    assert "\x1b" not in capsys.readouterr().out
