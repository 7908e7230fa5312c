"""Untrusted text: secrets are redacted, control characters are escaped, and ids can't be used as
paths.
"""

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


def test_remembered_secret_is_redacted() -> None:
    keep_secret("hunter2-is-long")
    assert redacted("the key hunter2-is-long was refused") == f"the key {REDACTED} was refused"


def test_short_values_are_not_treated_as_secrets() -> None:
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
def test_api_keys_are_redacted_by_their_form(secret: str) -> None:
    shown = redacted(f"Incorrect API key provided: {secret}.")
    assert shown.startswith(f"Incorrect API key provided: {REDACTED}")
    assert secret not in shown


def test_passwords_in_urls_and_bearer_tokens_are_redacted() -> None:
    assert redacted("postgresql://ada:pw@host/db") == f"postgresql://{REDACTED}@host/db"
    assert redacted("Authorization: Bearer abc.def-123456") == f"Authorization: Bearer {REDACTED}"


def test_ordinary_text_is_unchanged() -> None:
    text = "She asked at 8:30 about task-management; mail ada@example.org, see https://example.org/a@b."
    assert redacted(text) == text


def test_control_characters_are_escaped() -> None:
    assert (
        printable("a\x1b[31mred\x07\u202e\nb\tc é 北京") == "a\\x1b[31mred\\x07\\u202e\nb\tc é 北京"
    )
    assert printable("\ud800") == "\\ud800"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (counted(1, "run"), "1 run"),
        (counted(0, "run"), "0 runs"),
        (counted(1200, "run"), "1,200 runs"),
        (counted(2, "entry", "entries"), "2 entries"),
        (all_counted({"cases": 1, "turns": 32}), "1 case, 32 turns"),
    ],
)
def test_counts_use_singular_and_plural(text: str, expected: str) -> None:
    assert text == expected


def test_one_line_joins_lines_and_limits_length() -> None:
    assert one_line("a\r\nb\u2028c") == "a b c"
    assert len(one_line("x" * 10_000_000, 50)) == 50


@pytest.mark.parametrize("identifier", ["..", ".", "", "a/b", "ü" * 500, "\ud800", "CON", "x\x00y"])
def test_digest_name_is_a_safe_file_name(identifier: str) -> None:
    name = digest_name(identifier)
    assert name.isalnum() and len(name) == 24 and name != digest_name(identifier + "x")
