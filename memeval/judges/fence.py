"""The marks that an answer is sent to a judge between, so that nothing in it can pass for the
judge's instructions.
"""

from __future__ import annotations

import hashlib
import json

from memeval.records import EvalQuestion


def fence_for(question: EvalQuestion, answer: str, seed: int) -> str:
    """Name of the marks, such as `answer-3f9a1c0b7d52e864`.

    The same for the same question, answer and seed, so that the prompt is found in the cache again.
    The answer's own digest is a part of it: no answer can be written that holds its mark, as to
    write the mark in changes it.
    """
    for attempt in range(100):
        content = json.dumps(
            [question.question_id, question.text, list(question.gold), answer, seed, attempt]
        )
        name = f"answer-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        if name not in answer:
            return name

    raise AssertionError("an answer holds a hundred digests of itself")
