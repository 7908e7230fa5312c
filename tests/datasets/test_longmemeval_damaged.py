"""Bad files: one line that names file, record and field. Questions are never dropped silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from longmemeval_samples import SEA, item, opened, write

from memeval.errors import UserError


def error_of(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        list(opened(path).cases())
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{path}", "FILE")


def odd_turn(**turn: Any) -> dict[str, Any]:
    return item(haystack_sessions=[[{"role": "user", "content": "hello", **turn}], SEA])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (item(question_id=...), "FILE: record 1: field 'question_id' is missing."),
        (item(question_id=7), "FILE: record 1: field 'question_id' is an integer, not a string."),
        (item(question_id=" "), "FILE: record 1: field 'question_id' is empty."),
        (item(question=...), "FILE: record 1 (q1): field 'question' is missing."),
        (item(question=" "), "FILE: record 1 (q1): field 'question' is empty."),
        (
            item(answer=None),
            "FILE: record 1 (q1): field 'answer' is null, not a string or a number.",
        ),
        (item(answer=""), "FILE: record 1 (q1): field 'answer' is empty."),
        (
            item(question_date="tomorrow"),
            "FILE: record 1 (q1): field 'question_date' is 'tomorrow', not a date like "
            "'2023/05/30 (Tue) 23:40'.",
        ),
        (
            item(haystack_dates=["2023/13/01 (Mon) 10:00", "2023/05/30 (Tue) 09:00"]),
            "FILE: record 1 (q1): field 'haystack_dates[0]' is '2023/13/01 (Mon) 10:00', not a "
            "date like '2023/05/30 (Tue) 23:40'.",
        ),
        (
            item(haystack_dates=["2023/05/30 (Tue) 09:00"]),
            "FILE: record 1 (q1): field 'haystack_dates' has 1 entries, but "
            "haystack_session_ids has 2.",
        ),
        (
            item(haystack_session_ids=["a"]),
            "FILE: record 1 (q1): field 'haystack_dates' has 2 entries, but "
            "haystack_session_ids has 1.",
        ),
        (
            item(answer_session_ids="a"),
            "FILE: record 1 (q1): field 'answer_session_ids' is a string, not a list.",
        ),
        (
            item(haystack_sessions={}),
            "FILE: record 1 (q1): field 'haystack_sessions' is an object, not a list.",
        ),
        (
            item(haystack_sessions=[SEA, "x"]),
            "FILE: record 1 (q1): field 'haystack_sessions[1]' is a string, not a list.",
        ),
        (
            item(haystack_sessions=[[3], SEA]),
            "FILE: record 1 (q1) haystack_sessions[0][0] is an integer, not an object.",
        ),
        (
            odd_turn(content=None),
            "FILE: record 1 (q1) haystack_sessions[0][0]: field 'content' is null, not a string.",
        ),
        (
            odd_turn(role=1),
            "FILE: record 1 (q1) haystack_sessions[0][0]: field 'role' is an integer, not a "
            "string.",
        ),
        (
            odd_turn(has_answer="yes"),
            "FILE: record 1 (q1) haystack_sessions[0][0]: field 'has_answer' is a string, not a "
            "boolean.",
        ),
        (
            item(haystack_sessions=[], haystack_dates=[], haystack_session_ids=[]),
            "FILE: record 1 (q1): field 'haystack_sessions' is empty, but the question has an "
            "answer.",
        ),
        (
            item(question_id="q0"),
            "FILE: record 1: field 'question_id' is 'q0', which occurs twice but must be unique.",
        ),
        ("text", "FILE: record 1 is a string, not an object."),
    ],
)
def test_invalid_record_is_named_with_its_field(tmp_path: Path, bad: Any, message: str) -> None:
    assert error_of(write(tmp_path, item(question_id="q0"), bad)) == message


def test_an_unknown_question_type_is_named(tmp_path: Path) -> None:
    message = error_of(write(tmp_path, item(question_type="trivia")))
    assert message.startswith(
        "FILE: record 0 (q1): field 'question_type' is 'trivia', not one of single-session-user, "
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "FILE is not readable JSON: parse error: premature EOF, in record 0"),
        (b" \n", "FILE is not readable JSON: parse error: premature EOF, in record 0"),
        (b'{"a": 1}', "FILE is empty, or not a list of records."),
        (b"[]", "FILE is empty, or not a list of records."),
        # gzip: ijson's message about it is bytes.
        (b"\x1f\x8b\x08", "FILE is not readable JSON: lexical error: invalid char in json text,"),
    ],
)
def test_file_without_records_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "longmemeval.json"
    path.write_bytes(content)
    assert error_of(path).startswith(message)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_file_that_breaks_off_is_an_error_at_its_record(tmp_path: Path, share: float) -> None:
    whole = json.dumps([item(question_id=f"q{number}") for number in range(20)]).encode()
    path = tmp_path / "longmemeval.json"
    path.write_bytes(whole[: int(share * len(whole))])
    read = []
    with pytest.raises(
        UserError,
        match=(
            r"longmemeval.json is not readable JSON: .*, in record \d+ \(the file ends "
            r"there: is it cut off\?\)"
        ),
    ) as caught:
        read.extend(opened(path).cases())
    assert f"in record {len(read)} " in str(caught.value)
    assert int(share * 20) - 1 <= len(read) < 20


def test_a_missing_bracket_at_the_very_end_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, item())
    path.write_bytes(path.read_bytes()[:-1])
    assert "in record 1 (the file ends there" in error_of(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"teapot", b"tea\xff\xfepot"),
        lambda data: data + b"[]",
        lambda data: data.replace(b'"answer":', b'"answer"'),
    ],
    ids=["not UTF-8", "more behind it", "a colon gone"],
)
def test_damage_within_a_file_is_an_error(tmp_path: Path, damage: Any) -> None:
    path = write(tmp_path, item())
    path.write_bytes(damage(path.read_bytes()))
    assert error_of(path).startswith("FILE is not readable JSON: ")


def test_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "longmemeval.json").open()
    assert caught.value.hints[0] == "get it:      python -m memeval data fetch longmemeval_m"
    with pytest.raises(UserError, match=r"can't be read: Is a directory"):
        opened(tmp_path).open()
