"""Text from outside: secrets stay in, control characters are written out, ids name no file."""

from __future__ import annotations

import pytest

from memeval.text import redaction
from memeval.text.names import digest_name
from memeval.text.redaction import keep_secret, redacted
from memeval.text.secret_shapes import REDACTED
from memeval.text.shown import all_counted, counted, one_line, printable


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_forms", {})


def test_a_secret_that_was_remembered_is_left_out() -> None:
    keep_secret("hunter2-is-long")
    assert redacted("the key hunter2-is-long was refused") == f"the key {REDACTED} was refused"


def test_short_values_are_no_secrets() -> None:
    keep_secret("none")
    keep_secret(None)
    assert redacted("none of them") == "none of them"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop",
        "hf_abcdefghijklmnopqrst",
        "AKIAABCDEFGHIJKLMNOP",
        "ghp_0123456789abcdefghij",
    ],
)
def test_what_looks_like_a_key_is_left_out(secret: str) -> None:
    shown = redacted(f"Incorrect API key provided: {secret}.")
    assert shown.startswith(f"Incorrect API key provided: {REDACTED}")
    assert secret not in shown


def test_passwords_in_addresses_and_bearer_tokens_are_left_out() -> None:
    assert redacted("postgresql://ada:pw@host/db") == f"postgresql://{REDACTED}@host/db"
    assert redacted("Authorization: Bearer abc.def-123456") == f"Authorization: Bearer {REDACTED}"


def test_ordinary_text_stays() -> None:
    text = "She asked at 8:30 about task-management; mail ada@example.org, see https://example.org/a@b."
    assert redacted(text) == text


def test_control_characters_are_written_out() -> None:
    assert (
        printable("a\x1b[31mred\x07\u202e\nb\tc é 北京") == "a\\x1b[31mred\\x07\\u202e\nb\tc é 北京"
    )
    assert printable("\ud800") == "\\ud800"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (counted(1, "run"), "1 run"),
        (counted(0, "run"), "0 runs"),
        (counted(1200, "run"), "1,200 runs"),
        (counted(2, "entry", "entries"), "2 entries"),
        (all_counted({"cases": 1, "turns": 32}), "1 case, 32 turns"),
    ],
)
def test_one_of_a_kind_is_in_the_singular(text: str, said: str) -> None:
    assert text == said


def test_one_line_is_one_line_and_short() -> None:
    assert one_line("a\r\nb\u2028c") == "a b c"
    assert len(one_line("x" * 10_000_000, 50)) == 50


@pytest.mark.parametrize("identifier", ["..", ".", "", "a/b", "ü" * 500, "\ud800", "CON", "x\x00y"])
def test_ids_name_no_file(identifier: str) -> None:
    name = digest_name(identifier)
    assert name.isalnum() and len(name) == 24 and name != digest_name(identifier + "x")
