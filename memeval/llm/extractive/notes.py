"""The offline model's notes, and whether a text bears on a question."""

from __future__ import annotations

from memeval.llm.extractive.entries import entries
from memeval.llm.extractive.summaries import summarise
from memeval.llm.memory_prompts import NotesPrompt, RelevancePrompt, SummarisePrompt

SHARE = 3
"""A text bears on a question if it holds at least one in this many of its content words."""


def take_notes(prompt: NotesPrompt) -> str:
    """The sentences that together say the most of what was said, as in a summary of it."""
    return summarise(
        SummarisePrompt(previous="", chunks=prompt.said, budget_tokens=prompt.budget_tokens)
    )


def bears_on(prompt: RelevancePrompt) -> str:
    """`yes` if one sentence of the text holds a third of the question's content words."""
    asked = frozenset().union(*(entry.terms for entry in entries([prompt.question])))
    shared = [len(entry.terms & asked) for entry in entries([prompt.text])]
    most = max(shared, default=0)
    return "yes" if most and SHARE * most >= len(asked) else "no"
