"""Checks of a proposed question in code, without a model."""

from __future__ import annotations

import pytest

from memeval.drafting.proposal import (
    Proposal,
    Quote,
    Reason,
    check_kind,
    check_question,
    check_quotes,
)
from memeval.records import Turn

TURNS = {
    name: Turn(turn_id=name, speaker="user", text=text, time=None)
    for name, text in (("t0", "My flat is number 12 - for now."), ("t1", "I moved to 14."))
}


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("How long did it take for Jon to open his studio?", None),
        ("How long has it been since Andrew adopted his first pet?", None),
        ("When was it that Ben moved?", None),
        ("When was it opened?", Reason.PRONOUN),
        ("Has it been painted by Ben?", Reason.PRONOUN),
        ("What did she bring to Ben?", Reason.PRONOUN),
    ],
)
def test_pronoun_needs_a_name_unless_it_is_impersonal(question: str, reason: Reason | None) -> None:
    evidence = (Quote(turn_id="t0", text="said"),)
    proposal = Proposal(
        kind="temporal", question=question, golds=("six months",), evidence=evidence
    )
    assert check_question(proposal) == reason


def proposed(kind: str, *evidence: Quote, **more: object) -> Proposal:
    golds = () if kind == "unanswerable" else ("14",)
    question = "Which number has the flat of Ben?"
    return Proposal(kind=kind, question=question, golds=golds, evidence=evidence, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("MY  flat is number", None),
        ("number 13", Reason.NOT_QUOTED),
        ("-", Reason.NOT_QUOTED),
        ("\u200b", Reason.NOT_QUOTED),
    ],
)
def test_quote_must_be_in_its_turn_and_contain_a_word(words: str, reason: Reason | None) -> None:
    assert check_quotes(proposed("single_hop", Quote("t0", words)), TURNS) == reason


def test_update_needs_an_older_value_and_unanswerable_needs_a_near_fact() -> None:
    now, older = Quote("t1", "I moved to 14."), Quote("t0", "number 12")
    assert check_kind(proposed("update", now, stale=(("12", older),)), TURNS) is None
    for stale in ((), (("13", older),), (("14", now),)):
        assert check_kind(proposed("update", now, stale=stale), TURNS) == Reason.NO_OLDER

    assert check_kind(proposed("unanswerable", older), TURNS) is None
    for evidence in ((), (now,)):
        assert check_kind(proposed("unanswerable", *evidence), TURNS) == Reason.NO_NEAR
