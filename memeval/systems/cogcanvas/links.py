"""Which artifacts are linked: the rules of the published system, over vectors, types and words.

A rule links an artifact to artifacts of earlier extraction calls, never to one of the same call.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import chain

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memeval.llm.extractive.words import STOP_WORDS, stem
from memeval.systems.cogcanvas.artifacts import Artifact
from memeval.systems.cogcanvas.dates import day_of
from memeval.systems.cogcanvas.settings import CogCanvasSettings
from memeval.text.words import canonical, is_unspaced, search_terms

Mask = NDArray[np.bool_]
Pairs = NDArray[np.intp]

REFERENCES = "references"
CAUSED_BY = "caused_by"
COMMON = 0.02
"""Terms in more than this share of the artifacts link no events in the event chain."""
# "has", "from" and "not" are left out as in the published code, so they do make two artifacts
# overlap.
FUNCTION_WORDS = frozenset(
    "the and for are was were but with that this these those you your she her hers him his they "
    "them their our ours its who whom whose which what when where why how will would can could "
    "shall should may might must into onto than then".split()
)
"""Words that do not make two artifacts overlap."""
# Letters only, as published: a year or a number in both does not make two artifacts overlap.
_WORD = re.compile(r"[^\W\d_]{3,}")


class Edges(Struct, frozen=True):
    """The edges that one rule creates."""

    kind: str
    """`REFERENCES` or `CAUSED_BY`."""
    rule: str
    pairs: Pairs
    """One row per edge: the positions of its newer and its older artifact."""


class Links:
    """Applies the rules to matrices: newer artifacts are rows, older ones columns."""

    def __init__(
        self, artifacts: Sequence[Artifact], alike: NDArray[np.float64], settings: CogCanvasSettings
    ) -> None:
        self.settings = settings
        self.alike = alike
        batches, kinds = [], []
        for artifact in artifacts:
            batches.append(artifact.batch)
            kinds.append(artifact.kind)

        self.batches, self.kinds = np.array(batches), np.array(kinds)
        self.overlap = _common_words(artifacts)
        # How many calls a row's artifact comes after a column's; above 0 if it is newer.
        self.distance = self.batches[:, None] - self.batches[None, :]

    def by_rule(self) -> Iterable[Edges]:
        """The edges of each rule, in the published order."""
        settings, earlier = self.settings, self.distance > 0
        # Any artifact refers to every earlier one that is near enough: this rule has no window and
        # no limit.
        references = earlier & self._is_alike(settings.reference_threshold)
        yield Edges(REFERENCES, "reference", np.argwhere(references))

        # A todo has one cause, an insight all that are near enough.
        todo = self._between("todo", ("decision",), settings.todo_window)
        causes = self._nearest(todo & self._is_alike(settings.causal_threshold))
        yield Edges(CAUSED_BY, "todo", causes)

        insight = self._between("insight", ("key_fact", "decision"), settings.insight_window)
        sources = insight & self._is_alike(settings.causal_threshold)
        yield Edges(CAUSED_BY, "insight", np.argwhere(sources))

        # No cosine here, nor for events below: a common word is enough, even at a negative cosine.
        constraint = self._between("decision", ("key_fact", "reminder"), settings.constraint_window)
        if settings.constraint_overlap:
            constraint &= self.overlap

        yield Edges(CAUSED_BY, "constraint", self._latest(constraint))

        # Unlike rule 1, a common word needs no minimum cosine.
        about_person = self.overlap | (self.alike >= settings.reference_threshold)
        for kind, rule in (("event", "person"), ("relationship", "relationship")):
            person = self._between(kind, ("person_attribute",), None)
            yield Edges(REFERENCES, rule, np.argwhere(person & about_person))

        event = self._between("decision", ("event",), settings.event_window)
        yield Edges(CAUSED_BY, "event", np.argwhere(event & self.overlap))

    def _is_alike(self, least: float) -> Mask:
        """Pairs with a cosine of at least `least`, or `overlap_threshold` if they share a word."""
        result: Mask = (self.alike >= least) | (
            self.overlap & (self.alike >= self.settings.overlap_threshold)
        )
        return result

    def _between(self, kind: str, others: Sequence[str], window: int | None) -> Mask:
        """Pairs of an artifact of `kind` and one of `others`, at most `window` calls earlier."""
        near = self.distance > 0
        if window is not None:
            near &= self.distance <= window

        result: Mask = (self.kinds == kind)[:, None] & np.isin(self.kinds, others)[None, :] & near
        return result

    def _nearest(self, allowed: Mask) -> Pairs:
        """For each row, the allowed column with the highest cosine."""
        best = np.where(allowed, self.alike, -np.inf).argmax(axis=1)
        rows = np.flatnonzero(allowed.any(axis=1))
        return np.stack([rows, best[rows]], axis=1)

    def _latest(self, allowed: Mask) -> Pairs:
        """For each row, the allowed columns of the latest calls, up to `constraint_links`."""
        pairs = []
        for row in np.flatnonzero(allowed.any(axis=1)):
            columns = np.flatnonzero(allowed[row])
            order = np.argsort(-self.batches[columns], kind="stable")
            latest = columns[order[: self.settings.constraint_links]]
            pairs += [(int(row), int(column)) for column in latest]

        return _as_pairs(pairs)


def _as_pairs(pairs: Iterable[tuple[int, int]]) -> Pairs:
    # Without the explicit shape, an empty list of pairs would have no columns.
    return np.array(list(pairs), dtype=np.intp).reshape(-1, 2)


def content_words(text: str) -> set[str]:
    """The words that may link a text to another: three letters or more, without function words."""
    words = set(_WORD.findall(canonical(text).lower())) - FUNCTION_WORDS
    if text.isascii():
        return words

    return words | set(filter(is_unspaced, search_terms(text)))


def _common_words(artifacts: Sequence[Artifact]) -> Mask:
    """Whether the newer artifact's content or quote has a word of the older one's content."""
    holders: dict[str, list[int]] = defaultdict(list)
    for number, artifact in enumerate(artifacts):
        for word in content_words(artifact.content):
            holders[word].append(number)

    columns = {word: np.array(numbers) for word, numbers in holders.items()}
    common = np.zeros((len(artifacts), len(artifacts)), dtype=bool)
    for number, artifact in enumerate(artifacts):
        # The quote counts only for the newer artifact: that is how the published rule compares.
        for word in content_words(f"{artifact.content} {artifact.quote}"):
            if word in columns:
                common[number, columns[word]] = True

    return common


def next_events(artifacts: Sequence[Artifact]) -> Pairs:
    """Pairs of an event and the next one that shares a rare term or person."""
    speakers = {artifact.speaker for artifact in artifacts}
    words = _stems_of(artifacts)
    frequency = Counter(chain.from_iterable(words))

    # At least 2, or a short conversation would have no rare term: a link needs two artifacts.
    most = max(2, COMMON * len(artifacts))
    rare = {word for word, count in frequency.items() if 1 < count <= most}

    days: dict[int, date] = {}
    for number, artifact in enumerate(artifacts):
        if artifact.kind == "event":
            days[number] = day_of(artifact.dates, artifact.time) or date.max

    last: dict[str, int] = {}
    # A dict, because two events may share several things and are linked once, in this order.
    pairs: dict[tuple[int, int], None] = {}
    # The sort is stable: events of one day stay in order.
    for number in sorted(days, key=days.__getitem__):
        # The speakers are in nearly every event, so they link nothing.
        people = {*artifacts[number].people} - speakers
        for shared in sorted((words[number] & rare) | people):
            if shared in last:
                pairs[last[shared], number] = None

            last[shared] = number

    return _as_pairs(pairs)


def _stems_of(artifacts: Sequence[Artifact]) -> list[set[str]]:
    """The stems of each artifact's terms, without stop words."""
    held_terms = [set(search_terms(artifact.full_text)) - STOP_WORDS for artifact in artifacts]
    # Artifacts share most of their terms, and stemming is slow: each term is stemmed once.
    stems = {term: stem(term) for term in set[str]().union(*held_terms)}

    return [set(map(stems.__getitem__, held)) for held in held_terms]
