from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storm_oracle import prove, read

from memeval.datasets.alert_storm.generate import AlertStormSettings, generate
from memeval.datasets.alert_storm.topology import network
from memeval.datasets.chance import seeded_random
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.metrics.keywords import keyword_pass
from memeval.metrics.tokens import token_f1
from memeval.records import EvalCase, EvalQuestion

DIGEST = "import test_alert_storm; print(test_alert_storm.digest())"


def storms(**given: Any) -> list[EvalCase]:
    return list(build("alert_storm", Path("/"), **given).cases())


def digest() -> str:
    """Digest of everything that systems and judges get."""
    content = hashlib.sha256()
    for case in storms(n_cases=2):
        for turn in (turn for session in case.sessions for turn in session.turns):
            content.update(f"{turn.turn_id} {turn.speaker} {turn.time} {turn.text}\n".encode())
        for question in case.questions:
            row = (
                question.question_id,
                question.text,
                question.category,
                question.gold,
                question.evidence,
                str(question.asked_at),
            )
            content.update(f"{row}\n".encode())
    return content.hexdigest()


def test_the_default_storms_have_every_ability_and_template() -> None:
    found = storms(questions_per_case=1000)
    assert [case.case_id for case in found] == ["storm-1", "storm-2", "storm-3"]
    tasks = set().union(*(prove(case) for case in found))
    assert len(tasks) == 18
    assert {question.category for case in found for question in case.questions} == {
        "IE",
        "MR",
        "TR",
        "KU",
        "CR",
        "ABS",
    }


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    n_alerts=st.integers(10, 400),
    n_devices=st.integers(9, 60),
    n_root_causes=st.integers(1, 3),
    duplicate_rate=st.sampled_from([0.0, 0.2, 0.45]),
    flap_rate=st.sampled_from([0.0, 0.1, 0.4]),
    topology=st.sampled_from(["tree", "spine_leaf", "random"]),
    seed=st.integers(0, 50),
)
def test_every_gold_follows_from_the_shown_turns(**given: Any) -> None:
    try:
        AlertStormSettings(**given)
    except UserError as error:
        assert "too few" in error.message
        return
    (case,) = storms(**given, n_cases=1, questions_per_case=300)
    prove(case)
    lines = read(case)
    times = [line.time for line in lines]
    assert len(lines) == given["n_alerts"] and times == sorted(set(times))
    flapping = [line for line in lines if line.kind.startswith("link_")]
    assert len(flapping) == int(given["n_alerts"] * given["flap_rate"])
    distinct = {(line.device, line.kind, line.port) for line in lines if line not in flapping}
    assert len(lines) - len(flapping) - len(distinct) == int(
        given["n_alerts"] * given["duplicate_rate"]
    )


def test_flapping_link_alternates_between_down_and_up() -> None:
    (case,) = storms(n_alerts=500, flap_rate=0.5, n_cases=1)
    lines = [line for line in read(case) if line.kind.startswith("link_")]
    for device in {line.device for line in lines}:
        states = [line.kind for line in lines if line.device == device]
        assert states == (["link_down", "link_up"] * len(states))[: len(states)]


def test_alerts_spread_along_links_and_after_their_cause() -> None:
    settings_ = AlertStormSettings(n_alerts=300, topology="random")
    storm = generate(settings_, seeded_random("test"))
    assert storm.network is not None
    first: dict[str, Any] = {}
    for alert in storm.alerts:
        if alert.via:
            assert alert.via in storm.network.links[alert.device]
            assert alert.via in first and first[alert.via] < alert.time
        if alert.via or alert.severity == "critical":
            first.setdefault(alert.device, alert.time)
    assert len(set(storm.roots.values())) == 3
    assert not storm.silent & {alert.device for alert in storm.alerts}


HISTORY = {
    "together",
    "never_together",
    "together_on_device",
    "never_together_on_device",
    "root_cause_before",
    "never_root_cause_before",
    "root_causes_of",
    "storms_with",
}


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    n_alerts=st.integers(20, 120),
    n_devices=st.integers(9, 40),
    n_root_causes=st.integers(1, 3),
    storms_per_case=st.integers(2, 12),
    topology=st.sampled_from(["tree", "spine_leaf", "random"]),
    seed=st.integers(0, 50),
)
def test_every_gold_of_a_history_follows_from_the_shown_turns(**given: Any) -> None:
    (case,) = storms(**given, n_cases=1, questions_per_case=300)
    prove(case)
    lines = read(case)
    assert len(lines) == given["n_alerts"] * given["storms_per_case"]
    months = {line.time[:7] for line in lines}
    assert len(months) == given["storms_per_case"], "each storm is in a different month"


def test_history_asks_which_alerts_occurred_together_before() -> None:
    found = storms(storms_per_case=5, n_cases=6, n_alerts=100, questions_per_case=1000)
    assert set().union(*(prove(case) for case in found)) >= HISTORY
    asked = [question for case in found for question in case.questions]
    both = [one for one in asked if {"bgp_session_down", "ospf_adjacency_down"} <= set(words(one))]
    assert {one.answerable for one in both if one.facets["task"].endswith("together")} == {
        True,
        False,
    }
    # Sessions are all that a memory sees, so they must say which storm is the latest.
    assert all("latest storm" in case.sessions[0].turns[1].text for case in found)


def words(question: EvalQuestion) -> list[str]:
    return re.findall(r"\w+", question.text)


def test_storms_of_a_history_differ_but_share_one_network() -> None:
    (case,) = storms(storms_per_case=3, n_alerts=100, n_cases=1)
    linked = [turn.text for turn in case.sessions[0].turns if "is linked to" in turn.text]
    assert len(linked) == 40
    per_day: dict[str, set[str]] = {}
    for line in read(case):
        per_day.setdefault(line.time[:10], set()).add(f"{line.time[11:]} {line.device}")
    first, second, third = per_day.values()
    assert not first & second and not second & third


@pytest.mark.parametrize("kind", ["tree", "spine_leaf", "random"])
@pytest.mark.parametrize("count", [5, 40, 200])
def test_networks_are_connected_and_their_names_unmistakable(kind: Any, count: int) -> None:
    net = network(kind, count, seeded_random(1))
    assert len(set(net.devices)) == count
    assert len({len(name.rpartition("_")[2]) for name in net.devices}) == 1
    reached, waiting = set[str](), [net.devices[0]]
    while waiting:
        device = waiting.pop()
        reached.add(device)
        waiting += [near for near in net.links[device] if near not in reached]
        assert device not in net.links[device] and all(
            device in net.links[near] for near in net.links[device]
        )
    assert reached == set(net.devices)


@pytest.mark.slow
def test_equal_settings_give_equal_bytes_in_every_process() -> None:
    here = digest()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": str(Path(__file__).parent),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here
    assert here == "8bff3bff12efe2247183f3f345793a60efd201c546e1bb77bdae299b71968b4f"


def test_identity_depends_only_on_what_shapes_the_storms() -> None:
    def identity(**given: Any) -> str:
        return build("alert_storm", Path("/"), **given).open().sha256

    assert (
        identity() == identity(n_alerts=1000, questions_per_case=5) == identity(categories=("IE",))
    )
    others = [
        {"seed": 1},
        {"n_alerts": 999},
        {"topology": "random"},
        {"n_devices": 41},
        {"flap_rate": 0.2},
        {"n_cases": 2},
        {"n_root_causes": 2},
        {"storms_per_case": 2},
    ]
    assert len({identity(), *(identity(**other) for other in others)}) == 9


def test_number_of_cases_and_questions_changes_no_storm() -> None:
    assert storms(n_cases=1)[0] == storms(n_cases=3)[0]
    assert (
        storms(n_cases=1, questions_per_case=5)[0].questions == storms(n_cases=1)[0].questions[:5]
    )


def test_session_is_a_minute_and_its_id_reveals_nothing() -> None:
    (case,) = storms(n_cases=1)
    assert [session.session_id for session in case.sessions] == [
        f"s{number}" for number in range(1, len(case.sessions) + 1)
    ]
    for session in case.sessions[1:]:
        minutes = {
            turn.time.replace(second=0, microsecond=0) for turn in session.turns if turn.time
        }
        assert len(minutes) == 1
    starts = [session.started_at for session in case.sessions]
    assert starts == sorted(
        starts, key=lambda start: start or pytest.fail("a session without a date")
    )


def test_keyword_judge_confuses_no_gold_answers() -> None:
    for case in storms(questions_per_case=1000):
        devices = {line.device for line in read(case)}
        for question in case.questions:
            assert not any(keyword_pass("No information available", gold) for gold in question.gold)
            if question.gold and question.gold[0] in devices:
                assert [name for name in devices if keyword_pass(name, question.gold[0])] == [
                    question.gold[0]
                ]


def test_judges_of_words_confuse_no_days_of_a_history() -> None:
    for case in storms(storms_per_case=12, n_alerts=20, n_cases=5, questions_per_case=1000):
        dates = {
            question.gold
            for question in case.questions
            if question.facets["task"] in ("together", "together_on_device", "root_cause_before")
        }
        for golds, others in permutations(dates, 2):
            for gold, other in product(golds, others):
                assert not keyword_pass(other, gold)
                assert token_f1(other, gold) < 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_alerts": 9}, "dataset.n_alerts must be at least 10, not 9"),
        ({"n_root_causes": 0}, "dataset.n_root_causes must be at least 1, not 0"),
        ({"n_devices": 4}, "dataset.n_devices must be at least 5, not 4"),
        ({"n_cases": 0}, "dataset.n_cases must be at least 1, not 0"),
        ({"duplicate_rate": 0.6, "flap_rate": 0.4}, "less than 1 together"),
        ({"duplicate_rate": float("nan")}, "0 or more each"),
        (
            {"n_alerts": 10, "n_root_causes": 8},
            "leaves 7 lines after duplicates and flapping links, too few for 8 root causes",
        ),
        ({"questions_per_case": 0}, "at least 1"),
        ({"storms_per_case": 13}, "dataset.storms_per_case must be at most 12, not 13"),
        ({"storms_per_case": 12, "n_alerts": 100_000}, "are more than 1000000 alerts in a case"),
        ({"source": "log", "storms_per_case": 2}, "needs dataset.source=generated"),
        ({"topology": "ring"}, "unknown value of dataset.topology"),
        ({"path": "x.csv"}, "dataset.path needs dataset.source=log"),
        ({"source": "log", "n_alerts": 20}, "dataset.n_alerts needs dataset.source=generated"),
        ({"source": "log", "n_cases": 1}, "dataset.n_cases needs dataset.source=generated"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        build("alert_storm", Path("/"), **given)
    assert message in caught.value.message


@pytest.mark.slow
def test_every_gold_of_a_storm_of_100_000_alerts_is_proved() -> None:
    (case,) = storms(n_alerts=100_000, n_cases=1)
    assert sum(len(session.turns) for session in case.sessions[1:]) == 100_000
    prove(case)
