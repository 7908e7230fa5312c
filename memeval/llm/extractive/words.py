"""Words as the offline reader sees them: tokens, closed word classes, and stems that bring a word's
forms together.
"""

from __future__ import annotations

import re
from functools import lru_cache

TOKEN = re.compile(r"\w+(?:['’&.:/+-]\w+)*|[^\w\s]")
"""A word (inner apostrophes, hyphens, points included) or one punctuation mark."""

CONJUNCTIONS = frozenset(
    """
        and or but so because since as while although though if then than that which who whom whose
        where when
    """.split()
)
PREPOSITIONS = frozenset(
    """
        in on at to for from of with by about near into onto over under through during after before
        around between among against towards like without within across off out up down along behind
        beside
    """.split()
)
DETERMINERS = frozenset(
    """
        a an the my your his her its our their this that these those some any each every another
    """.split()
)
PRONOUNS = frozenset(
    """
        i you he she it we they me him us them myself yourself himself herself itself ourselves
        themselves i'm i've i'll i'd you're you've you'll he's she's it's we're we've we'll they're
        they've that's there's there here who's what's let's mine yours something anything
        everything someone anyone everyone
    """.split()
)
AUXILIARIES = frozenset(
    """
        am is are was were be been being do does did done have has had having can could will would
        shall should may might must don't didn't doesn't isn't aren't wasn't weren't haven't hasn't
        hadn't can't couldn't won't wouldn't shouldn't not no gonna wanna gotta ain't
    """.split()
)
QUESTION_WORDS = frozenset("what when where who whom whose which why how".split())
FILLERS = frozenset(
    """
        just really very so too also actually still even pretty quite totally definitely super well
        yeah yes yep wow hey hi hello thanks thank oh ok okay haha lol sure maybe probably finally
        already recently lately all more most much many lot lots kind sort bit only now again ever
        never always usually often sometimes back away right please anyway btw
    """.split()
)
FUNCTION_WORDS = CONJUNCTIONS | PREPOSITIONS | DETERMINERS | PRONOUNS | AUXILIARIES | QUESTION_WORDS
STOP_WORDS = FUNCTION_WORDS | FILLERS

EVALUATIVE = frozenset(
    """
        great awesome amazing nice good cool fun wonderful fantastic incredible beautiful special
        perfect best better interesting exciting excited happy glad proud tough hard rewarding
        inspiring inspired lovely sweet fulfilling fulfilled important key crazy wild big huge
        favorite favourite cute gorgeous stunning impressive meaningful memorable
    """.split()
)
VAGUE = frozenset(
    """
        thing things way ways time times lot stuff moment moments experience part kind bit guess
        hope know think feel
    """.split()
)
TEMPORAL = frozenset(
    """
        yesterday today tomorrow tonight morning afternoon evening night day days week weeks weekend
        weekends month months year years ago last next monday tuesday wednesday thursday friday
        saturday sunday january february march april june july august september october november
        december summer winter spring autumn soon later
    """.split()
)

NUMBERS = {
    word: value
    for value, word in enumerate(
        """
            zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
            fifteen sixteen seventeen eighteen nineteen twenty
        """.split()
    )
} | {
    "a": 1,
    "an": 1,
    "couple": 2,
    "once": 1,
    "twice": 2,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    "dozen": 12,
}

_IRREGULAR = {
    form: base
    for base, forms in {
        "go": "went gone goes going",
        "buy": "bought",
        "get": "got gotten",
        "make": "made making",
        "take": "took taken taking",
        "see": "saw seen",
        "meet": "met",
        "have": "has had having",
        "give": "gave given giving",
        "find": "found",
        "begin": "began begun",
        "write": "wrote written writing",
        "run": "ran running",
        "win": "won winning",
        "lose": "lost losing loss",
        "feel": "felt feeling",
        "think": "thought",
        "teach": "taught",
        "bring": "brought",
        "leave": "left leaving",
        "tell": "told",
        "say": "said",
        "come": "came coming",
        "become": "became becoming",
        "eat": "ate eaten",
        "speak": "spoke spoken",
        "break": "broke broken",
        "drive": "drove driven driving",
        "ride": "rode ridden riding",
        "grow": "grew grown",
        "know": "knew known",
        "draw": "drew drawn",
        "fly": "flew flown flies",
        "sing": "sang sung",
        "swim": "swam swum swimming",
        "build": "built",
        "spend": "spent",
        "send": "sent",
        "keep": "kept",
        "sell": "sold",
        "hold": "held",
        "choose": "chose chosen choice choosing",
        "wear": "wore worn",
        "fall": "fell fallen",
        "hear": "heard",
        "lead": "led",
        "catch": "caught",
        "die": "died dying dead death",
        "child": "children",
        "person": "people",
        "foot": "feet",
        "woman": "women",
        "man": "men",
        "mother": "mom mum",
        "father": "dad",
        "photo": "photograph picture pic photos pics pictures",
    }.items()
    for form in forms.split()
}

_ENDINGS = (
    ("ization", ""), ("isation", ""), ("fulness", ""), ("ousness", ""), ("iveness", ""),
    ("ational", ""), ("ation", ""), ("ition", ""), ("ingly", ""), ("ement", ""), ("ment", ""),
    ("ness", ""), ("ful", ""), ("less", ""), ("tion", "t"), ("sion", "s"), ("able", ""),
    ("ible", ""), ("ance", ""), ("ence", ""), ("ings", ""), ("ing", ""), ("ies", "i"), ("ied", "i"),
    ("ive", ""), ("ize", ""), ("ise", ""), ("ity", ""), ("ers", ""), ("ors", ""), ("ist", ""),
    ("ed", ""), ("er", ""), ("or", ""), ("ly", ""), ("es", ""), ("al", ""), ("s", ""), ("e", ""),
    ("y", "i"),
)  # fmt: skip
"""Endings and what replaces them; the first that leaves three letters or more is taken."""


LONGEST_STEM = 6
"""Letters: what is longer is cut, which brings `inspire` and `inspiration`, `celebrate` and
`celebration` together.
"""


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a lower-cased word: coarser than Porter's, since it only has to bring related
    words together.
    """
    word = word.replace("’", "'").removesuffix("'s")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.isalpha():
        return word

    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return (_undouble(word[: len(word) - len(ending)]) + instead)[:LONGEST_STEM]

    return word[:LONGEST_STEM]


def _undouble(stemmed: str) -> str:
    """`runn` -> `run`, `plann` -> `plan`."""
    doubled = len(stemmed) > 3 and stemmed[-1] == stemmed[-2] and stemmed[-1] not in "aeiouls"
    return stemmed[:-1] if doubled else stemmed
