"""Simple questions from dated sentences, to try drafting without a key."""

import json
import re
from datetime import date

from memeval.llm.contract import DraftPrompt
from memeval.llm.extractive.dates import moments
from memeval.llm.extractive.sentences import read_chunk
from memeval.records import Turn

_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w.,]*\w|>)")
"""A number that is not part of a word or of a placeholder, such as `<name-2>`."""
GAP = "…"
MIN_WORDS = 5
"""Minimum words of a sentence, so that enough remain besides its answer."""


def propose(prompt: DraftPrompt) -> str:
    """A question about a date or number in the turns, the chosen turn first; null if none fits."""
    turns: list[Turn] = []
    for session in prompt.sessions:
        turns += session.turns

    for turn in sorted(turns, key=lambda turn: turn.turn_id != prompt.about):
        said_on = turn.time and turn.time.date()
        for sentence in read_chunk(turn.text):
            if sentence.asks or len(sentence.words) < MIN_WORDS:
                continue

            text = sentence.text.strip().rstrip(".!")
            answered = _answer(prompt.kind, text, said_on)
            if answered is None:
                continue

            asked, answer, (start, end) = answered
            cut = " ".join(f"{text[:start]}{GAP}{text[end:]}".split())
            who = turn.speaker
            # A role, such as `user`, is not a name.
            if who.islower():
                who = f"the {who}"

            question = {
                "kind": prompt.kind,
                "question": f'{asked} fills the gap in what {who} said: "{cut}"?',
                "answer": answer,
                "evidence": [{"turn": turn.turn_id, "quote": text}],
            }
            return json.dumps(question)

    return json.dumps({"question": None})


def _answer(kind: str, text: str, said_on: date | None) -> tuple[str, str, tuple[int, int]] | None:
    """Question word for the date or the number of a sentence, the answer, and its position."""
    if kind == "temporal":
        if dates := moments(text, said_on):
            return "Which date", dates[0].text, (dates[0].start, dates[0].end)
    elif number := _NUMBER.search(text):
        return "Which number", number.group(), number.span()

    return None
