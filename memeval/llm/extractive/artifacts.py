"""Extraction without a model: sentences become artifacts, typed by their words."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from memeval.llm.extractive.dates import moments
from memeval.llm.extractive.sentences import Sentence, read_chunk
from memeval.llm.extractive.words import NUMBERS, TEMPORAL
from memeval.llm.memory_prompts import ExtractPrompt

LEAST_TERMS = 2
"""Minimum content words of a sentence that is kept."""

_TYPES = tomllib.loads(Path(__file__).with_name("artifacts.toml").read_text(encoding="utf-8"))
_RULES = {kind: re.compile(rf"\b(?:{'|'.join(words)})\b") for kind, words in _TYPES.items()}
"""The words that show each type, in the order in which types are tried."""
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")


def extract(prompt: ExtractPrompt) -> str:
    """Artifacts as a JSON list: sentences of a clear type; in the second pass, all others."""
    items = []
    asked = ""
    is_second = bool(prompt.quotes)

    for number, chunk in enumerate(prompt.chunks, start=1):
        sentences = read_chunk(chunk)
        for sentence, kind in _report(sentences, second=is_second):
            if not any(sentence.text in quote for quote in prompt.quotes):
                # A reply often makes no sense without the question before it, so that question
                # becomes its content. In the second pass the content is the sentence itself,
                # because contents that share most words count as one.
                question = "" if is_second else asked
                items.append(_item(sentence, kind, number, question))

        asked = next((sentence.text for sentence in reversed(sentences) if sentence.asks), "")

    return json.dumps(items, ensure_ascii=False, separators=(",", ":"))


def _report(sentences: tuple[Sentence, ...], *, second: bool) -> Iterator[tuple[Sentence, str]]:
    for sentence in sentences:
        if (
            not sentence.asks
            and len(sentence.terms) >= LEAST_TERMS
            and (kind := kind_of(sentence) or ("key_fact" if second else ""))
        ):
            yield sentence, kind


def kind_of(sentence: Sentence) -> str:
    """The type that a sentence's words show; empty if they show none."""
    if sentence.caption:
        return "key_fact"

    lowered = sentence.text.lower().replace("’", "'")
    for kind, pattern in _RULES.items():
        if pattern.search(lowered):
            return kind

    if not TEMPORAL.isdisjoint(sentence.words):
        return "event"

    exact = _NAME.search(sentence.text) or any(
        word.isdigit() or NUMBERS.get(word, 0) > 1 for word in sentence.words
    )

    return "key_fact" if exact else ""


def _item(sentence: Sentence, kind: str, number: int, asked: str) -> dict[str, object]:
    said_on = sentence.time.date() if sentence.time else None
    return {
        "type": kind,
        "content": f"asked: {asked}" if asked else sentence.text,
        "quote": sentence.text,
        "chunk": number,
        "date": next((moment.text for moment in moments(sentence.text, said_on)), ""),
        "people": list(dict.fromkeys(_NAME.findall(sentence.text))),
    }
