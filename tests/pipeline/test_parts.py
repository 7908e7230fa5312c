"""Parts of the pipeline on their own: rows on disk, windows, compression points, the final answer,
measures.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from sample_records import record, verdict

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks as chunks_of
from memeval.errors import StorageError
from memeval.pipeline.execute.compression import compression_points, plan_compressions
from memeval.pipeline.execute.reader import final_answer
from memeval.pipeline.execute.timeline import id_until, timeline_events, with_other_user
from memeval.pipeline.execute.window import Window
from memeval.pipeline.measure.figures import measure_cell, measure_repeat
from memeval.pipeline.measure.run_notes import (
    domination_notes,
    estimate_notes,
    model_notes,
    notes_of_rows,
    timing_notes,
)
from memeval.pipeline.measure.spending import percentile
from memeval.records import EvalCase, EvalQuestion, Label, Role, Session, Status, Turn, Usage
from memeval.results import AnswerRow, Record
from memeval.results.rows import StepTimes
from memeval.results.store import RowStore

HEADLINE: frozenset[int | str] = frozenset({1, 2, 3, 4})


def store_at(path: Path) -> RowStore[AnswerRow]:
    return RowStore(path, {}, AnswerRow.from_json)


def row(question_id: str, text: str = "x") -> AnswerRow:
    return AnswerRow(id=question_id, status=Status.OK, hypothesis=text)


@pytest.mark.slow
@given(st.lists(st.text(max_size=20), min_size=1, max_size=8), st.data())
def test_whole_rows_survive_any_cut_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("store") / "rows.jsonl"
    with store_at(path) as store:
        for number, text in enumerate(texts):
            store.append(row(str(number), text))
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = max(0, content[:cut].count(b"\n") - 1)
    with store_at(path) as store:
        assert list(store.rows) == [str(number) for number in range(whole)]
        store.append(row("more"))
    with store_at(path) as store:
        assert "more" in store.rows
        assert store.dropped == 0


def test_the_last_row_of_an_id_counts(tmp_path: Path) -> None:
    with store_at(tmp_path / "r.jsonl") as store:
        store.append(AnswerRow(id="q", status=Status.ANSWER_FAILED, error="no reply"))
        store.append(row("q"))
    with store_at(tmp_path / "r.jsonl") as store:
        assert store.rows["q"].status is Status.OK


def test_damaged_lines_are_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with store_at(path) as store:
        store.append(row("a"))
        store.append(row("b"))

    header, a, b = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([header, a, '{"id": ', b, "[1]", ""]), encoding="utf-8")
    with store_at(path) as store:
        assert list(store.rows) == ["a", "b"]
        assert store.dropped == 2


def test_store_in_an_impossible_folder_raises_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError), store_at(tmp_path / "file" / "r.jsonl"):
        pass


@pytest.mark.parametrize(
    ("turn", "chunks", "points"),
    [
        ("middle", 101, [50]),
        ("middle", 1, []),
        ("rolling", 100, [40, 80, 100]),
        ("rolling", 80, [40, 80]),
        ("rolling", 39, [39]),
        ("rolling", 0, []),
        (40, 100, [40]),
        (100, 100, [100]),
        (101, 100, []),
    ],
)
def test_compression_points(turn: int | str, chunks: int, points: list[int]) -> None:
    assert compression_points(turn, chunks) == points


TALK = "ababbaab"
"""The speaker of each turn. Rounds: ab, ab, b, aab."""


def case_of(speakers: str) -> EvalCase:
    turns = tuple(
        Turn(f"D1:{number}", speaker, f"words {number}", None)
        for number, speaker in enumerate(speakers, start=1)
    )
    session = Session("s", datetime(2023, 5, 8), turns)
    return EvalCase("case", speakers=("a", "b"), sessions=(session,), questions=())


@pytest.mark.parametrize(
    ("granularity", "unit", "turn", "retain", "cuts"),
    [
        ("turn", "pairs", "never", 5, []),
        ("turn", "chunks", "never", 5, []),
        ("turn", "pairs", 1, 5, [(2, 2)]),
        ("turn", "pairs", 3, 2, [(5, 3)]),
        ("turn", "pairs", 3, 0, [(5, 0)]),
        ("turn", "pairs", "middle", 1, [(4, 2)]),
        ("turn", "pairs", "rolling", 1, [(8, 3)]),
        ("turn", "pairs", "rolling", 2, [(8, 4)]),
        ("turn", "pairs", 5, 5, []),
        ("turn", "chunks", 5, 2, [(5, 2)]),
        ("turn", "chunks", "middle", 5, [(4, 4)]),
        ("round", "pairs", 3, 2, [(3, 2)]),
        ("round", "chunks", 3, 2, [(3, 2)]),
        ("session", "pairs", 1, 1, [(1, 1)]),
        ("session", "pairs", "middle", 0, [(1, 0)]),
        ("session", "chunks", "middle", 1, []),
    ],
)
def test_compression_counts_pairs_at_every_granularity(
    granularity: str, unit: str, turn: int | str, retain: int, cuts: list[tuple[int, int]]
) -> None:
    assert planned(TALK, granularity, turn=turn, unit=unit, retain=retain) == cuts


def planned(
    speakers: str, granularity: str, *, turn: int | str, unit: str, retain: int
) -> list[tuple[int, int]]:
    """Pairs of numbers of chunks: after how many the window is cut, and how many it keeps."""
    case = case_of(speakers)
    chunks = chunks_of(case, GranularityConfig(granularity))
    compressions = plan_compressions(turn=turn, unit=unit, retain=retain, case=case, chunks=chunks)
    return list(compressions.items())


@pytest.mark.parametrize("unit", ["pairs", "chunks"])
@pytest.mark.parametrize("retain", [1, 9])
def test_chunks_of_another_user_do_not_count_for_compression(unit: str, retain: int) -> None:
    """The other user's chunks come first; the window is cut as if they did not exist."""
    case = replace(case_of(TALK), others=(Session("s0", None, case_of("abababab").turns),))
    chunks = chunks_of(case, GranularityConfig("turn"))
    words = {"turn": "middle", "unit": unit, "retain": retain}
    alone = plan_compressions(**words, case=case, chunks=chunks)
    both = with_other_user(case, chunks, GranularityConfig("turn"))
    shared = plan_compressions(**words, case=case, chunks=both)
    assert shared == {8 + after: keeps for after, keeps in alone.items()} != {}


def test_each_turn_is_a_pair_if_nobody_replies() -> None:
    assert planned("aaaa", "turn", turn=3, unit="pairs", retain=2) == [(3, 2)]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("7 May 2023", "7 May 2023"),
        ("Answer: pottery", "pottery"),
        ("She said so in May.\nAnswer: 7 May 2023", "7 May 2023"),
        ("Answer: no\nOn second thoughts\n**Final Answer:** yes", "yes"),
        ("The answer is blue", "The answer is blue"),
        ("Reasoning without end\nAnswer:", "Reasoning without end\nAnswer:"),
    ],
)
def test_only_the_final_answer_is_extracted_from_a_reply(reply: str, answer: str) -> None:
    assert final_answer(reply) == answer


def test_window_admits_a_case_while_fewer_questions_than_its_size_are_open() -> None:
    async def play() -> list[str]:
        window, seen = Window(10), []

        async def enter(name: str) -> None:
            await window.enter(8)
            seen.append(name)

        tasks = [asyncio.create_task(enter(name)) for name in "abc"]
        await asyncio.sleep(0.01)
        assert seen == ["a", "b"], "8 questions are open, then 16"
        window.leave(8)
        await asyncio.gather(*tasks)
        return seen

    assert asyncio.run(play()) == ["a", "b", "c"]


def test_window_bounds_the_open_text_and_admits_a_larger_case_alone() -> None:
    async def play() -> list[str]:
        window, seen = Window(100, most_size=10), []

        async def enter(name: str, size: int) -> None:
            await window.enter(1, size)
            seen.append(name)

        tasks = [
            asyncio.create_task(enter(name, size))
            for name, size in (("a", 6), ("b", 4), ("c", 1), ("d", 99))
        ]
        await asyncio.sleep(0.01)
        assert seen == ["a", "b"], "10 characters are open"
        window.leave(1, 6)
        await asyncio.sleep(0.01)
        assert seen == ["a", "b", "c"], "the largest waits until nothing else is open"
        window.leave(2, 5)
        await asyncio.gather(*tasks)
        return seen

    assert asyncio.run(play()) == ["a", "b", "c", "d"]


def judged(label: str | None, category: int = 4, case: str = "c1", number: int = 0) -> Record:
    f1 = 1.0 if label == "correct" else 0.0
    return record(
        question_id=f"{case}/q{number}",
        case_id=case,
        category=category,
        category_name={4: "single_hop", 5: "adversarial"}[category],
        status=Status.OK if label else Status.ANSWER_FAILED,
        verdict=verdict(Label(label)) if label else None,
        metrics={"token_f1": f1} if label else {},
        hypothesis="x" if label else None,
        answerable=category != 5,
    )


def test_metrics_without_scores_are_none_and_not_zero() -> None:
    metrics = measure_repeat([judged(None), judged(None, number=1)], [], HEADLINE)
    assert metrics["accuracy"] is None
    assert metrics["token_f1"] is None
    assert metrics["coverage"] == 0.0
    assert metrics["context_tokens"] is None
    assert (metrics["accuracy_worst_case"], metrics["accuracy_best_case"]) == (0.0, 1.0)


def test_category_5_never_enters_accuracy() -> None:
    rows = [
        judged("correct"),
        judged("wrong", number=1),
        judged("correct", 5, number=2),
        judged("correct", 5, number=3),
    ]
    metrics = measure_repeat(rows, [], HEADLINE)
    assert metrics["accuracy"] == 0.5
    assert metrics["accuracy/adversarial"] == 1.0
    assert (metrics["n_questions"], metrics["n_records"]) == (2, 4)


def test_abstained_is_not_right_and_unscored_is_not_counted() -> None:
    rows = [judged("correct"), judged("abstained", number=1), judged("unscored", number=2)]
    metrics = measure_repeat(rows, [], HEADLINE)
    assert metrics["accuracy"] == 0.5
    assert metrics["coverage"] == pytest.approx(2 / 3)


def test_deviation_is_none_for_one_repeat_and_zero_for_equal_ones() -> None:
    rows = [judged("correct"), judged("wrong", case="c2", number=1)]
    one = measure_repeat(rows, [], HEADLINE)
    assert measure_cell([one], rows, HEADLINE)["accuracy_std"] is None
    of_two = measure_cell([one, one], rows, HEADLINE)
    assert {name: value for name, value in of_two.items() if "_std" in name} == dict.fromkeys(
        ("accuracy_macro_std", "accuracy_std/single_hop", "accuracy_std", "token_f1_std"), 0.0
    )


def test_intervals_need_two_cases() -> None:
    rows = [judged("correct", number=n) for n in range(3)] + [judged("wrong", number=9)]
    assert measure_cell([{}], rows, HEADLINE)["accuracy_ci95_low"] is None
    assert (
        measure_cell([{}], [*rows, judged("wrong", case="c2", number=1)], HEADLINE)[
            "accuracy_ci95_low"
        ]
        is not None
    )


def test_interval_is_wide_although_all_answers_are_right() -> None:
    rows = [judged("correct", case=case, number=n) for case in ("c1", "c2") for n in range(3)]
    metrics = measure_cell([{}], rows, HEADLINE)
    low = metrics["accuracy_ci95_low"]
    assert low is not None and low < 0.1 and metrics["accuracy_ci95_high"] == 1.0


def test_a_conversation_that_holds_half_of_the_questions_is_noted() -> None:
    small = [judged("wrong", case=case) for case in ("c1", "c2")]
    large = [judged("correct", case="c3", number=n) for n in range(2)]
    (note,) = domination_notes([*small, *large], HEADLINE)
    assert note.startswith("c3 holds half of the questions or more")
    # Repeats are not further questions, and categories outside the headline do not count.
    assert not list(domination_notes([*small, *large[:1], *large[:1]], HEADLINE))
    apart = [judged("correct", category=5, case="c1", number=n) for n in range(5, 15)]
    assert list(domination_notes([*small, *large, *apart], HEADLINE)) == [note]


def test_a_latency_that_few_answers_have_is_noted() -> None:
    timed = record(times=StepTimes(retrieval_ms=1.5))
    (note,) = timing_notes([timed, record(), record()])
    assert note.startswith("retrieval ms was measured in 1 of 3 answers only")
    # Failed questions have no latency; and if no answer has one, no figure is shown.
    assert not list(timing_notes([timed, record(status=Status.ANSWER_FAILED)]))
    assert not list(timing_notes([record(), record()]))


def test_tokens_that_the_endpoint_did_not_report_are_noted() -> None:
    known = Usage(Role.ANSWER, "m", "openai", 100, 10)
    counted = structs.replace(known, estimated=True)
    offline = structs.replace(counted, provider="offline")
    rows = [record(usage=(known, offline)), record(usage=(counted,))]
    (note,) = estimate_notes(rows, [])
    assert note.startswith("The endpoint did not report the tokens of 1 of 2 calls")
    assert note in {one.text for one in notes_of_rows(rows, [], None)}, "verify expects it"
    assert not list(estimate_notes([record(usage=(known, offline))], []))


def test_replies_that_named_several_models_are_noted() -> None:
    rows = [record(usage=(Usage(Role.ANSWER, "m", "openai", 100, 10),))] * 2
    switched = structs.replace(rows[0], notes={Role.ANSWER.models_note: ["m-2"]})
    (note,) = model_notes([*rows, switched], [])
    assert "(m in 2 of 3 rows, m-2 in 1 of 3 rows)" in note
    assert note in {one.text for one in notes_of_rows([*rows, switched], [], None)}
    # An alias that always means the same model is no switch.
    assert not list(model_notes([switched, switched], []))
    # Nor is a reply of which the cache does not know the name.
    unknown = structs.replace(switched, notes={Role.ANSWER.models_note: []})
    assert not list(model_notes([unknown, switched], []))
    both = structs.replace(switched, notes={Role.ANSWER.models_note: ["m", "m-2"]})
    assert list(model_notes([both], []))


def test_spending_is_summed_by_role_and_a_role_without_calls_has_no_figure() -> None:
    asked = Usage(Role.ANSWER, "m", "none", 100, 10, cached_tokens=40, calls=2)
    times = StepTimes(answer_ms=4.0, judge_ms=5.0, wait_s=1.0, judge_wait_s=2.0)
    rows = [record(usage=(asked, Usage(Role.JUDGE, "m", "none", 7, 1)), times=times)]
    metrics = measure_repeat(rows, [], None)
    prefixes = ("tokens/", "calls/", "latency_ms/", "retry_wait_s")
    assert {name: metrics[name] for name in metrics if name.startswith(prefixes)} == {
        "tokens/answer/prompt": 100,
        "tokens/answer/completion": 10,
        "tokens/answer/cached": 40,
        "calls/answer": 2,
        "tokens/judge/prompt": 7,
        "tokens/judge/completion": 1,
        "tokens/judge/cached": 0,
        "calls/judge": 1,
        "tokens/total": 118,
        "latency_ms/answer/p50": 4,
        "latency_ms/answer/p95": 4,
        "latency_ms/judge/p50": 5,
        "latency_ms/judge/p95": 5,
        "retry_wait_s": 3,
    }


def test_percentiles() -> None:
    assert percentile([3.0], 95) == 3.0
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert json.loads(json.dumps(percentile([float(n) for n in range(101)], 95))) == 95.0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question_id": "c/q0", "hypothesis": "\\ud800"}', "surrogate"),
        ("[" * 100_000, "not a row in JSON: maximum recursion depth"),
        ('{"question_id": "c/q0", "hypothesis": true}', "hypothesis: expected `str | null`"),
        ('{"question_id": null, "hypothesis": "x"}', "question_id: expected `str`"),
        ('{"question_id": "c/q0"}', "missing required field `hypothesis`"),
        ("", "is empty"),
    ],
)
def test_malformed_answer_file_is_refused(tmp_path: Path, line: str, message: str) -> None:
    from memeval.errors import UserError
    from memeval.pipeline.execute.imported import read_hypotheses

    path = tmp_path / "answers.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_hypotheses(path)


def test_chosen_answers_have_no_abstention_rate() -> None:
    rows = [structs.replace(judged("correct", category), choices=("a", "b")) for category in (4, 5)]
    metrics = measure_repeat(rows, [], HEADLINE)
    assert metrics["abstention_rate"] is None and metrics["abstention_rate/unanswerable"] is None
    assert metrics["accuracy"] == 1.0


class CountedTuple(tuple[EvalQuestion, ...]):
    """Counts how often its items are gone through."""

    passes = 0

    def __iter__(self) -> Iterator[EvalQuestion]:
        type(self).passes += 1
        return super().__iter__()


def test_a_question_does_not_go_through_the_questions_of_its_case() -> None:
    asked = (EvalQuestion(f"c/q{number}", "?", "fact", ("x",)) for number in range(50))
    case = EvalCase("c", (Session("s", None, ()),), CountedTuple(asked))
    CountedTuple.passes = 0

    for number in range(50):
        question = case.questions[number]
        assert id_until(case, question) == "c"
        assert list(timeline_events(case, question, {})) == []

    assert CountedTuple.passes == 0
