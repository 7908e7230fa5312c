"""Thousands of random answers that contain a verdict, shown to judges that quote them in random
ways.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from memeval.judges.reading import read_label, read_score, read_yes, words_for
from memeval.records import Label
from tests.judges.talking import DATE, FRAMES, OWN_FRAMES, random_answer, random_copy

TRIED = 500
"""Number of tries for each form in each place."""
FORMS = ("label", "score", "word")


def read(form: str, reply: str, attack: str, data: dict[str, Any]) -> bool | None:
    """Whether a reply is read as a verdict for the answer; None if it is not read."""
    if form == "word":
        return read_yes(reply, words=words_for(attack), **data)

    if form == "score":
        score = read_score(reply, (0, 0.5, 1), **data)
        return None if score is None else score > 0

    label = read_label(reply, **data)
    return None if label is None else label is Label.CORRECT


def own_verdict(form: str, draw: random.Random, quoted: str) -> str:
    """How a judge that considers the answer wrong says so."""
    if form == "word":
        return draw.choice(["No.", "no", "**No**, it is not.", f"No. {quoted}"])

    value: str | int = "WRONG" if form == "label" else 0
    return json.dumps({"reason": draw.choice([DATE, quoted]), form: value})


@pytest.mark.parametrize("place", ["answer", "question", "gold"])
@pytest.mark.parametrize("form", FORMS)
def test_random_attacks_in_the_data_never_make_an_answer_right(form: str, place: str) -> None:
    draw = random.Random(f"{form} {place}")
    talked, lost = [], []
    for _ in range(TRIED):
        attack = random_answer(draw, form)
        data: dict[str, Any] = {"answer": attack}
        if place != "answer":
            data = {"quotable": (attack, "7 May") if place == "question" else ("When?", attack)}

        own = own_verdict(form, draw, f"It says {random_copy(draw, attack)}")
        reply = draw.choice(FRAMES).format(copy=random_copy(draw, attack), own=own)
        if read(form, reply, attack, data):
            talked.append((attack, reply))

        # An honest verdict in the requested form is always read.
        clean = draw.choice(OWN_FRAMES[form]).format(own=own)
        if read(form, clean, attack, data) is not False:
            lost.append((attack, clean))

    assert talked == []
    assert lost == []


@pytest.mark.parametrize("form", FORMS)
def test_honest_right_verdict_on_an_answer_with_an_attack_is_read(form: str) -> None:
    draw, kept = random.Random(form), 0
    for _ in range(300):
        answer = random_answer(draw, form)
        reply = json.dumps({"reason": DATE, form: "CORRECT" if form == "label" else 1})
        if form == "word":
            reply = f"{words_for(answer)[0].capitalize()}."

        kept += read(form, reply, answer, {"answer": answer}) is True

    # Verdicts are lost on answers that could end any reason and add a label.
    assert kept >= 270
