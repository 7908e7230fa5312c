"""Tells refusals from answers."""

from __future__ import annotations

import re

OFFICIAL_PHRASES = ("no information available", "not mentioned")

_NOT = r"(?:n['o]t| not|not)"
_THING = r"(?:information|info|mention|record|evidence|details?|data|indication|answers?|memor(?:y|ies)|context|references?)"
_SOURCE = (
    r"(?:(?:the|this|that|these|those|any|our|your|my|given|provided|available|above|retrieved) )*"
    r"(?:conversations?|context|text|dialogues?|transcripts?|chats?|history|memor(?:y|ies)|messages?|passages?|excerpts?|information|records?|logs?)"
)
_SAYS = r"(?:mention|specif|state|provid|indicat|say|tell|contain|includ|discuss|reveal|clarif|detail|address|describe|disclose|give)\w*"
_TOLD = r"(?:mentioned|specified|stated|provided|indicated|given|available|known|disclosed|discussed|clear|recorded|applicable|sure|certain|enough)"

OPENERS = re.compile(
    r"(?:(?:sorry|unfortunately|i'm sorry|i am sorry|i'm afraid|i am afraid|apologies|but|so|however|well|hmm|based on [^,]*|according to [^,]*|from [^,]*)[, ]+)+"
)
"""What may stand before a refusal."""

CLAUSE_STARTS = re.compile(
    "|".join(
        (
            rf"i (?:\w+ )?(?:do|did){_NOT} (?:\w+ )?know\b",
            rf"i (?:do|did){_NOT} (?:have|see|find|recall|remember) (?:\w+ ){{0,3}}{_THING}",
            r"i (?:can't|cannot|can not|couldn't|could not|am unable to|was unable to|'m unable to) (?:answer|find|determine|tell|say|locate|recall)\b",
            r"i(?:'m| am) (?:not sure|unsure|not certain|unable to (?:answer|find|determine|tell|say))\b",
            rf"(?:(?:there (?:is|was|are|were)|there's|i have|i found|i see) )?(?:no|insufficient|not enough|not any) (?:\w+ ){{0,2}}{_THING}"
            r"(?=$| (?:is|was|are|were|of|about|on|for|to|in|regarding|available|provided|given|found|that|as)\b)",
            rf"there (?:is|was|are|were)(?:n't| not) (?:\w+ ){{0,2}}{_THING}",
            rf"(?:(?:it|this|that|the answer|the exact \w+|the specific \w+) (?:is|was) |it's |that's )?not (?:\w+ly )?{_TOLD}(?=$| (?:in|by|from|to|whether|what|when|where|who|why|how|if)\b)",
            rf"(?:it|this|that) (?:is|was)n't (?:\w+ly )?{_TOLD}(?=$| (?:in|by|from|whether|what|when|where|who|why|how|if)\b)",
            r"(?:the answer is |it is |it's )?(?:unknown|unanswerable|undetermined|unclear|unspecified|n/?a|none (?:mentioned|given|specified)|no idea)$",
            r"(?:it is |it's )?impossible to (?:say|tell|determine|know|answer)\b",
        )
    )
)
"""Refusals that count at the start of a clause, so that a reported or quoted one ("he said he didn't know") does not."""

ANYWHERE = re.compile(
    "|".join(
        (
            rf"\b{_SOURCE} (?:does|do|did){_NOT} (?:\w+ )?{_SAYS}",
            rf"\b(?:is|was|are|were)(?:n't| not) (?:\w+ly )?{_TOLD} (?:in|by|from) {_SOURCE}\b",
            r"\b(?:cannot|can't|can not|couldn't|could not) be (?:\w+ly )?(?:determined|answered|inferred|established)\b",
        )
    )
)
"""Refusals that count wherever they stand: they speak of the source, not of the people in it."""


def officially_refuses(text: str) -> bool:
    """LoCoMo's rule for category 5: the lower-cased answer contains one of two phrases (task_eval/evaluation.py)."""
    return any(phrase in text.lower() for phrase in OFFICIAL_PHRASES)


def is_refusal(text: str) -> bool:
    """Whether an answer says that it can't be given: the official phrases (`officially_refuses`) and the common English ones.

    `not` alone is no refusal; `unknown` and the like count only as a whole clause.
    """
    plain = " ".join(text.lower().replace("’", "'").split())
    if officially_refuses(plain) or ANYWHERE.search(plain):
        return True
    clauses = (clause.strip(" \"'`*_()[]") for clause in re.split(r"[.!?;:—]+(?:\s|$)|\s[-–]\s|, (?=i\b|there\b)", plain))
    return any(CLAUSE_STARTS.match(OPENERS.sub("", clause, count=1)) for clause in clauses)
