"""How replies are read: sound values pass, odd ones are mended by a rule and noted, the rest is
requested again.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np
import pytest
from growth import grows_too_fast

from memeval.errors import ModelError
from memeval.llm.reply.body import (
    CHARACTERS,
    ODD_USAGE,
    THINKING,
    CutReplyError,
    FilteredReplyError,
    UnsoundReplyError,
    parse,
)
from memeval.llm.reply.chat import finish_reason, read_chat, usage_of
from memeval.llm.reply.ranking import read_ranking
from memeval.llm.reply.stored import stored_chat, stored_ranking
from memeval.llm.reply.text import without_controls, without_thinking
from memeval.llm.reply.vectors import read_vectors, sound_vector

ASKED = [{"role": "user", "content": "one two three"}]
GOOD = {"prompt_tokens": 7, "completion_tokens": 2}


def reply(content: Any = "Paris", finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {
        "choices": [
            {"message": {"content": content, **more.pop("message", {})}, "finish_reason": finish}
        ],
        "usage": GOOD,
        **more,
    }


# Usage

ODD_COUNTS = [
    0,
    "7",
    "",
    -1,
    True,
    False,
    7.5,
    7.0,
    float("nan"),
    float("inf"),
    10**400,
    10**9,
    [7],
    {"n": 7},
    "NaN",
]


@pytest.mark.parametrize("odd", ODD_COUNTS, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_invalid_token_count_is_estimated_and_noted(name: str, odd: Any) -> None:
    counts, notes = usage_of({**GOOD, name: odd}, ASKED, "Paris it is")
    assert counts["estimated"] is True
    assert counts[name] == 3
    assert notes == (ODD_USAGE,)


@pytest.mark.parametrize(
    "usage", ["text", 7, -7, True, [], [1], {"prompt_tokens": None}, {"total": 1}], ids=str
)
def test_invalid_usage_is_estimated_and_noted(usage: Any) -> None:
    counts, notes = usage_of(usage, ASKED, "Paris")
    assert counts == {
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "cached_tokens": 0,
        "estimated": True,
    }
    assert notes == (ODD_USAGE,)


@pytest.mark.parametrize(
    ("total", "completion"), [(7 + 200, 200), (7 + 2, 2), (3, 2), (None, 2), ("207", 2), (-1, 2)]
)
def test_thinking_that_is_counted_only_in_the_total_is_part_of_the_reply(
    total: Any, completion: int
) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": total}
    counts, notes = usage_of(usage, ASKED, "Paris")

    assert (counts["prompt_tokens"], counts["completion_tokens"]) == (7, completion)
    assert not counts["estimated"]
    assert notes == ()


def test_thinking_counts_if_only_the_tokens_of_the_reply_are_missing() -> None:
    """As from Gemini if thinking reached the limit before the first word."""
    counts, notes = usage_of({"prompt_tokens": 7, "total_tokens": 207}, ASKED, "")
    assert (counts["prompt_tokens"], counts["completion_tokens"]) == (7, 200)
    assert counts["estimated"] and notes == (ODD_USAGE,)


@pytest.mark.parametrize("usage", [None, {}])
def test_missing_usage_is_estimated_without_a_note(usage: Any) -> None:
    counts, notes = usage_of(usage, ASKED, "Paris")
    assert counts["estimated"] is True
    assert notes == ()


@pytest.mark.parametrize(
    "details",
    [
        "text",
        [],
        [1],
        7,
        True,
        {"cached_tokens": "7"},
        {"cached_tokens": -1},
        {"cached_tokens": 10**400},
        {"cached_tokens": 8},
    ],
)
def test_invalid_usage_details_are_noted_and_leave_the_counts(details: Any) -> None:
    counts, notes = usage_of({**GOOD, "prompt_tokens_details": details}, ASKED, "Paris")
    assert counts == {**GOOD, "cached_tokens": 0, "estimated": False}
    assert notes == (ODD_USAGE,)


@pytest.mark.parametrize("details", [None, {}, {"cached_tokens": None}, {"audio_tokens": 0}])
def test_details_may_be_absent(details: Any) -> None:
    assert usage_of({**GOOD, "prompt_tokens_details": details}, ASKED, "Paris") == (
        {**GOOD, "cached_tokens": 0, "estimated": False},
        (),
    )


# JSON


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has no body"),
        (b"  \n", "it has no body"),
        (b"<!DOCTYPE html><html>", "HTML page"),
        (b"\n<html>", "HTML page"),
        (b"Bad gateway", "not JSON"),
        (b'{"choices": [', "not JSON"),
        (b"data: {}\n\n", "stream of events"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "not JSON"),
    ],
)
def test_body_without_a_json_object_is_unsound(content: bytes, message: str) -> None:
    with pytest.raises(UnsoundReplyError, match=message):
        parse(content)


def test_number_of_5000_digits_is_parsed() -> None:
    digits = b"9" * 5000
    usage = parse(b'{"usage": {"prompt_tokens": ' + digits + b', "completion_tokens": 2}}')["usage"]
    assert usage_of(usage, ASKED, "Paris")[0]["prompt_tokens"] == 3


def test_last_of_duplicate_keys_counts() -> None:
    assert parse(b'{"a": 1, "a": 2}') == {"a": 2}


# Content


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Paris", "Paris"),
        ("  Paris\n", "Paris"),
        ([{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}], "Paris"),
        ([{"text": "Paris"}], "Paris"),
        (["Par", "is"], "Paris"),
        ([{"type": "text", "text": {"value": "Paris"}}], "Paris"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Paris"}], "Paris"),
        (
            [{"type": "reasoning", "text": "hm"}, None, 7, {"type": "text", "text": "Paris"}],
            "Paris",
        ),
    ],
)
def test_content_is_read_in_every_form(content: Any, text: str) -> None:
    assert read_chat(reply(content), ASKED).text == text


def test_reasoning_next_to_the_content_is_not_part_of_it() -> None:
    beside = {"reasoning_content": "hm", "reasoning": "hm", "refusal": None}
    chat = read_chat(reply("Paris", message=beside), ASKED)
    assert (chat.text, chat.raw, chat.notes) == ("Paris", None, ())


def test_a_refusal_is_an_answer() -> None:
    assert (
        read_chat(reply(None, message={"refusal": "I can't help with that."}), ASKED).text
        == "I can't help with that."
    )


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "  ",
        [],
        [{}],
        [{"type": "text"}],
        "\0\x01",
        "<think>hm</think>",
        "<think>hm",
        7,
        True,
        {"text": "x"},
    ],
)
def test_reply_without_text_is_unsound(content: Any) -> None:
    with pytest.raises(UnsoundReplyError):
        read_chat(reply(content), ASKED)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": {}},
        {"choices": ["x"]},
        {"choices": [{}]},
        {"choices": [{"message": "x"}]},
        {"choices": [{"message": None}]},
        {"error": {"message": "overloaded"}},
        {"error": "overloaded"},
    ],
)
def test_reply_without_choices_is_unsound(sent: dict[str, Any]) -> None:
    with pytest.raises(UnsoundReplyError, match="overloaded" if "error" in sent else "no"):
        read_chat(sent, ASKED)


def test_reply_with_finish_reason_error_is_unsound() -> None:
    with pytest.raises(UnsoundReplyError, match="ended with an error"):
        read_chat(reply("Par", "error"), ASKED)


@pytest.mark.parametrize("content", [None, "", "<think>and so on", "<think>a</think>"])
def test_empty_reply_at_the_token_limit_is_a_cut_reply(content: Any) -> None:
    with pytest.raises(CutReplyError):
        read_chat(reply(content, "length"), ASKED)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_empty_reply_after_reasoning_says_so(name: str) -> None:
    reasoning = {name: "The user asks where. Hmm"}
    with pytest.raises(CutReplyError, match="used all tokens of its limit for reasoning"):
        read_chat(reply("", "length", message=reasoning), ASKED)
    with pytest.raises(UnsoundReplyError, match=r"only reasoning .*stop.*max_tokens"):
        read_chat(reply(None, "stop", message=reasoning), ASKED)


def test_empty_reply_whose_usage_counts_reasoning_says_so() -> None:
    usage = {**GOOD, "completion_tokens_details": {"reasoning_tokens": 64}}
    with pytest.raises(CutReplyError, match="used all tokens of its limit for reasoning"):
        read_chat(reply("", "length", usage=usage), ASKED)


def test_empty_reply_behind_a_filter_is_a_filtered_reply() -> None:
    with pytest.raises(FilteredReplyError):
        read_chat(reply(None, "content_filter"), ASKED)


# Why it ended


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("FINISH_REASON_STOP", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("max-output-tokens", "length"),
        ("max_tokens_exceeded", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("sensitive", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("something new", "something_new"),
        ("", None),
        ("  ", None),
        (None, None),
        (7, None),
        (True, None),
        (["length"], None),
        ({"type": "length"}, None),
    ],
)
def test_finish_reasons_are_mapped_to_one_vocabulary(said: Any, read: str | None) -> None:
    assert finish_reason(said) == read
    if isinstance(said, list | dict | bool | int | None):
        assert read_chat(reply("Paris", said), ASKED).finish_reason is None


# Text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\0b", "ab"),
        ("\x1b[31mred", "[31mred"),
        ("a\x7fb\x9bc", "abc"),
        ("a\u2028b\u2029c\x85d", "a\nb\nc\nd"),
        ("a\x1cb\x0bc\x0cd", "abcd"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_control_characters_are_removed_and_noted(text: str, clean: str) -> None:
    assert without_controls(text) == (clean, True)
    chat = read_chat(json.loads(json.dumps(reply(f"so {text}"))), ASKED)
    assert chat.text == f"so {clean}".strip()
    chat.text.encode()
    if text != "\ud83d\ude00":  # JSON turns this into one character
        assert chat.notes == (CHARACTERS,)


@pytest.mark.parametrize("text", ["Paris", "é 東京 👨‍👩‍👧 a\tb\nc", "a\r\nb", "عربى\u200f"])
def test_ordinary_text_stays(text: str) -> None:
    assert without_controls(text) == (text, False)


@pytest.mark.parametrize(
    ("whole", "text"),
    [
        ("<think>hm</think>Paris", "Paris"),
        ("<think>\nhm\n</think>\n\nParis", "Paris"),
        ("<THINKING>hm</THINKING> Paris", "Paris"),
        ("<thinking type='x'>hm</thinking>Paris", "Paris"),
        ("<think>a</think>Paris<think>b</think>", "Paris"),
        ("<think>a<think>b</think>c</think>Paris", "Paris"),
        ("hm, so it must be</think>\nParis", "Paris"),
        ("Paris\n<think>or was it", "Paris"),
        ("<reasoning>hm</reasoning>Paris", "Paris"),
        ("<seed:think>hm</seed:think>Paris", "Paris"),
        ("[THINK]hm[/THINK]Paris", "Paris"),
        ("◁think▷hm◁/think▷Paris", "Paris"),
        (
            "<|begin_of_thought|>hm<|end_of_thought|><|begin_of_solution|>Paris<|end_of_solution|>",
            "Paris",
        ),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Paris<|return|>",
            "Paris",
        ),
    ],
)
def test_thinking_is_removed_from_the_answer_and_noted(whole: str, text: str) -> None:
    assert without_thinking(whole) == (text, True)
    chat = read_chat(reply(whole), ASKED)
    assert (chat.text, chat.raw) == (text, whole)
    assert chat.notes == (THINKING,)


@pytest.mark.parametrize(
    "text", ["Paris", "I think so", "a < b and c > d", "The tag <think> opens it", "think: yes"]
)
def test_text_that_only_resembles_thinking_is_kept(text: str) -> None:
    assert without_thinking(text) == (text, False)


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "<think ",
        "<",
        "[think]",
        "<|",
        "<think>a</think>",
        "a",
        "\n",
        "<|channel|> final <|message|>",
    ],
)
def test_reading_takes_linear_time(piece: str) -> None:
    whole = piece * (200_000 // len(piece))
    assert not grows_too_fast(
        lambda length: without_thinking(without_controls(whole[:length])[0]), len(whole)
    )


# Embeddings


def vectors(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)], **more}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({}, "missing required field `data`"),
        ({"data": None}, "data: expected `array`"),
        ({"data": {}}, "data: expected `array`"),
        ({"data": ["x", "y"]}, "expected `object`, got `str`"),
        ({"error": {"message": "x"}}, "missing required field `data`"),
        (vectors([1.0, 0.0]), "1 vectors for 2 texts"),
        (vectors([1.0], [1.0], [1.0]), "3 vectors for 2 texts"),
        (vectors([1.0, 0.0], [0.0, 0.0]), "all zeros"),
        (vectors([1.0, 0.0], [1e-300, 0.0]), "all zeros"),
        (vectors([1.0, 0.0], [float("nan"), 0.0]), "not finite"),
        (vectors([1.0, 0.0], [float("inf"), 0.0]), "not finite"),
        (vectors([1.0, 0.0], [1e300, 0.0]), "beyond"),
        (vectors([1.0, 0.0], [10**400, 0.0]), "out of range"),
        (vectors([1.0, 0.0], [1.0]), "equal length"),
        (vectors([1.0], []), "equal length"),
        (vectors([1.0, 0.0], None), "expected `str | array`, got `null`"),
        (vectors([1.0, 0.0], {"0": 1.0}), "expected `str | array`, got `object`"),
        (vectors([1.0, 0.0], ["1", "0"]), "expected `float`, got `str`"),
        (vectors([1.0, 0.0], [None, 1.0]), "expected `float`, got `null`"),
        (vectors([1.0, 0.0], [[1.0], [0.0]]), "expected `float`, got `array`"),
        (vectors([[1.0]], [[1.0]]), "expected `float`, got `array`"),
        (vectors([True, False], [True, True]), "expected `float`, got `bool`"),
        (vectors([1.0, 0.0], "!!!"), "base64"),
        (vectors([1.0, 0.0], "AAA="), "base64"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}, "indices"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}]}, "indices"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"embedding": [1.0]}]}, "indices"),
        (
            {"data": [{"index": "0", "embedding": [1.0]}, {"index": "1", "embedding": [1.0]}]},
            "index: expected `int | null`",
        ),
        (
            {"data": [{"index": True, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
            "index: expected `int | null`",
        ),
    ],
)
def test_unsound_vectors_are_refused(sent: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsoundReplyError, match=re.escape(message)):
        read_vectors(sent, 2, None)


def test_vectors_of_another_width_are_refused() -> None:
    with pytest.raises(UnsoundReplyError, match="have 2 numbers, but this model's have 3"):
        read_vectors(vectors([1.0, 0.0]), 1, 3)


def test_vectors_are_ordered_by_index_and_normalised() -> None:
    sent = {
        "data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3.0, 4.0]}],
        "usage": {"prompt_tokens": 5},
    }
    sound = read_vectors(sent, 2, None)
    assert sound.vectors.tolist() == [pytest.approx([0.6, 0.8]), [0.0, 1.0]]
    assert (sound.tokens, sound.notes) == (5, ())


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {}}])
def test_vectors_without_usage_have_no_tokens_and_no_note(usage: dict[str, Any]) -> None:
    sound = read_vectors(vectors([1.0], **usage), 1, None)
    assert (sound.tokens, sound.notes) == (None, ())


def test_tokens_of_vectors_may_be_given_as_the_total_alone() -> None:
    sound = read_vectors(vectors([1.0], usage={"total_tokens": 5}), 1, None)
    assert (sound.tokens, sound.notes) == (5, ())


def test_vectors_without_an_index_keep_their_order() -> None:
    assert read_vectors(
        {"data": [{"embedding": [0.0, 1.0]}, {"embedding": [1.0, 0.0]}]}, 2, 2
    ).vectors.tolist() == [[0, 1], [1, 0]]


def test_vectors_in_base64_are_read() -> None:
    packed = base64.b64encode(np.array([3.0, 4.0], dtype="<f4").tobytes()).decode()
    assert read_vectors(vectors(packed), 1, None).vectors.tolist() == [pytest.approx([0.6, 0.8])]


@pytest.mark.parametrize("odd", [*ODD_COUNTS[:7], [5]], ids=str)
def test_invalid_usage_of_a_batch_is_none_and_noted(odd: Any) -> None:
    sound = read_vectors(vectors([1.0], usage={"prompt_tokens": odd}), 1, None)
    assert (sound.tokens, sound.notes) == (None, (ODD_USAGE,))


@pytest.mark.parametrize(
    ("packed", "sound"),
    [
        (np.array([0.6, 0.8], dtype=np.float32).tobytes(), True),
        (np.array([0.6, 0.8, 0.0], dtype=np.float32).tobytes(), False),
        (np.array([0.0, 0.0], dtype=np.float32).tobytes(), False),
        (np.array([np.nan, 1.0], dtype=np.float32).tobytes(), False),
        (np.array([np.inf, 1.0], dtype=np.float32).tobytes(), False),
        (np.array([3e38, 3e38], dtype=np.float32).tobytes(), False),
        (b"", False),
        (b"abc", False),
        (b"abcdefg", False),
    ],
)
def test_stored_vector_is_checked_for_width_and_length(packed: bytes, sound: bool) -> None:
    assert sound_vector(packed, 2) is sound


# Rankings


@pytest.mark.parametrize(
    "score",
    [None, "0.5", True, float("nan"), float("inf"), 10**400, [0.5], {}],
    ids=lambda value: str(value)[:9],
)
def test_ranking_with_an_invalid_score_is_refused(score: Any) -> None:
    rows = [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": score}]
    with pytest.raises(UnsoundReplyError):
        read_ranking({"results": rows}, 2)


def test_scores_come_in_the_order_of_the_documents() -> None:
    rows = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 1}]
    assert read_ranking({"results": rows, "usage": {"total_tokens": 4}}, 2).scores == (1.0, 0.9)


# Stored entries

ENTRY = {
    "text": "Paris",
    "raw": None,
    "finish_reason": "stop",
    "notes": [],
    "usage": {**GOOD, "cached_tokens": 0, "estimated": False},
    "latency_s": 0.2,
    "wait_s": 0.0,
}


def stored(**changes: Any) -> dict[str, Any] | None:
    return stored_chat(json.dumps({**ENTRY, **changes}).encode())


def test_a_sound_entry_is_read_back() -> None:
    assert stored() == ENTRY


@pytest.mark.parametrize(
    "changes",
    [
        {"text": None},
        {"text": ""},
        {"text": " "},
        {"text": 7},
        {"text": ["Paris"]},
        {"text": "<think>hm"},
        {"usage": None},
        {"usage": {}},
        {"usage": {**ENTRY["usage"], "prompt_tokens": "7"}},  # type: ignore[dict-item]
        {"usage": {**ENTRY["usage"], "completion_tokens": -7}},  # type: ignore[dict-item]
        {"usage": {**ENTRY["usage"], "cached_tokens": 10**400}},  # type: ignore[dict-item]
        {"usage": {**ENTRY["usage"], "prompt_tokens": True}},  # type: ignore[dict-item]
        {"usage": {**ENTRY["usage"], "prompt_tokens": None}},  # type: ignore[dict-item]
        {"usage": {**ENTRY["usage"], "estimated": "no"}},  # type: ignore[dict-item]
        {"usage": {**ENTRY["usage"], "role": "judge"}},  # type: ignore[dict-item]
        {"latency_s": None},
        {"latency_s": "0.2"},
        {"latency_s": -1},
        {"latency_s": float("nan")},
        {"wait_s": float("inf")},
        {"raw": 7},
        {"finish_reason": 7},
        {"notes": "x"},
        {"notes": ["x"]},
        {"notes": [[]]},
    ],
    ids=str,
)
def test_unsound_cache_entry_reads_as_none(changes: dict[str, Any]) -> None:
    assert stored(**changes) is None


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"{}", b"7" * 5000]
)
def test_value_that_is_not_a_cache_entry_reads_as_none(value: bytes) -> None:
    assert stored_chat(value) is None
    assert stored_ranking(value, 1) is None


def test_an_entry_of_an_earlier_release_is_cleaned() -> None:
    old = {name: ENTRY[name] for name in ("usage", "latency_s", "wait_s")} | {
        "text": "<think>hm</think>Par\0is"
    }
    entry = stored_chat(json.dumps(old).encode())
    assert entry is not None
    assert (entry["text"], entry["raw"], set(entry["notes"])) == (
        "Paris",
        "<think>hm</think>Paris",
        {THINKING, CHARACTERS},
    )


@pytest.mark.parametrize(
    "scores",
    [None, [], [0.5], [0.5, "1"], [0.5, None], [0.5, float("nan")], [0.5, True], "ab"],
    ids=str,
)
def test_unsound_ranking_in_the_cache_reads_as_none(scores: Any) -> None:
    entry = {"scores": scores, "tokens": 4, "estimated": False, "latency_s": 0.1, "wait_s": 0.0}
    assert stored_ranking(json.dumps(entry).encode(), 2) is None


def test_reply_errors_are_model_errors() -> None:
    assert all(
        issubclass(kind, ModelError)
        for kind in (UnsoundReplyError, CutReplyError, FilteredReplyError)
    )
