"""What the scripted endpoint replies: to each kind of prompt in the form that it asks for.

A real model keeps to a form, so a scripted one must: a choice is a label, a verdict is JSON, a form
comes back filled in. The words are drawn by the prompt's hash, so equal prompts get equal replies.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

WORDS = 3
"""Words of a reply to a prompt that asks for no form."""
QUOTED_WORDS = 8
"""Words of a turn that an extraction quotes."""

_CHOICES = re.compile(r"Reply with the labels? of .*?, (\w) to (\w)\b")
_NUMBERED = re.compile(r"(?m)^(\d+)\. (?:\[[^\]\n]*\] )?(?:([^:\n]{1,40}): )?(.+)$")
_OTHER_WORDS = re.compile(r'Write "(\w+)" for yes and "(\w+)" for no: one word\.$')
_FIELD = re.compile(r"- [^:\n]+:")

Draw = random.Random
Form = Callable[[str, Draw], str | None]
"""Replies to the text of a prompt; None if the prompt asks for another form."""


def scripted_reply(body: Mapping[str, Any]) -> str:
    """The reply to the body of a chat request, in the form that its prompt asks for.

    Where it asks for none: three words of the prompt.
    """
    contents = [str(message.get("content", "")) for message in body.get("messages", ())]
    text = "\n".join(contents)
    # Not by `hash`, which differs from process to process.
    draw = random.Random(hashlib.sha256(text.encode()).digest())

    for form in FORMS:
        reply = form(text, draw)
        if reply is not None:
            return reply

    words = re.findall(r"[A-Za-z]{4,}", text) or ["nothing"]
    return " ".join(draw.choice(words) for _ in range(WORDS))


def _label(text: str, draw: Draw) -> str | None:
    """A judge's verdict; about half of them are CORRECT."""
    if "CORRECT" not in text or "WRONG" not in text:
        return None

    return json.dumps({"reason": "scripted", "label": draw.choice(["CORRECT", "WRONG"])})


def _yes_or_no(text: str, draw: Draw) -> str | None:
    if 'the one word "yes"' not in text:
        return None

    # For an answer that holds a yes, a judge is asked for other words.
    asked = _OTHER_WORDS.search(text)
    return draw.choice(asked.groups() if asked else ("yes", "no"))


def _entities(text: str, _: Draw) -> str | None:
    """Names in a turn: its capitalised words."""
    if "JSON list of names" not in text:
        return None

    turn = text.rpartition("\nTurn:\n")[2]
    return json.dumps(list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+", turn))))


def _counts(text: str, draw: Draw) -> str | None:
    """What a judge of summaries counts."""
    if '"conveyed"' not in text:
        return None

    counts = {"fluent": 1, "conveyed": draw.randint(0, 4), "points": 4}
    return json.dumps({**counts, "supported": draw.randint(0, 3), "sentences": 3})


def _score(text: str, draw: Draw) -> str | None:
    """How far an answer meets one item of a rubric."""
    if '"score": 0.5' not in text:
        return None

    return json.dumps({"reason": "scripted", "score": draw.choice([0, 0.5, 1])})


def _points(text: str, draw: Draw) -> str | None:
    """What OpsEval's judge gives for each criterion."""
    if '"fluency": 0' not in text:
        return None

    return json.dumps({name: draw.randint(0, 3) for name in ("fluency", "accuracy", "evidence")})


def _choice(text: str, draw: Draw) -> str | None:
    """One of the labels, digits or letters, from the first to the last."""
    labels = _CHOICES.search(text)
    if labels is None:
        return None

    return chr(draw.randint(ord(labels[1]), ord(labels[2])))


def _artifacts(text: str, _: Draw) -> str | None:
    """CogCanvas' extraction: one note per turn, quoted from it; none at the second reading."""
    if '"quote"' not in text or "\nTurns:\n" not in text:
        return None

    known, turns = text.rpartition("\nTurns:\n")[::2]
    if not known.rstrip().endswith("(nothing)"):
        return "[]"

    notes = []
    for number, speaker, said in _NUMBERED.findall(turns):
        quote = " ".join(said.split()[:QUOTED_WORDS])
        note = {"type": "key_fact", "content": quote, "quote": quote, "chunk": int(number)}
        notes.append({**note, "date": "", "people": [speaker] if speaker else []})

    return json.dumps(notes)


def _form(text: str, draw: Draw) -> str | None:
    """The working memory: each field with a line of the session."""
    _, is_form, asked = text.rpartition("\nTemplate:\n")
    template, is_whole, rest = asked.partition("\n\nThe form as it stands:\n")
    if not is_form or not is_whole:
        return None

    said = rest.rpartition("\nThis session:\n")[2].strip().splitlines() or ["nothing"]
    lines = []
    for line in template.splitlines():
        lines.append(line)
        if _FIELD.match(line):
            lines.append(draw.choice(said))

    return "\n".join(lines)


def _memories(text: str, _: Draw) -> str | None:
    """mem0's extraction: the first words of the new message."""
    is_asked, new = text.rpartition("## New Messages\n")[1:]
    if not is_asked:
        return None

    words = " ".join(new.partition("\n##")[0].split()[: 3 * QUOTED_WORDS])
    return json.dumps({"memory": [{"id": "0", "text": words, "attributed_to": "user"}]})


FORMS: tuple[Form, ...] = (
    _artifacts,
    _form,
    _memories,
    _entities,
    _counts,
    _score,
    _points,
    _yes_or_no,
    _choice,
    _label,
)
"""Tried in this order; the first that fits replies."""
