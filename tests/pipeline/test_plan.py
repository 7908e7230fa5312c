"""`plan` states what a sweep would send, and sends nothing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, summary
from doubles.endpoint import ScriptedEndpoint

from memeval.config.paths import cache_dir
from memeval.llm.cache import Cache
from memeval.llm.cached_call import CachedCalls
from memeval.llm.reply.stored import stored_chat
from memeval.records import EvalCase, EvalQuestion, Session, Turn
from memeval.runs.forecast.imagined import OverlaidCache, Tally
from memeval.runs.forecast.sampling import evenly_spaced, sample_cases

SMALL = ("dataset=demo", "dataset.limit_cases=3", "dataset.limit_questions=4", "tracking=none")
MODEL = ("llm=openai", "llm.model=gpt-4o-mini")


def planned(memeval: Command, *words: str) -> dict[str, Any]:
    """The output of `plan --json`."""
    read: dict[str, Any] = json.loads(memeval("plan", *words, "--json").stdout)
    return read


def ingest_calls(plan: dict[str, Any]) -> int:
    (line,) = (line for line in plan["by_role"] if line["role"] == "ingest")
    calls: int = line["calls"]
    return calls


def files(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_file())


def test_an_unsound_reply_is_planned_to_be_requested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    stored = Cache(cache_dir() / "responses.sqlite")
    stored.put_all({"a" * 64: b"{}"}, "run")
    stored.close()
    overlaid = OverlaidCache(tmp_path / "responses.sqlite", "responses", Tally())
    calls = CachedCalls(overlaid, "plan", lambda _: None)

    async def request() -> dict[str, Any]:
        return {"wait_s": 0.0}

    asked = calls.once("a" * 64, read=stored_chat, call=request)
    assert asyncio.run(asked) == ({"wait_s": 0.0}, False)
    calls.forget("a" * 64)
    overlaid.close()


def test_a_damaged_reply_does_not_count_as_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    path = cache_dir() / "responses.sqlite"
    stored = Cache(path)
    stored.put_all({"a": b"{}", "b": b"{}"}, "run")
    stored.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE entries SET value = ? WHERE key = 'b'", (b"{ }",))

    overlaid = OverlaidCache(tmp_path / "responses.sqlite", "responses", Tally())
    assert list(overlaid.get_all(["a", "b"])) == ["a"]
    overlaid.close()

    repaired = Cache(path)
    assert repaired.keys() == {"a", "b"}, "a plan changes nothing"
    assert list(repaired.get_all(["a", "b"])) == ["a"]
    repaired.close()


@pytest.mark.slow
def test_sweep_of_12_runs_makes_as_many_calls_as_planned(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = (
            *("-m", "system=bm25,no_memory", "top_k=3,10", "judge=llm,mem0,contains"),
            *(*SMALL, *MODEL, f"llm.base_url={endpoint.base_url}"),
        )
        before = planned(memeval, *words)
        assert endpoint.count() == 0
        assert files(tmp_path) == []

        memeval(*words)
        assert endpoint.count() == before["calls"] > 0
        after = planned(memeval, *words)

    assert before["cells"] == {"all": 12, "finished": 0}
    assert before["units"]["answer"] == {"all": 4 * 12, "finished": 0}
    by_role = {line["role"]: line for line in before["by_role"]}
    assert by_role["answer"]["known_calls"] == by_role["answer"]["calls"]
    assert by_role["judge"]["known_calls"] == 0

    assert after["cells"] == {"all": 12, "finished": 12}
    assert after["units"]["judge"] == {"all": 12 * 12, "finished": 12 * 12}
    assert after["calls"] == after["usd"] == 0


@pytest.mark.slow
def test_sweep_with_extraction_makes_as_many_calls_as_planned(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint() as endpoint:
        words = (
            *("-m", "system=cogcanvas", "system.gleaning=true,false", "top_k=3,10"),
            *("judge=contains", *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}"),
        )
        before = planned(memeval, *words)
        memeval(*words)
        assert endpoint.count() == before["calls"] > 0

    by_role = {line["role"]: line for line in before["by_role"]}
    assert by_role["ingest"]["known_calls"] > 0
    assert by_role["answer"]["known_calls"] == 0
    assert any("answers that don't exist yet" in note for note in before["basis"])


def test_gleaning_doubles_the_planned_calls_of_the_ingest(
    memeval: Command,
) -> None:
    words = ("system=cogcanvas", "system.earlier=10", "judge=contains", *SMALL, *MODEL)
    once = planned(memeval, *words, "system.gleaning=false")
    twice = planned(memeval, *words, "system.gleaning=true")
    assert ingest_calls(twice) == 2 * ingest_calls(once) > 2 * 3


@pytest.mark.slow
def test_planned_dollars_are_billed_if_prompts_are_known(memeval: Command, tmp_path: Path) -> None:
    # The endpoint reports no tokens, so both sides count them in the same way.
    with ScriptedEndpoint(usage=False) as endpoint:
        words = ("system=bm25", "judge=contains", *SMALL, *MODEL)
        before = planned(memeval, *words, f"llm.base_url={endpoint.base_url}")
        memeval(*words, f"llm.base_url={endpoint.base_url}")

    assert before["usd"] == pytest.approx(summary(tmp_path)["metrics"]["cost_usd/total"], rel=0.03)
    assert before["usd"] < before["most_usd"]


@pytest.mark.slow
def test_plan_of_a_stopped_sweep_counts_the_remaining_calls(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("system=bm25", "judge=llm", *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")
        memeval(*words, "budget.calls=7", check=False)
        assert endpoint.count() == 7
        left = planned(memeval, *words)["calls"]
        memeval(*words)
        assert endpoint.count() == 7 + left


def test_plan_names_a_budget_below_its_estimate(memeval: Command) -> None:
    model = (*MODEL, "llm.base_url=http://127.0.0.1:9/v1")
    plan = partial(planned, memeval, "system=bm25", *SMALL, *model)
    calls = plan()["calls"]
    (note,) = (line for line in plan(f"budget.calls={calls - 1}")["basis"] if "budget." in line)
    assert f"budget.calls={calls - 1} is below the estimate" in note
    assert "budget." not in str(plan(f"budget.calls={calls}", "budget.tokens=1000000")["basis"])


def test_saved_memories_of_checkpoints_count_as_finished(memeval: Command) -> None:
    words = ("dataset=demo_lifecycle", "dataset.limit_cases=1", "system=bm25")
    before = planned(memeval, *words)["units"]["prepare"]
    memeval("prepare", *words)
    after = planned(memeval, *words)["units"]["prepare"]
    # The memory of the case is saved at each of its four checkpoints.
    assert before == {"all": 4, "finished": 0}
    assert after == {"all": 4, "finished": 4}


def test_plan_without_json_is_readable_text(memeval: Command) -> None:
    # Another launcher and its settings make no difference.
    ray = ("hydra/launcher=ray", "hydra.launcher.workers=2")
    shown = memeval("plan", "system=bm25", *SMALL, *ray).stdout
    assert "no model calls are needed" in shown
    assert "demo: 12 questions in 3 cases are too few to show any difference" in shown
    assert "Nothing was run." in shown


def test_plan_says_that_a_service_may_call_models_itself(memeval: Command) -> None:
    shown = memeval("plan", "system=http", "system.base_url=http://127.0.0.1:9/", *SMALL).stdout
    assert "note: calls that the memory system=http makes itself are not counted" in shown


def test_plan_says_that_an_oracle_without_evidence_is_invalid(memeval: Command) -> None:
    words = ("-m", "system=oracle", *MODEL, "llm.base_url=http://127.0.0.1:9/v1", "tracking=none")
    sets = "dataset=demo_memory_agent_bench,demo"
    (note,) = (line for line in planned(memeval, *words, sets)["basis"] if "INVALID" in line)
    assert "no question of dataset=demo_memory_agent_bench names any" in note


def test_plan_of_the_retrieval_alone_judges_nothing(memeval: Command) -> None:
    plan = planned(memeval, "system=cogcanvas", "stages=retrieve", *SMALL, *MODEL)
    assert plan["calls"] == ingest_calls(plan) > 0
    assert plan["units"]["judge"] == {"all": 0, "finished": 0}
    assert not any("could not be simulated" in note for note in plan["basis"])
    assert plan["detectable"] == []


def test_plan_names_the_runs_that_keep_going_leaves_out(memeval: Command) -> None:
    words = ("-m", "--keep-going", "system=bm25", "top_k=3,0", *SMALL)
    done = memeval("plan", *words, "--json", check=False)
    assert done.returncode == memeval(*words, check=False).returncode == 2
    assert json.loads(done.stdout)["cells"]["all"] == 1
    assert "not '0'" in done.stderr


def test_unknown_option_is_refused_as_by_a_run(memeval: Command) -> None:
    done = memeval("plan", "system=bm52", *SMALL, check=False)
    assert done.returncode == 2
    assert "Did you mean: bm25?" in done.stderr


def test_runs_that_send_the_same_prompts_are_estimated_as_one(memeval: Command) -> None:
    """bm25 shows no window, so it sends the same under each compression."""
    constants = {
        "memeval.runs.forecast.estimate.MAX_QUESTIONS": 10,
        "memeval.runs.forecast.estimate.SAMPLED_REPEATS": 3,
        "memeval.runs.forecast.estimate.SAMPLED_QUESTIONS": 18,
    }
    with ScriptedEndpoint() as endpoint:
        words = ("-m", "system=bm25", "compression_turn=never,10,20,30,40", "judge=contains")
        model = (*SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")
        done = memeval("plan", *words, *model, "--json", constants=constants)
        sampled: dict[str, Any] = json.loads(done.stdout)
        memeval(*words, *model)
        sent = endpoint.count()

    (line,) = sampled["by_role"]
    assert any("extrapolates" in note for note in sampled["basis"])
    assert sent == 12
    # Some of the 12 questions were read, in 3 of 5 runs.
    assert line["calls"] == pytest.approx(sent)
    assert 0 < line["known_calls"] < sent
    assert line["most_calls"] == pytest.approx(5 * sent)


def test_runs_that_share_a_memory_build_it_once_at_most(memeval: Command) -> None:
    plans = []
    for top_k in ("3", "3,5,7"):
        words = ("-m", "system=graphrag_lite", f"top_k={top_k}", "judge=contains", *SMALL, *MODEL)
        plan = planned(memeval, *words, "llm.base_url=http://127.0.0.1:1/v1")
        plans.append(next(line for line in plan["by_role"] if line["role"] == "ingest"))

    assert plans[0]["most_calls"] == plans[1]["most_calls"] == ingest_calls({"by_role": plans[:1]})


def test_plan_reads_cases_up_to_a_number_of_turns() -> None:
    turns = tuple(Turn(turn_id=f"D1:{n}", speaker="Ann", text="Hm.", time=None) for n in range(50))
    session = Session(session_id="s1", started_at=None, turns=turns)
    question = EvalQuestion(question_id="q", text="Who?", category=1, gold=("Ann",))
    cases = [EvalCase(f"c{n}", (session,), (question,) * 3) for n in range(20)]

    assert list(sample_cases(cases, most=60, turns=1_000)) == cases
    assert len(sample_cases(cases, most=60, turns=200)) == 4
    assert len(sample_cases(cases, most=60, turns=1)) == 1


def test_a_sample_is_neither_of_the_shortest_nor_of_the_longest_case() -> None:
    question = EvalQuestion(question_id="q", text="Who?", category=1, gold=("Ann",))
    cases = []
    for place, length in enumerate((10, 90, 50, 30, 70)):
        turn = Turn(turn_id="D1:1", speaker="Ann", text="m" * length, time=None)
        session = Session(session_id="s1", started_at=None, turns=(turn,))
        cases.append(EvalCase(f"c{place}", (session,), (question,) * 200))

    (chosen,) = sample_cases(cases, most=60, turns=5)
    assert (chosen.case_id, len(chosen.questions)) == ("c2", 60)
    # Over their questions, the cases have 70 characters, although half of them have at most 50.
    cases[1:2] = [replace(cases[1], questions=(question,) * 1200)]
    (chosen,) = sample_cases(cases, most=60, turns=5)
    assert chosen.case_id == "c4"
    # Of runs with six values of top_k, the first and the last ones are among four.
    assert evenly_spaced([1, 3, 5, 10, 20, 40], 4) == [1, 5, 10, 40]
