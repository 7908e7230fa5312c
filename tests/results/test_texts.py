"""Texts that rows refer to: each stored once and checked when read; answers do not depend on
them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.results.texts import Texts, TextStore, reference
from memeval.text.redaction import keep_secret

CHUNKS = ("[8 May] Ann: hello", "[9 May] Bo: a second chunk", "[9 May] Ann: bye")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_text_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "a.texts.jsonl"
    with TextStore(path) as store:
        refs = [store.put(text) for text in (*CHUNKS, *CHUNKS)]
    with TextStore(path) as store:
        assert store.put(CHUNKS[0]) == refs[0]
    assert refs[:3] == refs[3:] and len(lines(path)) == 3
    assert [Texts(path).get(ref) for ref in refs[:3]] == list(CHUNKS)


def test_prompt_stores_its_context_by_reference(tmp_path: Path) -> None:
    path = tmp_path / "a.texts.jsonl"
    context = "\n".join(CHUNKS)
    with TextStore(path) as store:
        held = store.put_joined(CHUNKS, "\n")
        sent = store.put_around(f"Read:\n{context}\nWho said bye?", context)
    texts = Texts(path)
    assert texts.get(held) == context
    assert texts.get(sent) == f"Read:\n{context}\nWho said bye?"
    whole = path.read_text(encoding="utf-8")
    assert all(whole.count(json.dumps(chunk)[1:-1]) == 1 for chunk in CHUNKS)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5), st.text(max_size=3))
def test_joined_text_is_read_unchanged(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], separator: str
) -> None:
    path = tmp_path_factory.mktemp("texts") / "a.texts.jsonl"
    with TextStore(path) as store:
        ref = store.put_joined(parts, separator)
        around = store.put_around(f"a{separator.join(parts)}b", separator.join(parts))
    assert Texts(path).get(ref) == separator.join(parts)
    assert Texts(path).get(around) == f"a{separator.join(parts)}b"


def test_a_torn_line_is_dropped_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.texts.jsonl"
    with TextStore(path) as store:
        refs = [store.put(text) for text in CHUNKS]
    path.write_bytes(path.read_bytes()[:-7])
    assert Texts(path).get(refs[2]) is None and Texts(path).get(refs[1]) == CHUNKS[1]
    with TextStore(path) as store:
        assert store.put(CHUNKS[2]) == refs[2]
    assert Texts(path).get(refs[2]) == CHUNKS[2]


def test_edited_text_is_not_returned(tmp_path: Path) -> None:
    path = tmp_path / "a.texts.jsonl"
    with TextStore(path) as store:
        ref = store.put(CHUNKS[0])
        joined = store.put_joined(CHUNKS, "\n")
    path.write_bytes(path.read_bytes().replace(b"hello", b"hallo"))
    texts = Texts(path)
    assert texts.get(ref) is None and texts.get(joined) is None
    assert set(texts.find_damaged()) == {ref, joined}


@pytest.mark.parametrize(
    "line",
    [
        '{"id":"%s","join":"","parts":["%s"]}',
        '{"id":"%s","join":3,"parts":[]}',
        '{"id":"%s","parts":["x"],"join":""}',
        '{"id":"%s"',
        '{"id":"%s","text":3}',
    ],
)
def test_malformed_line_reads_as_a_missing_text(tmp_path: Path, line: str) -> None:
    path, ref = tmp_path / "a.texts.jsonl", reference("x")
    path.write_text(line.replace("%s", ref) + "\n")
    assert Texts(path).get(ref) is None and Texts(path).get(None) is None
    assert Texts(tmp_path / "none.texts.jsonl").get(ref) is None


def test_secrets_and_lone_surrogates_are_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.texts.jsonl"
    keep_secret("sk-verysecret-0123456789")
    with TextStore(path) as store:
        ref = store.put("my key is sk-verysecret-0123456789")
        joined = store.put_joined(["\ud800", "sk-verysecret-0123456789"], " ")
    assert b"verysecret" not in path.read_bytes()
    texts = Texts(path)
    assert "my key is" in str(texts.get(ref)) and "\ufffd" in str(texts.get(joined))
