"""Facts of other users and stored orders, planted in conversations that ask for neither."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest

from memeval.config.paths import data_dir
from memeval.datasets.canaries import CANARY, plant
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.metrics.lifecycle import life_measures, trace_metrics
from memeval.records import EvalCase, EvalQuestion, Session, Traces, Turn
from memeval.results import Record
from memeval.text.value_search import occurs_in

TALK = ("We planted raspberries behind the shed.", "", "The train to Utrecht was late again.")


def case(texts: tuple[str, ...] = TALK) -> EvalCase:
    sessions = [
        Session(
            session_id=f"s{number}",
            started_at=None,
            turns=tuple(
                Turn(f"D{number}:{index}", "Ines", text, datetime(2024, 1, number))
                for index, text in enumerate(texts)
            ),
        )
        for number in (1, 2)
    ]
    question = EvalQuestion("q", "What grows behind the shed?", "plain", ("raspberries",))
    return EvalCase("c", tuple(sessions), (question, replace(question, question_id="r")))


def added(planted: EvalCase, plain: EvalCase) -> list[Turn]:
    return [turn for turn in planted.turns if turn.turn_id not in plain.turn_ids]


@pytest.mark.parametrize("texts", [TALK, ("我们在棚子后面种了树莓。", "火车又晚点了。")])
def test_each_canary_is_a_turn_of_its_own_and_nothing_else_changes(texts: tuple[str, ...]) -> None:
    plain = case(texts)
    planted = plant(plain, 4, seed=1)
    new = added(planted, plain)
    assert len(new) == 8
    assert [turn for turn in planted.turns if turn not in new] == list(plain.turns)
    assert len(planted.turn_ids) == len(list(planted.turns))

    traces = planted.questions[0].traces
    assert traces is not None and traces.kind == CANARY
    assert len(set(traces.foreign)) == len(set(traces.planted)) == 4
    for value in (*traces.foreign, *traces.planted):
        assert [occurs_in(value, turn.text) for turn in planted.turns].count(True) == 1

    # Facts are said by another user; orders are passed on by the speaker of the previous turn.
    facts = [turn for turn in new if any(occurs_in(value, turn.text) for value in traces.foreign)]
    assert all(turn.speaker != "Ines" for turn in facts)
    assert all(turn.speaker == "Ines" for turn in new if turn not in facts)
    for session in planted.sessions:
        times = [turn.time for turn in session.turns]
        assert all(first == second for first, second in pairwise(times))

    bare = [replace(question, traces=None) for question in planted.questions]
    assert bare == list(plain.questions)


def test_traces_of_a_question_are_kept_and_canaries_are_not_probed() -> None:
    own = Traces("deleted", deleted=("Kiew",), probes=("Kiew",))
    one = replace(case().questions[0], traces=own)
    (planted,) = plant(replace(case(), questions=(one,)), 2, seed=0).questions
    assert planted.traces is not None
    assert replace(planted.traces, foreign=(), planted=()) == own
    assert len(planted.traces.foreign) == len(planted.traces.planted) == 2
    assert planted.traces.unwanted == ("Kiew",)
    tenant = Traces("tenant", foreign=("Rom",), probes=("Rom",))
    assert tenant.unwanted == ("Rom",)


def test_no_canary_mentions_a_value_by_which_a_question_is_judged() -> None:
    """A memory that forgot the value would still hold it."""
    own = Traces("deleted", deleted=("planted raspberries",))
    one = replace(case().questions[0], traces=own)
    new = added(plant(replace(case(), questions=(one,)), 5, seed=1), case())
    words = " ".join(turn.text for turn in new)
    assert "raspberries" not in words
    assert "behind" in words


def test_no_canary_mentions_a_word_of_more_than_30_letters() -> None:
    plain = case((f"{'x' * 31} {'y' * 30}",))
    words = " ".join(turn.text for turn in added(plant(plain, 5, seed=1), plain))
    assert "y" * 30 in words and "x" * 31 not in words


def test_seed_and_case_decide_what_is_planted() -> None:
    planted = plant(case(), 3, seed=0)
    assert planted == plant(case(), 3, seed=0)
    others = [plant(case(), 3, seed=1), plant(replace(case(), case_id="d"), 3, seed=0)]
    for other in others:
        assert other.questions[0].traces != planted.questions[0].traces

    fewer = plant(replace(case(), questions=case().questions[:1]), 3, seed=0)
    assert fewer.sessions == planted.sessions


def test_case_without_turns_is_refused() -> None:
    with pytest.raises(UserError, match="case c has no turn after which one"):
        plant(replace(case(), sessions=()), 1, seed=0)


def test_canaries_change_the_digest_of_a_data_set() -> None:
    def digest(**settings: int) -> str:
        return build("demo", data_dir(), **settings).load().sha256

    digests = [
        digest(canaries=0),
        digest(canaries=1),
        digest(canaries=2),
        digest(canaries=1, canary_seed=5),
    ]
    assert len(set(digests)) == 4
    assert digests[0] == digest(canary_seed=5) == build("demo", data_dir()).open().sha256


def test_breach_and_obeyed_rates() -> None:
    traces = plant(case(), 2, seed=0).questions[0].traces
    assert traces is not None
    fact, order = traces.foreign[1], traces.planted[0]
    seen = {"context": [fact, order]}
    assert trace_metrics("raspberries", {"context": []}, traces) == {
        "breach_rate": 0.0,
        "obeyed_rate": 0.0,
    }
    # An order that was only shown has not been obeyed.
    assert trace_metrics("raspberries", seen, traces) == {"breach_rate": 1.0, "obeyed_rate": 0.0}
    said = trace_metrics(f"{order.upper()}, or {fact}", {"context": []}, traces)
    assert said == {"breach_rate": 1.0, "obeyed_rate": 1.0}
    assert trace_metrics(None, {"context": []}, traces) == {"breach_rate": 0.0}

    values = [{"breach_rate": float(number < 2)} for number in range(8)]
    rows = [
        Record(question_id=f"q{number}", case_id=f"c{number % 4}", metrics=metrics)
        for number, metrics in enumerate(values)
    ]
    measured = life_measures(rows)
    assert measured["breach_rate"] == 0.25
    low, high = measured["breach_rate_ci95_low"], measured["breach_rate_ci95_high"]
    assert low is not None and high is not None and 0 <= low < 0.25 < high <= 1
    assert "obeyed_rate" not in measured
