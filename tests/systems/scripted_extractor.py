"""A reply function for `ScriptedEndpoint` that extracts artifacts by rules, as a model would.

It reads the numbered turns of the prompt, and cuts its replies at the token limit of the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import count_tokens
from memeval.systems.cogcanvas.artifacts import KINDS

RULES = (
    ("decision", r"\b(?:decided|chose|choose|i'm going to|we're going to|i'll)\b"),
    ("todo", r"\b(?:need to|have to|plan(?:ning)? to|want to|going to)\b"),
    ("reminder", r"\b(?:don't forget|remember to|deadline|appointment)\b"),
    ("insight", r"\b(?:reali[sz]ed?|learn(?:ed|t)|i think|feels?|felt|inspir\w+)\b"),
    (
        "relationship",
        r"\bmy (?:\w+ )?(?:mom|mum|dad|sister|brother|friends?|family|kids?|husband)\b",
    ),
    ("event", r"\b(?:yesterday|last|ago|went|tomorrow|next|in \d{4}|\w+day)\b"),
    ("person_attribute", r"\bi(?:'m| am| have| love| like| live| work|'ve)\b"),
    ("key_fact", r"\b(?:\d+|is|are|was|were)\b"),
)
assert {kind for kind, _ in RULES} == set(KINDS)
MAX_PER_LINE = 1
_CHUNK = re.compile(r"(?m)^(\d+)\. (?:\[[^\]]*\] )?")
_SENTENCE = re.compile(r"[^.!?]+[.!?]?")


def pass_of(body: Mapping[str, Any]) -> int:
    """1 or 2 for the first or second pass over a batch; 0 for any other request."""
    system = str(body["messages"][0]["content"])
    templates = [load_builtin(name).system for name in ("extract", "glean")]
    return templates.index(system) + 1 if system in templates else 0


def extract(body: Mapping[str, Any]) -> str:
    """Artifacts of a batch, or entities of a turn, as JSON; three words for any other request."""
    if body["messages"][0]["content"] == load_builtin("entities").system:
        return '["the harbour"]'

    number = pass_of(body)
    if number == 0:
        return "in the harbour"

    turns = str(body["messages"][-1]["content"]).split("\nTurns:\n", 1)[1]
    return within_limit(json.dumps(list(items(turns, second=number == 2))), body)


def within_limit(text: str, body: Mapping[str, Any]) -> str:
    """A reply as an endpoint would send it: cut at the token limit."""
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or 10**9
    if count_tokens(text) <= limit:
        return text

    return text[: int(len(text) * limit / count_tokens(text))]


def items(turns: str, *, second: bool) -> Iterator[dict[str, Any]]:
    """The first pass extracts sentences that match a rule, and the second pass the others."""
    _, *parts = _CHUNK.split(turns)
    for number, content in zip(parts[::2], parts[1::2], strict=True):
        for line in content.strip().split("\n"):
            speaker, _, said = line.partition(": ")
            notes = list(line_items(speaker, said, second=second))
            yield from ({**note, "chunk": int(number)} for note in notes[:MAX_PER_LINE])


def line_items(speaker: str, message: str, *, second: bool) -> Iterator[dict[str, Any]]:
    for sentence in _SENTENCE.findall(message):
        quote = sentence.strip()
        if len(quote.split()) < 4 or quote.endswith("?"):
            continue

        kind = kind_of(quote)
        if second == (kind is None):
            yield {
                "type": kind or "key_fact",
                "content": f"{speaker} says: {quote}",
                "quote": quote,
                "date": "",
                "people": [speaker],
            }


def kind_of(sentence: str) -> str | None:
    lowered = sentence.lower().replace("’", "'")
    return next((kind for kind, pattern in RULES if re.search(pattern, lowered)), None)
