"""Cuts a long text at the ends of its sentences into pieces of limited length; nothing but white
space is lost.
"""

import re
from collections.abc import Iterator

from memeval.llm.tokens import count_tokens
from memeval.text.words import BY_CHARACTER

SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*[ \t]+|(?<=[。！？])[”’）」』]*")
"""End of a sentence within a line: after its last mark and the quotes that close it."""
NUMBERED = re.compile(r"\s*\d+\.\s")
"""Start of a line with a serial number. Such a line is one sentence, even with full stops."""
WORD = re.compile(r"\s*\S+")
PIECE = re.compile(rf"\s*(?:[{BY_CHARACTER}]|(?:(?![{BY_CHARACTER}])\w)+|[^\w\s])")
"""A token with the white space before it, as tokens are counted."""


def chunks(text: str, tokens: int) -> Iterator[str]:
    """Runs of whole sentences of at most `tokens` tokens, stripped.

    A longer sentence is cut between its words, and a longer word (a run of marks) between its
    tokens.
    """
    chunk, count = "", 0
    for part in _parts(text, tokens):
        cost = count_tokens(part)
        if count + cost > tokens and chunk.strip():
            yield chunk.strip()
            chunk, count = "", 0

        chunk, count = chunk + part, count + cost

    if chunk.strip():
        yield chunk.strip()


def sentences(text: str) -> Iterator[str]:
    """Splits a string into sentences with the white space around them; joining them restores it.

    The end of a line ends a sentence.
    """
    for line in text.splitlines(keepends=True):
        if NUMBERED.match(line):
            yield line
            continue

        start = 0
        for match in SENTENCE_END.finditer(line):
            end = match.end()
            if end > start:
                yield line[start:end]
                start = end

        if start < len(line):
            yield line[start:]


def _parts(text: str, tokens: int) -> Iterator[str]:
    """The sentences; of one that does not fit, its words; of a word that does not, its tokens."""
    for sentence in sentences(text):
        if count_tokens(sentence) <= tokens:
            yield sentence
            continue

        words = WORD.findall(sentence)
        if words:
            words[-1] += sentence[sum(map(len, words)) :]

        for word in words:
            if count_tokens(word) <= tokens:
                yield word
            else:
                yield from PIECE.findall(word)
