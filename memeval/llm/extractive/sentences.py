"""Splits the chunks of a context into sentences, with their speakers, times and words.

A chunk may start with its date in square brackets, and contains one or more `speaker: text` lines;
each further date begins a new block.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache, partial

from memeval.llm.extractive.words import STOP_WORDS, TOKEN, stem

_STAMP = re.compile(r"\s*\[([^\[\]]*\d[^\[\]]*)\]\s*")
_SPEAKER = re.compile(r"([^\W\d_][^:\[\]\n.!?]{0,39}):\s+")
_CAPTION = re.compile(r"\[shares an image:\s*([^\]]*)\]")
_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\s*\n\s*")
# The first is the format in which memeval shows times; the others come from other programs.
_STAMP_FORMATS = (
    "%I:%M %p on %d %B %Y",
    "%d %B %Y",
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y-%m-%dT%H:%M",
    "%B %d %Y",
    "%H:%M on %d %B %Y",
)


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """One sentence, or one caption, of a chunk."""

    text: str
    speaker: str
    """Lower-cased; empty if the line names none."""
    time: datetime | None
    line: int
    """Number of its line within the chunk: sentences of one line are one turn."""
    spans: tuple[tuple[int, int], ...]
    """Start and end of each token in `text`."""
    words: tuple[str, ...]
    """The tokens, lower-cased."""
    stems: tuple[str, ...]
    """One per token; empty for stop words and punctuation."""
    terms: frozenset[str]
    """The stems that are not empty."""
    asks: bool
    """True for a question."""
    caption: bool = False

    @property
    def said_on(self) -> date | None:
        """The day of its time."""
        return self.time and self.time.date()


_LONGEST_STAMP = 200
"""Longest bracketed date, in characters: else unclosed parentheses would take quadratic time."""
SHORT = 640
"""Longest chunk, in characters, whose sentences go to the large cache: many questions retrieve such
chunks.

Sentences need about forty times the memory of their text, so only those of a few longer chunks are
cached at a time.
"""


def read_chunk(text: str) -> tuple[Sentence, ...]:
    return _read_short(text) if len(text) <= SHORT else _read_long(text)


def _read(text: str) -> tuple[Sentence, ...]:
    sentences: list[Sentence] = []
    time: datetime | None = None

    for number, line in enumerate(text.split("\n")):
        body, speaker = line, ""
        match = _STAMP.match(body)
        # Other text in brackets is a part of what was said.
        if match and (stamped := parse_stamp(match[1])):
            time, body = stamped, body[match.end() :]

        if match := _SPEAKER.match(body):
            speaker, body = match[1].strip().lower(), body[match.end() :]

        sentence = partial(_sentence, speaker=speaker, time=time, line=number)
        parts = _END.split(_CAPTION.sub(" ", body))
        sentences += map(sentence, filter(str.strip, parts))
        sentences += [sentence(match[1], caption=True) for match in _CAPTION.finditer(body)]

    return tuple(sentences)


_read_short = lru_cache(maxsize=1 << 12)(_read)
_read_long = lru_cache(maxsize=1 << 6)(_read)


def _sentence(
    text: str, *, speaker: str, time: datetime | None, line: int, caption: bool = False
) -> Sentence:
    spans = tuple(match.span() for match in TOKEN.finditer(text))
    words = tuple(text[start:end].lower().replace("’", "'") for start, end in spans)
    stems = tuple(
        "" if word in STOP_WORDS or not word[0].isalnum() else stem(word) for word in words
    )
    terms = frozenset(stems) - {""}

    return Sentence(
        text=text,
        speaker=speaker,
        time=time,
        line=line,
        spans=spans,
        words=words,
        stems=stems,
        terms=terms,
        asks=text.rstrip().endswith("?"),
        caption=caption,
    )


@lru_cache(maxsize=1 << 12)
def parse_stamp(text: str) -> datetime | None:
    """The time in a chunk's brackets; None if they contain something else."""
    if len(text) > _LONGEST_STAMP:
        return None

    # LongMemEval's dates have the weekday in parentheses, followed by the time.
    plain = re.sub(r"\s+", " ", re.sub(r"\([^)]*\)|,", " ", text)).strip()
    for candidate in (plain, plain.split(" ")[0]):
        for form in _STAMP_FORMATS:
            try:
                return datetime.strptime(candidate, form)
            except ValueError:
                continue

    return None
