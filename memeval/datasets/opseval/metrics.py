"""Token F1 for texts in Chinese, or in Chinese and English mixed."""

import re
import unicodedata

from memeval.metrics.tokens import token_f1

CRITERIA = ("fluency", "accuracy", "evidence")
"""Criteria of OpsEval's FAE-Score."""
PUNCTUATION = re.compile("[、。《》「」『』【】〈〉“”‘’…—·]")


def character_f1(prediction: str, gold: str) -> float:
    """Token-overlap F1 in which each Chinese character is a token, in [0, 1]; for texts without
    Chinese characters it is `token_f1`.

    Full-width letters and marks are converted to plain ones, and Chinese punctuation is removed,
    even in English sentences.
    """
    return token_f1(_plain(prediction), _plain(gold))


def _plain(text: str) -> str:
    return PUNCTUATION.sub(" ", unicodedata.normalize("NFKC", text))
