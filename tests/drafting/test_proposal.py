"""The checks of a proposed question by code."""

from __future__ import annotations

import pytest

from memeval.drafting.proposal import Proposal, Quote, Reason, check_question


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
def test_a_pronoun_needs_a_name_unless_it_refers_to_nothing(
    question: str, reason: Reason | None
) -> None:
    evidence = (Quote(turn_id="t0", text="said"),)
    proposal = Proposal(
        kind="temporal", question=question, golds=("six months",), evidence=evidence
    )
    assert check_question(proposal) == reason
