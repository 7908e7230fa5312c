"""Requests that memory systems send to a model at ingest, typed for the offline reader."""

from dataclasses import dataclass

from memeval.llm.contract import FixedSampling, TemplatePrompt

SUMMARY_MARGIN = 64
"""Tokens that a summary's reply may use beyond one and a half times the budget."""
RELEVANCE_TOKENS = 10
"""Token limit of a yes-or-no reply."""


@dataclass(frozen=True, slots=True)
class SummarisePrompt(TemplatePrompt):
    """Merge chunks that leave the window into the earlier summary; the reply is the new summary."""

    previous: str
    """The summary so far; empty at the first compression."""
    chunks: tuple[str, ...]
    """The chunks that leave the window, as shown to a reader, oldest first."""
    budget_tokens: int
    """Maximum tokens of the new summary."""

    def values(self) -> dict[str, str]:
        return {
            "previous": self.previous or "(nothing yet)",
            "chunks": "\n".join(self.chunks),
            "budget": str(self.budget_tokens),
        }

    def limits(self) -> FixedSampling:
        return _limits_of(self.budget_tokens)


@dataclass(frozen=True, slots=True)
class WorkingMemoryPrompt(TemplatePrompt):
    """Fill in a template from chunks. The reply is the whole template, filled in."""

    template: str
    """Lines of the form `- Name:` under headings."""
    previous: str
    """The template as last filled in; empty at first."""
    chunks: tuple[str, ...]

    def values(self) -> dict[str, str]:
        return {
            "template": self.template,
            "previous": self.previous or "(empty)",
            "chunks": "\n".join(self.chunks),
        }


@dataclass(frozen=True, slots=True)
class ExtractPrompt(TemplatePrompt):
    """Extract artifacts as JSON objects: type, content, quote, chunk (its number), date, people."""

    chunks: tuple[str, ...]
    """As shown to a reader, numbered from 1 in the prompt."""
    known: tuple[str, ...]
    """Earlier notes; a second pass (gleaning) looks for missing ones."""
    quotes: tuple[str, ...] = ()
    """In a second pass, the quotes of the first; for the offline reader only, not sent."""

    def values(self) -> dict[str, str]:
        numbered = [f"{number}. {chunk}" for number, chunk in enumerate(self.chunks, start=1)]
        return {
            "chunks": "\n".join(numbered),
            "known": "\n".join(f"- {note}" for note in self.known) or "(nothing)",
        }


@dataclass(frozen=True, slots=True)
class EntitiesPrompt(TemplatePrompt):
    """Name what a turn mentions. The reply is a JSON list of names."""

    text: str
    """One turn, `speaker: text`."""

    def values(self) -> dict[str, str]:
        return {"text": self.text}


@dataclass(frozen=True, slots=True)
class NotesPrompt(TemplatePrompt):
    """Write notes on what was said, or condense notes. The reply is only the notes."""

    before: str
    """The preceding conversation, as context; empty at the beginning."""
    said: tuple[str, ...]
    """The part that the notes are about, as shown to a reader, oldest first."""
    budget_tokens: int
    """Maximum tokens of the notes."""

    def values(self) -> dict[str, str]:
        return {
            "before": self.before or "(nothing)",
            "said": "\n".join(self.said),
            "budget": str(self.budget_tokens),
        }

    def limits(self) -> FixedSampling:
        return _limits_of(self.budget_tokens)


@dataclass(frozen=True, slots=True)
class RelevancePrompt(TemplatePrompt):
    """Decide whether a text is relevant to a question. The reply is yes or no."""

    question: str
    text: str

    def values(self) -> dict[str, str]:
        return {"question": self.question, "text": self.text}

    def limits(self) -> FixedSampling:
        return FixedSampling(max_tokens=RELEVANCE_TOKENS)

    @property
    def bounded(self) -> bool:
        return True


def _limits_of(budget_tokens: int) -> FixedSampling:
    """The limits of a reply that may have up to `budget_tokens`, as memeval counts tokens."""
    # A model's tokenizer may count half as many tokens again for the same words.
    return FixedSampling(max_tokens=budget_tokens + budget_tokens // 2 + SUMMARY_MARGIN)
