"""Extraction without a model: sentences become artifacts, typed by their words."""

import json
import re
import tomllib
from pathlib import Path

from memeval.llm.extractive.dates import moments
from memeval.llm.extractive.sentences import Sentence, read_chunk
from memeval.llm.extractive.words import NUMBERS, TEMPORAL
from memeval.llm.memory_prompts import ExtractPrompt

MIN_TERMS = 2
"""Minimum content words of a sentence that is kept."""

_TYPES = tomllib.loads(Path(__file__).with_name("artifacts.toml").read_text(encoding="utf-8"))
_RULES = {kind: re.compile(rf"\b(?:{'|'.join(words)})\b") for kind, words in _TYPES.items()}
"""The words that show each type, in the order in which types are tried."""
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")


def extract(prompt: ExtractPrompt) -> str:
    """Artifacts as a JSON list: sentences of a clear type; in the second pass, all others."""
    items = []
    is_second = bool(prompt.quotes)
    unclear = "key_fact" if is_second else ""
    question_before = ""

    for number, chunk in enumerate(prompt.chunks, start=1):
        question = ""
        for sentence in read_chunk(chunk):
            if sentence.asks:
                question = f"asked: {sentence.text}"
                continue
            if len(sentence.terms) < MIN_TERMS:
                continue

            kind = kind_of(sentence) or unclear
            if kind and not any(sentence.text in quote for quote in prompt.quotes):
                items.append(_item(sentence, kind, number, question_before or sentence.text))

        # A reply often makes no sense without the question before it, so that question becomes its
        # content. In the second pass the content is the sentence itself, because contents that
        # share most words count as one.
        if not is_second:
            question_before = question

    return json.dumps(items, ensure_ascii=False, separators=(",", ":"))


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

    if _NAME.search(sentence.text):
        return "key_fact"
    if any(word.isdigit() or NUMBERS.get(word, 0) > 1 for word in sentence.words):
        return "key_fact"

    return ""


def _item(sentence: Sentence, kind: str, number: int, content: str) -> dict[str, object]:
    return {
        "type": kind,
        "content": content,
        "quote": sentence.text,
        "chunk": number,
        "date": next((moment.text for moment in moments(sentence.text, sentence.said_on)), ""),
        "people": list(dict.fromkeys(_NAME.findall(sentence.text))),
    }
