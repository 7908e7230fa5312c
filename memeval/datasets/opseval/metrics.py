"""Token F1 for texts in Chinese, or in Chinese and English mixed."""

from __future__ import annotations

import re
import unicodedata

from memeval.metrics.tokens import token_f1

IDEOGRAPH = re.compile("([\u3400-\u4dbf\u4e00-\u9fff])")
PUNCTUATION = re.compile("[、。《》「」『』【】〈〉“”‘’…—·]")


def character_f1(prediction: str, gold: str) -> float:
    """Token-overlap F1 in which each Chinese character is a token, in [0, 1]; for texts without any
    it is `token_f1`.

    Chinese is written without blanks: by words between blanks, two sentences share nothing unless
    they are equal.
    """
    return token_f1(spaced(prediction), spaced(gold))


def spaced(text: str) -> str:
    """The text with full-width letters and marks made plain, Chinese punctuation gone, and a blank
    at each side of a Chinese character.
    """
    plain = PUNCTUATION.sub(" ", unicodedata.normalize("NFKC", text))
    # The pattern has a group, so `split` keeps each character as a part.
    return " ".join(IDEOGRAPH.split(plain))
