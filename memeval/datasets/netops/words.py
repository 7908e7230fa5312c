"""Names, numbers and dates in a form that judges can compare."""

import re
from datetime import datetime

WORDS = tuple("no one two three four five six seven eight nine ten eleven twelve".split())
HIDDEN = frozenset({1, 10})
"""Numbers whose words are parts of common words ("none", "often"), where a judge that looks for the
gold in the answer would find them.
"""

# As words: a judge of keywords does not count a digit as a keyword, and many dates contain it.
IN_WORDS = "Write a number up to twelve as a word, a greater one in digits without commas."
"""Instruction for counts."""
ALL_OF_THEM = "Name all of them."


def one_word(name: str) -> str:
    """A name of a component or a fault as the data sets show it: each run of characters other than
    letters and digits becomes one `_`.

    Judges that compare words would otherwise confuse `node-4` with `node-6`: they ignore single
    characters, and count each part of a name as a word.
    """
    return re.sub(r"[\W_]+", "_", name).strip("_")


def amount(count: int, noun: str) -> str:
    """`three incidents`, `38 incidents`, `one incident`."""
    number = WORDS[count] if count < len(WORDS) else str(count)
    if count == 1:
        return f"{number} {noun}"

    return f"{number} {noun}s"


def count_golds(count: int, noun: str) -> tuple[str, ...]:
    """Golds for a count: the number with and without what is counted; only the latter is left out
    if the bare word is part of common words.
    """
    phrase = amount(count, noun)
    if count in HIDDEN:
        return (phrase,)

    return (phrase, phrase.partition(" ")[0])


def day(time: datetime) -> str:
    """`2021-03-04`."""
    return time.date().isoformat()


def minute(time: datetime) -> str:
    """`14:57`."""
    return f"{time.hour:02d}:{time.minute:02d}"
