"""The entities of a text, by rules that need no model: speakers, capitalised names, nouns after a
determiner or a preposition. The rules are those of English; in scripts without capitals, no rule
can recognise names, so each term counts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from memeval.llm.extractive.words import (
    DETERMINERS,
    EVALUATIVE,
    PREPOSITIONS,
    STOP_WORDS,
    TEMPORAL,
    TOKEN,
    VAGUE,
    stem,
)
from memeval.text.words import search_terms

_SPEAKER = re.compile(r"([^\W\d_][^:\[\]\n.!?]{0,39}):\s+")
_OPENERS = (DETERMINERS | PREPOSITIONS) - {"to", "this", "that"}
"""Words after which a noun is expected; `to` begins infinitives, the others clauses."""
_NO_ENTITY = STOP_WORDS | TEMPORAL | EVALUATIVE | VAGUE
_ENDS = frozenset(".!?…:;")
_PHRASE = 2
"""Words used from a noun phrase: without a parser, later words are just as likely verbs."""


def entities(line: str) -> dict[str, str]:
    """Key and name of each entity of one `speaker: text` line, in order of their first mention.

    A key is the stems of the name's words. A name is a run of capitalised words that does not begin
    a sentence; it counts as a whole and word by word. A noun phrase is the first two content words
    after a determiner, a possessive or a preposition; it counts likewise.
    """
    mentioned: dict[str, str] = {}
    text = line
    if speaker := _SPEAKER.match(line):
        _add_name(mentioned, speaker[1].split())
        text = line[speaker.end() :]

    tokens = TOKEN.findall(text)
    for run in (*_names(tokens), *_phrases(tokens)):
        _add_name(mentioned, run)

    for term in _caseless(text):
        _add_name(mentioned, [term])

    return mentioned


def named_entities(names: Iterable[str]) -> dict[str, str]:
    """Key and name of entities that are given by their names, whole and word by word."""
    mentioned: dict[str, str] = {}
    for name in names:
        if words := TOKEN.findall(name):
            _add_name(mentioned, words)

    return mentioned


def content_words(text: str) -> dict[str, str]:
    """Key and form of each word that could name an entity, and of each pair of neighbours."""
    tokens = TOKEN.findall(text)
    words: dict[str, str] = {}
    for word in (*filter(_is_content, tokens), *_caseless(text)):
        words[key_of([word])] = word

    for pair in pairwise(tokens):
        if all(map(_is_content, pair)):
            words[key_of(pair)] = " ".join(pair)

    return words


def _caseless(text: str) -> list[str]:
    """The terms of a text in scripts without capitals, such as Chinese, Arabic or Hindi."""
    if text.isascii():
        return []

    return [term for term in search_terms(text) if term.upper() == term and not term.isascii()]


def key_of(words: Sequence[str]) -> str:
    """The key that all forms of a name share."""
    return " ".join(stem(word.lower()) for word in words)


def _add_name(mentioned: dict[str, str], words: list[str]) -> None:
    """Adds a run of words, as a whole and word by word."""
    mentioned.setdefault(key_of(words), " ".join(words))
    for word in words:
        mentioned.setdefault(key_of([word]), word)


def _names(tokens: list[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for before, token in zip([".", *tokens], [*tokens, "."], strict=True):
        if token[0].isupper() and before not in _ENDS and _is_content(token):
            run.append(token)
        elif run:
            yield run
            run = []


def _phrases(tokens: list[str]) -> Iterator[list[str]]:
    for position, token in enumerate(tokens[:-1]):
        if token.lower() in _OPENERS or token.endswith(("'s", "’s")):
            run: list[str] = []
            for word in tokens[position + 1 : position + 1 + _PHRASE]:
                if not _is_content(word) or word[0].isupper():
                    break

                run.append(word)

            if run:
                yield run


def _is_content(token: str) -> bool:
    return (
        token[0].isalpha() and len(token) > 1 and token.lower().replace("’", "'") not in _NO_ENTITY
    )
