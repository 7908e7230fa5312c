"""The offline model's summary: the most informative sentences, with dates and speakers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from memeval.llm.extractive.entries import SourceSentence, block, entries
from memeval.llm.extractive.words import EVALUATIVE, VAGUE, stem
from memeval.llm.memory_prompts import NotesPrompt, RelevancePrompt, SummarisePrompt
from memeval.llm.tokens import count_tokens

TELLING = 2.0
"""Added to the weight of a name or a number."""
ASKED = 0.3
"""Factor on the value of a question, which contains little besides the topic."""
OVERHEAD = 6
"""Tokens added to each sentence's length, so that very short sentences have no advantage."""
STAMP_TOKENS = 10
"""Approximate tokens of a date."""

_EMPTY = frozenset(map(stem, EVALUATIVE | VAGUE))


def summarise(prompt: SummarisePrompt) -> str:
    """The earlier summary merged with the chunks, within the budget.

    Sentences of the earlier summary and of the chunks compete on equal terms. The next sentence is
    the one with the largest gain / (tokens + 6). Its gain is the sum of the weights of the stems
    that no chosen sentence has, divided by sqrt(1 + chosen sentences of its date). A stem's weight
    is 1 + ln(sentences that contain it) + 2 if it is a name or a number, and 0 if it is evaluative
    or vague. So every date keeps some sentences, and a repeated fact is kept once.
    """
    sentences = list(dict.fromkeys([*entries([prompt.previous]), *entries(prompt.chunks)]))
    chosen = _choose(sentences, prompt.budget_tokens)
    while chosen and count_tokens(_report(sentences, chosen)) > prompt.budget_tokens:
        chosen.pop()

    return _report(sentences, chosen)


def _report(sentences: Sequence[SourceSentence], chosen: Sequence[int]) -> str:
    """The chosen sentences in chronological order, which is the order of their numbers."""
    return block(sentences[number] for number in sorted(chosen))


def _choose(sentences: Sequence[SourceSentence], budget: int) -> list[int]:
    """Numbers of the chosen sentences, best first."""
    weights = _weights(sentences)
    costs = [count_tokens(entry.text) + 2 for entry in sentences]
    remaining, chosen, spare_tokens = set(range(len(sentences))), [], budget
    covered: set[str] = set()
    per_date: Counter[str] = Counter()

    def worth(number: int) -> float:
        entry = sentences[number]
        # `fsum` does not depend on the order of the set, which changes with each process.
        gain = math.fsum(weights[term] for term in entry.terms - covered)
        gain /= math.sqrt(1 + per_date[entry.stamp])
        if entry.asks:
            gain *= ASKED

        return gain / (costs[number] + OVERHEAD)

    while remaining:
        # Sorted, so that the earliest of equal sentences is taken.
        best = max(sorted(remaining), key=worth)
        remaining.discard(best)
        stamp = sentences[best].stamp
        cost = costs[best]
        # The date is written once, before its first sentence.
        if stamp and not per_date[stamp]:
            cost += STAMP_TOKENS

        if worth(best) <= 0 or spare_tokens <= 0:
            break

        if cost <= spare_tokens:
            chosen.append(best)
            spare_tokens -= cost
            covered.update(sentences[best].terms)
            per_date[stamp] += 1

    return chosen


def _weights(sentences: Sequence[SourceSentence]) -> Mapping[str, float]:
    counts: Counter[str] = Counter()
    telling: set[str] = set()
    for entry in sentences:
        counts.update(entry.terms)
        telling |= entry.telling

    weights = {term: 1 + math.log(count) for term, count in counts.items()}
    for term in telling:
        weights[term] += TELLING

    return weights | dict.fromkeys(_EMPTY, 0.0)


SHARE = 3
"""Text is relevant if one sentence has at least 1/`SHARE` of the question's content words."""


def take_notes(prompt: NotesPrompt) -> str:
    """The sentences that together cover most of the conversation, as in a summary."""
    return summarise(
        SummarisePrompt(previous="", chunks=prompt.said, budget_tokens=prompt.budget_tokens)
    )


def bears_on(prompt: RelevancePrompt) -> str:
    """`yes` if one sentence of the text contains a third of the question's content words."""
    asked = frozenset().union(*(entry.terms for entry in entries([prompt.question])))
    shared = [len(entry.terms & asked) for entry in entries([prompt.text])]
    most = max(shared, default=0)
    return "yes" if most and SHARE * most >= len(asked) else "no"
