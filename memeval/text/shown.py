"""External text (data, replies, errors, names) made safe to show: printable, on one line, cut."""

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence

from memeval.text.redaction import redacted

# The only invisible characters kept: joiners of emoji, and of Persian and Indic scripts, which
# change nothing else.
_KEPT = frozenset("\n\t\u200c\u200d")
_ODD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    """`text` with everything that a terminal would act on (escape sequences, direction marks, lone
    surrogates) written out, as in `\\x1b`.
    """
    if text.isascii() and text.isprintable():
        return text

    return "".join(map(_escape, text))


def one_line(value: object, limit: int = 200) -> str:
    """An external value as a message may quote it: without secrets, printable, on one line, at most
    `limit` characters.
    """
    # Cut before it is cleaned, as a value may be megabytes long.
    text = str(value)[: 4 * limit + 4096]
    line = printable(" ".join(redacted(text).split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def in_shell(path: object) -> str:
    """A path as a word of a printed command."""
    return shlex.quote(printable(str(path)))


def some_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first names and the number of the others: `a, b and 3 more`."""
    shown, left = between.join(names[:most]), len(names) - most
    if left > 0:
        shown += f" and {left:,} more"

    return shown


def counted(number: int, noun: str, plural: str = "") -> str:
    """As `1 run` and `2 runs`; `plural` for a noun that takes more than an s."""
    if number != 1:
        noun = plural or f"{noun}s"

    return f"{number:,} {noun}"


def all_counted(numbers: Mapping[str, int]) -> str:
    """Such as `1 case, 12 turns`; the nouns are given in the plural."""
    parts = [counted(number, noun.removesuffix("s"), noun) for noun, number in numbers.items()]
    return ", ".join(parts)


def natural_order(text: str) -> tuple[list[str | int], str]:
    """Sort key that orders numbers in names by size: `32k` before `262k`."""
    # Python refuses to read very long numbers, which an id of a user's file may have.
    parts: list[str | int] = list(re.split(r"([0-9]{1,300})", text))
    parts[1::2] = map(int, parts[1::2])
    return parts, text


def _escape(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _ODD_CATEGORIES:
        return character

    return character.encode("unicode_escape").decode("ascii")
