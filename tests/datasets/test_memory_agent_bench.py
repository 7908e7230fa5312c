"""MemoryAgentBench's adapter on small rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from memory_agent_bench_samples import FACTS, memory_agent_bench, row, write
from sample_records import record, verdict

from memeval.datasets.locate import build
from memeval.datasets.memory_agent_bench.adapter import MemoryAgentBench
from memeval.errors import UserError
from memeval.records import EvalQuestion
from memeval.results import Record


def questions(path: Path, **settings: Any) -> list[EvalQuestion]:
    return [
        question
        for case in memory_agent_bench(path, **settings).read()
        for question in case.questions
    ]


def dataset_questions(dataset: MemoryAgentBench) -> list[EvalQuestion]:
    return [question for case in dataset.cases() for question in case.questions]


def test_a_row_is_a_case_of_one_session_without_times(tmp_path: Path) -> None:
    (case,) = memory_agent_bench(write(tmp_path, [row()])).read()
    (session,) = case.sessions
    assert (case.case_id, session.session_id, session.started_at) == ("c1", "s1", None)
    assert [(turn.turn_id, turn.speaker, turn.time) for turn in session.turns] == [
        ("t1", "Context", None)
    ]
    assert session.turns[0].text == FACTS + "factconsolidation_sh_6k"


def test_question_has_its_id_gold_and_facets(tmp_path: Path) -> None:
    first, second = questions(write(tmp_path, [row()]))
    assert (first.question_id, first.text, first.category) == (
        "factconsolidation_sh_6k_no0",
        "Who is the mayor of Lindow?",
        "factconsolidation_sh_6k",
    )
    assert first.gold == ("Milo", "Milo Adler") and second.gold == ("golf",)
    assert first.facets == {"split": "conflict_resolution", "size": "6k", "hops": "sh"}
    assert first.evidence == () and first.asked_at is None and first.answerable


def test_instruction_is_separate_from_the_question_and_optional(tmp_path: Path) -> None:
    path = write(tmp_path, [row()])
    assert "largest number holds" in questions(path)[0].instruction
    assert questions(path, instruction=False)[0].instruction == ""
    assert questions(path)[0].text == questions(path, instruction=False)[0].text


def test_json_lines_are_read_like_a_list(tmp_path: Path) -> None:
    rows = [row(), row("ruler_qa1_197K")]
    lines = write(tmp_path, "\n".join(map(json.dumps, rows)) + "\n", "lines.json")
    assert [q.question_id for q in questions(lines)] == [
        q.question_id for q in questions(write(tmp_path, rows))
    ]


def test_duplicate_or_missing_ids_become_row_and_position(tmp_path: Path) -> None:
    rows = [
        row(),
        row("ruler_qa1", metadata__qa_pair_ids=["factconsolidation_sh_6k_no0", "x"]),
        row("eventqa_full", metadata__qa_pair_ids=None),
    ]
    ids = [question.question_id for question in questions(write(tmp_path, rows))]
    assert ids == ["r0/q0", "factconsolidation_sh_6k_no1", "r1/q0", "x", "r2/q0", "r2/q1"]


@pytest.mark.parametrize(
    ("subset", "expected"),
    [
        (None, ["factconsolidation_sh_6k", "factconsolidation_sh_32k", "longmemeval_s*"]),
        ("factconsolidation_sh_6k", ["factconsolidation_sh_6k"]),
        ("factconsolidation_sh", ["factconsolidation_sh_6k", "factconsolidation_sh_32k"]),
        ("longmemeval_s*", ["longmemeval_s*"]),
        ("longmem*", ["longmemeval_s*"]),
    ],
)
def test_subset_is_a_name_or_a_prefix(
    tmp_path: Path, subset: str | None, expected: list[str]
) -> None:
    path = write(tmp_path, [row(), row("factconsolidation_sh_32k"), row("longmemeval_s*")])
    dataset = memory_agent_bench(path, subset=subset)
    dataset.open()
    assert [case.questions[0].category for case in dataset.cases()] == expected


def test_unknown_subset_and_category_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [row()])
    with pytest.raises(
        UserError,
        match=r"dataset.subset 'factconsolidation_s'. Did you mean: factconsolidation_sh_6k",
    ):
        memory_agent_bench(path, subset="factconsolidation_s").open()
    with pytest.raises(UserError, match=r"dataset.categories 'ruler'"):
        memory_agent_bench(path, categories=("ruler",)).open()


def test_settings_that_leave_no_question_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [row(), row("ruler_qa1")])
    with pytest.raises(UserError, match=r"has no questions of"):
        memory_agent_bench(path, subset="ruler", categories=("factconsolidation_sh_6k",)).open()


def test_chunk_tokens_sets_the_size_of_turns(tmp_path: Path) -> None:
    context = "".join(f"{number}. Fact number {number} holds.\n" for number in range(1_000))
    path = write(tmp_path, [row(context=context)])
    counts = []
    for size in (512, 4096):
        (case,) = memory_agent_bench(path, chunk_tokens=size).read()
        texts = [turn.text for turn in case.sessions[0].turns]
        assert "\n".join(texts) == context.strip()
        counts.append(len(texts))
    assert counts == [14, 2]
    with pytest.raises(UserError, match=r"dataset.chunk_tokens"):
        memory_agent_bench(path, chunk_tokens=1000)


def test_questions_about_chats_have_dates_types_and_refusals(tmp_path: Path) -> None:
    chat = row(
        "longmemeval_s*",
        metadata__question_dates=["2023/04/01 (Sat) 09:00", ""],
        metadata__question_ids=["a1", "b2_abs"],
        metadata__question_types=["multi-session", "temporal-reasoning"],
    )
    first, second = questions(write(tmp_path, [chat]))
    assert (first.asked_at, second.asked_at) == (datetime(2023, 4, 1, 9, 0), None)
    assert (first.answerable, second.answerable) == (True, False)
    assert (first.facets["question_type"], second.facets["question_type"]) == (
        "multi-session",
        "temporal-reasoning",
    )


def test_key_points_are_a_further_gold_of_summaries(tmp_path: Path) -> None:
    summary = row(
        "infbench_sum",
        questions=["Summarise."],
        answers=[["All is well."]],
        metadata__qa_pair_ids=["s"],
        metadata__keypoints=["a", "b"],
    )
    (question,) = questions(write(tmp_path, [summary]))
    assert question.gold == ("All is well.", "Key points: a; b")


def test_titles_are_looked_up_by_number(tmp_path: Path) -> None:
    path = write(tmp_path, [row("recsys_redial", answers=[[7], ["12"]])])
    with pytest.raises(
        UserError,
        match=(
            r"record 0: field 'answers\[0\]' contains the number of a title, but "
            r"entity2id.json next to the file does not list it"
        ),
    ):
        questions(path)
    write(
        tmp_path,
        {
            "<http://dbpedia.org/resource/The_Sting_(film)>": 7,
            "http://dbpedia.org/resource/Am%C3%A9lie": 12,
        },
        "entity2id.json",
    )
    assert [question.gold for question in questions(path)] == [("The Sting",), ("Amélie",)]


def test_files_of_the_splits_are_read_from_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "memoryagentbench"
    folder.mkdir()
    write(folder, [row("ruler_qa1")], "Accurate_Retrieval.json")
    dataset = build("memory_agent_bench", tmp_path, split="accurate_retrieval")
    dataset.open()
    assert [
        question.facets["split"] for case in dataset.cases() for question in case.questions
    ] == ["accurate_retrieval"] * 2
    with pytest.raises(UserError, match=r"Test_Time_Learning.json is missing") as caught:
        build("memory_agent_bench", tmp_path, split="test_time_learning").open()
    assert "huggingface.co/datasets/ai-hyz/MemoryAgentBench" in caught.value.hints[0]


def test_all_splits_of_a_folder_are_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "memoryagentbench"
    folder.mkdir()
    write(folder, [row(), row("factconsolidation_mh_6k")], "Conflict_Resolution.json")
    write(folder, [row("ruler_qa1", metadata__qa_pair_ids=None)], "Accurate_Retrieval.json")
    given: dict[str, Any] = {"split": "all", "allow_unpinned": True}
    whole = build("memory_agent_bench", tmp_path, **given, category_names="competences")
    opened = whole.open()

    cases = list(whole.cases())
    assert [case.case_id for case in cases] == ["cr-c1", "cr-c2", "ar-c1"]
    assert [question.question_id for question in cases[2].questions] == ["ar-r0/q0", "ar-r0/q1"]
    assert whole.category_names == {
        "factconsolidation_sh_6k": "CR",
        "factconsolidation_mh_6k": "CR",
        "ruler_qa1": "AR",
    }
    assert opened.path == folder and opened.notes == (
        "split=all: not in the folder, so not asked: Test_Time_Learning.json, "
        "Long_Range_Understanding.json",
    )

    write(folder, [row("ruler_qa2")], "Accurate_Retrieval.json")
    assert build("memory_agent_bench", tmp_path, **given).open().sha256 != opened.sha256


def test_folder_without_any_split_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memoryagentbench").mkdir()
    with pytest.raises(UserError, match=r"Conflict_Resolution.json is missing"):
        build("memory_agent_bench", tmp_path, split="all").open()


@pytest.mark.parametrize(
    ("split", "sources"),
    [
        ("conflict_resolution", ["factconsolidation_sh_6k"]),
        ("accurate_retrieval", ["ruler_qa1", "eventqa_full", "longmemeval_s*"]),
        ("test_time_learning", ["icl_trec", "recsys_redial"]),
        ("long_range_understanding", ["detective_qa"]),
    ],
)
def test_only_rows_of_the_split_are_read_from_a_file(
    tmp_path: Path, split: str, sources: list[str]
) -> None:
    mixed = [
        row("ruler_qa1"),
        row("icl_trec"),
        row(),
        row("detective_qa"),
        row("eventqa_full"),
        row("recsys_redial"),
        row("longmemeval_s*"),
    ]
    path = write(tmp_path, mixed)
    # Categories of another split are accepted, but not asked.
    categories = ("ruler_qa1", *sources)
    dataset = memory_agent_bench(path, split=split, categories=categories)
    dataset.open()
    read = {question.category: question.facets["split"] for question in dataset_questions(dataset)}
    assert read == dict.fromkeys(sources, split)


def test_a_file_without_the_split_names_what_it_has(tmp_path: Path) -> None:
    path = write(tmp_path, [row("ruler_qa1")])
    with pytest.raises(UserError, match="only has rows of accurate_retrieval") as caught:
        memory_agent_bench(path, split="conflict_resolution").open()
    assert caught.value.hints == ("use:  dataset.split=accurate_retrieval, or all",)


def test_unregistered_file_is_refused_unless_allow_unpinned(tmp_path: Path) -> None:
    folder = tmp_path / "memoryagentbench"
    folder.mkdir()
    write(folder, [row()])
    with pytest.raises(UserError, match=r"is not the registered file"):
        build("memory_agent_bench", tmp_path).open()
    assert not build("memory_agent_bench", tmp_path, allow_unpinned=True).open().pinned


def test_judged_by_model_names_the_categories_that_need_a_model(tmp_path: Path) -> None:
    path = write(tmp_path, [row(), row("longmemeval_s*"), row("infbench_sum")])
    assert memory_agent_bench(path).judged_by_model("memory_agent_bench") == (
        "longmemeval_s*",
        "infbench_sum",
    )
    assert memory_agent_bench(path).judged_by_model("keyword") == ()
    assert (
        memory_agent_bench(path, subset="factconsolidation_sh").judged_by_model(
            "memory_agent_bench"
        )
        == ()
    )
    assert memory_agent_bench(path, categories=("infbench_sum",)).judged_by_model(
        "memory_agent_bench"
    ) == ("infbench_sum",)


def test_measures_have_only_the_metrics_of_asked_categories() -> None:
    def answered(
        category: str,
        hypothesis: str | None,
        gold: list[str],
        score: float | None = None,
        **facets: str,
    ) -> Record:
        return record(
            category=category,
            hypothesis=hypothesis,
            gold=tuple(gold),
            facets=facets,
            verdict=replace(verdict(), score=score),
        )

    dataset = build("demo_memory_agent_bench", Path("/nowhere"))
    records = [
        answered("factconsolidation_sh_6k", "It is Milo.", ["Milo"], hops="sh"),
        answered("factconsolidation_mh_6k", "Greta", ["Milo"], hops="mh"),
        answered("factconsolidation_mh_6k", None, ["Milo"], hops="mh"),
        answered("ruler_qa1", "1871", ["1871"]),
        answered("icl_trec", "Answer: 3", ["3"]),
        answered("recsys_redial", "1. Amelie\n2. The Sting", ["The Sting", "Heat"]),
        answered("infbench_sum", "x", ["y"], 0.25),
    ]
    assert dataset.measures(records) == {
        "substring_exact_match": pytest.approx(2 / 3),
        "exact_match_parsed": 1.0,
        "recall_at_5_items": 0.5,
        "conflict_resolution_accuracy": 0.5,
        "conflict_resolution_accuracy_sh": 1.0,
        "conflict_resolution_accuracy_mh": 0.0,
        "summary_score": 0.25,
    }
    assert dataset.measures([]) == {}
