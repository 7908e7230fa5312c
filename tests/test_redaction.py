"""Secrets are redacted in any encoding, ordinary words are not mistaken for secrets, and hostile
texts take linear time.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pytest
from growth import grows_too_fast

from memeval.text import redaction
from memeval.text.redaction import (
    REDACTED,
    keep_address,
    keep_secret,
    redacted,
    without_known,
    without_known_in,
    without_userinfo,
)

SECRET = 'Pa/ss "w+rd" é\\=canary'


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(redaction, "_forms", {})
    yield


@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda secret: json.dumps(secret)[1:-1],
        lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
        lambda secret: repr(secret)[1:-1],
        quote,
        lambda secret: quote(secret, safe=""),
        quote_plus,
        html.escape,
        lambda secret: secret.encode().hex(),
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: base64.b64encode(b"u:" + secret.encode()).decode(),
        lambda secret: base64.b64encode(b"me:" + secret.encode() + b"\n").decode(),
        lambda secret: base64.urlsafe_b64encode(b"user:" + secret.encode()).decode(),
    ],
)
def test_known_secret_is_redacted_in_any_encoding(write: Callable[[str], str]) -> None:
    keep_secret(SECRET)
    written = write(SECRET)
    assert REDACTED in without_known(f"before {written} after")
    assert written[4:-4] not in without_known(f"before {written} after")


def test_secret_cut_at_the_end_of_a_text_is_redacted() -> None:
    keep_secret("correct-horse-battery-staple")
    assert without_known("the key is correct-horse-batt") == f"the key is {REDACTED}"
    assert without_known("correct horse") == "correct horse"


def test_secrets_with_a_common_prefix_are_both_redacted() -> None:
    keep_secret("correct-horse-battery")
    keep_secret("correct-horse-battery-staple")
    assert (
        without_known("a correct-horse-battery-staple, a correct-horse-battery!")
        == f"a {REDACTED}, a {REDACTED}!"
    )


@pytest.mark.parametrize("value", ["", "short", "lm-studio", None])
def test_short_and_well_known_values_are_not_secrets(value: str | None) -> None:
    keep_secret(value)
    assert without_known("lm-studio/short") == "lm-studio/short"


def test_numbers_in_a_row_are_not_redacted() -> None:
    keep_secret("12345678")
    row = {"id": "a", "n": 12345678, "list": ["12345678", 1.5], "inner": {"12345678": None}}
    assert without_known_in(row) == {
        "id": "a",
        "n": 12345678,
        "list": [REDACTED, 1.5],
        "inner": {REDACTED: None},
    }


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcDEF123456789.",
        "Authorization: Bearer abcdef1234567890",
        "authorization: BASIC dXNlcjpwYXNzd29yZA==",
        "https://u:abcdef1234567890@host/v1",
        "postgresql+psycopg://u:p@ss/abcdef1234567890@host/db",
        '{"api_key": "abcdef1234567890"}',
        "https://host/v1?access_key=abcdef1234567890&x=1",
        "AWS AKIAABCDEF1234567890 refused",
        "ghp_abcdef1234567890abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef1234567890",
        # The lower case of this letter is two characters.
        f"{'İ' * 12} Authorization: Bearer 1234567890abcdef",
    ],
)
def test_secrets_are_redacted_by_their_form(text: str) -> None:
    assert REDACTED in redacted(text) and "1234567890" not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-conversations.json is missing",
        "hf_transformers_library",
        "the bearer certificate of the house",
        "the environment variable OPENAI_API_KEY is not set; export OPENAI_API_KEY=...",
        "llm.api_key_env=MY_GATEWAY_KEY",
        "the secret: she bought a kayak",
        "token F1 of 30,038 answers",
        "task-oriented dialogue, risk-averse traders, disk-based storage",
        "see http://127.0.0.1:5000/#/experiments/1/runs/abc, or write to me@example.org",
        "dataset.path=/data/set@2024/file.json",
        "a basic understanding of gardening",
        "prompt_tokens: 12345678",
        "sha256 79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
    ],
)
def test_ordinary_words_are_unchanged(text: str) -> None:
    assert redacted(text) == text


HOSTILE = (
    "sk-", "Bearer ", "://", "a", "://a:", "token ", "password=' ", "eyJ", "eyJaaaaaaaaaaaa.",
    "api key provided ", "api key" + " " * 90, 'secret\\"', "bearer" + " " * 90, "=:", "://a@",
    "\n", "é", "AKIA", "://" + "a:" * 255, "basic a", "password:password", "AIza-", "@", "://@",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    keep_secret(SECRET)
    text = (piece * (200_000 // len(piece) + 1))[:200_000]
    assert not grows_too_fast(lambda length: redacted(text[:length]), len(text))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:p@host:5432/db?sslmode=require", "postgresql://host:5432/db"),
        ("postgresql://u:p@ss/w@host/db", "postgresql://host/db"),
        ("https://me:secret@mlflow.example/team/", "https://mlflow.example/team/"),
        ("http://host:5000", "http://host:5000"),
    ],
)
def test_user_and_query_are_removed_from_a_url(address: str, shown: str) -> None:
    assert without_userinfo(address) == shown


def test_password_of_a_url_is_remembered_as_a_secret() -> None:
    keep_address("postgresql://u:correct%2Fhorse%2Fbattery@host/db?sslpassword=staple-staple")
    for text in ("correct%2Fhorse%2Fbattery", "correct/horse/battery", "staple-staple"):
        assert without_known(f"at {text}.") == f"at {REDACTED}."
