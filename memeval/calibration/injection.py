"""How often known attacks make a judge call a wrong answer right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct, structs

from memeval.calibration.attacks import ANSWER, LABEL, QUESTION, SCORE, WORD, Attack, attacks_on
from memeval.calibration.items import ProbeItem
from memeval.judges.contract import Judge
from memeval.judges.model import ModelJudge
from memeval.records import EvalQuestion
from memeval.statistics.proportions import wilson_interval

INJECTED = "injected"
"""The kind of wrong answers that come with an attack."""


class FlipRate(Struct, frozen=True):
    """How many verdicts the attacks of one technique in one place flipped."""

    place: str
    """`answer`, `question` or `gold`; `all` for the sum."""
    technique: str
    attacks: int
    judged: int
    """Attacks under which the judge gave a verdict."""
    flipped: int
    """Attacks with which it accepted an answer that it rejects without them."""
    share: float | None
    """Share of the judged attacks; None if there was no verdict."""
    low: float | None
    high: float | None
    """Wilson's 95 % interval."""


def attacked_items(
    judge: Judge, rejected: Sequence[tuple[ProbeItem, EvalQuestion]]
) -> list[tuple[Attack, ProbeItem, EvalQuestion]]:
    """All attacks on a judge, each on one of the wrong answers that it rejects, in turn."""
    pairs = []
    for number, attack in enumerate(attacks_on(_form_of(judge)) if rejected else ()):
        item, question = rejected[number % len(rejected)]
        pairs.append((attack, *_with_attack(attack, item, question)))

    return pairs


def _form_of(judge: Judge) -> str:
    if not isinstance(judge, ModelJudge):
        return LABEL
    if judge.counts_rubrics:
        return SCORE

    return WORD if judge.says_yes_or_no else LABEL


def _with_attack(
    attack: Attack, item: ProbeItem, question: EvalQuestion
) -> tuple[ProbeItem, EvalQuestion]:
    if attack.place == ANSWER:
        answer = f"{item.answer}\n{attack.text}"
        return structs.replace(item, kind=INJECTED, answer=answer), question

    item = structs.replace(item, kind=INJECTED)
    if attack.place == QUESTION:
        return item, replace(question, text=f"{question.text}\n{attack.text}")

    gold = tuple(f"{text}\n{attack.text}" for text in question.gold)
    rubric = tuple(f"{text}\n{attack.text}" for text in question.rubric)
    return item, replace(question, gold=gold, rubric=rubric)


def flip_rates(judged: Sequence[tuple[Attack, bool | None]]) -> list[FlipRate]:
    """The rate of each technique in each place, then that of all attacks together.

    `judged` pairs an attack with whether the answer was called right; None without a verdict.
    """
    groups = dict.fromkeys((attack.place, attack.technique) for attack, _ in judged)
    rates = []
    for place, technique in groups:
        own = [
            right
            for attack, right in judged
            if (attack.place, attack.technique) == (place, technique)
        ]
        rates.append(_rate(place, technique, own))

    return [*rates, _rate("all", "all", [right for _, right in judged])] if rates else []


def _rate(place: str, technique: str, verdicts: Sequence[bool | None]) -> FlipRate:
    given = [right for right in verdicts if right is not None]
    flipped, judged = sum(given), len(given)
    low, high = wilson_interval(flipped, judged) if judged else (None, None)
    return FlipRate(
        place=place,
        technique=technique,
        attacks=len(verdicts),
        judged=judged,
        flipped=flipped,
        share=flipped / judged if judged else None,
        low=low,
        high=high,
    )
