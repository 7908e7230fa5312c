"""The marks around an answer that is sent to a judge, so that the answer can't pass for
instructions to the judge.
"""

from __future__ import annotations

import hashlib
import json

from memeval.records import EvalQuestion


def fence_for(question: EvalQuestion, answer: str, seed: int) -> str:
    """Name of the marks, such as `answer-3f9a1c0b7d52e864`.

    It is the same for the same question, answer and seed, so that the cache finds the prompt again.
    """
    # It depends on a digest of the answer, so nobody can write an answer that holds its own mark:
    # to insert the mark changes the digest.
    for attempt in range(100):
        content = json.dumps(
            [question.question_id, question.text, list(question.gold), answer, seed, attempt]
        )
        name = f"answer-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        if name not in answer:
            return name

    raise AssertionError("an answer holds a hundred digests of itself")
