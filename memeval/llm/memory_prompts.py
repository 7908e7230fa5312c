"""What systems ask a model while they ingest: typed requests, so that the offline reader can answer
them by classical means.
"""

from __future__ import annotations

from dataclasses import dataclass

from memeval.llm.contract import Limits, Message, Prompt, fill

SUMMARY_MARGIN = 64
"""Tokens that a summary's reply may have beside half as many again as the summary."""


@dataclass(frozen=True, slots=True)
class SummarisePrompt(Prompt):
    """Merge chunks that leave the window into the earlier summary.

    The reply is the new summary alone.
    """

    previous: str
    """The summary so far; empty at the first compression."""
    units: tuple[str, ...]
    """What leaves the window, as shown to a reader, oldest first."""
    budget_tokens: int
    """Most tokens that the new summary may have."""
    system_text: str
    user_template: str
    """With `{previous}`, `{units}` and `{budget}`."""

    def messages(self) -> list[Message]:
        values = {
            "previous": self.previous or "(nothing yet)",
            "units": "\n".join(self.units),
            "budget": str(self.budget_tokens),
        }
        return [
            {"role": "system", "content": self.system_text},
            {"role": "user", "content": fill(self.user_template, values)},
        ]

    def limits(self) -> Limits:
        # The budget is in tokens of ours, and the model counts its own: it may need half as many
        # again for the same words.
        return Limits(max_tokens=self.budget_tokens + self.budget_tokens // 2 + SUMMARY_MARGIN)


@dataclass(frozen=True, slots=True)
class WorkingMemoryPrompt(Prompt):
    """Fill a template with what is worth keeping. The reply is the whole template, filled."""

    template: str
    """Lines `- Name:` under headings."""
    previous: str
    """The template as it was filled before; empty at first."""
    units: tuple[str, ...]
    system_text: str
    user_template: str
    """With `{template}`, `{previous}` and `{units}`."""

    def messages(self) -> list[Message]:
        values = {
            "template": self.template,
            "previous": self.previous or "(empty)",
            "units": "\n".join(self.units),
        }
        return [
            {"role": "system", "content": self.system_text},
            {"role": "user", "content": fill(self.user_template, values)},
        ]


@dataclass(frozen=True, slots=True)
class ExtractPrompt(Prompt):
    """Extract typed artifacts from chunks.

    The reply is a JSON list of objects: type, content, quote, unit (its number), date, people.
    """

    units: tuple[str, ...]
    """As shown to a reader, numbered from 1 in the prompt."""
    known: tuple[str, ...]
    """What is noted already; a second pass (gleaning) looks for what is missing."""
    system_text: str
    user_template: str
    """With `{units}` and `{known}`."""
    quotes: tuple[str, ...] = ()
    """Quotes that the first pass found, at a second one. They are for the offline reader alone,
    and are not sent.
    """

    def messages(self) -> list[Message]:
        numbered = "\n".join(f"{number}. {unit}" for number, unit in enumerate(self.units, start=1))
        values = {
            "units": numbered,
            "known": "\n".join(f"- {note}" for note in self.known) or "(nothing)",
        }
        return [
            {"role": "system", "content": self.system_text},
            {"role": "user", "content": fill(self.user_template, values)},
        ]
