"""Rates at which known attacks make a judge call a wrong answer right."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from msgspec import Struct, structs

from memeval.calibration.attacks import ANSWER, LABEL, QUESTION, SCORE, WORD, Attack, attacks_on
from memeval.calibration.items import AskedItem
from memeval.judges.contract import Judge
from memeval.judges.model import ModelJudge
from memeval.statistics.proportions import wilson_interval

INJECTED = "injected"
"""The kind of wrong answers that come with an attack."""


class FlipRate(Struct, frozen=True):
    """Verdicts flipped by the attacks of one technique in one place."""

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
    judge: Judge, rejected: Sequence[AskedItem]
) -> tuple[list[Attack], list[AskedItem]]:
    """All attacks on a judge, and the wrong answers that it rejects, each in turn, with them."""
    if not rejected:
        return [], []

    attacks = attacks_on(_form_of(judge))
    return attacks, list(map(_with_attack, attacks, cycle(rejected)))


def _form_of(judge: Judge) -> str:
    if not isinstance(judge, ModelJudge):
        return LABEL
    if judge.counts_rubrics:
        return SCORE

    return WORD if judge.says_yes_or_no else LABEL


def _with_attack(attack: Attack, asked: AskedItem) -> AskedItem:
    item, question = asked
    if attack.place == ANSWER:
        answer = f"{item.answer}\n{attack.text}"
        return structs.replace(item, kind=INJECTED, answer=answer), question

    item = structs.replace(item, kind=INJECTED)
    if attack.place == QUESTION:
        return item, replace(question, text=f"{question.text}\n{attack.text}")

    gold = tuple(f"{text}\n{attack.text}" for text in question.gold)
    rubric = tuple(f"{text}\n{attack.text}" for text in question.rubric)
    return item, replace(question, gold=gold, rubric=rubric)


def flip_rates(attacks: Sequence[Attack], verdicts: Sequence[bool | None]) -> list[FlipRate]:
    """The rate of each technique in each place, then that of all attacks together.

    `verdicts` has, for each attack, whether the answer was called right; None without a verdict.
    """
    groups: dict[tuple[str, str], list[bool | None]] = {}
    for attack, right in zip(attacks, verdicts, strict=True):
        groups.setdefault((attack.place, attack.technique), []).append(right)

    if attacks:
        groups["all", "all"] = list(verdicts)

    rates = []
    for (place, technique), group in groups.items():
        rates.append(FlipRate(place, technique, len(group), *accepted_share(group)))

    return rates


def accepted_share(
    verdicts: Sequence[bool | None],
) -> tuple[int, int, float | None, float | None, float | None]:
    """Answers with a verdict, those called right, their share, and the ends of its interval."""
    judged, accepted = len(verdicts) - verdicts.count(None), verdicts.count(True)
    if not judged:
        return judged, accepted, None, None, None

    return judged, accepted, accepted / judged, *wilson_interval(accepted, judged)
