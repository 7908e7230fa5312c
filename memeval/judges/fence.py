"""The marks around question, gold and answer: none of them can pass for instructions."""

from __future__ import annotations

import hashlib
import json

from memeval.records import EvalQuestion


def fence_for(question: EvalQuestion, answer: str, seed: int) -> str:
    """End of the names of the marks, such as `3f9a1c0b7d52e864`.

    It is the same for the same question, answer and seed, so that the cache finds the prompt again.
    """
    # It is a digest of all three, so nobody can write a text that holds its own mark: to insert the
    # mark changes the digest.
    texts = (question.text, *question.gold, answer)
    for attempt in range(100):
        content = json.dumps(
            [question.question_id, question.text, list(question.gold), answer, seed, attempt]
        )
        name = hashlib.sha256(content.encode()).hexdigest()[:16]
        if not any(name in text for text in texts):
            return name

    raise AssertionError("a text holds a hundred digests of itself")
