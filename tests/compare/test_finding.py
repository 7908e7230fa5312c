from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from made_runs import example, made_run

from memeval.api.comparing import compare
from memeval.api.selecting import select_run, select_runs
from memeval.comparison.finding import (
    earliest_time,
    finished_runs,
    labels_of,
    named_run,
    parse_filters,
    run_among,
)
from memeval.errors import UserError, unknown
from memeval.results.run import Run


@pytest.fixture
def known(tmp_path: Path) -> list[Run]:
    """Three runs, the oldest first."""
    days = {"bm25": "2026-11-01", "rag": "2026-11-02", "mem0": "2026-11-03"}
    for number, (system, day) in enumerate(days.items()):
        made_run(
            tmp_path,
            system,
            example("A"),
            run_key=f"abc{number}" + "0" * 12,
            finished_at=f"{day}T10:00:00+00:00",
            sweep="curve" if system != "rag" else None,
            tags={"package": "0123456789abcdef"} if system == "rag" else None,
        )

    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{", encoding="utf-8")
    return finished_runs(tmp_path)


def test_damaged_run_is_reported_and_unfinished_run_is_not(tmp_path: Path) -> None:
    run = made_run(tmp_path, "bm25", example("A"))
    (tmp_path / "under way").mkdir()
    file = run.folder / "run.json"
    file.write_text(file.read_text(encoding="utf-8").replace("bm25", "rag"), encoding="utf-8")
    messages: list[str] = []
    assert finished_runs(tmp_path, messages.append) == []
    assert len(messages) == 1 and messages[0].startswith(
        f"{file} is damaged: its digest is missing or wrong"
    )


def test_runs_are_found_by_key_name_folder_and_mlflow_id(known: list[Run]) -> None:
    run = known[1]
    (run.folder / "tracked.json").write_text(json.dumps({"sqlite:///x": "f00d" * 8}))
    for word in (run.key, run.key[:4], run.name, "f00d" * 8, str(run.folder)):
        assert named_run(word, known).key == run.key


def test_runs_are_found_by_label_and_prefix(known: list[Run]) -> None:
    labels = dict(zip(labels_of(known), known, strict=True))
    assert set(labels) == {"bm25", "rag", "mem0"}
    for word in ("rag", "ra", "rag INVALID", known[1].name[:-1]):
        assert named_run(word, known) is labels["rag"]


def test_a_run_is_named_by_its_system_before_names_that_begin_with_it(tmp_path: Path) -> None:
    for system, top_k in (("rag", 5), ("rag_wide", 20)):
        params = {"system": system, "top_k": top_k}
        made_run(tmp_path, system, example("A"), name=f"{system} k={top_k}", params=params)

    assert named_run("rag", finished_runs(tmp_path)).name == "rag k=5"


def test_a_run_is_named_by_its_label_among_few(tmp_path: Path) -> None:
    for name in ("gpt", "mem0_2025"):
        params = {"system": "imported", "system.file": f"{name}.jsonl"}
        made_run(tmp_path, name, example("A"), name=f"imported {name}", params=params)

    runs = finished_runs(tmp_path)
    (first, _) = sorted(labels_of(runs))
    found = run_among("mem0", runs)
    assert found is not None and found.name == "imported mem0_2025"
    assert run_among(first, runs) and run_among("imported", runs) is None
    with pytest.raises(UserError, match=r"Did you mean: \w+ \(imported mem0_2025\)"):
        named_run("2025", runs)


def test_ambiguous_prefix_lists_the_newest_runs_with_their_keys(tmp_path: Path) -> None:
    for number in range(7):
        settings = {"top_k": number}
        made_run(
            tmp_path, "rag", example("A"), run_key=f"{number}" * 16, name="my rag", params=settings
        )

    runs = finished_runs(tmp_path)
    with pytest.raises(UserError) as caught:
        named_run("my", runs)

    assert caught.value.message == (
        "7 runs are named 'my': 6666666666666666 (my rag), 5555555555555555 (my rag), "
        "4444444444444444 (my rag), 3333333333333333 (my rag), 2222222222222222 (my rag) "
        "and 2 more"
    )


def test_unknown_and_ambiguous_names_are_refused(known: list[Run]) -> None:
    with pytest.raises(UserError, match="3 runs are named 'abc'"):
        named_run("abc", known)
    with pytest.raises(UserError, match=r"unknown run 'bm52'. Did you mean: abc0000000000000 \(bm"):
        named_run("bm52", known)
    with pytest.raises(UserError, match=r"unknown run ''\.$"):
        named_run("", known)
    with pytest.raises(UserError) as caught:
        named_run("curve", known)

    assert caught.value.hints == ("it is a sweep:  sweep=curve",)


@pytest.mark.parametrize(
    ("words", "systems"),
    [
        ([], ["bm25", "rag", "mem0"]),
        (["sweep=curve"], ["bm25", "mem0"]),
        (["dataset=locomo", "system=rag"], ["rag"]),
        (["sweep=curve,other", "system=rag,mem0"], ["mem0"]),
        (["system=rag", "system=mem0"], ["rag", "mem0"]),
        (["dataset=demo"], []),
        (["since=1m"], []),
        (["package=01234567"], ["rag"]),
        (["package=0123456789abcdef,f00d"], ["rag"]),
        (["package=rag"], []),
        (["package=rag,"], []),
    ],
)
def test_filters_select_runs(known: list[Run], words: list[str], systems: list[str]) -> None:
    rule = parse_filters(words, known)
    found = [run.summary.params["system"] for run in known if rule.match(run)]
    assert found == systems


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("systm=rag", "unknown filter 'systm'. Did you mean: system"),
        ("tags.paper=one", "unknown tag 'tags.paper': there are none"),
        ("sweep=", "'sweep=' is not a filter"),
        ("since=tomorrow", "since='tomorrow' is not a span of time"),
    ],
)
def test_invalid_filters_are_refused(known: list[Run], word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_filters([word], known)


def test_earliest_reads_spans_of_time() -> None:
    now = datetime.now().astimezone()
    week = earliest_time("1w")
    assert week is not None and abs(now - week - timedelta(days=7)) < timedelta(minutes=1)
    assert earliest_time(None) is None
    assert earliest_time(datetime(2026, 1, 1)) is not None
    assert earliest_time("999999w") is not None


def test_missing_folder_has_no_runs(tmp_path: Path) -> None:
    assert finished_runs(tmp_path / "none") == []


def test_labels_with_an_equals_sign_are_not_taken_for_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    runs = tmp_path / "outputs" / "runs"
    for number, top_k in enumerate((5, 10)):
        made_run(
            runs, "rag", example("A"), run_key=f"{number}" * 16, params={"top_k": top_k}, name="x"
        )
    made_run(runs, "bm25", example("A"), params={"top_k": 5})

    def chosen(word: str) -> list[str]:
        return [run.key[:2] for run in select_runs([word]).chosen]

    assert labels_of(finished_runs(runs)) == ["rag k=5", "rag k=10", "bm25 k=5"]
    assert chosen("rag k=10") == ["11"]
    assert chosen("rag k=1") == ["11"]
    assert chosen("system=rag") == ["00", "11"]
    assert chosen("top_k=5") == ["00", "62"]
    with pytest.raises(UserError, match="2 runs are named 'rag k'"):
        select_runs(["rag k"])
    with pytest.raises(UserError, match="unknown run 'rag k=7'"):
        select_runs(["rag k=7"])


def test_a_folder_names_a_run_of_another_home_even_if_this_home_has_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path / "home"))
    own = made_run(tmp_path / "home" / "outputs" / "runs", "bm25", example("A"))
    other = made_run(tmp_path / "lr=0.1" / "runs", "bm25", example("A"))
    rag = made_run(tmp_path / "lr=0.1" / "runs", "rag", example("B"))
    assert own.key == other.key
    assert [run.folder for run in select_runs([str(other.folder)]).chosen] == [other.folder]
    assert select_run(other, "explain")[0].folder == other.folder

    (comparison,) = compare(other, rag)
    assert [run.key for run in comparison.runs] == [other.key, rag.key]
    for words in (
        [str(own.folder), str(other.folder)],
        [str(other.folder), own.key],
        [str(other.folder), "system=bm25"],
    ):
        with pytest.raises(UserError, match="the same settings and the same key"):
            select_runs(words)

    with pytest.raises(UserError, match="the same settings and the same key"):
        compare(own, rag, baseline=other)

    assert len(select_runs([str(own.folder), own.key, "system=bm25"]).chosen) == 1


def test_unknown_name_without_alternatives_says_there_are_none() -> None:
    assert unknown("label", "x", []).message == "unknown label 'x': there are none"
