"""Made-up replies of imagined endpoints: messages in the form that a prompt needs, and vectors."""

import hashlib
import json
import random
import re
from collections.abc import Mapping
from typing import Any

from memeval.errors import ModelError
from memeval.llm.contract import AnswerPrompt, DraftPrompt, Prompt, SessionPrompt, ToolPrompt
from memeval.llm.extractive.tools import next_calls
from memeval.llm.memory_prompts import ExtractPrompt
from memeval.llm.mock import MockModel
from memeval.records import Role, Turn

WORDS = 3
"""Words of a made-up answer."""
QUOTED_WORDS = 8
"""Words of a chunk or a turn that a made-up reply quotes."""


async def made_up_message(prompt: Prompt, role: Role) -> Mapping[str, Any]:
    """The reply to a prompt as a chat message; for most prompts, the mock model's.

    An answer is three words that depend on the prompt alone, so that different prompts get
    different answers. With tools, one search precedes it. An extraction has one note per chunk, and
    any kind of question can be drafted.
    """
    asked = prompt
    if isinstance(prompt, ToolPrompt):
        asked = prompt.asked
        calls = () if prompt.exchange else next_calls(prompt)
        if calls:
            functions = [{"name": call.name, "arguments": call.arguments} for call in calls]
            sent = [
                {"id": f"call_{number}", "type": "function", "function": function}
                for number, function in enumerate(functions, start=1)
            ]
            return {"role": "assistant", "content": None, "tool_calls": sent}

    if isinstance(asked, AnswerPrompt | SessionPrompt):
        text = _draw_words(asked)
    elif isinstance(asked, ExtractPrompt):
        text = _quote_chunks(asked)
    elif isinstance(asked, DraftPrompt):
        text = _draft(asked)
    else:
        try:
            text = (await MockModel().complete(asked, role=role)).text
        except ModelError:  # a type of prompt that a user's own system defines
            text = _draw_words(asked)

    return {"role": "assistant", "content": text}


def _draw_words(prompt: Prompt) -> str:
    text = "\n".join(str(message.get("content") or "") for message in prompt.messages())
    draw = random.Random(text)
    words = re.findall(r"[A-Za-z]{4,}", text) or ["nothing"]
    return " ".join(draw.choice(words) for _ in range(WORDS))


def _quote_chunks(prompt: ExtractPrompt) -> str:
    """Notes that quote the first words of each chunk; none in the second pass."""
    if prompt.quotes:
        return "[]"

    notes = []
    for number, chunk in enumerate(prompt.chunks, start=1):
        quote = _first_words(chunk.partition(": ")[2] or chunk)
        note = {"type": "key_fact", "content": quote, "quote": quote, "chunk": number}
        notes.append({**note, "date": "", "people": []})

    return json.dumps(notes)


def _draft(prompt: DraftPrompt) -> str:
    """A question about the turns that a drafter is shown, with an answer of made-up words."""
    draw = random.Random(str(prompt.values()))
    turns: list[Turn] = []
    for session in prompt.sessions:
        turns += session.turns

    newer = {"turn": turns[-1].turn_id, "quote": _first_words(turns[-1].text)}
    older = {"turn": turns[0].turn_id, "quote": _first_words(turns[0].text)}
    about = " ".join(f"{draw.getrandbits(32):x}" for _ in range(QUOTED_WORDS))
    question = {
        "kind": prompt.kind,
        "question": f"Which {about} {newer['quote'].split()[0]}?",
        "answer": None if prompt.kind == "unanswerable" else f"{draw.getrandbits(32):x}",
        "evidence": [newer, older] if prompt.kind == "multi_hop" else [newer],
        "stale": [{"value": older["quote"].split()[0], **older}],
    }
    return json.dumps(question)


def _first_words(text: str) -> str:
    return " ".join(text.split()[:QUOTED_WORDS])


def made_up_vector(text: str, width: int) -> list[float]:
    """A bag of hashed words of length `width`: texts that share words are near each other."""
    vector = [0.0] * width
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % width] += 1.0

    if not any(vector):
        vector[0] = 1.0  # an embedding of zeros would be refused

    return vector
