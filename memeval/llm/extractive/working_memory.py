"""The offline model's working memory: sentences sorted into a form by cue words."""

from collections.abc import Mapping, Sequence

from memeval.llm.extractive.entries import SourceSentence, entries
from memeval.llm.extractive.words import TEMPORAL, TOKEN, stem
from memeval.llm.form import field_names, read_form, write_form
from memeval.llm.memory_prompts import WorkingMemoryPrompt

PER_FIELD = 5
"""Maximum number of sentences in a field."""

_KINDS: Mapping[str, str] = {
    "who name person people profile identity": """
        name called am i'm nickname years old born originally
    """,
    "family friend relation partner pet": """
        sister brother mother mom mum father dad parents wife husband partner son daughter kids
        child aunt uncle cousin grandmother grandma grandfather grandpa friend dog cat puppy pet
        girlfriend boyfriend family
    """,
    "work study job career school profession": """
        job work working boss colleague company office career business school class course degree
        university college exam teacher student manager client shop project research
    """,
    "home place location address": """
        live living lives moved moving house home apartment flat city town village country garden
    """,
    "like preference interest hobby favourite favorite": """
        love loves likes enjoy enjoyed favorite favourite prefer adore fan passion fond keen hobby
    """,
    "dislike aversion hate": """
        hate hates dislike can't refuse allergic avoid scared afraid worst awful terrible annoying
    """,
    "habit routine": """
        always usually every often daily weekly routine regularly mornings sundays weekends
    """,
    "plan upcoming schedule appointment": """
        plan plans planning going gonna will i'll we'll tomorrow booked soon upcoming forward
    """,
    "wish goal dream aim": "want wants wish hope hoping dream goal aim someday",
    "open point question task todo": """
        need needs must should still decide waiting remind promise promised forgot unsure undecided
        haven't
    """,
    "event past experience happen": """
        yesterday ago last went got bought visited started finished won lost happened came tried
        made took
    """,
    "date birthday anniversary deadline": """
        birthday anniversary wedding married deadline date born years
    """,
}
"""Cue words of a field, by the words in the field's name."""

_CUES: dict[str, frozenset[str]] = {}
for _field_words, _cue_words in _KINDS.items():
    _CUES |= dict.fromkeys(map(stem, _field_words.split()), frozenset(_cue_words.split()))


def fill_form(prompt: WorkingMemoryPrompt) -> str:
    """The form, updated from the chunks.

    Each sentence that is not a question goes to the field with the most cue words in it, the first
    of equal fields; a sentence without a cue word is left out. A field with an unknown name uses
    that name's words as cue words. A field keeps the `PER_FIELD` sentences with the most cue words,
    names, numbers and other content, in chronological order. Among equals, newer ones win.
    """
    names = field_names(prompt.template)
    before = read_form(prompt.template, prompt.previous)
    cues, kept = {}, {}
    for field in names:
        cues[field] = _cues(field)
        kept[field] = list(entries(before.get(field, ())))

    for entry in entries(prompt.chunks):
        best = max(names, key=lambda field: _cue_count(entry, cues[field]), default=None)
        if best is not None and not entry.asks and _cue_count(entry, cues[best]):
            kept[best].append(entry)

    filled = {name: _keep(sentences, cues[name]) for name, sentences in kept.items()}
    return write_form(prompt.template, filled)


def _cues(name: str) -> frozenset[str]:
    words = list(map(stem, TOKEN.findall(name)))
    known = [_CUES[word] for word in words if word in _CUES]
    return frozenset().union(*known) or frozenset(words)


def _cue_count(entry: SourceSentence, cues: frozenset[str]) -> int:
    words = set(map(str.lower, TOKEN.findall(entry.text.replace("’", "'"))))
    return len(cues & words) or len(cues & entry.terms)


def _keep(sentences: Sequence[SourceSentence], cues: frozenset[str]) -> list[str]:
    def worth(number: int) -> tuple[float, int]:
        entry = sentences[number]
        content = len(entry.terms - TEMPORAL)
        return 2 * _cue_count(entry, cues) + 2 * len(entry.telling) + min(content, 6), number

    unique = [number for number, entry in enumerate(sentences) if entry not in sentences[:number]]
    best = sorted(unique, key=worth, reverse=True)[:PER_FIELD]
    return [sentences[number].line for number in sorted(best)]
