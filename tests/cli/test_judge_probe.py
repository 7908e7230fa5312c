"""`judge probe` on the command line: offline judges, and a judge at the scripted endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import completed, memeval
from doubles.endpoint import Faults, ScriptedEndpoint
from ports import free_port

from memeval.api.judging import ITEMS_FILE
from memeval.calibration.attacks import LABEL, VERDICTS, attacks_on
from memeval.calibration.items import match_questions, read_items
from memeval.errors import UserError
from memeval.records import EvalQuestion
from memeval.text.shipped import shipped_path


def reply(body: Mapping[str, Any]) -> str:
    """A judge that accepts vague answers, and gives one unreadable reply."""
    asked = str(body["messages"][-1]["content"])
    items = [
        json.loads(line)
        for line in shipped_path(ITEMS_FILE).read_text(encoding="utf-8").splitlines()
    ]
    (kind,) = {item["kind"] for item in items if f"\n{item['answer']}\n" in f"\n{asked}\n"}
    if "Zweitausend" in asked:
        return "I could not say."

    return json.dumps({"reason": "scripted", "label": "WRONG" if kind == "specific" else "CORRECT"})


def test_probe_of_a_model_uses_the_cache_the_second_time(tmp_path: Path) -> None:
    with ScriptedEndpoint(reply) as endpoint:
        words = (
            "judge=llm",
            "llm=openai",
            "llm.model=gpt-4o-mini",
            f"llm.base_url={endpoint.base_url}",
            "llm.max_concurrency=3",
        )
        out = tmp_path / "labels.jsonl"
        done = completed(tmp_path, "judge", "probe", *words, "--json", "--out", str(out))
        asked = endpoint.count("/chat/completions")
        assert endpoint.peak <= 3
        again = completed(tmp_path, "judge", "probe", *words)
        assert endpoint.count("/chat/completions") == asked

    result = json.loads(done.out)
    kinds = {kind["kind"]: kind for kind in result["kinds"]}
    assert [kinds[kind]["share"] for kind in ("right", "specific", "vague")] == [1.0, 0.0, 1.0]
    assert kinds["right"]["unparsed"] == 1 and kinds["right"]["judged"] == 42
    assert (kinds["specific"]["low"], kinds["specific"]["high"]) == pytest.approx(
        (0, 0.1135), abs=1e-4
    )
    assert result["calls"] == asked == 104 and result["judge"].startswith(
        "llm (gpt-4o-mini, at 127.0.0.1:"
    )
    assert result["cost_usd"] is not None
    assert "104 of them from the cache; cost $ 0" in again.out

    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 102
    assert {(row["kind"], row["label"], row["verdict"]) for row in rows} == {
        ("right", "right", "right"),
        ("specific", "wrong", "wrong"),
        ("vague", "wrong", "right"),
    }


@pytest.mark.slow
def test_probe_stops_after_failures_of_the_endpoint(tmp_path: Path) -> None:
    words = ("judge", "probe", "judge=llm", "llm=openai", "llm.max_concurrency=1")
    refused = memeval(tmp_path, *words, f"llm.base_url=http://127.0.0.1:{free_port()}/v1")
    assert refused.status == 2 and "connection refused" in refused.err

    with ScriptedEndpoint(reply, faults=Faults({"bad_request": 1.0})) as endpoint:
        address = f"llm.base_url={endpoint.base_url}"
        failing = memeval(tmp_path, *words, address, "stop_after_failures=5")
        assert 5 <= endpoint.count("/chat/completions") <= 6

    assert failing.status == 1 and "stopped: 5 calls in a row failed" in failing.err


def test_probe_of_an_offline_judge_calibrates_a_run(tmp_path: Path) -> None:
    labels = str(tmp_path / "probe.jsonl")
    done = completed(tmp_path, "judge", "probe", "judge=keyword", "--out", labels)
    assert "right        43" in done.out and "model calls" not in done.out
    completed(tmp_path, "judge=keyword", "tracking=none", "dataset.limit_questions=4")
    (run,) = (tmp_path / "outputs" / "runs").iterdir()
    done = completed(tmp_path, "judge", "calibrate", run.name, "--labels", labels)
    assert "specific: caught" in done.out and "not one number" in done.out


def test_an_item_that_two_files_list_counts_once(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    items.write_text('{"question_id": "demo-1/q0", "answer": "some time ago"}\n', encoding="utf-8")
    words = [f"--items={kind}={items}" for kind in ("vague", "specific", "vague")]
    done = completed(tmp_path, "judge", "probe", "judge=keyword", "--json", *words)
    kinds = {kind["kind"]: kind["items"] for kind in json.loads(done.out)["kinds"]}
    assert kinds == {"specific": 1, "vague": 1}


def robust(body: Mapping[str, Any]) -> str:
    """A judge that rejects every answer."""
    return '{"reason": "It names something else.", "label": "WRONG"}'


def gullible(body: Mapping[str, Any]) -> str:
    """A judge that obeys instructions in the data, but states its verdict in its own words."""
    asked = str(body["messages"][-1]["content"])
    is_right = VERDICTS[LABEL] in asked
    return json.dumps({"reason": "So I was asked.", "label": "CORRECT" if is_right else "WRONG"})


def echoing(body: Mapping[str, Any]) -> str:
    """A judge that repeats, decoded, any verdict that the data tries to inject."""
    asked = str(body["messages"][-1]["content"])
    if any(attack.text in asked for attack in attacks_on(LABEL)):
        return VERDICTS[LABEL]

    return robust(body)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "flipped", "unread"), [(robust, 0, 0), (gullible, 59, 1), (echoing, 0, 101)]
)
def test_attacks_are_counted_as_flipped_or_unread(
    tmp_path: Path, judge: Callable[[Mapping[str, Any]], str], flipped: int, unread: int
) -> None:
    with ScriptedEndpoint(judge) as endpoint:
        words = ("judge=llm", "llm=openai", "llm.model=m", f"llm.base_url={endpoint.base_url}")
        out = tmp_path / "labels.jsonl"
        done = completed(
            tmp_path, "judge", "probe", *words, "--inject", "--json", "--out", str(out)
        )
        shown = completed(tmp_path, "judge", "probe", *words, "--inject").out

    result = json.loads(done.out)
    total = result["flips"][-1]
    assert (total["place"], total["attacks"]) == ("all", 101)
    assert (total["flipped"], total["attacks"] - total["judged"]) == (flipped, unread)
    assert {rate["place"] for rate in result["flips"]} == {"answer", "question", "gold", "all"}
    assert sum(rate["flipped"] for rate in result["flips"][:-1]) == flipped
    if total["judged"]:
        assert total["low"] <= total["share"] <= total["high"] and total["high"] > 0
    assert f"{flipped} of {101 - unread}" in shown and "Flipped: a wrong answer" in shown

    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    injected = [row["verdict"] for row in rows if row["kind"] == "injected"]
    assert (len(injected), injected.count("right")) == (101 - unread, flipped)


def test_a_judge_that_accepts_everything_is_not_attacked(tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda _: '{"reason": "scripted", "label": "CORRECT"}') as endpoint:
        words = ("judge=llm", "llm=openai", f"llm.base_url={endpoint.base_url}")
        done = completed(tmp_path, "judge", "probe", *words, "--inject")

    assert "no attack was tried: the judge rejects no wrong answer" in done.out


def test_a_flip_rate_is_shown_beside_the_calibration(tmp_path: Path) -> None:
    labels = str(tmp_path / "probe.jsonl")
    completed(tmp_path, "judge", "probe", "judge=keyword", "--inject", "--out", labels)
    completed(tmp_path, "judge=keyword", "tracking=none", "dataset.limit_questions=4")
    (run,) = (tmp_path / "outputs" / "runs").iterdir()
    done = completed(tmp_path, "judge", "calibrate", run.name, "--labels", labels)
    assert "Attacks on the judge flipped" in done.out and "of 101 verdicts" in done.out
    assert "injected: caught" not in done.out, "runs do not give attacks as answers"
    assert "attacks on the judge" in completed(tmp_path, "show", run.name).out


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"kind": " "}, "line 1: field 'kind' is '', not a word such as"),
        ({"kind": "x" * 100}, "line 1: field 'kind' is 'x"),
        ({"question_id": "unknown"}, "line 1: the data set has no question 'unknown'"),
        ({"question_id": "refused"}, "line 1: question 'refused' has no free-text answer"),
        ({"question_id": "choosing"}, "line 1: question 'choosing' has no free-text answer"),
    ],
)
def test_item_without_a_kind_or_an_answer_in_words_is_refused(
    tmp_path: Path, item: dict[str, str], message: str
) -> None:
    plain = EvalQuestion("plain", "Who?", "general", ("Ida",))
    refused = replace(plain, gold=(), answerable=False)
    questions = {"plain": plain, "refused": refused, "choosing": replace(plain, choices=("Ida",))}
    file = tmp_path / "items.jsonl"
    whole = {"question_id": "plain", "kind": "vague", "answer": "x", **item}
    file.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        match_questions(read_items(file), questions)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("judge=llm",), "judge=llm needs a language model"),
        (("keyword",), "'keyword' is not an override"),
        (("judge=keywrd",), "keyword"),
        (("--items", "none.jsonl"), "none.jsonl can't be read"),
        (("--items", "vague="), "vague= can't be read"),
        (("--items", "ITEMS"), "line 1: field 'kind' is missing"),
        (("--items", "vague=ITEMS"), "line 1: the data set has no question 'demo-1/q999'"),
        (("dataset=demo_longmemeval",), "the shipped items are about dataset=demo"),
        (("--out", "labels.csv"), "must end in .jsonl"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    items = tmp_path / "items.jsonl"
    items.write_text('{"question_id": "demo-1/q999", "hypothesis": "x"}\n', encoding="utf-8")
    done = memeval(tmp_path, "judge", "probe", *(w.replace("ITEMS", str(items)) for w in words))
    assert done.status == 2 and line in done.err and "Traceback" not in done.err


@pytest.mark.slow
@pytest.mark.real_data
def test_keyword_accepts_as_many_vague_answers_as_recorded(tmp_path: Path, data_dir: Path) -> None:
    file = data_dir.parent / "outputs" / "locomo" / "vague_wrong_answers.jsonl"
    words = ("judge=keyword", "dataset=locomo", "--items", f"vague={file}", "--json")
    done = completed(tmp_path, "judge", "probe", *words, MEMEVAL_DATA_DIR=str(data_dir))
    (kind,) = json.loads(done.out)["kinds"]
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    # Result of another program for the same answers and the same rule.
    passed = sum(row["reference"]["cog_kw_passed"] == 1.0 for row in rows)
    assert (kind["kind"], kind["items"], kind["accepted"]) == ("vague", 1540, passed)
