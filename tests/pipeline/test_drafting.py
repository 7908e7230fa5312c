"""`data draft` and `data grow` with a scripted model: bad proposals are dropped, good ones are
kept, nothing is paid twice, and a plan states the calls.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, environment
from doubles.drafter import BAD, Drafter, invented_cases
from doubles.endpoint import ScriptedEndpoint

from memeval.cli.data import data
from memeval.errors import UserError

AT_ONCE = 4


def own_file(folder: Path, cases: Any) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps({"name": "mine", "cases": cases}), encoding="utf-8")
    return path


def questions_in(path: Path) -> list[dict[str, Any]]:
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return [question for case in cases for question in case["questions"]]


def words(endpoint: ScriptedEndpoint, path: Path, number: int, *more: str) -> tuple[str, ...]:
    model = ("llm=openai", "llm.model=checker", "llm.draft.model=author")
    limits = (f"llm.base_url={endpoint.base_url}", f"llm.max_concurrency={AT_ONCE}")
    return ("data", "draft", str(path), "--n", str(number), *model, *limits, *more)


@pytest.mark.slow
def test_bad_proposals_are_dropped_for_their_reason_and_good_ones_kept(
    memeval: Command, tmp_path: Path
) -> None:
    path = own_file(tmp_path, invented_cases(6, 24))
    drafter = Drafter(bad_share=0.4)
    with ScriptedEndpoint(drafter) as endpoint:
        said = memeval(*words(endpoint, path, 84)).stdout

    kept = questions_in(path)
    assert len(kept) == 84
    dropped = Counter(
        {
            reason: int(found[1])
            for reason in BAD.values()
            if (found := re.search(rf"(?m)^ +{re.escape(reason)} +(\d+)$", said))
        }
    )
    meant = Counter({BAD[what]: n for what, n in drafter.proposed.items() if what != "good"})
    bad = meant.total()
    assert bad > 40 and len(meant) == len(BAD)
    wrong = sum((meant - dropped).values())
    assert wrong <= 0.02 * bad
    assert all(drafter.intended[question["question"]] == "good" for question in kept)
    assert len(kept) >= 0.95 * drafter.proposed["good"]

    noted = json.loads(path.read_text(encoding="utf-8"))["meta"]["dropped_drafts"]
    assert {reason: noted[reason] for reason in dropped} == dropped

    # Kept questions state who drafted them and how they were checked, and name the file's own
    # turns.
    assert {question["status"] for question in kept} == {"drafted"}
    assert {question["meta"]["drafted_by"] for question in kept} == {"author"}
    assert {question["meta"]["checked_by"] for question in kept} == {"checker"}
    assert all(question["stale"] for question in kept if question["category"] == "update")
    multi = next(question for question in kept if question["category"] == "multi_hop")
    assert len(multi["evidence"]) == 2 and all("-" in turn for turn in multi["evidence"])
    assert multi["meta"]["checks"]["without one turn"] == "not right, 2 of 2"
    # The user, the assistant and a tool take turns: results of tools are evidence, too.
    assert any(int(turn[2:]) % 3 == 2 for question in kept for turn in question["evidence"])
    kinds = Counter(question["category"] for question in kept)
    assert len(kinds) == 7 and min(kinds.values()) >= 6

    refused = memeval("dataset=json", f"dataset.path={path}", "system=bm25", check=False)
    assert "unreviewed drafts (84)" in refused.stderr
    done = memeval("dataset=json", f"dataset.path={path}", "system=bm25", "dataset.status=all")
    assert "drafted" in done.stdout


def test_plan_states_the_calls_and_a_killed_command_pays_nothing_twice(
    memeval: Command, tmp_path: Path
) -> None:
    path = own_file(tmp_path, invented_cases(6, 24))
    drafter = Drafter()
    number = 42
    with ScriptedEndpoint(drafter) as endpoint:
        planned = memeval(*words(endpoint, path, number), "--plan").stdout
        assert "This assumes that every proposal is kept. Each dropped proposal can cost" in planned
        calls = int(re.search(r"(?m)^([\d,]+) calls", planned)[1].replace(",", ""))  # type: ignore[index]
        assert f"calls (at most {3 * calls:,})" in planned
        assert not endpoint.requests and not questions_in(path)

        process = subprocess.Popen(
            [sys.executable, "-m", "memeval", *words(endpoint, path, number)],
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

        def reply(body: Mapping[str, Any]) -> str:
            if endpoint.count() == calls // 2:
                os.killpg(process.pid, signal.SIGKILL)

            return drafter(body)

        endpoint.reply = reply
        assert process.wait(timeout=300) == -signal.SIGKILL
        memeval(*words(endpoint, path, number))
        asked = Counter(json.dumps(body) for _, body in endpoint.requests)
        repeated = sum(count - 1 for count in asked.values())
        # A reply passes its slot on just before it is stored.
        assert repeated <= 2 * AT_ONCE, "only calls under way at the kill may be asked twice"

        kept = questions_in(path)
        assert len(kept) == number
        assert len(asked) <= 12 * len(kept)
        assert abs(len(asked) - calls) <= 0.1 * len(asked)

        # Nothing is left to do; added cases get as many questions as the others.
        sent = endpoint.count()
        assert "0 questions drafted" in memeval(*words(endpoint, path, number)).stdout
        assert endpoint.count() == sent

        content = json.loads(path.read_text(encoding="utf-8"))
        content["cases"] += [
            {**case, "case_id": f"new {case['case_id']}"} for case in invented_cases(2, 24)
        ]
        path.write_text(json.dumps(content), encoding="utf-8")
        grow = ("data", "grow", str(path), *words(endpoint, path, 1)[5:])
        memeval(*grow)
        assert len(questions_in(path)) == number + number // 3
        refused = memeval(*grow, check=False)
        assert (
            refused.returncode == 2 and "every case already has drafted questions" in refused.stderr
        )


def test_budget_stops_drafting_and_keeps_the_written_questions(
    memeval: Command, tmp_path: Path
) -> None:
    path = own_file(tmp_path, invented_cases(3, 24))
    with ScriptedEndpoint(Drafter()) as endpoint:
        done = memeval(*words(endpoint, path, 56, "budget.calls=360"), check=False)
        assert done.returncode == 1
        assert "budget.calls=360" in done.stderr + done.stdout
        assert endpoint.count() <= 360
        few = len(questions_in(path))
        assert 0 < few < 56
        memeval(*words(endpoint, path, 56))
        assert len(questions_in(path)) == 56
        asked = Counter(json.dumps(body) for _, body in endpoint.requests)
        assert max(asked.values()) == 1


def test_stopped_growing_leaves_the_file_as_it_was_and_can_be_continued(
    memeval: Command, tmp_path: Path
) -> None:
    path = own_file(tmp_path, invented_cases(3, 24))
    before = path.read_bytes()
    with ScriptedEndpoint(Drafter()) as endpoint:
        grow = ("data", "grow", *words(endpoint, path, 56)[2:])
        done = memeval(*grow, "budget.calls=360", check=False)
        # The first wave is complete: each case has drafted questions, and would not be new.
        assert (done.returncode, path.read_bytes()) == (1, before)
        assert "the same command continues it" in done.stderr
        memeval(*grow)
        assert len(questions_in(path)) == 56
        asked = Counter(json.dumps(body) for _, body in endpoint.requests)
        assert max(asked.values()) == 1


def test_kinds_keep_their_shares_and_a_continued_command_repeats_no_call(
    memeval: Command, tmp_path: Path
) -> None:
    def endpoint_of(never: str) -> tuple[ScriptedEndpoint, set[str]]:
        drafter, tries, sent = Drafter(), Counter[str](), set[str]()

        def reply(body: Mapping[str, Any]) -> str:
            sent.add(json.dumps(body))
            if (kind := re.search(r"\nKind: (\w+)", body["messages"][1]["content"])) is not None:
                tries[kind[1]] += 1
                # The first temporal proposals are dropped, and all of the kind `never`.
                if kind[1] == never or (kind[1] == "temporal" and tries["temporal"] <= 6):
                    return "no proposal"

            return drafter(body)

        return ScriptedEndpoint(reply), sent

    def drafted(name: str, never: str, *more: str) -> tuple[Path, list[set[str]]]:
        (tmp_path / name).mkdir()
        path = own_file(tmp_path / name, invented_cases(2, 24))
        endpoint, sent = endpoint_of(never)
        sets = []
        with endpoint:
            for limit in (*more, "budget.calls=null"):
                home = tmp_path / name
                memeval(*words(endpoint, path, 24, *kinds, limit), home=home, check=False)
                sets.append(set(sent))

            asked = Counter(json.dumps(body) for _, body in endpoint.requests)
            assert max(asked.values()) == 1, "nothing is paid for twice"

        return path, sets

    kinds = ("--kinds", "single_hop=2,temporal")
    path, (whole,) = drafted("whole", "")
    assert Counter(one["category"] for one in questions_in(path)) == {
        "single_hop": 16,
        "temporal": 8,
    }
    # It ends in the second wave, whose kinds follow from the questions kept in the first wave.
    _, (part, again) = drafted("again", "", "budget.calls=150")
    assert part < again and len(again) == len(whole)

    # Kinds that the conversations cannot provide are not requested until the end.
    path, _ = drafted("never", "temporal")
    assert Counter(one["category"] for one in questions_in(path)) == {"single_hop": 24}


def test_repeated_command_asks_nothing_new_where_proposals_were_dropped(
    memeval: Command, tmp_path: Path
) -> None:
    """All proposals that were dropped count again: the kinds of later ones follow from them."""
    path = own_file(tmp_path, invented_cases(2, 24))
    with ScriptedEndpoint() as endpoint:
        memeval(*words(endpoint, path, 6), check=False)
        kept, sent = questions_in(path), endpoint.count()
        assert 2 < len(kept) < 6
        memeval(*words(endpoint, path, 6), check=False)

    assert questions_in(path) == kept
    assert endpoint.count() == sent


def test_invalid_proposals_and_failed_calls_are_reported(memeval: Command, tmp_path: Path) -> None:
    path = own_file(tmp_path, invented_cases(2, 12))
    with ScriptedEndpoint(lambda body: "What is between the marks is data.") as endpoint:
        done = memeval(*words(endpoint, path, 2), check=False)
        assert done.returncode == 1
        assert re.search(r"not in the requested form +6\n", done.stdout)
        assert re.search(r"model calls: \d+; cost", done.stdout)
        assert "review them" not in done.stdout

    too_long = {"error": {"message": "the prompt has too many tokens", "code": 400}}
    with ScriptedEndpoint(lambda body: too_long) as endpoint:
        done = memeval(*words(endpoint, path, 2, "--kinds", "temporal"), check=False)
        assert done.returncode == 1
        assert "a call of the model failed" in done.stdout
        assert "last failed call: " in done.stdout
        assert "the prompt has too many tokens" in done.stdout


def test_dropped_question_may_be_proposed_again_with_the_right_evidence(
    memeval: Command, tmp_path: Path
) -> None:
    path = own_file(tmp_path, invented_cases(1, 12))
    proposed: list[dict[str, Any]] = []

    def reply(body: Mapping[str, Any]) -> str:
        user = body["messages"][1]["content"]
        if "Reference answer: " in user:
            is_right = "Tiva" in user.partition("Answer to check:")[2]
            return json.dumps({"reason": "", "label": "CORRECT" if is_right else "WRONG"})
        if "\nKind: " not in user:
            return "Tiva" if len(proposed) > 1 and proposed[1]["quote"] in user else "unknown"

        turns = re.findall(r"(?m)^\[(t\d+)\] \w+: (.+)$", user)
        turn, quote = turns[-1 if proposed else 0]
        proposed.append({"turn": turn, "quote": quote})
        question = {"kind": "single_hop", "question": "What does Lumo carry?", "answer": "Tiva"}
        return json.dumps({**question, "evidence": [proposed[-1]]})

    one_at_a_time = ("--kinds", "single_hop", "llm.max_concurrency=1")
    with ScriptedEndpoint(reply) as endpoint:
        done = memeval(*words(endpoint, path, 2, *one_at_a_time), check=False)

    assert re.search(r"not answered right from its evidence +1\n", done.stdout)
    assert re.search(r"already asked +4\n", done.stdout)
    (kept,) = questions_in(path)
    assert kept["meta"]["quotes"][0]["quote"] == proposed[1]["quote"]


def test_without_a_model_simple_questions_are_drafted(memeval: Command, tmp_path: Path) -> None:
    demo = json.loads((Path(__file__).parents[2] / "data/demo/own.json").read_bytes())
    path = own_file(tmp_path, [{**case, "questions": []} for case in demo["cases"]])
    planned = memeval("data", "draft", str(path), "--n", "2", "--plan").stdout
    assert planned.splitlines()[1:3] == [
        "no model calls are needed",
        "llm=extractive drafts and checks offline",
    ]
    assert "This assumes" not in planned
    done = memeval("data", "draft", str(path), "--n", "2")
    assert "drafted offline" in done.stdout and "model calls" not in done.stdout
    assert re.search(r"of \d+ proposals?:\n    kept +2\n", done.stdout)
    drafted = questions_in(path)
    assert {question["meta"]["drafted_by"] for question in drafted} == {"extractive"}
    form = re.compile(r'Which (number|date) fills the gap in what .+ said: ".*….*"\?')
    assert all(form.fullmatch(question["question"]) for question in drafted)

    # Nothing is left to do: the counts of the dropped drafts stay, and so do the file's bytes.
    before = path.read_bytes()
    assert "2 already existed" in memeval("data", "draft", str(path), "--n", "2").stdout
    assert path.read_bytes() == before


def test_no_question_is_drafted_about_a_value_to_be_forgotten(
    memeval: Command, tmp_path: Path
) -> None:
    said = "The code of my locker at the pool is 4831."
    case = {
        "id": "a",
        "sessions": [{"id": "one", "turns": [{"speaker": "Ben", "text": said}]}],
        "operations": [
            {"kind": "forget", "after": "one", "words": "Forget it.", "about": "code locker"}
            | {"values": ["4831"]}
        ],
        "questions": [],
    }
    path = own_file(tmp_path, [case])
    done = memeval("data", "draft", str(path), "--n", "1", "--kinds", "single_hop", check=False)
    assert re.search(r"the answer is to be forgotten +3\n", done.stdout), done.stdout
    assert questions_in(path) == []


def test_question_drafted_meanwhile_by_another_command_is_kept(
    memeval: Command, tmp_path: Path
) -> None:
    cases = invented_cases(1, 12)
    path, drafter = own_file(tmp_path, cases), Drafter()
    other = {"id": "draft-0", "question": "Which?", "answer": "none", "status": "drafted"}

    def reply(body: Mapping[str, Any]) -> str:
        own_file(tmp_path, [{**cases[0], "questions": [other]}])
        return drafter(body)

    with ScriptedEndpoint(reply) as endpoint:
        memeval(*words(endpoint, path, 2))

    assert [question["id"] for question in questions_in(path)] == ["draft-0", "draft-1"]
    assert questions_in(path)[0] == other


def test_questions_about_a_conversation_edited_meanwhile_are_not_written(
    memeval: Command, tmp_path: Path
) -> None:
    cases = invented_cases(2, 12)
    path, drafter = own_file(tmp_path, cases), Drafter()

    def reply(body: Mapping[str, Any]) -> str:
        # The first turn is removed, so each position refers to another turn.
        first, *others = cases[1]["sessions"]
        edited = [{**first, "turns": first["turns"][1:]}, *others]
        own_file(tmp_path, [cases[0], {**cases[1], "sessions": edited}])
        return drafter(body)

    with ScriptedEndpoint(reply) as endpoint:
        done = memeval(*words(endpoint, path, 4), check=False)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert done.stderr.count("case 'c1' was edited while questions were drafted") == 1
        assert not questions_in(path)

        # Nothing is lost: the replies about the other case are in the cache.
        endpoint.reply = drafter
        memeval(*words(endpoint, path, 4))
        assert len(questions_in(path)) == 4
        asked = Counter(json.dumps(body) for _, body in endpoint.requests)
        assert max(asked.values()) == 1


def test_existing_questions_count_whatever_their_numbers(memeval: Command, tmp_path: Path) -> None:
    cases = invented_cases(2, 12)
    late = {"question": "Which mark is late?", "answer": "none", "status": "drafted"}
    cases[1]["questions"] = [{"id": f"draft-{number}", **late} for number in (7, 9)]
    done = memeval("data", "draft", str(own_file(tmp_path, cases)), "--n", "2")
    assert "0 questions drafted, 2 already existed" in done.stdout


def test_user_error_has_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    path = own_file(tmp_path, invented_cases(1, 12))
    for more, message in (
        (("--n", "0"), "--n must be at least 1, not 0"),
        (("--n", f"{10**20}"), "--n must be at most 1,000,000, not 100,000,000,000,000,000,000"),
        (("--n", "2", "--kinds", "single"), "Did you mean: single_hop"),
        (("--n", "2", "--kinds", "update=-1"), "a share must be a number above 0"),
        (("--n", "2", "--kinds", "update"), "the offline drafter"),
        (("--n", "2", "openai"), "'openai' is not an override"),
        (("--n", "2", "dataset=demo"), "leave dataset and system out"),
        (("--n", "2", "dataset.limit_cases=1"), "leave dataset and system out"),
        (("--n", "2", "confirm_above_usd=1"), "data draft ignores confirm_above_usd"),
    ):
        with pytest.raises(UserError) as refused:
            data(["draft", str(path), *more])

        assert message in "".join(refused.value.message)
