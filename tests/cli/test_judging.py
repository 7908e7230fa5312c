"""Judging on the command line, with an endpoint whose judge sometimes breaks the format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, Ended, answers, completed, memeval, records, runs
from doubles.endpoint import ScriptedEndpoint

from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS

DEMO = DATASETS["demo"]

RIGHT, WRONG = (
    '{"reason": "as scripted", "label": "CORRECT"}',
    '{"reason": "as scripted", "label": "WRONG"}',
)


def listed(path: Path, count: int) -> Path:
    """A file with right answers to the first answerable questions of the demonstration set."""
    demo = Locomo(ROOT / "data" / DEMO.file, info=DEMO)
    asked = [
        question for case in demo.cases() for question in case.questions if question.answerable
    ]
    return answers(path, ((question.question_id, question.gold[0]) for question in asked[:count]))


def judge(home: Path, endpoint: ScriptedEndpoint, file: Path, *words: str) -> Ended:
    model = (
        "llm=openai",
        "llm.model=judge",
        f"llm.base_url={endpoint.base_url}",
        "llm.max_concurrency=1",
    )
    return memeval(
        home, "evaluate", str(file), "--only-listed", "judge=llm", *model, "tracking=none", *words
    )


@pytest.mark.slow
def test_unreadable_verdict_is_retried_once_per_command(
    tmp_path: Path,
) -> None:
    file, came = listed(tmp_path / "answers.jsonl", 4), Counter[str]()
    mended = False

    def reply(body: Mapping[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        came[asked] += 1
        first = list(came).index(asked)
        if first == 0:  # readable immediately
            return RIGHT
        if first == 1:  # unreadable the first time
            return WRONG if came[asked] > 1 else "It looks fine."
        return RIGHT if mended else f"The answer says {RIGHT} {WRONG}"

    with ScriptedEndpoint(reply) as endpoint:
        done = judge(tmp_path, endpoint, file)
        assert done.status == 1, "half of the answers have no score: the run is invalid"
        (run,) = runs(tmp_path)
        assert run["statuses"] == {"ok": 2, "unparsed": 2} and list(came.values()) == [1, 2, 2, 2]
        assert run["metrics"]["unparsed_rate"] == 0.5 and run["metrics"]["accuracy"] == 0.5
        assert (run["metrics"]["calls/judge"], run["metrics"]["coverage"]) == (7, 0.5)
        seeds = Counter(body["seed"] for _, body in endpoint.requests)
        assert len(seeds) == 2 and seeds[0] == 4, "another try has another seed"

        mended = True
        assert judge(tmp_path, endpoint, file).status == 0
        (run,) = runs(tmp_path)
        assert run["statuses"] == {"ok": 4} and list(came.values()) == [1, 2, 3, 3]
        assert run["metrics"]["unparsed_rate"] == 0.0 and run["metrics"]["calls/judge"] == 9

        again = judge(tmp_path, endpoint, file)
        assert "already done: reused 4 results" in again.err and endpoint.count() == 9


def test_run_keeps_its_rows_when_another_run_judges_again(
    tmp_path: Path,
) -> None:
    keeps = False

    def reply(body: Mapping[str, Any]) -> str:
        return RIGHT if keeps else "no form"

    with ScriptedEndpoint(reply) as endpoint:
        words = (
            *("dataset=demo", "system=bm25", "judge=llm", "llm.judge.model=judge"),
            *(f"llm.judge.base_url={endpoint.base_url}", "llm.judge.api_key_env=null"),
            *("dataset.limit_cases=1", "tracking=none", "plots=false"),
        )
        memeval(tmp_path, *words, "dataset.limit_questions=2")
        (first,) = runs(tmp_path)
        assert first["statuses"] == {"unparsed": 2}

        keeps = True
        completed(tmp_path, *words, "dataset.limit_questions=3")

    assert completed(tmp_path, "verify").out.count(": sound") == 2
    package = tmp_path / "first.memeval"
    completed(tmp_path, "pack", first["run_key"], "-o", str(package))
    completed(tmp_path, "verify", str(package))


@pytest.mark.slow
def test_lost_verdicts_are_restored_from_the_cache(
    tmp_path: Path,
) -> None:
    file = listed(tmp_path / "answers.jsonl", 3)
    garbage = {"seen": 0}

    def reply(body: Mapping[str, Any]) -> str:
        garbage["seen"] += 1
        return "no form" if body["seed"] == 0 else RIGHT

    with ScriptedEndpoint(reply) as endpoint:
        assert judge(tmp_path, endpoint, file).status == 0
        first = records(tmp_path)
        for path in (
            *tmp_path.glob("outputs/verdicts/*.jsonl"),
            *tmp_path.glob("outputs/runs/*/run.json"),
        ):
            path.unlink()
        assert judge(tmp_path, endpoint, file).status == 0
        assert endpoint.count() == garbage["seen"] == 6
    without_times = [
        {name: value for name, value in row.items() if name != "times"} for row in first
    ]
    assert without_times == [
        {name: value for name, value in row.items() if name != "times"} for row in records(tmp_path)
    ]
    assert {row["verdict"]["tries"] for row in first} == {1}


def test_unreadable_judge_stops_the_run_and_keeps_its_verdicts(
    tmp_path: Path,
) -> None:
    file = listed(tmp_path / "answers.jsonl", 40)
    keeps = False
    with ScriptedEndpoint(
        lambda body: RIGHT if keeps else "\x1b[31mI would say\nit is right."
    ) as endpoint:
        done = judge(tmp_path, endpoint, file)
        assert done.status == 1
        assert (
            "memeval: the last 20 replies of judge=llm could not be read (can't be read: [31mI "
            "would say it is right.; stop_after_failures=20): "
            "use a model that follows the format, or a prompt template that asks for it\n"
        ) in done.err
        assert "Traceback" not in done.err and 40 <= endpoint.count() < 80
        assert not runs(tmp_path)
        (verdicts,) = tmp_path.glob("outputs/verdicts/*.jsonl")
        # One more call may have been in progress when the run stopped.
        assert 20 <= verdicts.read_text(encoding="utf-8").count('"unparsed"') <= 21

        keeps = True
        assert judge(tmp_path, endpoint, file).status == 0
        (run,) = runs(tmp_path)
        assert run["statuses"] == {"ok": 40}
        bodies = [json.dumps(body, sort_keys=True) for _, body in endpoint.requests]
        assert len(bodies) - len(set(bodies)) <= 1, (
            "none is asked twice but the one under way when the run stopped"
        )


def test_the_majority_of_several_judgings_counts(tmp_path: Path) -> None:
    file = listed(tmp_path / "answers.jsonl", 3)
    came: dict[str, int] = {}
    scripts = ((RIGHT, RIGHT, RIGHT), (RIGHT, WRONG, WRONG), (RIGHT, "?", "?", WRONG))

    def reply(body: Mapping[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        number = came[asked] = came.get(asked, -1) + 1
        return scripts[list(came).index(asked)][number]

    with ScriptedEndpoint(reply) as endpoint:
        done = judge(tmp_path, endpoint, file, "judge.repeats=3")
        assert done.status == 1, "one of three answers has no score: the run is invalid"
        assert len({body["seed"] for _, body in endpoint.requests}) == 4
    (run,) = runs(tmp_path)
    verdicts = [row["verdict"] for row in records(tmp_path)]
    assert [verdict["label"] for verdict in verdicts] == ["correct", "wrong", "unscored"]
    assert [verdict["votes"] for verdict in verdicts] == [
        ["correct", "correct", "correct"],
        ["correct", "wrong", "wrong"],
        ["correct", "unscored", "wrong"],
    ]
    metrics = run["metrics"]
    assert (
        metrics["judge_unanimous"],
        metrics["unparsed_rate"],
        metrics["accuracy"],
    ) == pytest.approx((1 / 3, 1 / 3, 0.5))
    assert metrics["calls/judge"] == 10 and run["params"]["judge.repeats"] == 3


@pytest.mark.slow
def test_number_of_judgings_makes_another_run(tmp_path: Path) -> None:
    file = listed(tmp_path / "answers.jsonl", 2)
    with ScriptedEndpoint(lambda body: RIGHT) as endpoint:
        for words, calls in (
            ((), 2),
            (("judge.repeats=1",), 2),
            (("judge.repeats=3",), 6),
            (("judge.fence=false",), 8),
        ):
            assert judge(tmp_path, endpoint, file, *words).status == 0
            assert endpoint.count() == calls, (
                "the first of several judgings is the one that was made before"
            )
        assert "<answer-" not in endpoint.requests[-1][1]["messages"][-1]["content"]
    assert len(runs(tmp_path)) == 3
    assert all(
        "judge_unanimous" in run["metrics"]
        for run in runs(tmp_path)
        if run["params"]["judge.repeats"] == 3
    )


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("judge=llm", "judge.repeats=2"),
            "judge.repeats must be an odd number, for a majority, not 2",
        ),
        (("judge=llm", "judge.repeats=0"), "judge.repeats must be at least 1, not 0"),
        (("judge=llm", "judge.repeats=many"), "judge.repeats must be a whole number, not 'many'"),
        (("judge=longmemeval", "judge.reading=first"), "unknown judge.reading 'first'"),
        (
            ("judge=keyword", "+judge.repeats=3"),
            "judge.repeats=3 needs a judge that is a model, but judge=keyword is not one",
        ),
        (
            ("judge=keyword", "+judge.fence=true"),
            "judge.fence=True needs a judge that is a model, but judge=keyword is not one",
        ),
        (
            ("judge=llm", "+judge.reading=official"),
            "judge.reading=official does not apply to judge=llm",
        ),
        (("judge=llm", "--listed"), "unknown option '--listed' of evaluate"),
    ],
)
def test_invalid_judge_settings_are_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    model = ("llm=openai", "llm.model=m", "llm.base_url=http://127.0.0.1:9/v1", "tracking=none")
    done = memeval(tmp_path, "evaluate", str(listed(tmp_path / "a.jsonl", 1)), *model, *words)
    assert done.status == 2 and message in done.message and "Traceback" not in done.err


@pytest.mark.slow
@pytest.mark.parametrize(("reading", "right"), [("first_word", 0.0), ("official", 1.0)])
def test_judge_reading_decides_the_verdict(tmp_path: Path, reading: str, right: float) -> None:
    def reply(body: Mapping[str, Any]) -> str:
        judging = "One word, yes or no" in body["messages"][-1]["content"]
        return "No. The response says: yesterday" if judging else "Yesterday."

    with ScriptedEndpoint(reply) as endpoint:
        completed(
            tmp_path,
            *(
                "dataset=demo_longmemeval",
                "system=oracle",
                "judge=longmemeval",
                f"judge.reading={reading}",
                "tracking=none",
            ),
            *("llm=openai", "llm.model=m", f"llm.base_url={endpoint.base_url}"),
        )
    (run,) = runs(tmp_path)
    assert (run["metrics"]["accuracy"], run["metrics"]["unparsed_rate"]) == (right, 0.0)


def test_a_blank_answer_is_wrong_without_asking_the_judge(tmp_path: Path) -> None:
    file = listed(tmp_path / "answers.jsonl", 3)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows[1]["hypothesis"] = " \t"
    answers(file, ((row["question_id"], row["hypothesis"]) for row in rows))
    with ScriptedEndpoint(lambda body: RIGHT) as endpoint:
        assert judge(tmp_path, endpoint, file).status == 0
        assert endpoint.count() == 2
    (run,) = runs(tmp_path)
    metrics = run["metrics"]
    assert [metrics[name] for name in ("accuracy", "exact_match", "coverage")] == pytest.approx(
        [2 / 3, 2 / 3, 1.0]
    )
    assert run["tags"]["partial"] == "true"
