"""Tells refusals from answers."""

from __future__ import annotations

import re

OFFICIAL_PHRASES = ("no information available", "not mentioned")

_NOT = r"(?:n't| not)"
_THING = r"(?:information|info|mention|record|evidence|details?|data|indication|answers?|memor(?:y|ies)|context|references?)"
_SOURCE = (
    r"(?:(?:the|this|that|these|those|any|our|your|my|given|provided|available|above|retrieved) )*"
    r"(?:conversations?|context|text|dialogues?|transcripts?|chats?|history|memor(?:y|ies)|messages?|passages?|excerpts?"
    r"|information|records?|logs?)"
)
_SAYS = r"(?:mention|specif|state|provid|indicat|say|tell|contain|includ|discuss|reveal|clarif|detail|address|describe|disclose|give)\w*"
_TOLD = (
    r"(?:\w+ly )?(?:mentioned|specified|stated|provided|indicated|given|available|known|disclosed|discussed|clear|recorded|applicable"
    r"|sure|certain)"
)
_ASKED = r"(?:whether|what|which|when|where|who|why|how|if)"
_FIND = r"(?:answer|find|determine|tell|say|locate|recall|provide|help|assist)"

ANSWERED = re.compile(r"(?:yes|no|nope|probably|likely|unlikely)(?: not)?,")
"""How an answer to a yes-or-no question begins: what follows gives its grounds."""

CLAUSE_BORDER = re.compile(r"[.!?;:—]+(?:\s|$)|\s[-–]\s|, (?=(?:but |so |and )?(?:i|there|not|no|unknown)\b)")

OPENERS = re.compile(
    r"(?:(?:sorry|unfortunately|i'm sorry|i am sorry|i'm afraid|i am afraid|apologies|but|so|and|however|well|therefore|thus"
    r"|i (?:must|can|will) (?:conclude|say) that|(?:based on|according to|from|in) [^,]*)[, ]+)+"
)
"""What may stand before a refusal."""

CLAUSE_STARTS = re.compile(
    "|".join(
        (
            rf"i (?:\w+ )?(?:do|did){_NOT} know\b",
            rf"i (?:do|did){_NOT} (?:have|see|find|recall|remember) (?:\w+ ){{0,3}}{_THING}",
            rf"i (?:can't|cannot|can not|couldn't|could not|am unable to|was unable to) {_FIND}\b",
            rf"i(?:'m| am) (?:not sure|unsure|not certain|unable to {_FIND})\b",
            rf"(?:(?:there (?:is|was|are|were)|there's|i (?:have|found|see)) )?(?:no|insufficient|not enough) (?:\w+ ){{0,2}}{_THING}"
            r"(?=$| (?:is|was|are|were|of|about|on|for|to|in|regarding|available|provided|given|found|that|as)\b)",
            rf"there (?:is|was|are|were)(?:n't| not) (?:\w+ ){{0,2}}{_THING}",
            rf"(?:(?:it|this|that|the answer|the (?:exact|specific) \w+) (?:is|was) |it's |that's )?not {_TOLD}"
            rf"(?=$| (?:in|by|from|to|{_ASKED})\b)",
            rf"(?:it|this|that) (?:is|was)n't {_TOLD}(?=$| (?:in|by|from|{_ASKED})\b)",
            r"(?:the answer is |it is |it's )?(?:unknown|unanswerable|undetermined|unclear|unspecified|n/?a|no idea"
            r"|none (?:mentioned|given|specified))$",
        )
    )
)
"""Refusals that count at the start of a clause, so that a reported or quoted one ("he said he didn't know") does not."""

ANYWHERE = re.compile(
    "|".join(
        (
            rf"\b{_SOURCE} (?:does|do|did){_NOT} (?:\w+ )?{_SAYS}",
            rf"\b(?:is|was|are|were)(?:n't| not) {_TOLD} (?:in|by|from) {_SOURCE}\b",
            r"\b(?:cannot|can't|can not|couldn't|could not) be (?:\w+ly )?(?:determined|answered|inferred|established)\b",
            rf"\b(?:not enough|n't enough|insufficient|n't have enough) (?:\w+ ){{0,2}}{_THING} to\b",
            r"\b(?:not possible|impossible) to (?:\w+ly )?(?:say|tell|determine|know|answer)\b",
        )
    )
)
"""Refusals that count within a clause: they speak of the source, not of the people in it."""


def officially_refuses(text: str) -> bool:
    """LoCoMo's rule for category 5: the lower-cased answer contains one of two phrases (task_eval/evaluation.py)."""
    return any(phrase in text.lower() for phrase in OFFICIAL_PHRASES)


def is_refusal(text: str) -> bool:
    """Whether an answer says that it can't be given: by the official phrases or the common English ones.

    `not` alone is no refusal; `unknown` and the like count only as a whole clause; a `no,` with its grounds is an answer. Of a text of more
    than three clauses only the first and the last count: what lies between is reasoning.
    """
    plain = " ".join(text.lower().replace("’", "'").replace("**", "").split())
    clauses = [clause.strip(" \"'`*_()[]") for clause in CLAUSE_BORDER.split(plain) if clause.strip(" \"'`*_()[]")]
    telling = clauses if len(clauses) <= 3 else [clauses[0], clauses[-1]]
    if any(officially_refuses(clause) for clause in telling):
        return True
    if ANSWERED.match(plain):
        return False
    return any(ANYWHERE.search(clause) or CLAUSE_STARTS.match(OPENERS.sub("", clause, count=1)) for clause in telling)
