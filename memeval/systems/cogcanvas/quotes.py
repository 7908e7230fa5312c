"""Finds a quote in its chunk, or otherwise the sentence that the model meant."""

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from memeval.records import MemoryChunk
from memeval.text.words import is_unspaced, plain_words, search_terms, spread

MIN_OVERLAP = 0.5
"""Minimum share of common terms for a sentence to replace a quote."""

_MARKS, _CLOSING = r"[.!?…]++", r"[\"'”’)]*+"
# No space follows the full stops of Chinese and Japanese. The last two are Hindi's and Arabic's.
_WIDE_MARKS = "。！？।؟"
_SENTENCE = re.compile(
    rf"\S(?:[^.!?…{_WIDE_MARKS}]++|{_MARKS}(?!{_CLOSING}\s))*+"
    rf"(?:[{_WIDE_MARKS}]++[」』）”’]*+|{_MARKS}{_CLOSING})?"
)
"""Possessive, so no part is tried twice: even a string of full stops alone takes linear time."""
_LONGEST_LOOSE = 2_000
"""Maximum length of a quote that is searched for with other punctuation: utterances are shorter."""


class ChunkLine(Struct, frozen=True):
    """One turn of a chunk, or the whole chunk if its lines don't match its turns."""

    start: int
    """Start of its words in the chunk's content, after the speaker's name."""
    text: str
    speaker: str
    turn_ids: tuple[str, ...]


class LocatedQuote(Struct, frozen=True):
    line: ChunkLine
    quote: str
    """Verbatim."""
    start: int
    """Within the chunk's content."""


def lines(chunk: MemoryChunk) -> Iterator[ChunkLine]:
    """One line per turn if a chunk has as many lines as turns, otherwise the chunk as one line."""
    parts = chunk.content.split("\n")
    is_apart = len(parts) == len(chunk.turn_ids)
    if not is_apart:
        parts = [chunk.content]

    start = 0
    for number, part in enumerate(parts):
        # If several speak in lines that don't match the turns, no line can be attributed to one of
        # them.
        speaker = ""
        if is_apart or len(chunk.speakers) == 1:
            named = (name for name in chunk.speakers if part.startswith(f"{name}: "))
            speaker = next(named, "")

        turn_ids = chunk.turn_ids[number : number + 1] if is_apart else chunk.turn_ids
        skipped = len(speaker) + 2 if speaker else 0
        yield ChunkLine(start + skipped, part[skipped:], speaker, turn_ids)
        start += len(part) + 1


def find_verbatim(quote: str, chunk: MemoryChunk) -> LocatedQuote | None:
    """The quote, if one turn of the chunk contains it letter for letter."""
    for line in lines(chunk):
        words = quote.strip()
        if line.speaker:
            words = words.removeprefix(f"{line.speaker}: ")
        if words and (position := line.text.find(words)) >= 0:
            return LocatedQuote(line, words, line.start + position)

    return None


def find_nearest(quote: str, chunk: MemoryChunk) -> LocatedQuote | None:
    """The quote with other punctuation and case, else the most similar sentence."""
    asked = set(search_terms(quote))
    if not asked:
        return None

    loose = _loose_pattern(quote) if len(quote) <= _LONGEST_LOOSE else None
    best: tuple[float, LocatedQuote | None] = (MIN_OVERLAP, None)
    for line in lines(chunk):
        if loose and (match := loose.search(line.text)):
            return LocatedQuote(line, match.group(), line.start + match.start())

        for sentence in _SENTENCE.finditer(line.text.removesuffix("\n")):
            held = set(search_terms(sentence.group()))
            overlap = len(held & asked) / len(held | asked)
            # An overlap of MIN_OVERLAP is enough; of equally similar sentences, the first stays.
            if overlap >= best[0] and (best[1] is None or overlap > best[0]):
                best = (
                    overlap,
                    LocatedQuote(line, sentence.group(), line.start + sentence.start()),
                )

    return best[1]


def _loose_pattern(quote: str) -> re.Pattern[str]:
    """A pattern that finds the quote's words with any punctuation and spaces between them."""
    words = plain_words(spread(quote))
    # The words contain only letters, digits and marks, so nothing has to be escaped.
    pattern = words[0]
    if not is_unspaced(words[0]):
        pattern = rf"(?<!\w){pattern}"

    for before, word in pairwise(words):
        repeats = "*" if is_unspaced(before) or is_unspaced(word) else "+"
        pattern += rf"[\W_]{repeats}{word}"

    if not is_unspaced(words[-1]):
        pattern += r"(?!\w)"

    return re.compile(pattern, re.IGNORECASE)
